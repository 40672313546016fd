"""Arc weights of a discrete model: root, arc and stop weights, and their normalised form."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ldfm.kernels.arc_matrices import add_log_stops, add_marginals, fill_arc_matrices
from ldfm.kernels.best_forest import best_forest
from ldfm.kernels.elimination import Workspace
from ldfm.kernels.forest_draws import draw_forests
from ldfm.kernels.forest_sums import arc_marginals, log_forest_sums
from ldfm.types import Booleans, Codes, Floats, Integers

Variant = Literal["ldfm", "ldfm-s"]
SUM_TOLERANCE = 1e-9  # how far a row may be from summing to 1 and still count as normalised


class StateLayout:
    """How weights (S + 1, S), parent by child, root first, are laid out: what discrete and mixed models share."""

    table: Floats
    cardinalities: tuple[int, ...]
    stop: Floats | None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle fields alone and make the weights anew: arrays are then as frozen as they were, whatever memory they lie in.

        To Numba a frozen array has another type, for which it would compile every kernel again.
        """
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]

    @cached_property
    def offsets(self) -> Integers:
        """(n + 1,): index of each variable's first value."""
        return np.concatenate([[0], np.cumsum(self.cardinalities)]).astype(np.int64)

    @cached_property
    def mask(self) -> Booleans:
        """(S + 1, S): which arcs exist: all but those inside one variable."""
        return arc_mask(self.cardinalities)

    @property
    def related(self) -> Booleans:
        """(n,): which variables are measured from others, so that arcs are those of what that leaves of them."""
        return np.zeros(len(self.cardinalities), dtype=np.bool_)

    @property
    def root(self) -> Floats:
        """(S,): weights of the arcs from the root."""
        root: Floats = self.table[0]
        return root

    @property
    def variant(self) -> Variant:
        """Whether there are stop weights."""
        return "ldfm" if self.stop is None else "ldfm-s"

    def _freeze_stop(self) -> None:
        """Check the stop weights, and keep a copy that nobody can change."""
        if self.stop is None:
            return
        size, stop = sum(self.cardinalities), np.array(self.stop, dtype=np.float64)
        if stop.shape != (size + 1,):
            raise ValueError(f"stop weights of {size} values must be ({size + 1},), root first, not {stop.shape}")
        check_weights("stop weight", stop)
        stop.flags.writeable = False
        object.__setattr__(self, "stop", stop)


