"""Anything a user calls a table -> columns of cells, each distinct value once.

A column becomes `Cells`: an index into its distinct values for every row, -1 for missing. Everything after this step works on
distinct values, of which there are few, so nothing later loops over cells.
"""

import csv
import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import narwhals as nw
import numpy as np

from ldfm.tables.schema import MISSING
from ldfm.types import Booleans, Codes

CHUNK = 1 << 16
# "None" is not in this list: it is a value of many tables, the insurance network's among them
MISSING_IN_CSV = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL"})


class TableError(ValueError):
    """A table that cannot be used, with the column, row and value at fault."""


@dataclass
class Cells:
    """One column of a table.

    Attributes
    ----------
    name
        Column name.
    indices
        (rows,): index into `distinct`, -1 for missing.
    distinct
        Distinct values, in order of first occurrence or sorted.
    dtype
        Name of the dtype the table gave the column.
    declared
        Values in the order the table itself declares (categorical columns), else None.
    text
        True where values are still text whose type has to be found out (CSV).
    """

    name: str
    indices: Codes
    distinct: list[Any]
    dtype: str
    declared: list[Any] | None = None
    text: bool = False

    def first_row(self, index: int) -> int:
        """Give the first row that has this distinct value."""
        return int(np.argmax(self.indices == index))


@dataclass
class Source:
    """A table as columns of cells, with the frame it came from, None for files and arrays."""

    columns: list[Cells]
    rows: int
    frame: nw.DataFrame[Any] | None = None
    array: np.ndarray[Any, Any] | None = None
    named: bool = True

    @property
    def names(self) -> list[str]:
        """Column names in the table's order."""
        return [cells.name for cells in self.columns]


class _Numbering(dict[Any, int]):
    """Numbers keys in order of first occurrence: looking up a new key gives it the next number."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number


def _plain(value: Any) -> Any:
    """Turn a NumPy or pandas scalar into the Python value it stands for."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, datetime):
        return datetime.fromisoformat(value.isoformat()[:26])
    return value


def _number_values(chunks: Iterable[tuple[Sequence[Any], Booleans | None]], rows: int) -> tuple[Codes, list[Any]]:
    """Number the values of a column given in chunks (values that are not missing, mask of missing cells or None)."""
    numbering = _Numbering()
    indices = np.full(rows, MISSING, dtype=np.int32)
    start = 0
    for values, missing in chunks:
        numbers = np.fromiter(map(numbering.__getitem__, values), dtype=np.int32, count=len(values))
        if missing is None:
            indices[start : start + len(values)] = numbers
            start += len(values)
        else:
            indices[start : start + len(missing)][~missing] = numbers
            start += len(missing)
    return indices, [_plain(value) for value in numbering]


def _cells_of_numbers(name: str, numbers: np.ndarray[Any, Any], missing: Booleans, dtype: str) -> Cells:
    """Make cells of an array of numbers or bools; NaN counts as missing, infinity is refused."""
    if numbers.dtype.kind == "f":
        missing = missing | np.isnan(numbers)
        bad = np.flatnonzero(np.isinf(numbers) & ~missing)
        if bad.size:
            raise TableError(f"column {name!r} row {bad[0]}: value {float(numbers[bad[0]])} is not finite")
    distinct, inverse = np.unique(numbers[~missing], return_inverse=True)
    indices = np.full(len(numbers), MISSING, dtype=np.int32)
    indices[~missing] = inverse
    return Cells(name, indices, distinct.tolist(), dtype)


def _cells_of_objects(name: str, values: Sequence[Any], dtype: str) -> Cells:
    """Make cells of a sequence of Python objects; None, NaN and the like count as missing."""
    chunks = []
    for start in range(0, len(values), CHUNK):
        part = list(values[start : start + CHUNK])
        missing = np.fromiter(map(_is_missing, part), dtype=np.bool_, count=len(part))
        chunks.append(([v for v, absent in zip(part, missing, strict=True) if not absent], missing))
    _check_hashable(name, chunks)
    indices, distinct = _number_values(chunks, len(values))
    return Cells(name, indices, distinct, dtype)


