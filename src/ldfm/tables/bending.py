"""Which columns of numbers are modelled on a bent scale, and on which.

Densities of arcs are normal. A column of incomes or of tumours' areas is nowhere near that, nor is it linear in another one; its
logarithm may be. What counts is the column given others, not by itself: lengths of three kinds of flowers need no bend although
they have three peaks. So a bend is scored by the log-likelihood of the column given the *one* column that tells most of it: normal
around a line, or around the mean of each value. It must gain clearly more than its two parameters cost.

Outliers, and codes such as 999, are what a model explains by other arcs than most of the column. They must not ask for a bend: the
cells that fit worst do not count. Nor do cells of a number that very many have, such as 0: a scale that is steep just there
would gain without end.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ldfm.tables.encoding import Table
from ldfm.tables.schema import Schema
from ldfm.tables.units import Bend
from ldfm.types import Booleans, Floats, Rows

WIDTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # of bends to try
LEVELS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)  # quantiles to try as pivots
BEYOND = (0.5, 1.0)  # how far beyond the ends of the column pivots are tried
MARGIN = 0.02  # nats a row that a bend must gain, besides what its parameters cost
PASSES = 2  # over all columns: whether a column needs a bend depends on those of others
MOST_ROWS = 600  # that are looked at, evenly spread over the table
TRIMMED = 0.05  # share of the cells, those that fit worst, that do not count
TRIMS = 2  # times that lines are fitted to the rest
LIKELY = 2  # columns that may tell most, of which the best is found without the cells that fit worst
OFTEN = 0.05  # share of cells with one number above which they do not count
MOST_VALUES = 32  # of a discrete column that is looked at
LEAST_NUMBERS = 20  # different ones that a column must have to be bent

Shape = tuple[float, float] | None  # pivot and width


def bend_columns(table: Table, row_weights: Floats | None = None) -> Table:
    """Give the table with those of its columns on a bent scale that are closer to normal there, given another column."""
    if not table.schema.is_mixed:
        return table
    counted = np.arange(len(table.codes)) if row_weights is None else np.flatnonzero(row_weights > 0)
    rows = counted[np.unique(np.linspace(0, len(counted) - 1, MOST_ROWS).astype(np.int64))]
    weights = np.ones(len(rows)) if row_weights is None else row_weights[rows] / row_weights[rows].mean()
    # what cannot be computed, such as variances of numbers of 1e200, scores nothing
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        shapes = _Chooser(table.schema, table.codes[rows], weights).choose()
    columns, codes = list(table.schema.columns), table.codes.copy()
    for place, shape in zip(np.flatnonzero(table.schema.continuous).tolist(), shapes, strict=True):
        if shape is not None:
            bend = _standardised(shape, codes[:, place], row_weights)
            codes[:, place] = bend.cells(codes[:, place])
            columns[place] = replace(columns[place], units=replace(columns[place].units, bend=bend))
    return Table(Schema(tuple(columns)), codes, table.source)


def _standardised(shape: tuple[float, float], shares: Floats, row_weights: Floats | None) -> Bend:
    """Give the bend whose cells have mean 0 and deviation 1, straight beyond them."""
    pivot, width = shape
    known = ~np.isnan(shares) if row_weights is None else ~np.isnan(shares) & (row_weights > 0)
    bent = np.arcsinh((shares[known] - pivot) / width)
    weights = None if row_weights is None else row_weights[known]
    level = float(np.average(bent, weights=weights))
    spread = float(np.sqrt(np.average((bent - level) ** 2, weights=weights)))
    return Bend(pivot, width, level, spread, float((bent.min() - level) / spread), float((bent.max() - level) / spread))


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
        counted = self._counted(place)
        shares = self.shares[counted, place]
        if len(np.unique(shares)) < LEAST_NUMBERS:
            return [None]
        order = np.argsort(shares)
        reached = np.cumsum(self.weights[counted][order])
        at = np.searchsorted(reached, np.array(LEVELS) * reached[-1]).clip(max=len(order) - 1)
        ends = [shares.min() - step for step in BEYOND] + [shares.max() + step for step in BEYOND]
        pivots = np.unique([*shares[order[at]], *ends])
        return [None, *((float(pivot), width) for pivot in pivots for width in WIDTHS)]

    def _counted(self, place: int) -> Booleans:
        """Say which rows count for a column: those that have it, but for a number that very many have."""
        known = self.known[:, place]
        _, places = np.unique(self.shares[known, place], return_inverse=True)
        masses = np.bincount(places, weights=self.weights[known])
        counted = known.copy()
        counted[known] = masses[places] <= max(OFTEN * masses.sum(), 2.0 * self.weights.max())
        return counted

    def _parent(self, place: int, shape: Shape) -> Floats:
        """Give a column as it tells others: centred, NaN where it is missing."""
        bent = _bent(shape, self.shares[:, place])[0]
        known = self.known[:, place]
        return np.where(known, bent - (bent[known].mean() if known.any() else 0.0), np.nan)

    def _best(self, place: int, parents: Floats) -> tuple[Shape, float]:
        """Give the best shape of a column given that of discrete columns and `parents` which tells most, and its score."""
        shapes, counted = self.candidates[place], self._counted(place)
        if len(shapes) == 1:  # such columns may have no row that counts
            return None, 0.0
        pairs = [_bent(shape, self.shares[counted, place]) for shape in shapes]
        bent, log_slopes = (np.stack(part) for part in zip(*pairs, strict=True))
        column = _Column(bent, log_slopes, self.weights[counted])
        groups = column.likely_groups([group[counted] for group in self.groups])
        designs = [*map(_with_ones, groups), *map(_line, column.likely_parents(parents[counted]))]
        scores = np.max([column.scores(design) for design in (np.ones((counted.sum(), 1)), *designs)], axis=0)
        scores[np.isnan(scores)] = -np.inf
        best, total = int(scores.argmax()), column.weights.sum()
        chosen = best if scores[best] > scores[0] + MARGIN + np.log(total) / total else 0
        return shapes[chosen], float(scores[chosen])


def _with_ones(group: Floats) -> Floats:
    """Give the columns that means of values are fitted with, and one for rows without a value."""
    return np.column_stack([group, 1.0 - group.sum(axis=1)])


def _line(parent: Floats) -> Floats:
    """Give the columns that a line is fitted with, and one for rows whose parent is missing."""
    known = ~np.isnan(parent)
    return np.column_stack([known, np.where(known, parent, 0.0), ~known]).astype(np.float64)


class _Column(NamedTuple):
    """A column on all scales that are tried.

    Attributes
    ----------
    bent, log_slopes
        (shapes, rows): its numbers on each, and the log of the scale's slope there.
    weights
        (rows,).
    """

    bent: Floats
    log_slopes: Floats
    weights: Floats

    def likely_groups(self, groups: list[Floats]) -> list[Floats]:
        """Give those of `groups`, each (rows, values), whose means differ most on any scale."""
        total = self.weights.sum()
        heavy = (self.bent - (self.bent @ self.weights / total)[:, None]) * self.weights
        own = (heavy**2 / self.weights).sum(axis=1)
        shares = [((heavy @ group) ** 2 / np.maximum(self.weights @ group, 1e-9)).sum(axis=1) / own for group in groups]
        order = np.argsort([-np.nan_to_num(share).max() for share in shares], kind="stable")
        return [groups[place] for place in order[:LIKELY]]

    def likely_parents(self, parents: Floats) -> list[Floats]:
        """Give those of `parents` (rows, others) that are most correlated with the column on any scale."""
        if not parents.shape[1]:
            return []
        both, filled = (~np.isnan(parents)).astype(np.float64), np.nan_to_num(parents, nan=0.0)
        counts, heavy = self.weights @ both, self.bent * self.weights
        first, second = heavy @ both / counts, self.weights @ filled / counts
        own = (self.bent * heavy) @ both / counts - first**2
        theirs = self.weights @ filled**2 / counts - second**2
        together = heavy @ filled / counts - first * second
        shares = np.where((own > 0) & (theirs > 0), counts * together**2 / (own * theirs), 0.0)
        order = np.argsort(-np.nan_to_num(shares).max(axis=0), kind="stable")
        return [parents[:, place] for place in order[:LIKELY]]

    def scores(self, design: Floats) -> Floats:
        """Give for every shape the mean log density, up to a constant, of the cells that fit best, around a fit by `design`.

        One row of the column's own variance counts besides, as in learning.
        """
        kept = np.broadcast_to(self.weights, self.bent.shape)
        for _ in range(TRIMS):
            logs = self._logs(design, kept)
            kept = self._without_worst(logs)
        logs = self._logs(design, kept)
        found: Floats = (kept * np.where(kept > 0, logs, 0.0)).sum(axis=1) / kept.sum(axis=1)
        return found

    def _logs(self, design: Floats, kept: Floats) -> Floats:
        """Give (shapes, rows): log densities around lines that are fitted to what is kept, weights (shapes, rows)."""
        total = kept.sum(axis=1, keepdims=True)
        middle = (kept * self.bent).sum(axis=1, keepdims=True) / total
        own = (kept * (self.bent - middle) ** 2).sum(axis=1, keepdims=True) / total
        fitted = _fitted(design, kept, kept * (self.bent - middle))
        off = (self.bent - middle - fitted) ** 2
        variance = ((kept * off).sum(axis=1, keepdims=True) + own) / (total + 1.0)
        logs: Floats = self.log_slopes - 0.5 * np.log(variance) - 0.5 * off / variance
        return logs

    def _without_worst(self, logs: Floats) -> Floats:
        """Give the weights (shapes, rows) with 0 for the cells that fit worst."""
        order = np.argsort(np.nan_to_num(logs, nan=-np.inf), axis=1)
        reached = np.cumsum(self.weights[order], axis=1)
        kept = np.zeros(logs.shape)
        np.put_along_axis(kept, order, np.where(reached > TRIMMED * reached[:, -1:], self.weights[order], 0.0), axis=1)
        return kept


def _fitted(design: Floats, kept: Floats, heavy: Floats) -> Floats:
    """Give (shapes, rows): least squares by the columns of `design`, rows weighing `kept`; `heavy` are weighted numbers."""
    size, sides = design.shape[1], np.nan_to_num(heavy @ design)
    if not np.triu(design.T @ design, 1).any():  # indicators of values: means
        factors: Floats = sides / (kept @ design**2 + 1e-9)
    else:
        products = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
        squares = (kept @ products).reshape(-1, size, size) + 1e-9 * np.eye(size)
        factors = np.linalg.solve(squares, sides[..., None])[..., 0].astype(np.float64)
    found: Floats = factors @ design.T
    return found
