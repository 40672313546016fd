"""Filled tables as they were written: a CSV file keeps the texts it had."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ldfm.tables import Source


def as_in_file(filled: Any, source: "Source") -> Any:
    """Give a filled table with the texts of the CSV file it came from, such as 1.50 and true; other tables as they are.

    A value that fills a cell is written as elsewhere in its column, where the column has it.
    """
    from ldfm.tables.texts import text_as
    from ldfm.tables.writing import text_of

    if not all(cells.text for cells in source.columns):
        return filled
    table = {}
    for cells in source.columns:
        values = filled[cells.name]
        numeric = isinstance(values, np.ndarray) and values.dtype.kind in "if"
        kind = ("int" if values.dtype.kind == "i" else "float") if numeric else _kind_of(values)
        known = {text_as(text, kind): text for text in reversed(cells.distinct)}
        table[cells.name] = [
            cells.distinct[index] if index >= 0 else known.get(value, text_of(value))
            for index, value in zip(cells.indices, values, strict=True)
        ]
    return table


def _kind_of(values: Any) -> str:
    return type(values[0]).__name__ if len(values) else "str"
