"""Relations of several columns of numbers at once: columns that a model sees as what others leave of them.

An arc knows one parent, so forests cannot say that a column is the sum of two others. A *relation* can: a related column is
measured from a straight line in other columns, and the model is one of what remains,

    rest = (cell - level - sum of shares x cells of others) / scale.

Columns are related in an order: nothing is measured from itself, directly or by way of others. So rests stand for cells and cells
for rests, and densities differ by the scales alone. Discrete variables have no relations; their codes are passed on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldfm.types import Booleans, Floats, Integers


class RelationsError(ValueError):
    """Arrays that are no relations."""


@dataclass(frozen=True)
class Relations:
    """Which variables are measured from others; arrays are read-only.

    Attributes
    ----------
    shares
        (n, n): row j has what of other cells is taken away from cell j.
    levels, scales
        (n,): what else is, and what it is divided by; 0 and 1 for variables without a relation.
    """

    shares: Floats
    levels: Floats
    scales: Floats

    def __post_init__(self) -> None:
        size = len(self.levels)
        for name, shape in (("shares", (size, size)), ("levels", (size,)), ("scales", (size,))):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != shape or not np.isfinite(array).all():
                raise RelationsError(f"{name} of relations must be finite numbers {shape}, not {array.shape}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if not (self.scales > 0).all():
            raise RelationsError("scales of relations must be positive")
        if len(self.order) < size:
            raise RelationsError("relations go round in a circle")

    @classmethod
    def none(cls, size: int) -> "Relations":
        """Give those of variables without any."""
        return cls(np.zeros((size, size)), np.zeros(size), np.ones(size))

    def arrays(self) -> dict[str, Floats]:
        """Give the arrays by their names."""
        return {"shares": self.shares, "levels": self.levels, "scales": self.scales}

    @cached_property
    def order(self) -> Integers:
        """Variables in an order in which each comes after those that it is measured from; some lack where there is a circle."""
        waiting, found = self.shares != 0, list[int]()
        while True:
            ready = [j for j in np.flatnonzero(~waiting.any(axis=1)).tolist() if j not in found]
            if not ready:
                return np.array(found, dtype=np.int64)
            found += ready
            waiting[:, ready] = False

    @property
    def related(self) -> Booleans:
        """(n,): which variables are measured from others."""
        found: Booleans = (self.shares != 0).any(axis=1)
        return found

    @property
    def involved(self) -> Booleans:
        """(n,): which variables are in any relation."""
        found: Booleans = self.related | (self.shares != 0).any(axis=0) | (self.levels != 0) | (self.scales != 1)
        return found

    @property
    def log_scale(self) -> float:
        """What the log density of rests loses on the way to that of cells."""
        return float(np.log(self.scales).sum())

    @cached_property
    def steps(self) -> Floats:
        """(n, n): how the rest of j changes with cell i, row i."""
        return np.ascontiguousarray(((np.eye(len(self.levels)) - self.shares) / self.scales[:, None]).T)

    def rests(self, cells: Floats) -> Floats:
        """Give what is left of rows (rows, n); NaN where that takes a missing cell."""
        missing = np.isnan(cells)
        found: Floats = np.where(missing, 0.0, cells) @ self.steps - self.levels / self.scales
        found[missing.astype(np.float64) @ (self.steps != 0) > 0] = np.nan
        return np.where(self._passed_on, cells, found)

    def cells(self, rests: Floats) -> Floats:
        """Give the rows (rows, n) of which that is left."""
        found = np.array(rests, dtype=np.float64)
        for j in self.order:
            if not self._passed_on[j]:
                found[:, j] = self.levels[j] + self.scales[j] * found[:, j] + found @ self.shares[j]
        return found

    @cached_property
    def _passed_on(self) -> Booleans:
        """(n,): which variables come through unchanged, codes of discrete ones to the last bit."""
        found: Booleans = ~self.related & (self.levels == 0) & (self.scales == 1)
        return found

    def described(self, names: Sequence[str]) -> list[str]:
        """Give the relations as people read them, names standing for cells."""
        return [
            f"{name} = {' '.join(f'{share:+.2g} {other}' for other, share in shares.items())} {level:+.2g} + {scale:.2g} rest"
            for name, shares, level, scale in self._listed(names)
        ]

    def to_json(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Give the relations for programs to read."""
        return [
            {"column": name, "shares": shares, "level": level, "scale": scale}
            for name, shares, level, scale in self._listed(names)
        ]

    def _listed(self, names: Sequence[str]) -> list[tuple[str, dict[str, float], float, float]]:
        """Give for each related variable its name, shares with the largest first, level and scale."""
        found = []
        for j in np.flatnonzero(self.related).tolist():
            others = [k for k in np.argsort(-np.abs(self.shares[j]), kind="stable").tolist() if self.shares[j, k] != 0]
            shares = {names[k]: float(self.shares[j, k]) for k in others}
            found.append((names[j], shares, float(self.levels[j]), float(self.scales[j])))
        return found
