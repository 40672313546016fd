"""Columns of cells <-> schema and integer codes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from ldfm.tables.schema import MISSING, Column, Scalar, Schema, type_name
from ldfm.tables.sources import Cells, Source, TableError
from ldfm.types import Codes, Integers

MAX_VALUES = 4096  # all values of all columns together: weights are quadratic in them, 128 MB at this size


@dataclass(frozen=True)
class Table:
    """A table as codes.

    Attributes
    ----------
    schema
        Variables and values.
    codes
        (rows, n): code of each cell, -1 for missing, in the smallest integer type that fits.
    source
        The cells it came from.
    """

    schema: Schema
    codes: Codes
    source: Source


def learn_table(source: Source, kinds: Mapping[str, str] | None = None) -> Table:
    """Find out the schema of a table to learn from, and encode it."""
    kinds = dict(kinds or {})
    for name, kind in kinds.items():
        if name not in source.names:
            raise TableError(
                f"kinds names column {name!r}, which the table does not have; it has {_listed(source.names)}"
            )
        if kind != "discrete":
            raise TableError(f"column {name!r}: kind must be 'discrete', not {kind!r}")
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


def encode(source: Source, schema: Schema) -> Table:
    """Encode a table by a schema; columns are found by name, in any order (arrays: by place)."""
    if source.named:
        _check_names(source.names, schema.names)
        columns = {cells.name: cells for cells in source.columns}
        ordered = [columns[name] for name in schema.names]
    else:
        if len(source.columns) != len(schema.columns):
            raise TableError(
                f"the array has {len(source.columns)} columns, the model has {len(schema.columns)} variables"
            )
        ordered = source.columns
    largest = max(schema.cardinalities)
    dtype = next(t for t in (np.int8, np.int16, np.int32) if largest <= np.iinfo(t).max)
    codes = np.empty((source.rows, len(schema.columns)), dtype=dtype, order="C")
    for place, (cells, column) in enumerate(zip(ordered, schema.columns, strict=True)):
        codes[:, place] = _encode_column(cells, column)
    return Table(schema, codes, source)


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
    if not cells.distinct and not cells.declared:
        raise TableError(f"column {cells.name!r}: all cells are missing")
    distinct = _typed_texts(cells.distinct) if cells.text else cells.distinct
    names = {type_name(value) for value in distinct}
    if names == {"int", "float"}:
        distinct = [float(value) for value in distinct if isinstance(value, int | float)]
        names = {"float"}
    if len(names) > 1 or None in names:
        _refuse_mixture(cells, distinct)
    if names == {"float"} and kind != "discrete" and cells.declared is None:
        raise TableError(
            f"column {cells.name!r}: floating-point columns are continuous, which this version cannot learn; "
            f"kinds={{{cells.name!r}: 'discrete'}} takes its {len(distinct)} numbers as categories, or group them into bins first"
        )
    values = sorted(distinct) if cells.declared is None else cells.declared
    return Column(cells.name, tuple(values), cells.dtype)


def _refuse_mixture(cells: Cells, distinct: Sequence[Any]) -> None:
    first = type_name(distinct[0])
    if first is None:
        raise TableError(
            f"column {cells.name!r} row {cells.first_row(0)}: {distinct[0]!r} is of type {type(distinct[0]).__name__}, "
            f"which cannot be a value; use text, numbers, bools or dates"
        )
    other = next(index for index, value in enumerate(distinct) if type_name(value) != first)
    raise TableError(
        f"column {cells.name!r} mixes types: row {cells.first_row(0)} has {distinct[0]!r} ({first}), "
        f"row {cells.first_row(other)} has {distinct[other]!r} ({type(distinct[other]).__name__})"
    )


def _typed_texts(texts: Sequence[str]) -> list[Scalar]:
    """Find the type of a CSV column: whole numbers, then bools, then numbers, else text."""
    if all(_is_integer(text) for text in texts):
        return [int(text) for text in texts]
    if set(texts) <= {"True", "False"} or set(texts) <= {"true", "false"}:
        return [text in ("True", "true") for text in texts]
    numbers = [_number(text) for text in texts]
    if all(number is not None for number in numbers):
        return [number for number in numbers if number is not None]
    return list(texts)


def _is_integer(text: str) -> bool:
    # "007" and "+1" are names, not numbers: as numbers they would not come back as they were
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _encode_column(cells: Cells, column: Column) -> Codes:
    """Give the code of every cell, -1 for missing; a value the column does not have is an error."""
    lookup: dict[Any, int] = {value: code for code, value in enumerate(column.values)}
    if cells.text:
        found = [lookup.get(_as_type(text, column.type_name), MISSING) for text in cells.distinct]
    else:
        found = [lookup.get(value, MISSING) for value in cells.distinct]
    recode = np.array([*found, MISSING], dtype=np.int32)  # index -1 is the last entry: missing stays missing
    for index, code in enumerate(found):
        if code == MISSING and (cells.indices == index).any():
            raise TableError(
                f"column {cells.name!r} row {cells.first_row(index)}: value {cells.distinct[index]!r} "
                f"({type(cells.distinct[index]).__name__}) was not seen in training; "
                f"the column's values are {_listed(column.values)} ({column.type_name})"
            )
    codes: Codes = recode[cells.indices]
    return codes


def _as_type(text: str, name: str) -> Any:
    """Read a CSV cell as a value of the type its column has in the model."""
    if name == "bool":
        return {"True": True, "true": True, "False": False, "false": False}.get(text, text)
    if name in ("int", "float"):
        number = _number(text)
        return text if number is None else number
    return text


def fill_missing(table: Table, codes: Codes) -> Any:
    """Give the table with its missing cells filled by `codes` (rows, n), as the kind of frame it was; other cells stay as given.

    Mappings and files come back as a mapping of column names to arrays.
    """
    source, schema = table.source, table.schema
    filled: dict[str, np.ndarray[Any, Any]] = {}
    for place, column in enumerate(schema.columns):
        values = np.empty(len(column.values), dtype=object)
        values[:] = column.values
        filled[column.name] = values[codes[:, place]]
    if source.frame is not None:
        return _fill_frame(source.frame, table, filled)
    if source.array is not None:
        array = source.array.copy()
        for place, column in enumerate(schema.columns):
            absent = table.codes[:, place] == MISSING
            array[absent, place] = filled[column.name][absent]
        return array
    return filled


def _fill_frame(frame: nw.DataFrame[Any], table: Table, filled: dict[str, np.ndarray[Any, Any]]) -> Any:
    columns = []
    for name in frame.columns:
        rows = np.flatnonzero(table.codes[:, table.schema.names.index(name)] == MISSING)
        if rows.size:
            columns.append(_fill_series(frame[name], rows, filled[name][rows]))
    return frame.with_columns(*columns).to_native()


def _fill_series(series: nw.Series[Any], rows: Integers, values: np.ndarray[Any, Any]) -> nw.Series[Any]:
    if series.implementation.is_pandas_like():  # assignment keeps index, nullable dtypes and categories
        native = series.to_native().copy()
        native.iloc[rows] = values.tolist()
        return nw.from_native(native, series_only=True)
    cells = series.to_list()
    for row, value in zip(rows, values, strict=True):
        cells[row] = value
    return nw.new_series(series.name, cells, series.dtype, backend=series.implementation)
