"""The two steps of EM for mixed models: expected statistics of rows, and the weights that fit them best.

Normal densities of an arc with expected statistics c, cx, ... have a conjugate prior worth `NORMAL_ROWS` rows of the column's own
variance, which is 1 in standardised units, and a ridge on intercept and slope:

    maximise  -(c + rows) / 2 log v - (sum of c (y - a - b x)^2 + ridge (a^2 + b^2) + rows) / (2 v),      v >= VARIANCE_FLOOR.

Logits have a ridge too, and take one step a pass to the top of a quadratic that lies below the log-likelihood everywhere
(Boehning, 1992): for k values and M = [[c, cx], [cx, cxx]] its curvature is (1 - 1/k) M / 2. So the objective never falls.
"""

from dataclasses import replace

import numpy as np

from ldfm.forests import Statistics, expected_statistics
from ldfm.kernels.mixed_arcs import add_statistics
from ldfm.learning.mixed_completion import MixedRows
from ldfm.learning.priors import Prior
from ldfm.mixed_weights import MixedWeights
from ldfm.tables import MergedRows
from ldfm.types import Floats

NORMAL_ROWS = 1.0
RIDGE = 0.1
LOGIT_RIDGE = 0.05
VARIANCE_FLOOR = 1e-6
_FIRST_PASSES = 25  # over pairs of columns, to fit the logits that learning starts from


class MixedSteps:
    """EM on rows of cells."""

    def complete(self, rows: MergedRows, start: MixedWeights, key: tuple[int, ...]) -> MixedRows:
        """Give the rows with their missing cells held by chains."""
        del start
        return MixedRows(rows, key)

    def expect(self, weights: MixedWeights, rows: MixedRows, n_jobs: int | None) -> Statistics:
        """Give the expected statistics of completed rows."""
        return expected_statistics(weights, rows.codes, rows.weights, n_jobs)

    def log_probability(self, weights: MixedWeights, found: Statistics, rows: MixedRows) -> float:
        """Give the log probability of generating all rows."""
        del weights, rows
        return found.log_sum

    def log_prior(self, weights: MixedWeights, prior: Prior) -> float:
        """Give the log prior of all weights, up to a constant."""
        return prior.log_density(weights.rows(), weights.outcomes) + log_prior_of_numbers(weights)

    def maximise(self, weights: MixedWeights, found: Statistics, rows: MixedRows, prior: Prior) -> MixedWeights:
        """Give the weights of the next iteration."""
        first = weights.first
        counts = np.hstack([found.arcs, state_counts(rows, weights)[:, None]])
        of_variables = np.zeros(found.arcs.shape)
        np.add.at(of_variables.T, first, found.arcs.T)
        numeric_rows = np.concatenate([[False], weights.numeric])[:, None]
        counts[:, :-1] = np.where(numeric_rows, of_variables, found.arcs)
        modes = prior.modes(counts, weights.outcomes)
        moved = weights.with_rows(np.where(np.isnan(modes), weights.rows(), modes))
        return with_numbers(moved, *fit_numbers(weights, found.sums))


def state_counts(rows: MixedRows, weights: MixedWeights) -> Floats:
    """Give (S + 1,): how often the root and each state stop: once in every row they are in."""
    counts = np.empty(len(weights.root) + 1)
    counts[0] = rows.weights.sum()
    for i, (low, high) in enumerate(zip(weights.offsets[:-1], weights.offsets[1:], strict=True)):
        if weights.continuous[i]:
            counts[1 + low] = counts[0]
        else:
            codes = rows.codes[:, i].astype(np.int64)
            counts[1 + low : 1 + high] = np.bincount(codes, weights=rows.weights, minlength=high - low)
    return counts


def with_numbers(weights: MixedWeights, intercepts: Floats, slopes: Floats, deviations: Floats) -> MixedWeights:
    """Give the weights with other normal densities and logits."""
    return replace(weights, intercepts=intercepts, slopes=slopes, deviations=deviations)


