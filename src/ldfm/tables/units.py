"""Numbers of a continuous column <-> the cells that models see.

A cell is ``(number - centre) / scale``, and where a column is skewed or has heavy tails that on a *bent* scale, straight around a
pivot and logarithmic far from it, to both sides. Every bend maps all numbers onto all numbers, so that densities of cells are
densities of numbers after division by a slope.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any

import numpy as np

from ldfm.types import Floats


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
    """

    pivot: float
    width: float
    level: float
    spread: float

    def cells(self, shares: Floats) -> Floats:
        """Bend."""
        found: Floats = (np.arcsinh((shares - self.pivot) / self.width) - self.level) / self.spread
        return found

    def shares(self, cells: Floats) -> Floats:
        """Undo it."""
        found: Floats = self.pivot + self.width * np.sinh(self.level + self.spread * cells)
        return found

    def log_slopes(self, cells: Floats) -> Floats:
        """Give log(d share / d cell)."""
        bent = self.level + self.spread * cells
        # log cosh without overflow
        found: Floats = np.log(self.width * self.spread / 2.0) + np.logaddexp(bent, -bent)
        return found

    def moments(self, means: Floats, deviations: Floats) -> tuple[Floats, Floats, Floats]:
        """Give means and variances of shares whose cells are normal, and how much the means move with those of cells.

        sinh of a normal variable, mean a and variance v, has the mean exp(v/2) sinh(a) and the variance
        expm1(2v)/2 + sinh(a)^2 exp(v) expm1(v).
        """
        bent, variances = self.level + self.spread * means, (self.spread * deviations) ** 2
        grown = np.exp(variances / 2.0)
        spread = np.expm1(2.0 * variances) / 2.0 + np.sinh(bent) ** 2 * np.exp(variances) * np.expm1(variances)
        slopes = self.width * self.spread * grown * np.cosh(bent)
        return self.pivot + self.width * grown * np.sinh(bent), self.width**2 * spread, slopes

    @classmethod
    def from_json(cls, record: Any) -> "Bend":
        """Read and check the fields; any fault is a ValueError."""
        names = {part.name for part in fields(cls)}
        if not isinstance(record, Mapping) or set(record) != names:
            raise ValueError(f"a bend must have exactly the fields {', '.join(sorted(names))}")
        if not all(type(value) is float and isfinite(value) for value in record.values()):
            raise ValueError("the fields of a bend must be finite numbers")
        if not (record["width"] > 0 and record["spread"] > 0):
            raise ValueError("width and spread of a bend must be positive")
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
