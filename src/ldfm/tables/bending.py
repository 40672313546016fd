"""Which columns of numbers are modelled on a bent scale, and on which.

Densities of arcs are normal. A column of incomes or of tumours' areas is nowhere near that, nor is it linear in another one; its
logarithm may be. What counts is the column given others, not by itself: lengths of three kinds of flowers need no bend although
they have three peaks. So a bend is scored by the log-likelihood of the column given the *one* column that tells most of it: normal
around a line, or around the mean of each value. It must gain clearly more than its two parameters cost.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ldfm.tables.encoding import Table
from ldfm.tables.schema import Schema
from ldfm.tables.units import Bend
from ldfm.types import Booleans, Floats, Rows

WIDTHS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # of bends to try
LEVELS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)  # quantiles to try as pivots
BEYOND = (0.5, 1.0)  # how far beyond the ends of the column pivots are tried
MARGIN = 0.02  # nats a row that a bend must gain, besides what its parameters cost
PASSES = 2  # over all columns: whether a column needs a bend depends on those of others
MOST_ROWS = 4000  # that are looked at, evenly spread over the table
MOST_VALUES = 32  # of a discrete column that is looked at
LEAST_NUMBERS = 20  # different ones that a column must have to be bent

Shape = tuple[float, float] | None  # pivot and width


def bend_columns(table: Table, row_weights: Floats | None = None) -> Table:
    """Give the table with those of its columns on a bent scale that are closer to normal there, given another column."""
    if not table.schema.is_mixed:
        return table
    rows = np.unique(np.linspace(0, len(table.codes) - 1, MOST_ROWS).astype(np.int64))
    weights = np.ones(len(rows)) if row_weights is None else row_weights[rows]
    if not weights.sum() > 0:  # of the rows looked at
        return table
    places = np.flatnonzero(table.schema.continuous)
    # what cannot be computed, such as variances of numbers of 1e200, scores nothing
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        shapes = _Chooser(table.schema, table.codes[rows], weights / weights.mean()).choose()
    columns, codes = list(table.schema.columns), table.codes.copy()
    for place, shape in zip(places.tolist(), shapes, strict=True):
        if shape is not None:
            bend = _standardised(shape, codes[:, place], row_weights)
            codes[:, place] = bend.cells(codes[:, place])
            columns[place] = replace(columns[place], units=replace(columns[place].units, bend=bend))
    return Table(Schema(tuple(columns)), codes, table.source)


def _standardised(shape: tuple[float, float], shares: Floats, row_weights: Floats | None) -> Bend:
    """Give the bend whose cells have mean 0 and deviation 1."""
    known = ~np.isnan(shares)
    bent = Bend(*shape, 0.0, 1.0).cells(shares[known])
    weights = None if row_weights is None else row_weights[known]
    level = float(np.average(bent, weights=weights))
    return Bend(*shape, level, float(np.sqrt(np.average((bent - level) ** 2, weights=weights))))


def _bent(shape: Shape, shares: Floats) -> tuple[Floats, Floats]:
    """Give shares on a bent scale that is as they are around the pivot, and the log of its slope."""
    if shape is None:
        return shares, np.zeros(len(shares))
    pivot, width = shape
    far = (shares - pivot) / width
    return width * np.arcsinh(far), -np.log(np.hypot(1.0, far))


class _Chooser:
    """Chooses shapes for the continuous columns of some rows.

    Parameters
    ----------
    schema
        Of the table.
    cells
        (rows, n).
    weights
        (rows,).
    """

    def __init__(self, schema: Schema, cells: Rows, weights: Floats) -> None:
        continuous = np.array(schema.continuous)
        self.shares: Floats = cells[:, continuous]
        self.known: Booleans = ~np.isnan(self.shares)
        self.weights = weights
        sizes = np.array(schema.cardinalities)[~continuous]
        codes = np.nan_to_num(cells[:, ~continuous], nan=-1.0)
        # rows by values: which rows have a value
        self.groups = [
            (codes[:, place, None] == np.arange(size)).astype(np.float64)
            for place, size in enumerate(sizes)
            if size <= MOST_VALUES
        ]
        self.candidates = [self._candidates(place) for place in range(self.shares.shape[1])]

    def choose(self) -> list[Shape]:
        """Start once without bends and once with those of columns given discrete ones alone; give what scores better in the end."""
        places = range(self.shares.shape[1])
        straight: list[Shape] = [None for _ in places]
        alone = [self._best(place, np.empty((len(self.shares), 0)))[0] for place in places]
        found = [self._improved(start) for start in ([straight] if alone == straight else [straight, alone])]
        return max(found, key=lambda pair: pair[1])[0]

    def _improved(self, shapes: list[Shape]) -> tuple[list[Shape], float]:
        """Choose again and again for one column given the others; give the shapes and their score."""
        shapes = list(shapes)
        bent = np.stack([self._parent(place, shape) for place, shape in enumerate(shapes)], axis=1)
        scores = np.zeros(len(shapes))
        for _ in range(PASSES):
            for place in range(len(shapes)):
                shapes[place], scores[place] = self._best(place, np.delete(bent, place, axis=1))
                bent[:, place] = self._parent(place, shapes[place])
        return shapes, float(np.nan_to_num(scores).sum())

    def _candidates(self, place: int) -> list[Shape]:
        """Give the shapes to try for a column, the straight one first."""
        counted = self.known[:, place] & (self.weights > 0)
        numbers = np.unique(self.shares[counted, place])
        if len(numbers) < LEAST_NUMBERS:
            return [None]
        ends = [numbers[0] - step for step in BEYOND] + [numbers[-1] + step for step in BEYOND]
        order = np.argsort(self.shares[counted, place])
        reached = np.cumsum(self.weights[counted][order])
        at = np.searchsorted(reached, np.array(LEVELS) * reached[-1]).clip(max=len(order) - 1)
        pivots = np.unique([*self.shares[counted, place][order[at]], *ends])
        return [None, *((float(pivot), width) for pivot in pivots for width in WIDTHS)]

    def _parent(self, place: int, shape: Shape) -> Floats:
        """Give a column as it tells others: centred, NaN where it is missing."""
        bent = _bent(shape, self.shares[:, place])[0]
        middle: Floats = bent - np.nanmean(bent)
        return middle

    def _best(self, place: int, parents: Floats) -> tuple[Shape, float]:
        """Give the best shape of a column given that of discrete columns and `parents` which tells most, and its score."""
        shapes = self.candidates[place]
        known = self.known[:, place] & (self.weights > 0)
        weights = self.weights[known]
        pairs = [_bent(shape, self.shares[known, place]) for shape in shapes]
        bent, slopes = (np.stack(part) for part in zip(*pairs, strict=True))
        scores = _scores(bent, weights, parents[known], [group[known] for group in self.groups])
        scores = scores + slopes @ weights / weights.sum()
        scores[np.isnan(scores)] = -np.inf
        best = int(scores.argmax())
        cost = MARGIN + np.log(weights.sum()) / weights.sum()
        chosen = best if scores[best] > scores[0] + cost else 0
        return shapes[chosen], float(scores[chosen])


def _scores(bent: Floats, weights: Floats, parents: Floats, groups: Sequence[Floats]) -> Floats:
    """Give for every shape (shapes, rows) the mean log density, up to a constant, given the parent that tells most.

    A share of one row of what is left to tell counts as if it had the column's own variance, as in learning; rows whose parent is
    missing have the column's own density.
    """
    total = weights.sum()
    bent = bent - (bent @ weights / total)[:, None]
    variances = bent**2 @ weights / total
    gains = [np.zeros(len(bent))]
    for group in groups:
        counts = weights @ group
        means = (bent * weights) @ group / np.maximum(counts, 1e-300)
        within = ((bent**2 * weights) @ group - counts * means**2) / variances[:, None]
        gains.append(-0.5 * (counts * np.log((within + 1.0) / (counts + 1.0))).sum(axis=1) / total)
    if parents.shape[1]:
        both = (~np.isnan(parents)).astype(np.float64)
        parents = np.nan_to_num(parents, nan=0.0)
        counts, heavy = weights @ both, bent * weights
        first, second = heavy @ both / counts, weights @ parents / counts
        own = (bent * heavy) @ both / counts - first**2
        theirs = weights @ parents**2 / counts - second**2
        together = heavy @ parents / counts - first * second
        left = 1.0 - np.where((own > 0) & (theirs > 0), together**2 / (own * theirs), 0.0).clip(max=1.0)
        of_parents = -0.5 * counts / total * np.log((counts * left + 1.0) / (counts + 1.0))
        gains.append(np.nan_to_num(of_parents, nan=0.0).max(axis=1))
    found: Floats = np.max(gains, axis=0) - 0.5 * np.log(variances)
    return found
