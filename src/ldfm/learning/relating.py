"""Which columns of numbers are measured from several others, and how: chosen before the fit.

A first look is by one normal density of all numbers, with shifts for the values of discrete columns, and heavy tails so that
outliers do not count for much. The best single tree says how far one parent a column goes. Of the columns that have no relation
yet, the one is taken with which, measured from others, the best tree gains most; others that add less than they cost are left out.
It may be measured from those without a relation alone, so that no circle comes about. (That several columns tell more of one than
the best of them is no reason: so do a column's parent and children in a tree.)

But a tree falls short, too, where each of several columns tells of some rows, and that is what forests are for. So a second look
compares two mixtures: of densities of the column given single parents, which is about what a model can do for it, and of those of
what the relation leaves of it. Only where that is clearly better is the relation kept; where rows are few beside columns, it has to
be better on rows that neither the relation nor the mixture was fitted to. Which column of a sum is measured from the others makes
no difference to trees; the mixtures decide.
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
JUDGED_APART, FOLDS = (
    10,
    5,
)  # rows a column up to which relations are judged by rows that they were not fitted to, fold by fold
MARGIN = 0.02  # nats a row that a relation must gain, besides what its numbers cost


def choose_relations(
    rows: MergedRows, cardinalities: tuple[int, ...], continuous: tuple[bool, ...]
) -> Relations | None:
    """Give the relations of the columns of merged rows, None where there are none."""
    return look_for_relations(rows, cardinalities, continuous).relations


class Look(NamedTuple):
    """What was found.

    Attributes
    ----------
    relations
        None where there are none.
    score
        How well mixtures of single parents explain the columns of numbers as a model would see them: the sum of their mean log
        densities, each given those before it, so that nothing counts twice, less what relations cost; -inf where nothing was
        looked at.
    """

    relations: Relations | None
    score: float


def look_for_relations(rows: MergedRows, cardinalities: tuple[int, ...], continuous: tuple[bool, ...]) -> Look:
    """Find the relations of the columns of merged rows."""
    places, size = np.flatnonzero(continuous), len(continuous)
    counted = np.flatnonzero(rows.weights > 0)
    if not 3 <= len(places) <= MOST_NUMBERS or len(counted) < LEAST_ROWS:
        return Look(None, -np.inf)
    most = min(MOST_ROWS, max(FEWEST_ROWS, int(MOST_WORK / len(places) ** 3)))
    seen = counted[np.unique(np.linspace(0, len(counted) - 1, most).astype(np.int64))]
    cells, weights = rows.codes[seen].astype(np.float64), rows.weights[seen] / rows.weights[seen].mean()
    # what cannot be computed, such as variances of cells of 1e200, gains nothing
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        chooser = _Chooser(cells, weights, np.array(cardinalities), np.array(continuous), float(rows.weights.sum()))
        found = chooser.choose()
        score = chooser.score(found)
    if not found:
        return Look(None, score)
    shares, levels, scales = np.zeros((size, size)), np.zeros(size), np.ones(size)
    for line in found:
        j = places[line.column]
        shares[j, places] = line.shares
        levels[j], scales[j] = line.level, line.scale
    return Look(Relations(shares, levels, scales), score)


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
        self.present: Floats = numbers.copy()  # as the model would see the columns
        self.normal = NormalFit(self.cells, weights, self.count)
        self.parts: list[tuple[Booleans, NormalFit]] = []  # rows that are judged by, and a fit to the others
        if (weights > 0).sum() < JUDGED_APART * self.cells.shape[1]:
            fold = np.random.default_rng(0).permutation(len(cells)) % FOLDS
            for place in range(FOLDS):
                fit = NormalFit(self.cells, np.where(fold == place, 0.0, weights), self.count)
                self.parts.append((fold == place, fit))

    def choose(self) -> list[_Line]:
        """Give relations in the order in which they were found: columns of later ones are measured from none of the earlier."""
        if not all(np.isfinite(fit.covariance).all() for fit in (self.normal, *(fit for _, fit in self.parts))):
            return []
        free, found = list(range(self.count)), list[_Line]()
        lines: dict[int, _Line | None] = {j: self._line(j, free, self.normal) for j in free}  # None: refused
        trees = _Trees(self.normal.covariance, self.count, self.blocks)
        while len(free) > 2:
            # a relation that may be there gains more than it costs
            gains = {j: trees.gain(line) - line.cost for j in free if (line := lines[j]) is not None and line.used > 1}
            top = max(gains.values(), default=0.0)
            if not top > MARGIN:
                break
            likely = [line for j, gain in gains.items() if gain > top - MARGIN and (line := lines[j]) is not None]
            better = [self._better_by(line, free) for line in likely]
            best = likely[int(np.argmax(better))]
            if not max(better) > MARGIN:
                lines |= {line.column: None for line in likely}
                continue
            self.present[:, best.column] = self._rest(best, self.normal)
            trees.measure(best)
            free.remove(best.column)
            found.append(best)
            for j in free:
                line = lines[j]
                if line is not None and line.shares[best.column] != 0:
                    lines[j] = self._line(j, free, self.normal)
        return found

    def score(self, found: list[_Line]) -> float:
        """Give how well mixtures explain the columns with these relations, as `Look` has it."""
        total = -sum(float(np.log(line.scale)) + line.cost for line in found)
        trees = _Trees(self.normal.covariance, self.count, self.blocks)
        for line in found:
            trees.measure(line)
        order, from_others = trees.order(), {line.column: line for line in found}
        for place, j in enumerate(order):
            rows = ~np.isnan(self.present[:, j])
            if j in from_others:  # what is left of expected cells is no measure of what is left of known ones
                whole = rows & self.normal.known[:, : self.count][:, from_others[j].shares != 0].all(axis=1)
                rows = whole if whole.sum() >= LEAST_ROWS else rows
            if rows.any():
                groups, earlier = [group[rows] for group in self.groups], self.present[rows][:, order[:place]]
                total += ParentMixture(earlier, groups, self.weights[rows]).score(self.present[rows, j])
        return total

    def _line(self, j: int, free: list[int], normal: NormalFit) -> _Line:
        """Give the best relation of a column to some of those that are free, given the discrete columns."""
        covariance, numbers = normal.covariance, slice(0, self.count)
        count = float(normal.known[:, j].sum())
        inside = [place for block in self.blocks for place in block.tolist()]
        most = max(2, int(count) // ROWS_A_COLUMN - len(inside))
        others = np.array([k for k in free if k != j])
        told = covariance[j, others] ** 2 / covariance[others, others]
        others = others[np.argsort(-told, kind="stable")[:most]]
        cost = _cost(self.total * count / len(self.cells))
        shares = np.zeros(self.count)
        shares[others] = _without_idle(covariance, j, others.tolist(), inside, cost)
        line = (np.arange(self.count) == j) - shares
        spread = float(line @ normal.seen[numbers, numbers] @ line)
        level = float(line @ normal.means[numbers])
        found = _Line(j, shares, level, float(np.sqrt(max(spread, LEAST_VARIANCE))), 0.0)
        return found._replace(cost=(found.used + 1) * cost)

    def _rest(self, line: _Line, normal: NormalFit) -> Floats:
        """Give (rows,) what a relation leaves; missing cells of others are expected from all but the column itself."""
        expected = normal.expected_without(line.column)[:, : self.count]
        expected[:, line.column] = 0.0
        found: Floats = (self.cells[:, line.column] - line.level - expected @ line.shares) / line.scale
        return found

    def _better_by(self, line: _Line, free: list[int]) -> float:
        """Give by how many nats a row, for sure, a mixture of single parents explains what a relation leaves better."""
        rest = self._rest(line, self.normal)
        rows = ~np.isnan(rest)
        if rows.sum() < LEAST_ROWS:
            return -np.inf
        others = np.delete(self.present, line.column, axis=1)[rows]
        groups, column = [group[rows] for group in self.groups], self.cells[rows, line.column]
        if not self.parts:
            mixture = ParentMixture(others, groups, self.weights[rows])
            return mixture.score(rest[rows]) - float(np.log(line.scale)) - mixture.score(column) - line.cost
        gains = []
        for apart, fit in self.parts:
            weights, judged = np.where(apart, 0.0, self.weights)[rows], np.where(apart, self.weights, 0.0)[rows]
            mixture, tried = ParentMixture(others, groups, weights), self._line(line.column, free, fit)
            after = mixture.score(self._rest(tried, fit)[rows], judged) - float(np.log(tried.scale))
            gains.append(after - mixture.score(column, judged))
        return float(np.mean(gains) - np.std(gains, ddof=1) / np.sqrt(FOLDS))


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

    def order(self) -> list[int]:
        """Give the numbers in an order in which each is told most by one of those before it."""
        told = self._information[: self._count, : self._count]
        found = [int(told.max(axis=1).argmax())]
        while len(found) < self._count:
            nearest = told[found].max(axis=0)
            nearest[found] = -1.0
            found.append(int(nearest.argmax()))
        return found

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
