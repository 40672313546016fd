"""Parts of a table, one below the other -> one table: files of a glob, batches of a file larger than memory."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ldfm.tables.cells import Cells, Numbering, Source, TableError, smallest_type
from ldfm.tables.schema import MISSING
from ldfm.types import Codes


def join_parts(parts: Iterable[tuple[str, Source]]) -> Source:
    """Join parts with the same columns, in any order; each comes with what messages call it.

    Of a part nothing stays but an index a cell, of one byte where a column has few values.
    """
    joined: dict[str, _JoinedColumn] = {}
    first, rows = "", 0
    for what, part in parts:
        if not joined:
            first, joined = what, {name: _JoinedColumn() for name in part.names}
        if set(part.names) != set(joined):
            strange = sorted(set(part.names) ^ set(joined))[0]
            raise TableError(f"{what} and {first} must have the same columns, but only one of them has {strange!r}")
        for cells in part.columns:
            joined[cells.name].add(cells)
        rows += part.rows
    return Source([column.cells(name) for name, column in joined.items()], rows)


class _JoinedColumn:
    """One column of all parts so far."""

    def __init__(self) -> None:
        self.numbering = Numbering()
        self.indices: list[Codes] = []
        self.declared: dict[Any, None] | None = {}
        self.like: Cells | None = None

    def add(self, cells: Cells) -> None:
        self.like = self.like or cells
        # True == 1 and 1.0 == 1, also as keys
        numbers = self.numbering.number([(type(value), value) for value in cells.distinct])
        recode = np.append(numbers, MISSING).astype(smallest_type(len(self.numbering)))  # -1 is the last entry
        self.indices.append(recode[cells.indices])
        if cells.declared is None:
            self.declared = None
        elif self.declared is not None:
            self.declared |= dict.fromkeys(cells.declared)

    def cells(self, name: str) -> Cells:
        assert self.like is not None
        distinct = [value for _, value in self.numbering]
        declared = None if self.declared is None else list(self.declared)
        return Cells(name, np.concatenate(self.indices), distinct, self.like.dtype, declared, self.like.text)
