"""How much columns tell of a column: one normal density of all, and mixtures of densities given single parents."""

import numpy as np

from ldfm.types import Booleans, Floats, Integers

PASSES, ENOUGH = 100, 1e-4  # to fit the normal density at most, and change of its covariance at which it is fitted
TAILS = 5.0  # degrees of freedom
RIDGE = 0.03  # rows of each column's own variance: what it adds to relations stays in the model
MIXING = 15  # passes to fit a mixture of parents
LEAST_VARIANCE = 1e-6
SMALL = 1e-300


class NormalFit:
    """A normal density of columns with missing cells, fitted by EM; rows whose numbers are far out given the rest weigh less.

    Parameters
    ----------
    cells, weights
        (rows, columns), NaN where a cell is missing, and (rows,): 0 for rows that are not learned from.
    numbers
        How many columns, the first ones, are numbers; the others are indicators of values.

    Attributes
    ----------
    means, covariance
        (columns,) and (columns, columns).
    seen
        (columns, columns): the covariance without its ridge.
    """

    def __init__(self, cells: Floats, weights: Floats, numbers: int) -> None:
        known = ~np.isnan(cells)
        counts = weights @ known
        self.cells, self.known = cells, known
        self.means: Floats = weights @ np.where(known, cells, 0.0) / np.maximum(counts, SMALL)
        spread = weights @ np.where(known, cells - self.means, 0.0) ** 2 / np.maximum(counts, SMALL)
        self.covariance: Floats = np.diag(np.maximum(spread, LEAST_VARIANCE))
        self.seen = self.covariance
        for _ in range(PASSES):
            if not np.isfinite(self.covariance).all():
                break
            if self._improve(weights, numbers) < ENOUGH:
                break
        if np.isfinite(self.covariance).all():
            self._factors = _inverses(self.covariance, known)
            self._pulled = np.einsum("rij,rj->ri", self._factors, np.where(known, cells - self.means, 0.0))

    def _improve(self, weights: Floats, numbers: int) -> float:
        """Make a pass; give the largest change of a covariance, in units of deviations."""
        known, covariance, total = self.known, self.covariance, weights.sum()
        off = np.where(known, self.cells - self.means, 0.0)
        factors = _inverses(covariance, known)
        pulled = np.einsum("rij,rj->ri", factors, off)
        far = (pulled * off).sum(axis=1) - _distances(covariance, known, off, np.arange(numbers, len(covariance)))
        heavy = weights * (TAILS + known[:, :numbers].sum(axis=1)) / (TAILS + np.maximum(far, 0.0))
        # rows that are far out say no less of how unsure their missing cells are
        unsure = total * covariance - covariance @ np.einsum("r,rij->ij", weights, factors) @ covariance
        completed = pulled @ covariance
        step = heavy @ completed / heavy.sum()
        squares = (completed - step).T @ (heavy[:, None] * (completed - step)) + unsure
        covariance = (squares + RIDGE * np.diag(np.diag(squares)) / total) / (total + RIDGE)
        covariance[np.diag_indices_from(covariance)] += LEAST_VARIANCE  # constants
        own = np.sqrt(covariance.diagonal())
        change = np.abs(covariance - self.covariance) / np.outer(own, own)
        self.means, self.covariance, self.seen = self.means + step, covariance, squares / total
        return float(change.max())

    def expected_without(self, j: int) -> Floats:
        """Give the cells, missing ones as they are expected given those of their row that are known, but for column j."""
        # without one column the inverse is that of all less an outer product
        own, of_j = self._factors[:, j, j], self._factors[:, :, j]
        share = np.where(self.known[:, j], self._pulled[:, j] / np.where(own > 0, own, 1.0), 0.0)
        expected = self.means + (self._pulled - of_j * share[:, None]) @ self.covariance
        found: Floats = np.where(self.known, self.cells, expected)
        return found


