"""Which cells of a question are query and which evidence; the rest is hidden."""

from collections.abc import Collection, Hashable, Sequence

import numpy as np

from ldfm.tables.cells import TableError
from ldfm.tables.encoding import Table
from ldfm.tables.merging import MergedRows, merge_rows
from ldfm.tables.schema import missing_cells, only_cells
from ldfm.types import Booleans, Rows

Columns = Sequence[Hashable] | Booleans  # names of columns need not be text


def roles_of_cells(table: Table, query: Columns, evidence: Columns) -> tuple[Booleans, Booleans]:
    """Give (rows, n) which cells are query and which evidence, from column names or boolean arrays of the table's shape.

    No cell may be both, and none may be missing.
    """
    asked, given = _roles("query", query, table), _roles("evidence", evidence, table)
    for bad, complaint in (
        (asked & given, "is both query and evidence"),
        (asked & missing_cells(table.codes), "is a query cell but its value is missing"),
        (given & missing_cells(table.codes), "is an evidence cell but its value is missing"),
    ):
        places = np.argwhere(bad)
        if places.size:
            row, column = places[0]
            raise TableError(f"column {table.schema.names[column]!r} row {row} {complaint}")
    return asked, given


def merge_questions(codes: Rows, asked: Booleans, given: Booleans) -> tuple[MergedRows, Booleans]:
    """Merge rows that ask the same; give them, hidden cells missing, and (distinct rows, n) which cells are query.

    Hidden cells do not tell rows apart; evidence is what is known and not asked.
    """
    n = codes.shape[1]
    merged = merge_rows(np.hstack([only_cells(codes, asked | given), asked.astype(codes.dtype)]))
    return merged._replace(codes=merged.codes[:, :n]), merged.codes[:, n:] == 1


def _roles(what: str, columns: Columns, table: Table) -> Booleans:
    """Turn column names or a boolean array into (rows, n)."""
    shape, known = table.codes.shape, table.schema.names
    listed = isinstance(columns, Collection) and not isinstance(columns, str)
    if not listed and not hasattr(columns, "__array__"):
        raise TypeError(f"{what} must be a list of column names or a boolean array, not {columns!r}")
    if isinstance(columns, (list, tuple)) and all(str(name) in known for name in columns):
        return _roles_of_names(what, columns, table)  # as an array, names that are pairs would have two dimensions
    names = [str(name) for name in getattr(columns, "column_names", getattr(columns, "columns", table.source.names))]
    array = np.asarray(columns)
    if array.ndim == 2 or (array.dtype == np.bool_ and array.size):
        if array.dtype != np.bool_:
            raise ValueError(f"{what}: an array of roles must be boolean, not {array.dtype}")
        if array.shape != shape:
            raise ValueError(f"{what}: a boolean array must have the table's shape {shape}, not {array.shape}")
        if not table.source.named:
            return array
        # columns may come in another order than the model's
        if sorted(names) != sorted(known):
            raise ValueError(f"{what}: a frame of roles must have the table's columns, not {names}")
        return array[:, [names.index(name) for name in known]]
    return _roles_of_names(what, columns, table)


def _roles_of_names(what: str, columns: Columns, table: Table) -> Booleans:
    """Turn column names, which are known by their texts, into (rows, n)."""
    known = table.schema.names
    roles = np.zeros(table.codes.shape, dtype=np.bool_)
    for name in columns:
        if str(name) not in known:
            raise ValueError(f"{what} names column {name!r}, which the model does not have")
        roles[:, known.index(str(name))] = True
    return roles
