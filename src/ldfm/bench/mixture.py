"""A Gaussian mixture of rows with numbers and categories, by EM: the peer of held-out densities.

A component has a normal density of the numbers, with any covariance or a diagonal one, and shares of the categories. So components
are free to stand for a class, for a part of one, or for several. BIC chooses their number and the kind of covariance.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from ldfm.types import Floats, Integers

LARGEST, ITERATIONS, STARTS = 8, 200, 3
RIDGE = 1e-4  # added to variances
ENOUGH = 1e-6  # gain of the mean log-likelihood below which EM stops


class Mixture(NamedTuple):
    """A mixture.

    Attributes
    ----------
    shares
        (components,)
    means
        (components, numbers)
    covariances
        (components, numbers, numbers)
    kinds
        (components, categories): their shares in each component.
    """

    shares: Floats
    means: Floats
    covariances: Floats
    kinds: Floats

    def logs(self, numbers: Floats, classes: Integers) -> Floats:
        """Give (rows, components): log of the share of a component times the density of the row in it."""
        found = np.empty((len(numbers), len(self.shares)))
        for place, (mean, covariance) in enumerate(zip(self.means, self.covariances, strict=True)):
            lower = np.linalg.cholesky(covariance)
            z = np.linalg.solve(lower, (numbers - mean).T)
            peak = -np.log(np.diag(lower)).sum() - 0.5 * len(mean) * np.log(2.0 * np.pi)
            found[:, place] = peak - 0.5 * (z**2).sum(axis=0)
        return found + np.log(self.shares) + np.log(self.kinds[:, classes]).T

    def log_density(self, numbers: Floats, classes: Integers) -> Floats:
        """Give (rows,): the log density of rows."""
        found: Floats = logsumexp(self.logs(numbers, classes), axis=1)
        return found


def fit_mixture(
    numbers: Floats, classes: Integers, count: int, generator: np.random.Generator, *, diagonal: bool
) -> tuple[Mixture, float]:
    """Fit a mixture of so many components by EM from the clusters of k-means; give it and its mean log-likelihood."""
    from sklearn.cluster import KMeans

    indicators = np.eye(int(classes.max()) + 1)[classes]
    seen = np.hstack([numbers, indicators])
    labels = KMeans(count, n_init=1, random_state=int(generator.integers(1 << 31))).fit_predict(seen)
    parts, last = np.eye(count)[labels], -np.inf
    for _ in range(ITERATIONS):
        mixture = _maximise(numbers, indicators, parts, diagonal=diagonal)
        logs = mixture.logs(numbers, classes)
        totals = logsumexp(logs, axis=1)
        parts = np.exp(logs - totals[:, None])
        if totals.mean() - last < ENOUGH:
            break
        last = float(totals.mean())
    return mixture, float(totals.mean())


def _maximise(numbers: Floats, indicators: Floats, parts: Floats, *, diagonal: bool) -> Mixture:
    """Give the mixture that rows shared out to components say; one row more of each is spread evenly over the categories."""
    sizes = parts.sum(axis=0) + 1e-9
    means = parts.T @ numbers / sizes[:, None]
    covariances = np.empty((len(sizes), numbers.shape[1], numbers.shape[1]))
    mask = np.eye(numbers.shape[1]) if diagonal else np.ones((numbers.shape[1],) * 2)
    for place, mean in enumerate(means):
        apart = numbers - mean
        covariances[place] = (parts[:, place] * apart.T) @ apart / sizes[place] * mask
    covariances += RIDGE * np.eye(numbers.shape[1])
    kinds = parts.T @ indicators + 1.0 / indicators.shape[1]
    return Mixture(sizes / sizes.sum(), means, covariances, kinds / kinds.sum(axis=1, keepdims=True))


def best_mixture(numbers: Floats, classes: Integers, seed: int) -> Mixture:
    """Give the mixture that BIC prefers, the best of a few starts for every number of components and kind of covariance."""
    rows, width = numbers.shape
    generator = np.random.default_rng(seed)
    least, best = np.inf, None
    for diagonal in (False, True):
        free = width + (width if diagonal else width * (width + 1) // 2) + int(classes.max())
        for count in range(1, min(LARGEST, rows // 10) + 1):
            fits = [fit_mixture(numbers, classes, count, generator, diagonal=diagonal) for _ in range(STARTS)]
            mixture, likelihood = max(fits, key=lambda fit: fit[1])
            bic = (count * (free + 1) - 1) * np.log(rows) - 2.0 * rows * likelihood
            if bic < least:
                least, best = bic, mixture
    if best is None:
        raise ValueError(f"{rows} rows are too few for a mixture")
    return best