@dataclass(frozen=True)
class ArcWeights(StateLayout):
    """Weights of every arc between values, and of stopping.

    The generating process of value u (row 1 + u; row 0 is the root): pick a child value t with weight ``table[1 + u, t]``, again
    and again, or stop with weight ``stop[1 + u]``. An LDFM has no stop weights.

    Parameters
    ----------
    table
        (S + 1, S), parent by child, root first; finite, non-negative, 0 between values of one variable.
    cardinalities
        Number of values of each variable; they add up to S.
    stop
        (S + 1,) root first, or None.
    """

    table: Floats
    cardinalities: tuple[int, ...]
    stop: Floats | None = None

    def __post_init__(self) -> None:
        table = np.array(self.table, dtype=np.float64, order="C")
        size = sum(self.cardinalities)
        if not self.cardinalities or min(self.cardinalities) < 1:
            raise ValueError(f"every variable needs at least one value, not {self.cardinalities}")
        if table.shape != (size + 1, size):
            raise ValueError(f"arc weights of {size} values must be {(size + 1, size)}, root first, not {table.shape}")
        check_weights("arc weight", table)
        inside = np.argwhere(~self.mask & (table > 0))
        if inside.size:
            parent, child = inside[0]
            raise ValueError(
                f"arc weight from value {parent - 1} to value {child} must be 0: they belong to the same variable"
            )
        table.flags.writeable = False
        object.__setattr__(self, "table", table)
        self._freeze_stop()

    @classmethod
    def uniform(cls, cardinalities: tuple[int, ...], variant: Variant) -> "ArcWeights":
        """Give the start of learning: every outcome of every row equally likely."""
        mask = arc_mask(cardinalities)
        outcomes = mask.sum(axis=1, keepdims=True) + (variant == "ldfm-s")
        table = np.divide(mask, outcomes, out=np.zeros(mask.shape), where=outcomes > 0)
        stop = 1.0 / outcomes[:, 0] if variant == "ldfm-s" else None
        return cls(table, cardinalities, stop)

    @property
    def arcs(self) -> Floats:
        """(S, S): weights of the arcs between values, parent by child."""
        return self.table[1:]

    @property
    def is_normalised(self) -> bool:
        """Whether every row, its stop weight included, sums to 1."""
        sums = self.table.sum(axis=1) + (0.0 if self.stop is None else self.stop)
        return bool(np.abs(sums - 1.0).max() <= SUM_TOLERANCE)

    @property
    def folded(self) -> Floats:
        """(S + 1, S), a new array: arc weights times the stop weight of the value they lead to, as one arc of each forest does."""
        return self.table * (1.0 if self.stop is None else self.stop[1:])

    def fill_matrices(self, codes: Codes, matrices: Floats) -> None:
        """Fill `matrices` (rows, n + 1, n) with the arc matrices of complete rows: all that forest kernels see."""
        fill_arc_matrices(self.table, self.offsets, codes, matrices)

    def add_stops(self, codes: Codes, log_sums: Floats) -> None:
        """Add the log stop weights of complete rows to their log forest sums."""
        if self.stop is not None:
            with np.errstate(divide="ignore"):
                add_log_stops(self.stop, self.offsets, codes, log_sums)

    def fill_log_sums(self, codes: Codes, matrices: Floats, work: Workspace, sums: Floats) -> None:
        """Fill `sums` with the log forest sums of complete rows, by way of `matrices`; `add_stops` adds the rest."""
        self.fill_matrices(codes, matrices)
        log_forest_sums(matrices, work, sums)

    def fill_marginals(self, codes: Codes, matrices: Floats, work: Workspace, sums: Floats, marginals: Floats) -> None:
        """Fill `sums` as `fill_log_sums` does, and `marginals` like `matrices` with the probabilities of arcs."""
        self.fill_matrices(codes, matrices)
        arc_marginals(matrices, work, sums, marginals)

    def fill_best(self, codes: Codes, matrices: Floats, parents: Integers) -> None:
        """Fill `parents` (rows, n) with the forests of greatest weight."""
        self.fill_matrices(codes, matrices)
        for row, matrix in enumerate(matrices):
            best_forest(matrix, parents[row])

    def fill_draws(
        self,
        codes: Codes,
        matrices: Floats,
        work: Workspace,
        budget: int,
        generator: np.random.Generator,
        parents: Integers,
    ) -> None:
        """Fill `parents` (rows, draws, n) with forests drawn in proportion to their weights."""
        self.fill_matrices(codes, matrices)
        for row, matrix in enumerate(matrices):
            draw_forests(matrix, work, budget, generator, parents[row])

    def add_counts(self, marginals: Floats, codes: Codes, row_weights: Floats, counts: Floats) -> None:
        """Add the arc marginals of rows to expected counts, an array like `table`."""
        add_marginals(marginals, self.offsets, codes, row_weights, counts)

    def normalised(self) -> "ArcWeights":
        """Give the LDFM-S with the same probability of every row, all of whose rows sum to 1.

        With B[u, t] the arc weight times the stop weight of t (each value is entered by exactly one arc), look for a scale c and
        stop weights s with  s(u) = 1 - c sum_t B[u, t] / s(t).  Then  w(t|u) = c B[u, t] / s(t)  has
        det L(w) prod s(x_i) s(root) = c^n s(root) det L(B).  Scaling all arcs into one variable by a number changes nothing either,
        and is used first, to keep the weights of different variables comparable.
        """
        if self.stop is not None and self.is_normalised:
            return self
        if self.stop is not None and self.stop[0] == 0:
            raise ValueError(
                "the stop weight of the root is 0: no row can be generated, so there is no normalised form"
            )
        stops = np.ones(len(self.root)) if self.stop is None else self.stop[1:]
        # quotients by the largest, not products with its inverse: weights of 1e-320 throughout are as good as any
        weights, _ = self.balanced(self.balanced(self.table)[0] * (stops / max(stops.max(), np.finfo(float).tiny)))
        # sums c B <= 3/16 keep s in [3/4, 1], where the iteration contracts by 1/3 or better
        weights = weights * (3.0 / 16.0 / max(weights.sum(axis=1).max(), 1.0))
        if (weights[(self.table > 0) & (stops > 0)] == 0).any():
            raise ValueError("arc weights span too many orders of magnitude to be normalised")
        stop = np.ones(weights.shape[0])
        for _ in range(200):
            previous, stop = stop, 1.0 - (weights / stop[1:]).sum(axis=1)
            if np.array_equal(previous, stop):
                break
        return ArcWeights(weights / stop[1:], self.cardinalities, stop)

    def balanced(self, weights: Floats) -> tuple[Floats, Floats]:
        """Scale weights, an array like `table`, so that the largest into each variable is 1; give them and (n,) the largest.

        It changes no probability. Where all weights into a variable are 0 they stay.
        """
        largest = np.array([weights[:, a:b].max() for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)])
        scale = np.repeat(np.where(largest > 0, largest, 1.0), self.cardinalities)
        with np.errstate(under="ignore"):
            balanced: Floats = weights / scale
        return balanced, largest


def arc_mask(cardinalities: tuple[int, ...]) -> Booleans:
    """Give (S + 1, S): True for the arcs that exist, root first."""
    variable = np.repeat(np.arange(len(cardinalities)), cardinalities)
    mask = variable[:, None] != variable[None, :]
    return np.vstack([np.ones((1, len(variable)), dtype=np.bool_), mask])


def check_weights(what: str, weights: Floats) -> None:
    """Refuse weights that are negative or not finite."""
    bad = np.argwhere(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        place = tuple(int(k) for k in bad[0])
        raise ValueError(f"{what} at {place} is {weights[place]}; weights must be finite and not negative")
