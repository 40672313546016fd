"""Anything a user calls a table -> columns of cells."""

import os
import sys
from collections.abc import Collection, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from ldfm.tables.cells import CHUNK, Cells, Source, TableError, cells_of_numbers, cells_of_objects, check_names
from ldfm.tables.files import source_of_path
from ldfm.tables.frames import cells_of_series, frame_of, source_of_frame
from ldfm.tables.schema import in_python_unit


def read_source(table: Any) -> Source:
    """Turn a table of any supported kind into columns of cells.

    Parameters
    ----------
    table
        pandas, polars or pyarrow frame, 2-D array, list of rows, mapping of column names to values, or path to a CSV or
        Parquet file, or a glob of them. What was read already is given back.
    """
    if isinstance(table, Source):
        return table
    if _is_sparse(table):  # some sparse matrices are mappings too
        raise TypeError("a sparse matrix cannot be a table of values; give its toarray()")
    if isinstance(table, (str, os.PathLike)):
        source = source_of_path(Path(table))
    elif isinstance(table, np.ndarray):
        source = _source_of_array(table)
    elif isinstance(table, Mapping):
        source = _source_of_mapping(table)
    elif isinstance(table, (list, tuple)):
        source = _source_of_rows(table)
    elif _is_array_like(table):
        source = _source_of_array(np.asarray(table))
    else:
        source = source_of_frame(frame_of(table))
        source.given = table
    if not source.columns:
        raise TableError("the table has no columns")
    check_names(source.names)
    return source


def _is_sparse(table: Any) -> bool:
    sparse = sys.modules.get("scipy.sparse")  # not imported: nobody can have made one
    return sparse is not None and bool(sparse.issparse(table))


def _is_array_like(table: Any) -> bool:
    known = nw.dependencies.is_into_dataframe(table) or nw.dependencies.is_into_series(table)
    return hasattr(table, "__array__") and not known


def _source_of_array(array: np.ndarray[Any, Any]) -> Source:
    if array.ndim != 2:
        raise TableError(
            f"Reshape your data: expected a table with 2 dimensions, rows and columns, not an array of shape {array.shape}"
        )
    if not array.shape[1]:
        raise TableError(
            f"the table has no columns: 0 feature(s) (shape={array.shape}) while a minimum of 1 is required."
        )
    plain = array if isinstance(array, np.ma.MaskedArray) else np.asarray(array)  # a row of np.matrix has 2 dimensions
    columns = [_cells_of_array(f"x{place}", column) for place, column in enumerate(plain.T)]
    return Source(columns, len(array), given=array, named=False)


def _source_of_rows(rows: Sequence[Any]) -> Source:
    if not rows:
        raise TableError("the table has no rows")
    for place, row in enumerate(rows):
        if not isinstance(row, (list, tuple, np.ndarray)):
            raise TableError(f"row {place} must be a list of cells, not {row!r}")
        if len(row) != len(rows[0]):
            raise TableError(f"row {place} has {len(row)} cells, row 0 has {len(rows[0])}")
    columns = [_cells_of_sequence(f"x{place}", column) for place, column in enumerate(zip(*rows, strict=True))]
    return Source(columns, len(rows), given=rows, named=False)


def _source_of_mapping(mapping: Mapping[Any, Any]) -> Source:
    columns = []
    for name, values in mapping.items():
        series = nw.from_native(values, series_only=True, pass_through=True)
        if isinstance(series, nw.Series):
            columns.append(cells_of_series(series, str(name)))
        elif isinstance(values, np.ndarray) and values.ndim == 1:
            columns.append(_cells_of_array(str(name), values))
        elif isinstance(values, Collection) and not isinstance(values, (str, bytes, Mapping, Set, np.ndarray)):
            columns.append(_cells_of_sequence(str(name), list(values)))
        else:
            raise TableError(f"column {name!r} must be a list of cells, one a row, not {values!r}")
    lengths = {cells.name: len(cells.indices) for cells in columns}
    if len(set(lengths.values())) > 1:
        raise TableError(f"columns have different numbers of rows: {lengths}")
    return Source(columns, next(iter(lengths.values()), 0), given=mapping)


def _cells_of_sequence(name: str, values: Sequence[Any], dtype: str = "object") -> Cells:
    return cells_of_objects(
        name, lambda: (values[start : start + CHUNK] for start in range(0, len(values), CHUNK)), dtype
    )


def _cells_of_array(name: str, array: np.ndarray[Any, Any]) -> Cells:
    """Make cells of a 1-D array; masked cells count as missing."""
    dtype = str(array.dtype)
    if array.dtype.kind in "iufb":
        return cells_of_numbers(name, np.asarray(array), np.ma.getmaskarray(array), dtype)
    if array.dtype.kind == "M":
        times, array = array, in_python_unit(array)
        rows = np.flatnonzero((times != array) & ~np.isnat(times))
        if rows.size:
            raise TableError(
                f"column {name!r} row {rows[0]}: times are read to the microsecond, not as {times[rows[0]]}"
            )
    elif array.dtype.kind == "c":
        raise TableError(f"column {name!r}: Complex data not supported (dtype {dtype})")
    elif array.dtype.kind not in "OUST":
        raise TableError(f"column {name!r}: arrays of dtype {dtype} are not supported")
    return _cells_of_sequence(name, array.tolist(), dtype)
