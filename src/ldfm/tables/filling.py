"""Codes -> a table of the kind that was given: its missing cells filled, or new rows like its own."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

import narwhals as nw
import numpy as np

from ldfm.tables.cells import Source
from ldfm.tables.encoding import Table
from ldfm.tables.schema import Column, Schema, in_python_unit, missing_cells, only_cells, plain
from ldfm.types import Integers, Rows


def fill_missing(table: Table, codes: Rows) -> Any:
    """Give the table with its missing cells filled by `codes` (rows, n), as the kind of table it was; other cells stay as given.

    Dtypes stay too, unless a column has none that could hold its values, as one with nothing but missing cells may. Mappings and
    CSV files come back as a mapping of column names to arrays.
    """
    source, schema = table.source, table.schema
    places = [schema.names.index(name) for name in source.names] if source.named else range(len(schema.columns))
    gaps = [_Gaps(schema.columns[place], table.codes[:, place], codes[:, place]) for place in places]
    if source.frame is not None:
        return _fill_frame(source.frame, source.given, gaps)
    if isinstance(source.given, np.ndarray):
        return _fill_array(source.given, gaps)
    if isinstance(source.given, (list, tuple)):
        return _fill_rows(source.given, gaps)
    if isinstance(source.given, Mapping):
        return {name: _fill_values(values, gap) for (name, values), gap in zip(source.given.items(), gaps, strict=True)}
    return {gap.column.name: gap.all_values() for gap in gaps}


def in_order(table: Any, names: Sequence[str]) -> Any:
    """Give a table of named columns with its columns in this order, a list of rows as an array, an array as it is."""
    if isinstance(table, list):
        return _array_of_rows(table)
    if isinstance(table, Mapping):
        named = {str(name): (name, values) for name, values in table.items()}
        return dict(named[name] for name in names)
    if nw.dependencies.is_pandas_like_dataframe(table):  # whose columns may have names other than text
        places = [str(name) for name in table.columns]
        return table.iloc[:, [places.index(name) for name in names]]
    if nw.dependencies.is_into_dataframe(table):
        return nw.from_native(table).select(*names).to_native()
    return table


def template_of(source: Source, schema: Schema) -> Any:
    """Give the frame a table is, without its rows and what they take of memory; None where it is no frame.

    Its columns are in the order of the schema. It knows dtypes and categories, for `new_frame`, and can be pickled.
    """
    if source.frame is None:
        return None
    as_given = nw.dependencies.is_pandas_like_dataframe(source.given)  # whose columns may have names other than text
    native = in_order(source.given if as_given else source.frame.to_native(), schema.names)
    if source.frame.implementation.is_pandas_like():
        return native.iloc[[]]  # not a slice, which would keep all rows in memory
    if source.frame.implementation.is_pyarrow():
        return native.schema.empty_table()
    empty = nw.from_native(native.clear(), eager_only=True)
    # models are pickled, which polars cannot do with columns of objects; values find a dtype of their own there
    texts = [
        nw.new_series(name, [], nw.String, backend="polars") for name in empty.columns if empty[name].dtype == nw.Object
    ]
    return empty.with_columns(*texts).to_native()


def new_frame(schema: Schema, codes: Rows, template: Any = None) -> Any:
    """Give rows as a frame like the template, or as a mapping of column names to arrays; dtypes stay as in `fill_missing`."""
    unknown = only_cells(codes, np.zeros(codes.shape, dtype=np.bool_))
    gaps = [_Gaps(column, unknown[:, place], codes[:, place]) for place, column in enumerate(schema.columns)]
    if template is None:
        return {gap.column.name: gap.all_values() for gap in gaps}
    if nw.dependencies.is_pandas_like_dataframe(template):
        cells = {place: _new_pandas(template.iloc[:, place], gap) for place, gap in enumerate(gaps)}
        frame = type(template)(cells)
        frame.columns = template.columns
        return frame
    if nw.dependencies.is_pyarrow_table(template):
        pyarrow = nw.get_native_namespace(template)
        nulls = [_nulls(pyarrow, field.type, gap) for field, gap in zip(template.schema, gaps, strict=True)]
        rows = pyarrow.Table.from_arrays(nulls, schema=template.schema)
    else:
        rows = template.clear(len(codes))
    return _fill_frame(nw.from_native(rows, eager_only=True), None, gaps)


def _nulls(pyarrow: Any, kind: Any, gap: "_Gaps") -> Any:
    """Give a column of nulls for the gaps; a dictionary has the values in the order of the model, which is that it declared."""
    if not pyarrow.types.is_dictionary(kind):
        return pyarrow.nulls(len(gap.rows), kind)
    values = pyarrow.array(gap.column.values, kind.value_type)
    indices = pyarrow.nulls(len(gap.rows), kind.index_type)
    return pyarrow.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)


def _new_pandas(empty: Any, gap: "_Gaps") -> Any:
    """Give the values as a series like an empty one; pandas has dtypes without missing cells that could be filled."""
    values = gap.values()
    if hasattr(empty.dtype, "categories"):
        empty = empty.cat.add_categories(_lacking(values, empty.cat.categories))
    try:
        made = type(empty)(values, dtype=empty.dtype)
        exact = gap.are_in(made.tolist())
    except (TypeError, ValueError, OverflowError):  # the dtype cannot hold them
        exact = False
    return made if exact else type(empty)(values, dtype=object).infer_objects()


class _Gaps:
    """The missing cells of a column, and what goes there."""

    def __init__(self, column: Column, given: Rows, codes: Rows) -> None:
        self.column = column
        self.codes = codes
        self.rows: Integers = np.flatnonzero(missing_cells(given))

    def all_values(self) -> np.ndarray[Any, Any]:
        """Give the values of all cells."""
        found = self.column.decode(self.codes)
        if self.column.is_continuous:
            return np.array(found, dtype=np.int64 if self.column.whole else np.float64)
        values = np.empty(len(found), dtype=object)
        values[:] = found
        return values

    def values(self) -> list[Any]:
        """Give the values that go into the missing cells."""
        return self.column.decode(self.codes[self.rows])

    def are_in(self, cells: list[Any]) -> bool:
        """Say whether cells hold the values; numbers may have been rounded to the precision of their column."""
        if self.column.is_continuous and not self.column.whole:
            return all(isinstance(cell, float) and isfinite(cell) for cell in cells)
        return _same([plain(cell) for cell in cells], self.values())

    def fill(self, cells: Any) -> Any:
        """Put them there."""
        for row, value in zip(self.rows.tolist(), self.values(), strict=True):
            cells[row] = value
        return cells


def _fill_array(array: np.ndarray[Any, Any], gaps: list[_Gaps]) -> np.ndarray[Any, Any]:
    filled = array.copy()
    if not all(_array_holds(array.dtype, gap) for gap in gaps):
        filled = filled.astype(object)
    for place, gap in enumerate(gaps):
        gap.fill(filled[:, place])
    return filled


def _array_holds(dtype: np.dtype[Any], gap: _Gaps) -> bool:
    """Say whether an array of this dtype takes the values as they are, neither cut nor rounded."""
    values = gap.values()
    if dtype.kind == "O" or not values:
        return True
    try:
        held = np.array(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        return False
    return gap.are_in((in_python_unit(held) if dtype.kind == "M" else held).tolist())


def _same(cells: list[Any], values: list[Any]) -> bool:
    """Say whether cells are equal to values; True is not 1."""
    return cells == values and [isinstance(c, bool) for c in cells] == [isinstance(v, bool) for v in values]


def _fill_rows(rows: Any, gaps: list[_Gaps]) -> Any:
    filled = [list(row) for row in rows]
    for place, gap in enumerate(gaps):
        for row, value in zip(gap.rows.tolist(), gap.values(), strict=True):
            filled[row][place] = value
    return filled


def _array_of_rows(rows: list[list[Any]]) -> np.ndarray[Any, Any]:
    """Give rows as a 2-D array: of numbers where all cells are numbers, else of objects, which keep their types."""
    numbers = all(type(cell) in (int, float) for row in rows for cell in row)
    return np.array(rows, dtype=None if numbers else object)


def _fill_values(values: Any, gap: _Gaps) -> np.ndarray[Any, Any]:
    """Fill a column of a mapping: arrays keep their dtype, anything else becomes an array of objects."""
    if isinstance(values, np.ndarray):
        copy = values.copy() if _array_holds(values.dtype, gap) else values.astype(object)
    else:
        copy = np.empty(len(values), dtype=object)
        copy[:] = list(values)
    filled: np.ndarray[Any, Any] = gap.fill(copy)
    return filled


def _fill_frame(frame: nw.DataFrame[Any], given: Any, gaps: list[_Gaps]) -> Any:
    if frame.implementation.is_pandas_like():
        as_given = nw.dependencies.is_pandas_like_dataframe(given)  # whose columns may have names other than text
        native = (given if as_given else frame.to_native()).copy()
        for place, gap in enumerate(gaps):
            if gap.rows.size:
                native.isetitem(place, _fill_pandas(native.iloc[:, place], gap))
        return native
    fill = _fill_pyarrow if frame.implementation.is_pyarrow() else _fill_polars
    filled = [fill(frame[gap.column.name], gap) for gap in gaps if gap.rows.size]
    return frame.with_columns(*filled).to_native()


def _fill_pandas(series: Any, gap: _Gaps) -> Any:
    values, filled = gap.values(), series.copy()
    if hasattr(series.dtype, "categories"):
        filled = filled.cat.add_categories(_lacking(values, series.cat.categories))
    try:
        filled.iloc[gap.rows] = values
        exact = gap.are_in(filled.iloc[gap.rows].tolist())
    except (TypeError, ValueError, OverflowError):  # the dtype cannot hold them
        exact = False
    if not exact:
        filled = series.astype(object)
        filled.iloc[gap.rows] = values
        filled = filled.infer_objects()
    return filled


def _fill_polars(series: nw.Series[Any], gap: _Gaps) -> nw.Series[Any]:
    values = gap.values()
    if _holds(series.dtype, gap):
        if isinstance(series.dtype, nw.Enum):
            series = series.cast(nw.Enum([*series.dtype.categories, *_lacking(values, series.dtype.categories)]))
        new = nw.new_series(series.name, values, series.dtype, backend=series.implementation)
        if gap.are_in(new.to_list()):
            return series.scatter(gap.rows.tolist(), new)
    dtype = series.dtype if series.dtype == nw.Object else None
    return nw.new_series(series.name, gap.fill(series.to_list()), dtype, backend=series.implementation)


def _fill_pyarrow(series: nw.Series[Any], gap: _Gaps) -> nw.Series[Any]:
    pyarrow, native = nw.get_native_namespace(series), series.to_native()
    if series.dtype == nw.Categorical:
        array = _fill_dictionary(pyarrow, native, gap)
    else:
        cells = gap.fill(native.to_pylist())
        array = pyarrow.array(cells, type=native.type if _holds(series.dtype, gap) else None)
        if not gap.are_in(array.take(pyarrow.array(gap.rows)).to_pylist()):
            array = pyarrow.array(cells)
    filled: nw.Series[Any] = nw.from_native(pyarrow.chunked_array([array]), series_only=True)
    return filled.alias(series.name)


def _fill_dictionary(pyarrow: Any, native: Any, gap: _Gaps) -> Any:
    """Fill a dictionary column of pyarrow, whose dictionary keeps its order and grows by values it lacks."""
    known = native.unify_dictionaries().chunks[0].dictionary.to_pylist()
    dictionary = [*known, *_lacking(gap.values(), known)]
    cells = gap.fill(native.cast(native.type.value_type).to_pylist())
    numbers = {value: number for number, value in enumerate(dictionary)}
    return pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([numbers[cell] for cell in cells], type=native.type.index_type),
        pyarrow.array(dictionary, type=native.type.value_type),
        ordered=native.type.ordered,
    )


def _holds(dtype: Any, gap: _Gaps) -> bool:
    """Say whether a column of this dtype can take values of the variable's type."""
    kind = gap.column.type_name
    values: Any = gap.values() if gap.column.is_continuous else gap.column.values
    if dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128):
        limits = np.iinfo(str(dtype).lower())
        return kind == "int" and all(limits.min <= value <= limits.max for value in values)
    fitting = {
        "str": (nw.String, nw.Categorical, nw.Enum),
        "bool": (nw.Boolean,),
        "int": (nw.Float32, nw.Float64, nw.Int128, nw.UInt128),
        "float": (nw.Float32, nw.Float64),
        "date": (nw.Date,),
        "datetime": (nw.Datetime,),
    }
    return dtype in fitting[kind]


def _lacking(values: Sequence[Any], known: Iterable[Any]) -> list[Any]:
    """Give the values that are not among the known ones, each once."""
    present = set(known)
    return [value for value in dict.fromkeys(values) if value not in present]
