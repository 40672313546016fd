"""Columns of cells -> schema and integer codes."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from shlex import quote
from typing import Any

import numpy as np

from ldfm.tables.cells import Cells, Source, TableError, smallest_type
from ldfm.tables.numbers import encode_numbers, learn_numbers
from ldfm.tables.schema import MISSING, Column, Schema, missing_cells, type_name
from ldfm.tables.texts import text_as, typed_texts
from ldfm.types import Codes, Floats, Rows

Kinds = Mapping[Any, str] | str | None  # names of columns need not be text
MANY_VALUES, ROWS_A_VALUE = 20, 20  # whole numbers are continuous if there are more, and fewer rows to a value
MAX_VALUES = 4096  # all values of all columns together: weights are quadratic in them, 128 MB at this size


class KindWarning(UserWarning):
    """A column whose kind is guessed.

    Attributes
    ----------
    for_commands
        What it says to who gives options instead of arguments.
    """

    def __init__(self, column: str, seen: str) -> None:
        guess = f"column {column!r} has {seen} and is taken as continuous"
        super().__init__(
            f"{guess}; kinds={{{column!r}: 'discrete'}} takes its numbers as categories, 'continuous' says that this is right"
        )
        name = quote(column)
        self.for_commands = (
            f"{guess}; --discrete {name} takes its numbers as categories, --continuous {name} says that this is right"
        )


@dataclass(frozen=True)
class Table:
    """A table as codes.

    Attributes
    ----------
    schema
        Variables and values.
    codes
        (rows, n): code of each cell, -1 for missing, in the smallest integer type that fits. A mixed table, one with a continuous
        column, has cells instead, in double precision: codes, standardised numbers, NaN for missing.
    source
        The cells it came from.
    """

    schema: Schema
    codes: Rows
    source: Source


def learn_table(source: Source, kinds: Kinds = None) -> Table:
    """Find out the schema of a table to learn from, and encode it; one kind for all columns, or those of some."""
    if isinstance(kinds, str):
        kinds = dict.fromkeys(source.names, kinds)
    kinds = {str(name): kind for name, kind in (kinds or {}).items()}
    for name, kind in kinds.items():
        if name not in source.names:
            raise TableError(
                f"kinds names column {name!r}, which the table does not have; it has {_listed(source.names)}"
            )
        if kind not in ("discrete", "continuous"):
            raise TableError(f"column {name!r}: kind must be 'discrete' or 'continuous', not {kind!r}")
    if source.rows == 0:
        raise TableError("the table has no rows")
    schema = Schema(tuple(_learn_column(cells, kinds.get(cells.name)) for cells in source.columns))
    total = sum(schema.cardinalities)
    if total > MAX_VALUES:
        widest = max(schema.columns, key=lambda column: len(column.values))
        raise TableError(
            f"column {widest.name!r} has {len(widest.values)} distinct values (such as {widest.values[0]!r}): a table may have "
            f"{MAX_VALUES} values in all, for a model has a weight for each pair; drop the column or group its values"
        )
    return encode(source, schema)


def refuse_missing(table: Table, what: str) -> None:
    """Refuse a table with missing cells, for what needs complete rows."""
    places = np.argwhere(missing_cells(table.codes))
    if places.size:
        row, column = places[0]
        raise TableError(
            f"column {table.schema.names[column]!r} row {row} is missing (None, NaN or null); {what} needs complete rows"
        )


def encode(source: Source, schema: Schema) -> Table:
    """Encode a table by a schema; columns are found by name, in any order (arrays: by place)."""
    if source.named:
        _check_names(source.names, schema.names)
        columns = {cells.name: cells for cells in source.columns}
        ordered = [columns[name] for name in schema.names]
    else:
        if len(source.columns) != len(schema.columns):
            raise TableError(
                f"X has {len(source.columns)} features, but model is expecting {len(schema.columns)} features as input"
            )
        ordered = source.columns
    if schema.is_mixed:
        pairs = zip(ordered, schema.columns, strict=True)
        cells_of = [encode_numbers(*pair) if pair[1].is_continuous else _encode_column(*pair) for pair in pairs]
        mixed = np.stack(cells_of, axis=1).astype(np.float64)
        mixed[:, ~np.array(schema.continuous)] = _with_nan(mixed[:, ~np.array(schema.continuous)])
        return Table(schema, mixed, source)
    dtype = smallest_type(max(schema.cardinalities))
    codes = np.empty((source.rows, len(schema.columns)), dtype=dtype, order="C")
    for place, (cells, column) in enumerate(zip(ordered, schema.columns, strict=True)):
        codes[:, place] = _encode_column(cells, column)
    return Table(schema, codes, source)


def _with_nan(codes: Floats) -> Floats:
    return np.where(codes == MISSING, np.nan, codes)


def _check_names(given: Sequence[str], wanted: Sequence[str]) -> None:
    lacking = [name for name in wanted if name not in given]
    unknown = [name for name in given if name not in wanted]
    if lacking:
        raise TableError(
            f"the table lacks column {lacking[0]!r}; it has {_listed(given)}, the model needs {_listed(wanted)}"
        )
    if unknown:
        raise TableError(f"the model does not know column {unknown[0]!r}; it knows {_listed(wanted)}")


def _listed(names: Sequence[Any], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def _learn_column(cells: Cells, kind: str | None) -> Column:
    """Find the values of a column and their order: as declared by the table, else sorted."""
    found = cells.distinct if cells.declared is None else cells.declared
    if not found:
        raise TableError(f"column {cells.name!r}: all cells are missing")
    values: list[Any] = typed_texts(found) if cells.text else found
    names = {type_name(value) for value in values}
    if names == {"int", "float"}:
        values, names = [float(value) for value in values], {"float"}
    if len(names) > 1 or None in names:
        _refuse_types(cells, values)
    if names <= {"int", "float"} and _is_continuous(cells, values, kind):
        return learn_numbers(cells, values, whole=names == {"int"})
    if kind == "continuous":
        raise TableError(f"column {cells.name!r}: a continuous column needs numbers, not {values[0]!r}")
    if names == {"float"}:
        _check_finite(cells, values)
    try:
        ordered = sorted(set(values)) if cells.declared is None else values
    except TypeError as error:
        raise TableError(f"column {cells.name!r} mixes datetimes with and without a time zone") from error
    return Column(cells.name, tuple(ordered), cells.dtype)


def _refuse_types(cells: Cells, values: Sequence[Any]) -> None:
    strange = next((value for value in values if type_name(value) is None), None)
    if strange is not None:
        where = f"column {cells.name!r}{_row_of(cells, values, strange)}"
        raise TableError(
            f"{where}: {strange!r} is of type {type(strange).__name__}, which cannot be a value; use text, numbers, bools or dates"
        )
    first = type_name(values[0])
    same = ("int", "float") if first in ("int", "float") else (first,)
    other = next(value for value in values if type_name(value) not in same)
    raise TableError(
        f"column {cells.name!r} mixes types: {values[0]!r} ({type(values[0]).__name__}){_row_of(cells, values, values[0])}, "
        f"{other!r} ({type(other).__name__}){_row_of(cells, values, other)}"
    )


def _row_of(cells: Cells, values: Sequence[Any], value: Any) -> str:
    """Say where one of a column's values is; nothing if it is only declared."""
    if cells.declared is not None:
        values = cells.distinct
    return f" row {cells.first_row(values.index(value))}" if value in values else ""


