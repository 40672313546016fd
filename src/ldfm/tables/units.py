"""Numbers of a continuous column <-> the cells that models see.

A cell is ``(number - centre) / scale``, and where a column is skewed that on a *bent* scale: straight around a pivot, logarithmic
far from it, and straight again beyond the numbers that were learned from, where nothing says how they go on. Every bend maps all
numbers onto all numbers, so that densities of cells are densities of numbers after division by a slope.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any

import numpy as np

from ldfm.types import Floats

_NODES, _SHARES = np.polynomial.hermite_e.hermegauss(16)  # of averages over normal densities
_SHARES = _SHARES / _SHARES.sum()


@dataclass(frozen=True)
class Bend:
    """A bent scale: cell = (asinh((share - pivot) / width) - level) / spread, shares being (number - centre) / scale.

    Attributes
    ----------
    pivot
        Share around which the scale is straight.
    width
        How far: it is logarithmic where shares are much farther from the pivot.
    level, spread
        Make cells of the column have mean 0 and deviation 1.
    low, high
        Cells between which it is so. Beyond them it goes on as straight as it is there.
    """

    pivot: float
    width: float
    level: float
    spread: float
    low: float
    high: float

    def cells(self, shares: Floats) -> Floats:
        """Bend."""
        ends = self.shares(np.array([self.low, self.high]))
        inner = np.clip(shares, *ends)
        bent = (np.arcsinh((inner - self.pivot) / self.width) - self.level) / self.spread
        found: Floats = bent + (shares - inner) / np.exp(self.log_slopes(bent))
        return found

    def shares(self, cells: Floats) -> Floats:
        """Undo it."""
        inner = np.clip(cells, self.low, self.high)
        bent = self.pivot + self.width * np.sinh(self.level + self.spread * inner)
        found: Floats = bent + (cells - inner) * np.exp(self.log_slopes(cells))
        return found

    def log_slopes(self, cells: Floats) -> Floats:
        """Give log(d share / d cell)."""
        bent = np.abs(self.level + self.spread * np.clip(cells, self.low, self.high))
        # log cosh without overflow
        found: Floats = np.log(self.width * self.spread / 2.0) + bent + np.log1p(np.exp(-2.0 * bent))
        return found

    def moments(self, means: Floats, deviations: Floats) -> tuple[Floats, Floats]:
        """Give means and mean squares of shares whose cells are normal, by Gauss-Hermite quadrature."""
        first, second = np.zeros_like(means), np.zeros_like(means)
        for node, share in zip(_NODES, _SHARES, strict=True):
            at = self.shares(means + node * deviations)
            first += share * at
            second += share * at**2
        return first, second

    @classmethod
    def from_json(cls, record: Any) -> "Bend":
        """Read and check the fields; any fault is a ValueError."""
        names = {part.name for part in fields(cls)}
        if not isinstance(record, Mapping) or set(record) != names:
            raise ValueError(f"a bend must have exactly the fields {', '.join(sorted(names))}")
        if not all(type(value) is float and isfinite(value) for value in record.values()):
            raise ValueError("the fields of a bend must be finite floats")
        if not (record["width"] > 0 and record["spread"] > 0 and record["low"] < record["high"]):
            raise ValueError("width and spread of a bend must be positive, and low below high")
        return cls(**record)


@dataclass(frozen=True)
class Units:
    """The units of a continuous column.

    Attributes
    ----------
    centre, scale
        Where its numbers are, and how wide.
    bend
        How its scale is bent; None: not at all.
    """

    centre: float = 0.0
    scale: float = 1.0
    bend: Bend | None = None

    def cells(self, numbers: Floats) -> Floats:
        """Give what models see."""
        shares: Floats = (numbers - self.centre) / self.scale
        return shares if self.bend is None else self.bend.cells(shares)

    def numbers(self, cells: Floats) -> Floats:
        """Give the numbers that cells stand for."""
        shares = cells if self.bend is None else self.bend.shares(cells)
        found: Floats = self.centre + self.scale * shares
        return found

    def even(self, low: float, high: float, count: int) -> Floats:
        """Give so many numbers from one to another, evenly spread on the scale that models see."""
        first, last = self.cells(np.array([low, high])).tolist()
        return self.numbers(np.linspace(first, last, count))

    def log_slopes(self, cells: Floats) -> Floats:
        """Give log(d number / d cell): what the log density of a cell loses on the way to that of the number."""
        scale = np.log(self.scale)
        return np.where(np.isnan(cells), np.nan, scale) if self.bend is None else scale + self.bend.log_slopes(cells)

    def to_json(self) -> dict[str, Any]:
        """Give what `from_json` reads."""
        plain: dict[str, Any] = {"centre": self.centre, "scale": self.scale}
        return plain if self.bend is None else {**plain, "bend": asdict(self.bend)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Units":
        """Read and check what `to_json` gave; any fault is a ValueError."""
        centre, scale = record["centre"], record["scale"]
        numbers = all(type(value) is float and isfinite(value) for value in (centre, scale))
        if not numbers or scale <= 0:
            raise ValueError("centre must be a finite number and scale a positive one")
        return cls(centre, scale, Bend.from_json(record["bend"]) if "bend" in record else None)


PLAIN = Units()  # cells are the numbers themselves
