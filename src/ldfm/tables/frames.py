"""Frames of any library -> columns of cells."""

import json
from collections.abc import Iterator
from typing import Any

import narwhals as nw
import numpy as np

from ldfm.tables.cells import CHUNK, Cells, Source, TableError, cells_of_numbers, cells_of_objects, check_names
from ldfm.tables.schema import plain


def frame_of(table: Any) -> nw.DataFrame[Any]:
    """Wrap a frame of any library, its columns named by text."""
    if nw.dependencies.is_pandas_dataframe(table):
        names = [str(name) for name in table.columns]
        check_names(names)
        if names != list(table.columns):
            table = table.set_axis(names, axis=1)
    elif nw.dependencies.is_pyarrow_table(table):
        check_names(table.column_names)
    try:
        frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(table)
    except TypeError as error:
        raise TypeError(
            f"a table must be a pandas, polars or pyarrow frame, a 2-D array, a mapping of columns or a path, "
            f"not {type(table).__name__}"
        ) from error
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def source_of_frame(frame: nw.DataFrame[Any]) -> Source:
    """Make cells of every column of a frame but those of which a table of pyarrow says that they were the index in pandas."""
    labels = noted_labels(note_of_pandas(frame))
    columns = [cells_of_series(frame[name], name) for name in frame.columns if name not in labels]
    return Source(columns, len(frame), frame)


def note_of_pandas(frame: nw.DataFrame[Any]) -> bytes | None:
    """Give what pandas says about a frame that it handed to pyarrow."""
    metadata = frame.to_native().schema.metadata if frame.implementation.is_pyarrow() else None
    return (metadata or {}).get(b"pandas")


def noted_labels(note: bytes | str | None) -> set[str]:
    """Give the columns that were the index of a frame, from the note that pandas leaves in Parquet files and pyarrow's tables."""
    try:
        index = json.loads(note or "{}").get("index_columns", [])
        return {name for name in index if isinstance(name, str)}  # an index of 0, 1, 2, ... is no column
    except (ValueError, AttributeError, TypeError):  # a note that others wrote
        return set()


def cells_of_series(series: nw.Series[Any], name: str) -> Cells:
    """Make cells of one column of a frame."""
    dtype = "Enum" if isinstance(series.dtype, nw.Enum) else str(series.dtype)
    if series.dtype.is_float() or series.dtype == nw.Boolean or _is_short_integer(series.dtype):
        return _cells_of_numbers(series, name, dtype)
    declared = _declared(series)
    series = _in_microseconds(series, name)
    if series.dtype == nw.Categorical and series.implementation.is_pyarrow():
        native = series.to_native()  # cell by cell, dictionaries are slow
        series = nw.from_native(native.cast(native.type.value_type), series_only=True)

    def chunks() -> Iterator[list[Any]]:
        for start in range(0, len(series), CHUNK):
            yield series[start : start + CHUNK].to_list()

    cells = cells_of_objects(name, chunks, dtype)
    cells.declared = declared
    return cells


def _is_short_integer(dtype: Any) -> bool:
    return bool(dtype.is_integer()) and dtype not in (nw.Int128, nw.UInt128)  # NumPy has none of 128 bits


def _cells_of_numbers(series: nw.Series[Any], name: str, dtype: str) -> Cells:
    missing = series.is_null().to_numpy().astype(np.bool_)
    known = (series.filter(~series.is_null()) if missing.any() else series).to_numpy()
    numbers = np.zeros(len(missing), dtype=known.dtype)
    numbers[~missing] = known
    return cells_of_numbers(name, numbers, missing, dtype)


def _in_microseconds(series: nw.Series[Any], name: str) -> nw.Series[Any]:
    """Give datetimes in the unit that Python has; digits it does not have are refused, not cut. Those with a zone become UTC."""
    dtype = series.dtype
    if not isinstance(dtype, nw.Datetime):
        return series
    if dtype.time_unit == "ns":
        rows = np.flatnonzero((series.dt.nanosecond() % 1000 > 0).fill_null(value=False).to_numpy())
        if rows.size:
            raise TableError(
                f"column {name!r} row {rows[0]}: times are read to the microsecond, this one has nanoseconds"
            )
        series = series.cast(nw.Datetime("us", dtype.time_zone))
    # to Python the hour that occurs twice when clocks are put back is one hour
    return series if dtype.time_zone is None else series.dt.convert_time_zone("UTC")


def _declared(series: nw.Series[Any]) -> list[Any] | None:
    """Give the values of a categorical column in the order it declares, None where its order means nothing."""
    native = series.to_native()
    if isinstance(series.dtype, nw.Enum):
        return [plain(value) for value in series.dtype.categories]
    if series.dtype != nw.Categorical:
        return None
    if series.implementation.is_pandas_like():
        categories = getattr(native.dtype, "categories", None)
        return None if categories is None else [plain(value) for value in categories]
    if series.implementation.is_pyarrow() and native.type.ordered:
        chunks = native.unify_dictionaries().chunks
        return list(chunks[0].dictionary.to_pylist()) if chunks else None
    return None