def _check_finite(cells: Cells, values: Sequence[float]) -> None:
    for value in values:
        if not isfinite(value):
            raise TableError(f"column {cells.name!r}{_row_of(cells, values, value)}: value {value} is not finite")


def _is_continuous(cells: Cells, values: Sequence[Any], kind: str | None) -> bool:
    """Say whether a column of numbers is continuous: as told, else floating-point ones, and whole ones with many values."""
    if kind is not None or cells.declared is not None:
        return kind == "continuous"
    rows = int((cells.indices != MISSING).sum())
    if any(isinstance(value, float) for value in values):
        _check_finite(cells, values)
        distinct = len(set(values))  # texts such as 1 and 1.0 are one number
        few = distinct <= MANY_VALUES and distinct * ROWS_A_VALUE <= rows
        # pandas turns whole numbers into floats where a cell is missing, which nobody asked for
        if few and rows < len(cells.indices) and all(float(value).is_integer() for value in values):
            seen = f"only {distinct} different numbers, all whole, and missing cells"
            warnings.warn(KindWarning(cells.name, seen), stacklevel=2)
        return True
    if len(values) <= MANY_VALUES or len(values) * ROWS_A_VALUE <= rows:
        return False
    warnings.warn(KindWarning(cells.name, f"{len(values)} different whole numbers in {rows} rows"), stacklevel=2)
    return True


def _encode_column(cells: Cells, column: Column) -> Codes:
    """Give the code of every cell, -1 for missing; a value the column does not have is an error."""
    # True == 1 and False == 0, also as keys: bools are looked up among bools only
    lookup = {(isinstance(value, bool), value): code for code, value in enumerate(column.values)}
    values = [text_as(text, column.type_name) for text in cells.distinct] if cells.text else cells.distinct
    found = [lookup.get((isinstance(value, bool), value), MISSING) for value in values]
    recode = np.array(
        [*found, MISSING], dtype=smallest_type(len(column.values))
    )  # index -1 is the last: missing stays missing
    codes: Codes = recode[cells.indices]
    unseen = np.flatnonzero((codes == MISSING) & (cells.indices != MISSING))
    if unseen.size:
        value = cells.distinct[cells.indices[unseen[0]]]
        raise TableError(
            f"column {cells.name!r} row {unseen[0]}: value {value!r} ({type(value).__name__}) was not seen in training; "
            f"the column's values are {_listed(column.values)} ({column.type_name})"
        )
    return codes
