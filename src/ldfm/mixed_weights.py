"""Weights of a model with continuous variables: mixing weights, normal densities and logits, and relations of columns."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import log, pi

import numpy as np

from ldfm.kernels.best_forest import best_forest_of_logs
from ldfm.kernels.elimination import Workspace
from ldfm.kernels.forest_sums import arc_marginals, log_forest_sums
from ldfm.kernels.mixed_arcs import (
    MixedModel,
    add_statistics,
    fill_logs,
    fill_scaled,
    finish_marginals,
    finish_sums,
)
from ldfm.kernels.mixed_sweeps import draw_forests_of_logs
from ldfm.relations import Relations
from ldfm.types import Booleans, Floats, Integers
from ldfm.weights import SUM_TOLERANCE, StateLayout, Variant, check_weights

_HALF_LOG_2_PI = 0.5 * log(2.0 * pi)


@dataclass(frozen=True)
class MixedWeights(StateLayout):
    """Weights of every arc between values and continuous variables, and of stopping.

    Arrays are (S + 1, S), parent by child, root first, as in `ArcWeights`; a continuous variable is a single state. The weight of
    an arc is `table` times a density or probability of the child, in standardised units (see `ldfm.kernels.mixed_arcs`). From a
    continuous parent all values of a discrete child have the same `table` entry, and the softmax shares it out. Arcs are between
    what relations leave of cells; rows, here and everywhere, are cells.

    Parameters
    ----------
    table
        Finite, non-negative, 0 inside a variable.
    intercepts, slopes, deviations
        Of the normal densities and logits; 0, 0 and 1 where neither is meant.
    cardinalities
        Number of states of each variable, 1 for a continuous one; they add up to S.
    continuous
        Which variables are.
    stop
        (S + 1,) root first, or None.
    relations
        Which continuous variables are measured from others; None: none is.
    """

    table: Floats
    intercepts: Floats
    slopes: Floats
    deviations: Floats
    cardinalities: tuple[int, ...]
    continuous: tuple[bool, ...]
    stop: Floats | None = None
    relations: Relations | None = None

    def __post_init__(self) -> None:
        if len(self.continuous) != len(self.cardinalities) or not any(self.continuous):
            raise ValueError(f"{len(self.cardinalities)} variables, one continuous at least, not {self.continuous}")
        if any(k != 1 for k, number in zip(self.cardinalities, self.continuous, strict=True) if number):
            raise ValueError(f"continuous variables have one state each, not {self.cardinalities}")
        size = sum(self.cardinalities)
        for name in ("table", "intercepts", "slopes", "deviations"):
            array = np.array(getattr(self, name), dtype=np.float64, order="C")
            if array.shape != (size + 1, size):
                raise ValueError(f"{name} of {size} states must be {(size + 1, size)}, root first, not {array.shape}")
            if not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        check_weights("arc weight", self.table)
        if (self.table[~self.mask] > 0).any():
            raise ValueError("arc weights between states of one variable must be 0")
        if not (self.deviations > 0).all():
            raise ValueError("deviations must be positive")
        self._freeze_stop()
        if self.relations is None:
            return
        involved = self.relations.involved
        if len(involved) != len(self.continuous) or (involved & ~np.array(self.continuous)).any():
            raise ValueError("relations must be of these variables, and of continuous ones alone")

    @classmethod
    def uniform(cls, cardinalities: tuple[int, ...], continuous: tuple[bool, ...], variant: Variant) -> "MixedWeights":
        """Give equal shares of every outcome, standard normal densities and even logits."""
        shape = (sum(cardinalities) + 1, sum(cardinalities))
        zeros, ones = np.zeros(shape), np.ones(shape)
        stops = np.ones(shape[0]) if variant == "ldfm-s" else None
        blank = cls(zeros, zeros, zeros, ones, cardinalities, continuous, stops)
        count = blank.outcomes.sum(axis=1, keepdims=True)
        return blank.with_rows(np.where(blank.outcomes, 1.0 / np.maximum(count, 1), 0.0))

    @cached_property
    def numeric(self) -> Booleans:
        """(S,): which states are those of continuous variables."""
        return np.repeat(np.array(self.continuous), self.cardinalities)

    @cached_property
    def first(self) -> Integers:
        """(S,): the first state of the variable that each state belongs to."""
        return np.repeat(self.offsets[:-1], self.cardinalities)

    @cached_property
    def outcomes(self) -> Booleans:
        """(S + 1, S + 1): the outcomes of each row: arcs, and to stop (last column).

        A continuous parent picks a discrete child, not its value: that outcome stands in the column of the child's first value.
        """
        first = np.arange(len(self.first)) == self.first
        arcs = np.where(np.concatenate([[False], self.numeric])[:, None], self.mask & first, self.mask)
        return np.hstack([arcs, np.full((len(arcs), 1), self.stop is not None)])

    @property
    def logits(self) -> Booleans:
        """(S + 1, S): the arcs from continuous variables to values, which have logits."""
        found: Booleans = self.mask & np.concatenate([[False], self.numeric])[:, None] & ~self.numeric
        return found

    def rows(self) -> Floats:
        """Give (S + 1, S + 1): the distribution over `outcomes` of each row."""
        stop = np.zeros(len(self.table)) if self.stop is None else self.stop
        return np.where(self.outcomes, np.hstack([self.table, stop[:, None]]), 0.0)

    def with_rows(self, rows: Floats) -> "MixedWeights":
        """Give the weights with other distributions over `outcomes`."""
        spread = np.concatenate([[False], self.numeric])[:, None]
        table = np.where(self.mask, np.where(spread, rows[:, self.first], rows[:, :-1]), 0.0)
        return replace(self, table=table, stop=None if self.stop is None else rows[:, -1])

    @property
    def is_normalised(self) -> bool:
        """Whether the outcomes of every row sum to 1."""
        return bool(np.abs(self.rows().sum(axis=1) - 1.0).max() <= SUM_TOLERANCE)

    @cached_property
    def model(self) -> MixedModel:
        """The weights as kernels see them, stop weights of children folded in; that of the root is left out."""
        return self.folded(self.table if self.stop is None else self.table * self.stop[1:])

    def folded(self, table: Floats) -> MixedModel:
        """Give the model with another table."""
        with np.errstate(divide="ignore"):
            logs = np.log(table) + np.where(self.numeric, -np.log(self.deviations) - _HALF_LOG_2_PI, 0.0)
        continuous = np.array(self.continuous)
        most, size = max(self.cardinalities), len(self.continuous)
        related = self.relations or Relations.none(size)
        numbers = logs, self.intercepts, self.slopes, 1.0 / self.deviations
        steps = np.where(continuous[:, None], related.steps, 0.0)
        return MixedModel(
            *numbers, self.offsets, continuous, most, self.relations is not None, steps, related.levels / related.scales
        )

    @property
    def related(self) -> Booleans:
        """(n,): which variables are measured from others."""
        return super().related if self.relations is None else self.relations.related

    def rests(self, cells: Floats) -> Floats:
        """Give what relations leave of rows of cells."""
        return cells if self.relations is None else self.relations.rests(cells)

    def cells(self, rests: Floats) -> Floats:
        """Give the cells of which relations leave this."""
        return rests if self.relations is None else self.relations.cells(rests)

    def fill_log_sums(self, cells: Floats, matrices: Floats, work: Workspace, sums: Floats) -> None:
        """Fill `sums` with the log forest sums of complete rows, stop weights included but for the root's."""
        shifts, rests = np.empty(len(cells)), self.rests(cells)
        fill_scaled(self.model, rests, matrices, shifts)
        log_forest_sums(matrices, work, sums)
        finish_sums(self.model, rests, shifts, sums)

    def fill_marginals(self, cells: Floats, matrices: Floats, work: Workspace, sums: Floats, marginals: Floats) -> None:
        """Fill `sums` as `fill_log_sums` does, and `marginals` with the probabilities of arcs."""
        shifts, rests = np.empty(len(cells)), self.rests(cells)
        fill_scaled(self.model, rests, matrices, shifts)
        arc_marginals(matrices, work, sums, marginals)
        finish_marginals(self.model, rests, shifts, work.extended_schedule, sums, marginals)

    def add_statistics(self, marginals: Floats, cells: Floats, row_weights: Floats, sums: Floats) -> None:
        """Add the statistics of rows, weighted by their arc marginals, to `sums` (6, S + 1, S)."""
        add_statistics(self.model, self.rests(cells), row_weights, marginals, sums)

    def fill_best(self, cells: Floats, matrices: Floats, parents: Integers) -> None:
        """Fill `parents` (rows, n) with the forests of greatest weight; `matrices` is scratch."""
        rests = self.rests(cells)
        for row in range(len(cells)):
            fill_logs(self.model, rests[row], matrices[row])
            best_forest_of_logs(matrices[row], parents[row])

    def fill_draws(
        self,
        cells: Floats,
        matrices: Floats,
        work: Workspace,
        budget: int,
        generator: np.random.Generator,
        parents: Integers,
    ) -> None:
        """Fill `parents` (rows, draws, n) with forests drawn in proportion to their weights; `matrices` is scratch."""
        rests = self.rests(cells)
        for row in range(len(cells)):
            fill_logs(self.model, rests[row], matrices[row])
            draw_forests_of_logs(matrices[row], work.extended_schedule, budget, generator, parents[row])

    def add_stops(self, cells: Floats, sums: Floats) -> None:
        """Add what `fill_log_sums` leaves out: the log stop weight of the root, and the scales of relations."""
        del cells
        if self.relations is not None:
            sums -= self.relations.log_scale
        if self.stop is not None:
            with np.errstate(divide="ignore"):
                sums += np.log(self.stop[0])