def _is_missing(value: Any) -> bool:
    # NaN is the only value that differs from itself; pandas' NA answers any comparison with itself
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _check_hashable(name: str, chunks: list[tuple[list[Any], Booleans]]) -> None:
    row = 0
    for values, missing in chunks:
        places = np.flatnonzero(~missing)
        for place, value in zip(places, values, strict=True):
            if isinstance(value, (list, dict, set, np.ndarray)):
                raise TableError(f"column {name!r} row {row + place}: a {type(value).__name__} cannot be a value")
        row += len(missing)


def _cells_of_series(series: nw.Series[Any]) -> Cells:
    """Make cells of one column of a frame."""
    name = str(series.name)
    dtype = "Enum" if isinstance(series.dtype, nw.Enum) else str(series.dtype)
    missing = series.is_null().to_numpy().astype(np.bool_)
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        if series.dtype == nw.Decimal:
            raise TableError(f"column {name!r}: decimals are not supported; cast it to float or text")
        kept = series.filter(~series.is_null()) if missing.any() else series
        known = kept.to_numpy()
        if known.dtype == object:
            known = np.array(known.tolist())
        numbers = np.zeros(len(missing), dtype=known.dtype)
        numbers[~missing] = known
        return _cells_of_numbers(name, numbers, missing, dtype)
    if series.dtype == nw.Object:
        return _cells_of_objects(name, series.to_list(), dtype)

    def chunks() -> Iterable[tuple[Sequence[Any], Booleans | None]]:
        for start in range(0, len(missing), CHUNK):
            part, absent = series[start : start + CHUNK], missing[start : start + CHUNK]
            yield (part.drop_nulls().to_list(), absent) if absent.any() else (part.to_list(), None)

    indices, distinct = _number_values(chunks(), len(missing))
    declared = None
    if isinstance(series.dtype, nw.Enum):
        declared = list(series.dtype.categories)
    elif isinstance(series.dtype, nw.Categorical) and series.implementation.is_pandas_like():
        declared = [_plain(value) for value in series.to_native().cat.categories]
    return Cells(name, indices, distinct, dtype, declared)


def _source_of_frame(frame: nw.DataFrame[Any]) -> Source:
    columns = [_cells_of_series(frame[name]) for name in frame.columns]
    return Source(columns, len(frame), frame)


def _source_of_array(array: np.ndarray[Any, Any]) -> Source:
    if array.ndim != 2:
        raise TableError(f"expected a table with 2 dimensions, rows and columns, not an array of shape {array.shape}")
    columns = []
    for place in range(array.shape[1]):
        name, column = f"x{place}", array[:, place]
        if array.dtype.kind in "iufb":
            columns.append(_cells_of_numbers(name, column, np.zeros(len(column), dtype=np.bool_), str(array.dtype)))
        elif array.dtype.kind in "OUS":
            columns.append(_cells_of_objects(name, column.tolist(), str(array.dtype)))
        else:
            raise TableError(f"column {name!r}: arrays of dtype {array.dtype} are not supported")
    return Source(columns, array.shape[0], array=array, named=False)


def _source_of_mapping(mapping: Mapping[Any, Any]) -> Source:
    columns = []
    for name, values in mapping.items():
        array = np.asarray(values) if not isinstance(values, np.ndarray) else values
        if array.ndim == 1 and array.dtype.kind in "iufb":
            columns.append(_cells_of_numbers(str(name), array, np.zeros(len(array), dtype=np.bool_), str(array.dtype)))
        else:
            columns.append(_cells_of_objects(str(name), list(values), "object"))
    lengths = {cells.name: len(cells.indices) for cells in columns}
    if len(set(lengths.values())) > 1:
        raise TableError(f"columns have different numbers of rows: {lengths}")
    return Source(columns, next(iter(lengths.values()), 0))


