"""Which columns of numbers are measured from several others, and how: chosen before the fit.

A first look is by one normal density of all numbers, with shifts for the values of discrete columns, and heavy tails so that
outliers do not count for much. The best single tree says how far one parent a column goes. Of the columns that have no relation
yet, the one is taken with which, measured from others, the best tree gains most; others that add less than they cost are left out.
It may be measured from those without a relation alone, so that no circle comes about. (That several columns tell more of one than
the best of them is no reason: so do a column's parent and children in a tree.)

But a tree falls short, too, where each of several columns tells of some rows, and that is what forests are for. So a second look
compares two mixtures: of densities of the column given single parents, which is about what a model can do for it, and of those of
what the relation leaves of it. Only where that is clearly better is the relation kept.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from ldfm.relations import Relations
from ldfm.tables import MergedRows
from ldfm.types import Booleans, Floats, Integers

MOST_ROWS = 1000  # that are looked at, evenly spread
MOST_VALUES = 32  # of a discrete column that is looked at
MOST_INDICATORS = 100  # of all discrete columns
ROWS_A_COLUMN = 5  # at least, of those that a column may be measured from
LEAST_ROWS = 20
PASSES = 30  # to fit the normal density
TAILS = 5.0  # degrees of freedom
RIDGE = 1.0  # rows of each column's own variance
MARGIN = 0.02  # nats a row that a relation must gain, besides what its numbers cost
MIXING = 15  # passes to fit a mixture of parents
LEAST_VARIANCE = 1e-6
SMALL = 1e-300


def choose_relations(
    rows: MergedRows, cardinalities: tuple[int, ...], continuous: tuple[bool, ...]
) -> Relations | None:
    """Give the relations of the columns of merged rows, None where there are none."""
    places, size = np.flatnonzero(continuous), len(continuous)
    counted = np.flatnonzero(rows.weights > 0)
    if len(places) < 3 or len(counted) < LEAST_ROWS:
        return None
    seen = counted[np.unique(np.linspace(0, len(counted) - 1, MOST_ROWS).astype(np.int64))]
    cells, weights = rows.codes[seen].astype(np.float64), rows.weights[seen] / rows.weights[seen].mean()
    # what cannot be computed, such as variances of cells of 1e200, gains nothing
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        chooser = _Chooser(cells, weights, np.array(cardinalities), np.array(continuous), float(rows.weights.sum()))
        found = chooser.choose()
    if not found:
        return None
    shares, levels, scales = np.zeros((size, size)), np.zeros(size), np.ones(size)
    for line in found:
        j = places[line.column]
        shares[j, places] = line.shares
        levels[j], scales[j] = line.level, line.scale
    return Relations(shares, levels, scales)


class _Line(NamedTuple):
    """A relation of one column, by places among the numbers."""

    column: int
    shares: Floats  # (numbers,)
    level: float
    scale: float
    gain: float  # nats a row that it promises

    @property
    def used(self) -> int:
        """Number of columns it is measured from."""
        return int((self.shares != 0).sum())


class _Chooser:
    """Chooses relations for the numbers of some rows.

    Parameters
    ----------
    cells, weights
        (rows, n) and (rows,).
    cardinalities, continuous
        (n,): of the variables.
    total
        Rows that these stand for.
    """

    def __init__(
        self, cells: Floats, weights: Floats, cardinalities: Integers, continuous: Booleans, total: float
    ) -> None:
        numbers = cells[:, continuous]
        self.count, self.weights, self.total = numbers.shape[1], weights, total
        self.groups = _indicators(cells[:, ~continuous], cardinalities[~continuous])
        taken = np.cumsum([group.shape[1] - 1 for group in self.groups], dtype=np.int64)
        parts = [group[:, 1:] for group, reach in zip(self.groups, taken, strict=True) if reach <= MOST_INDICATORS]
        self.cells = np.hstack([numbers, *parts])
        self.known = ~np.isnan(self.cells)
        ends = np.cumsum([self.count, *(part.shape[1] for part in parts)])
        self.blocks = [np.arange(a, b) for a, b in pairwise(ends)]
        self.means, self.covariance = _fit_normal(self.cells, self.count, weights)

    def choose(self) -> list[_Line]:
        """Give relations in the order in which they were found: columns of later ones are measured from none of the earlier."""
        if not np.isfinite(self.covariance).all():
            return []
        free, refused, found = list(range(self.count)), set[int](), list[_Line]()
        seen = np.eye(len(self.covariance))  # what the model would see, a row a column
        present = self.cells[:, : self.count].copy()  # as the model would see the columns
        while len(free) > 2:
            score = self._tree_score(seen)
            lines = [self._line(j, [k for k in free if k != j], seen, score) for j in free if j not in refused]
            best = max(lines, key=lambda line: line.gain, default=None)
            if best is None or not best.gain > MARGIN:
                break
            rest = self._rest(best)
            if self._is_better(best, rest, present):
                present[:, best.column], seen[best.column] = rest, self._row(best)
                free.remove(best.column)
                found.append(best)
            else:
                refused.add(best.column)
        return found

    def _line(self, j: int, others: list[int], seen: Floats, score: float) -> _Line:
        """Give the best relation of a column to some of the others, given the discrete columns; gains are by trees over `seen`."""
        covariance, count = self.covariance, float(self.known[:, j].sum())
        inside = [place for block in self.blocks for place in block.tolist()]
        most = max(2, int(count) // ROWS_A_COLUMN - len(inside))
        told = covariance[j, others] ** 2 / covariance[others, others]
        others = [others[place] for place in np.argsort(-told, kind="stable")[:most]]
        cost = _cost(self.total * count / len(self.cells))
        factors = _without_idle(covariance, j, others, inside, cost)
        shares = np.zeros(self.count)
        shares[others] = factors
        line = (np.arange(self.count) == j) - shares
        spread = float(line @ covariance[: self.count, : self.count] @ line)
        scale, level = np.sqrt(max(spread, LEAST_VARIANCE)), float(line @ self.means[: self.count])
        found = _Line(j, shares, level, float(scale), -np.inf)
        if found.used < 2:
            return found
        measured = seen.copy()
        measured[j] = self._row(found)
        return found._replace(gain=self._tree_score(measured) - score - (found.used + 1) * cost)

    def _row(self, line: _Line) -> Floats:
        """Give what a relation leaves of its column, but for level and scale, as a combination of all columns."""
        found = np.zeros(len(self.covariance))
        found[: self.count] = -line.shares
        found[line.column] = 1.0
        return found

    def _tree_score(self, seen: Floats) -> float:
        """Give the mean log density, up to a constant, of the best tree over columns as they are `seen`."""
        covariance = seen @ self.covariance @ seen.T
        own = np.maximum(covariance.diagonal(), LEAST_VARIANCE)
        numbers = slice(0, self.count)
        told = np.zeros((self.count + len(self.blocks),) * 2)
        told[numbers, numbers] = covariance[numbers, numbers] ** 2 / np.outer(own[numbers], own[numbers])
        for place, block in enumerate(self.blocks):
            inverse = np.linalg.pinv(covariance[np.ix_(block, block)], hermitian=True)
            between = covariance[numbers, block]
            told[numbers, self.count + place] = ((between @ inverse) * between).sum(axis=1) / own[numbers]
        # values of two discrete columns tell of each other whatever is measured from what
        information = -0.5 * np.log1p(-np.minimum(np.maximum(told, told.T), 1.0 - LEAST_VARIANCE))
        np.fill_diagonal(information, 0.0)
        # all weights positive, for zeros are no arcs to SciPy
        tree = minimum_spanning_tree(information.max() + 1.0 - information)
        rows, columns = tree.nonzero()
        return float(information[rows, columns].sum() - 0.5 * np.log(own[numbers]).sum())

    def _rest(self, line: _Line) -> Floats:
        """Give (rows,) what a relation leaves; missing cells of others are expected from all but the column itself."""
        known = self.known.copy()
        known[:, line.column] = False
        off = np.where(known, self.cells - self.means, 0.0)
        if self.known[:, : self.count][:, line.shares != 0].all():
            expected = np.nan_to_num(self.cells[:, : self.count])
        else:
            pulled = np.einsum("rij,rj->ri", _inverses(self.covariance, known), off)
            expected = np.where(known, self.cells, self.means + pulled @ self.covariance)[:, : self.count]
        found: Floats = (self.cells[:, line.column] - line.level - expected @ line.shares) / line.scale
        return found

    def _is_better(self, line: _Line, rest: Floats, present: Floats) -> bool:
        """Say whether a mixture of single parents explains what a relation leaves clearly better than the column itself."""
        rows = ~np.isnan(rest)
        if rows.sum() < LEAST_ROWS:
            return False
        others = np.delete(present, line.column, axis=1)[rows]
        mixture = _Parents(others, [group[rows] for group in self.groups], self.weights[rows])
        before = mixture.score(self.cells[rows, line.column])
        after = mixture.score(rest[rows]) - np.log(line.scale)
        return bool(after - before > MARGIN + (line.used + 1) * _cost(self.total * rows.mean()))


def _indicators(codes: Floats, sizes: Integers) -> list[Floats]:
    """Give for each discrete column (rows, values): 1 where a row has a value, NaN where the cell is missing; small ones first."""
    found = []
    for place in np.argsort(sizes, kind="stable"):
        if sizes[place] <= MOST_VALUES:
            column = codes[:, place, None]
            found.append(np.where(np.isnan(column), np.nan, (column == np.arange(sizes[place])).astype(np.float64)))
    return found


def _cost(rows: float) -> float:
    """Give what a parameter must gain, in nats a row."""
    return 0.5 * float(np.log(max(rows, 2.0))) / max(rows, 2.0)


def _without_idle(covariance: Floats, j: int, others: list[int], inside: list[int], cost: float) -> Floats:
    """Give the factors of a regression on `others` and `inside`, 0 for those others that are not worth their cost."""
    kept = [*others, *inside]
    inverse = np.linalg.pinv(covariance[np.ix_(kept, kept)], hermitian=True)
    factors = inverse @ covariance[kept, j]
    variance = max(float(covariance[j, j] - covariance[kept, j] @ factors), LEAST_VARIANCE)
    active = np.arange(len(kept)) < len(others)
    while active.any():
        curvatures = np.maximum(inverse.diagonal(), SMALL)
        losses = np.where(active, factors**2 / curvatures, np.inf)
        k = int(losses.argmin())
        if not 0.5 * np.log1p(losses[k] / variance) <= cost:
            break
        variance += float(losses[k])
        factors = factors - inverse[:, k] * (factors[k] / curvatures[k])
        inverse = inverse - np.outer(inverse[:, k], inverse[k]) / curvatures[k]
        active[k], factors[k] = False, 0.0
        inverse[k] = inverse[:, k] = 0.0
    return np.where(active, factors, 0.0)[: len(others)]


def _fit_normal(cells: Floats, numbers: int, weights: Floats) -> tuple[Floats, Floats]:
    """Give mean and covariance of columns with missing cells by EM; rows whose numbers are far out given the rest weigh less."""
    known = ~np.isnan(cells)
    counts = weights @ known
    means = weights @ np.where(known, cells, 0.0) / np.maximum(counts, SMALL)
    spread = weights @ np.where(known, cells - means, 0.0) ** 2 / np.maximum(counts, SMALL)
    covariance = np.diag(np.maximum(spread, LEAST_VARIANCE))
    total = weights.sum()
    for _ in range(PASSES):
        off = np.where(known, cells - means, 0.0)
        factors = _inverses(covariance, known)
        pulled = np.einsum("rij,rj->ri", factors, off)
        far = (pulled * off).sum(axis=1) - _distances(covariance, known, off, np.arange(numbers, cells.shape[1]))
        heavy = weights * (TAILS + known[:, :numbers].sum(axis=1)) / (TAILS + np.maximum(far, 0.0))
        # rows that are far out say no less of how unsure their missing cells are
        unsure = total * covariance - covariance @ np.einsum("r,rij->ij", weights, factors) @ covariance
        completed = pulled @ covariance
        step = heavy @ completed / heavy.sum()
        squares = (completed - step).T @ (heavy[:, None] * (completed - step)) + unsure
        covariance = (squares + RIDGE * np.diag(np.diag(squares)) / total) / (total + RIDGE)
        covariance[np.diag_indices_from(covariance)] += LEAST_VARIANCE  # constants
        means = means + step
        if not np.isfinite(covariance).all():
            break
    return means, covariance


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


class _Parents:
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

    def score(self, column: Floats) -> float:
        """Give the mean log density of a column, parents that are missing in a row leaving their shares to the others."""
        total, known = self.weights.sum(), self.known
        off = column - self.weights @ column / total
        own = max(float(self.weights @ off**2 / total), LEAST_VARIANCE)
        shares, mixing = known / known.sum(axis=1, keepdims=True), np.full(known.shape[1], 1.0)
        score = -np.inf
        for _ in range(MIXING):
            logs = np.where(known, np.log(mixing) + self._logs(off, shares * self.weights[:, None], own), -np.inf)
            top = logs.max(axis=1, keepdims=True)
            parts = np.exp(logs - top)
            sums = parts.sum(axis=1, keepdims=True)
            score = float(self.weights @ (top + np.log(sums / (known @ mixing)[:, None]))[:, 0] / total)
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
