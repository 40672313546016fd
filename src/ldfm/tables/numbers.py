"""Continuous columns: where their centre is, how wide they are, and their numbers in these units."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ldfm.tables.cells import Cells, TableError
from ldfm.tables.schema import MISSING, Column
from ldfm.tables.texts import text_as
from ldfm.tables.units import Units
from ldfm.types import Floats

OUTLIERS = 4.0  # how much larger the standard deviation may be than quartiles say before the quartiles are taken
FARTHEST = 1e150  # scales a number may lie from the centre: its square is still a number


def learn_numbers(cells: Cells, values: Sequence[Any], *, whole: bool) -> Column:
    """Find centre and scale of a column: mean and standard deviation, or median and quartiles where a few outliers make it wide."""
    numbers = np.array(values, dtype=np.float64)[cells.indices[cells.indices != MISSING]]
    # by way of the largest, so that squares of 1e200 are no infinity
    unit = float(np.abs(numbers).max()) or 1.0
    shares = numbers / unit
    low, centre, high = np.quantile(shares, [0.25, 0.5, 0.75])
    robust, scale = (high - low) / 1.349, shares.std()
    if scale <= OUTLIERS * robust or robust <= 1e-12 * scale:
        centre = shares.mean()
    else:
        scale = robust
    if not scale * unit > 1e-300 or scale <= 1e-14:  # a constant
        scale = 1.0
    return Column(cells.name, (), cells.dtype, "continuous", Units(float(centre * unit), float(scale * unit)), whole)


def encode_numbers(cells: Cells, column: Column) -> Floats:
    """Give the standardised number of every cell, NaN for missing; what is no finite number is an error."""
    values = [text_as(text, column.type_name) for text in cells.distinct] if cells.text else cells.distinct
    numbers = np.full(len(values) + 1, np.nan)  # index -1 is the last entry: missing stays missing
    for index, value in enumerate(values):
        fine = isinstance(value, (int, float)) and not isinstance(value, bool)
        number = float(value) if fine else np.nan
        if not abs(number - column.units.centre) / column.units.scale < FARTHEST:
            complaint = "is not finite, or beyond what can be computed with" if fine else "is no number"
            raise TableError(
                f"column {cells.name!r} row {cells.first_row(index)}: value {cells.distinct[index]!r} {complaint}"
            )
        numbers[index] = number
    standardised: Floats = column.units.cells(numbers)[cells.indices]
    return standardised