def _open_text(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def read_csv(path: Path) -> Source:
    """Read a CSV file (UTF-8, header row, gzip if it ends in .gz) in chunks; empty cells, NA, NaN and null are missing."""
    with _open_text(path) as file:
        reader = csv.reader(file)
        header = next(reader, None)
        if not header:
            raise TableError(f"{path}: the file is empty")
        numberings = [_Numbering() for _ in header]
        parts: list[list[Codes]] = [[] for _ in header]
        rows = 0
        while chunk := list(islice(reader, CHUNK)):
            chunk = [row for row in chunk if row]  # csv gives [] for an empty line
            for place, row in enumerate(chunk):
                if len(row) != len(header):
                    raise TableError(
                        f"{path}: data row {rows + place} has {len(row)} cells, the header has {len(header)}"
                    )
            for numbering, part, column in zip(numberings, parts, zip(*chunk, strict=True), strict=False):
                part.append(np.fromiter(map(numbering.__getitem__, column), dtype=np.int32, count=len(chunk)))
            rows += len(chunk)
    columns = []
    for name, numbering, part in zip(header, numberings, parts, strict=True):
        present = [text for text in numbering if text not in MISSING_IN_CSV]
        places = {text: index for index, text in enumerate(present)}
        recode = np.array([places.get(text, MISSING) for text in numbering], dtype=np.int32)
        indices = recode[np.concatenate(part)] if part else np.empty(0, dtype=np.int32)
        columns.append(Cells(name, indices, present, "csv", text=True))
    return Source(columns, rows)


def _read_parquet(path: Path) -> Source:
    for backend in ("pyarrow", "polars"):
        try:
            frame = nw.read_parquet(str(path), backend=backend)
        except (ImportError, ModuleNotFoundError):
            continue
        except Exception as error:  # each backend has its own error classes
            raise TableError(f"{path}: not a readable Parquet file ({error})") from error
        return _source_of_frame(frame)
    raise TableError(f"{path}: reading Parquet needs pyarrow or polars; try: pip install 'ldfm[parquet]'")


def _source_of_path(path: Path) -> Source:
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    if path.suffix == ".csv" or path.name.endswith(".csv.gz"):
        try:
            return read_csv(path)
        except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile) as error:
            raise TableError(f"{path}: not a readable CSV file ({error})") from error
    if path.suffix in (".parquet", ".pq"):
        return _read_parquet(path)
    raise TableError(f"{path}: tables are read from .csv, .csv.gz and .parquet files")


def read_source(table: Any) -> Source:
    """Turn a table of any supported kind into columns of cells.

    Parameters
    ----------
    table
        pandas, polars or pyarrow frame, 2-D NumPy array, mapping of column names to values, or path to a CSV or Parquet file.
    """
    if isinstance(table, (str, Path)):
        source = _source_of_path(Path(table))
    elif isinstance(table, np.ndarray):
        source = _source_of_array(table)
    elif isinstance(table, Mapping):
        source = _source_of_mapping(table)
    elif isinstance(table, (list, tuple)):
        source = _source_of_array(np.array(table, dtype=object if _holds_text(table) else None))
    else:
        source = _source_of_frame(_as_frame(table))
    names = source.names
    if not names:
        raise TableError("the table has no columns")
    for place, name in enumerate(names):
        if name in names[:place]:
            raise TableError(f"column name {name!r} occurs more than once")
    return source


def _holds_text(rows: Sequence[Any]) -> bool:
    """Say whether a list of rows must be kept as objects, for NumPy would turn all its numbers into text."""
    return any(isinstance(cell, str) or cell is None for row in rows if isinstance(row, (list, tuple)) for cell in row)


def _as_frame(table: Any) -> nw.DataFrame[Any]:
    columns = getattr(table, "columns", None)
    if nw.dependencies.is_pandas_dataframe(table) and columns is not None:
        names = [str(name) for name in columns]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise TableError(f"column name {name!r} occurs more than once")
        if names != list(columns):
            table = table.set_axis(names, axis=1)
    try:
        frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(table)
    except TypeError as error:
        raise TypeError(
            f"a table must be a pandas, polars or pyarrow frame, a 2-D array, a mapping of columns or a path, "
            f"not {type(table).__name__}"
        ) from error
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return frame


__all__ = ["MISSING_IN_CSV", "Cells", "Source", "TableError", "read_csv", "read_source"]