def fit_numbers(weights: MixedWeights, sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Give intercepts, slopes and deviations from expected statistics: normal densities fitted, logits moved by a step."""
    intercepts, slopes, variances = fit_normals(sums)
    normal, logit = weights.mask & weights.numeric, weights.logits
    moved = logit_steps(weights, sums)
    return (
        np.where(normal, intercepts, np.where(logit, weights.intercepts + moved[0], 0.0)),
        np.where(normal, slopes, np.where(logit, weights.slopes + moved[1], 0.0)),
        np.where(normal, np.sqrt(variances), 1.0),
    )


def fit_normals(sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Give intercepts, slopes and variances of ridge regressions of children on parents, one an arc."""
    c, cx, cxx, cy, cxy, _ = sums
    a, b = _solve(c + RIDGE, cx, cxx + RIDGE, cy, cxy)
    squares = squared_residuals(sums, a, b)
    variances = (np.maximum(squares, 0.0) + RIDGE * (a * a + b * b) + NORMAL_ROWS) / (c + NORMAL_ROWS)
    return a, b, np.maximum(variances, VARIANCE_FLOOR)


def squared_residuals(sums: Floats, intercepts: Floats, slopes: Floats) -> Floats:
    """Give the sums of c (y - a - b x)^2."""
    c, cx, cxx, cy, cxy, cyy = sums
    a, b = intercepts, slopes
    found: Floats = cyy - 2.0 * (a * cy + b * cxy) + a * a * c + 2.0 * a * b * cx + b * b * cxx
    return found


def logit_steps(weights: MixedWeights, sums: Floats) -> tuple[Floats, Floats]:
    """Give steps of intercepts and slopes of logits that raise the log-likelihood plus its ridge."""
    c, cx, cxx = (0.5 * np.add.reduceat(part, weights.offsets[:-1], axis=1) for part in sums[:3])
    variable = np.repeat(np.arange(len(weights.cardinalities)), weights.cardinalities)
    gradients = sums[3] - LOGIT_RIDGE * weights.intercepts, sums[4] - LOGIT_RIDGE * weights.slopes
    return _solve(c[:, variable] + LOGIT_RIDGE, cx[:, variable], cxx[:, variable] + LOGIT_RIDGE, *gradients)


def _solve(c: Floats, cx: Floats, cxx: Floats, u: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Solve [[c, cx], [cx, cxx]] (a, b) = (u, v) for many."""
    determinant = c * cxx - cx * cx
    return (cxx * u - cx * v) / determinant, (c * v - cx * u) / determinant


def log_prior_of_numbers(weights: MixedWeights) -> float:
    """Give the log prior of normal densities and logits, up to a constant."""
    normal, logit = weights.mask & weights.numeric, weights.logits
    a, b, v = weights.intercepts, weights.slopes, weights.deviations**2
    normals = -0.5 * NORMAL_ROWS * np.log(v) - (RIDGE * (a * a + b * b) + NORMAL_ROWS) / (2.0 * v)
    return float(normals[normal].sum() - 0.5 * LOGIT_RIDGE * (a * a + b * b)[logit].sum())


def first_weights(rows: MergedRows, uniform: MixedWeights) -> MixedWeights:
    """Give where learning starts: equal mixing weights, every pair of columns fitted by itself on the rows that have both."""
    weights = uniform
    for _ in range(_FIRST_PASSES if weights.logits.any() else 1):
        weights = with_numbers(weights, *fit_numbers(weights, pair_statistics(rows, weights)))
    return weights


def pair_statistics(rows: MergedRows, weights: MixedWeights) -> Floats:
    """Give (6, S + 1, S) the statistics that every arc would have if it were in the forest of each row that has both cells."""
    cells = rows.codes.astype(np.float64)
    rests = weights.rests(cells)
    known = ~np.isnan(rests)
    pairs = np.zeros((len(cells), cells.shape[1] + 1, cells.shape[1]))
    pairs[:, 0] = known
    pairs[:, 1:] = known[:, :, None] & known[:, None, :] & ~np.eye(cells.shape[1], dtype=np.bool_)
    sums = np.zeros((6, *weights.table.shape))
    add_statistics(weights.model, np.where(known, rests, 0.0), rows.weights, pairs, sums)
    return sums