def _distances(covariance: Floats, known: Booleans, off: Floats, places: Integers) -> Floats:
    """Give (rows,): squared distances of some columns of rows from the mean."""
    inverses = _inverses(covariance[np.ix_(places, places)], known[:, places])
    found: Floats = np.einsum("ri,rij,rj->r", off[:, places], inverses, off[:, places])
    return found


def _inverses(covariance: Floats, known: Booleans) -> Floats:
    """Give (rows, n, n): inverses of the covariance of the known cells of each row, 0 elsewhere."""
    patterns, places = np.unique(known, axis=0, return_inverse=True)
    both = patterns[:, :, None] & patterns[:, None, :]
    found = np.where(both, np.linalg.inv(np.where(both, covariance, np.eye(len(covariance)))), 0.0)
    return np.asarray(found[places.ravel()], dtype=np.float64)


class ParentMixture:
    """Mixtures of normal densities of a column given the root, or one of some other columns, by EM.

    Parameters
    ----------
    numbers, groups
        The other columns, NaN where they are missing: numbers (rows, columns), and indicators of values (rows, values).
    weights
        (rows,)
    """

    def __init__(self, numbers: Floats, groups: list[Floats], weights: Floats) -> None:
        self.groups = [np.ones((len(weights), 1)), *map(np.nan_to_num, groups)]
        self.numbers, self.weights = np.nan_to_num(numbers), weights
        of_groups = [~np.isnan(group[:, 0]) for group in groups]
        of_root = np.ones(len(weights), dtype=np.bool_)
        self.known = np.column_stack([of_root, *of_groups, ~np.isnan(numbers)])

    def score(self, column: Floats, judged: Floats | None = None) -> float:
        """Give the mean log density of a column, parents that are missing in a row leaving their shares to the others.

        The mean is that over the rows it is fitted to, or over those that weigh something in `judged`.
        """
        total, known = self.weights.sum(), self.known
        judged = self.weights if judged is None else judged
        off = column - self.weights @ column / total
        own = max(float(self.weights @ off**2 / total), LEAST_VARIANCE)
        shares, mixing = known / known.sum(axis=1, keepdims=True), np.full(known.shape[1], 1.0)
        score = -np.inf
        for _ in range(MIXING):
            logs = np.where(known, np.log(mixing) + self._logs(off, shares * self.weights[:, None], own), -np.inf)
            top = logs.max(axis=1, keepdims=True)
            parts = np.exp(logs - top)
            sums = parts.sum(axis=1, keepdims=True)
            score = float(judged @ (top + np.log(sums / (known @ mixing)[:, None]))[:, 0] / judged.sum())
            shares = parts / sums
            mixing = self.weights @ shares + 0.1
        return score

    def _logs(self, off: Floats, heavy: Floats, own: float) -> Floats:
        """Give (rows, parents): log densities given each, fitted to rows that weigh so much; one of its own variance besides."""
        found = np.empty(heavy.shape)
        for place, group in enumerate(self.groups):
            parts = heavy[:, place, None] * group
            sizes = parts.sum(axis=0)
            apart = off - group @ (parts.T @ off / (sizes + 0.1))
            variance = np.maximum(group @ ((parts.T @ apart**2 + own) / (sizes + 1.0)), LEAST_VARIANCE * own)
            found[:, place] = -0.5 * (np.log(variance) + apart**2 / variance)
        parts, x = heavy[:, len(self.groups) :], self.numbers
        sizes = parts.sum(axis=0) + 1e-9
        x = x - (parts * x).sum(axis=0) / sizes
        level = off @ parts / sizes
        slope = ((parts * x).T @ off) / ((parts * x**2).sum(axis=0) + 0.1)
        apart = off[:, None] - level - slope * x
        variance = np.maximum(((parts * apart**2).sum(axis=0) + own) / (sizes + 1.0), LEAST_VARIANCE * own)
        found[:, len(self.groups) :] = -0.5 * (np.log(variance) + apart**2 / variance)
        return found
