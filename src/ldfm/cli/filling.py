"""Filled tables as they were written: a CSV file keeps the texts it had."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ldfm.model import ForestModel
    from ldfm.tables import Source

PART = 1 << 14  # rows that are filled at a time: of a file larger than memory all else is an index a cell


def fill_in_parts(model: "ForestModel", source: "Source", how: str, seed: int) -> Iterator[Any]:
    """Give a table filled, to be written as CSV: frames whole, files in parts."""
    from ldfm.tables import encode
    from ldfm.tables.writing import refuse_missing_texts

    if source.frame is not None:
        parts: Any = [source]
    else:
        encode(source, model.schema_)  # what is wrong with a row is said before anything is written
        parts = source.parts(PART)
    for number, part in enumerate(parts):
        if number:  # each part has its own random numbers
            model.random_state = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        filled = as_in_file(model.impute(part, how), part)
        refuse_missing_texts(filled)
        yield filled


def as_in_file(filled: Any, source: "Source") -> Any:
    """Give a filled table with the texts of the CSV file it came from, such as 1.50 and true; other tables without row labels.

    A value that fills a cell is written as elsewhere in its column, where the column has it.
    """
    from ldfm.tables import in_order
    from ldfm.tables.texts import text_as
    from ldfm.tables.writing import text_of

    if not all(cells.text for cells in source.columns):
        return in_order(filled, source.names)
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
