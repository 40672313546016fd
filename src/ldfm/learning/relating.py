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

from ldfm.learning.column_scores import LEAST_VARIANCE, SMALL, NormalFit, ParentMixture
from ldfm.relations import Relations
from ldfm.tables import MergedRows
from ldfm.types import Booleans, Floats, Integers

MOST_ROWS = 1000  # that are looked at, evenly spread
MOST_WORK, FEWEST_ROWS = 3e8, 300  # rows times columns cubed, down to so many rows
MOST_NUMBERS = 128  # columns of numbers: of more none are related
MOST_VALUES = 32  # of a discrete column that is looked at
MOST_INDICATORS = 100  # of all discrete columns
ROWS_A_COLUMN = 5  # at least, of those that a column may be measured from
LEAST_ROWS = 20
MARGIN = 0.02  # nats a row that a relation must gain, besides what its numbers cost


def choose_relations(
    rows: MergedRows, cardinalities: tuple[int, ...], continuous: tuple[bool, ...]
) -> Relations | None:
    """Give the relations of the columns of merged rows, None where there are none."""
    places, size = np.flatnonzero(continuous), len(continuous)
    counted = np.flatnonzero(rows.weights > 0)
    if not 3 <= len(places) <= MOST_NUMBERS or len(counted) < LEAST_ROWS:
        return None
    most = min(MOST_ROWS, max(FEWEST_ROWS, int(MOST_WORK / len(places) ** 3)))
    seen = counted[np.unique(np.linspace(0, len(counted) - 1, most).astype(np.int64))]
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
    cost: float  # nats a row that it must gain

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
        ends = np.cumsum([self.count, *(part.shape[1] for part in parts)])
        self.blocks = [np.arange(a, b) for a, b in pairwise(ends)]
        self.normal = NormalFit(self.cells, weights, self.count)

    def choose(self) -> list[_Line]:
        """Give relations in the order in which they were found: columns of later ones are measured from none of the earlier."""
        if not np.isfinite(self.normal.covariance).all():
            return []
        free, found = list(range(self.count)), list[_Line]()
        lines: dict[int, _Line | None] = {j: self._line(j, free) for j in free}  # None: refused
        trees = _Trees(self.normal.covariance, self.count, self.blocks)
        present = self.cells[:, : self.count].copy()  # as the model would see the columns
        while len(free) > 2:
            # a relation that may be there gains more than it costs
            gains = {j: trees.gain(line) - line.cost for j in free if (line := lines[j]) is not None and line.used > 1}
            best = lines[max(gains, key=gains.__getitem__)] if gains else None
            if best is None or not gains[best.column] > MARGIN:
                break
            rest = self._rest(best)
            if not self._is_better(best, rest, present):
                lines[best.column] = None
                continue
            present[:, best.column] = rest
            trees.measure(best)
            free.remove(best.column)
            found.append(best)
            for j in free:
                line = lines[j]
                if line is not None and line.shares[best.column] != 0:
                    lines[j] = self._line(j, free)
        return found

    def _line(self, j: int, free: list[int]) -> _Line:
        """Give the best relation of a column to some of those that are free, given the discrete columns."""
        covariance, numbers = self.normal.covariance, slice(0, self.count)
        count = float(self.normal.known[:, j].sum())
        inside = [place for block in self.blocks for place in block.tolist()]
        most = max(2, int(count) // ROWS_A_COLUMN - len(inside))
        others = np.array([k for k in free if k != j])
        told = covariance[j, others] ** 2 / covariance[others, others]
        others = others[np.argsort(-told, kind="stable")[:most]]
        cost = _cost(self.total * count / len(self.cells))
        shares = np.zeros(self.count)
        shares[others] = _without_idle(covariance, j, others.tolist(), inside, cost)
        line = (np.arange(self.count) == j) - shares
        spread = float(line @ covariance[numbers, numbers] @ line)
        level = float(line @ self.normal.means[numbers])
        found = _Line(j, shares, level, float(np.sqrt(max(spread, LEAST_VARIANCE))), 0.0)
        return found._replace(cost=(found.used + 1) * cost)

    def _rest(self, line: _Line) -> Floats:
        """Give (rows,) what a relation leaves; missing cells of others are expected from all but the column itself."""
        expected = self.normal.expected_without(line.column)[:, : self.count]
        expected[:, line.column] = 0.0
        found: Floats = (self.cells[:, line.column] - line.level - expected @ line.shares) / line.scale
        return found

    def _is_better(self, line: _Line, rest: Floats, present: Floats) -> bool:
        """Say whether a mixture of single parents explains what a relation leaves clearly better than the column itself."""
        rows = ~np.isnan(rest)
        if rows.sum() < LEAST_ROWS:
            return False
        others = np.delete(present, line.column, axis=1)[rows]
        mixture = ParentMixture(others, [group[rows] for group in self.groups], self.weights[rows])
        before = mixture.score(self.cells[rows, line.column])
        after = mixture.score(rest[rows]) - np.log(line.scale)
        return bool(after - before > MARGIN + line.cost)


class _Trees:
    """The best tree over columns as a model would see them, by a normal density.

    Parameters
    ----------
    covariance
        (columns, columns): of all columns as they are.
    count
        How many, the first ones, are numbers.
    blocks
        The places of the indicators of each discrete column.
    """

    def __init__(self, covariance: Floats, count: int, blocks: list[Integers]) -> None:
        self._plain, self._count, self._blocks = covariance, count, blocks
        self._seen = np.eye(len(covariance))
        self._inverses = [np.linalg.inv(covariance[np.ix_(block, block)]) for block in blocks]
        self._own = np.maximum(covariance.diagonal()[:count], LEAST_VARIANCE)
        # values of two discrete columns tell of each other whatever is measured from what
        self._information = np.zeros((count + len(blocks),) * 2)
        for j in range(count):
            self._put(self._information, j, covariance[j])
        self._score = self._best(self._information, self._own)

    def gain(self, line: _Line) -> float:
        """Give by how much, in nats a row, the best tree is better where a column is measured from others."""
        row, own, information = self._row(line), self._own.copy(), self._information.copy()
        together = self._seen @ self._plain @ row
        together[line.column] = own[line.column] = max(float(row @ self._plain @ row), LEAST_VARIANCE)
        self._put(information, line.column, together, own)
        return self._best(information, own) - self._score

    def measure(self, line: _Line) -> None:
        """Take a relation up."""
        self._seen[line.column] = row = self._row(line)
        together = self._seen @ self._plain @ row
        self._own[line.column] = max(float(together[line.column]), LEAST_VARIANCE)
        self._put(self._information, line.column, together)
        self._score = self._best(self._information, self._own)

    def _row(self, line: _Line) -> Floats:
        """Give what a relation leaves of its column, but for level and scale, as a combination of all columns."""
        found = np.zeros(len(self._plain))
        found[: self._count] = -line.shares
        found[line.column] = 1.0
        return found

    def _put(self, information: Floats, j: int, together: Floats, own: Floats | None = None) -> None:
        """Put in what number j tells of other columns, from its covariances with them."""
        own, count = self._own if own is None else own, self._count
        told = np.empty(len(information))
        told[:count] = together[:count] ** 2 / own / own[j]
        for place, (block, inverse) in enumerate(zip(self._blocks, self._inverses, strict=True)):
            told[count + place] = together[block] @ inverse @ together[block] / own[j]
        information[j] = information[:, j] = -0.5 * np.log1p(-np.minimum(told, 1.0 - LEAST_VARIANCE))
        information[j, j] = 0.0

    def _best(self, information: Floats, own: Floats) -> float:
        """Give the mean log density, up to a constant, of the best tree."""
        # all weights positive, for zeros are no arcs to SciPy
        tree = minimum_spanning_tree(information.max() + 1.0 - information)
        rows, columns = tree.nonzero()
        return float(information[rows, columns].sum() - 0.5 * np.log(own).sum())


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
    inverse = np.linalg.inv(covariance[np.ix_(kept, kept)])
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
