"""Tables -> files: CSV and Parquet, written whole or not at all."""

import csv
import gzip
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import narwhals as nw
import numpy as np

from ldfm.files import written_whole
from ldfm.tables.cells import TableError, is_missing
from ldfm.tables.texts import MISSING_IN_CSV

_CSV, _PARQUET = (".csv", ".csv.gz"), (".parquet", ".pq")


def is_csv(path: Path) -> bool:
    """Say whether this is the name of a CSV file, not of a Parquet file; any other name is refused."""
    if not path.name.lower().endswith(_CSV + _PARQUET):
        raise TableError(f"{path}: tables are written to .csv, .csv.gz and .parquet files")
    return path.name.lower().endswith(_CSV)


def write_table(path: Path, table: Any) -> None:
    """Write a frame, or a mapping of column names to cells, to a file; its format is told by its name."""
    if is_csv(path):
        write_csv_parts(path, [table])
        return
    with written_whole(path) as temporary:
        _frame_of(table, path).write_parquet(temporary)


def write_csv_parts(path: Path, parts: Iterable[Any]) -> None:
    """Write tables with the same columns below each other to a CSV file, each as soon as it comes."""
    with written_whole(path) as temporary, _opened(temporary, zipped=path.suffix.lower() == ".gz") as file:
        write_csv(file, parts)


def _opened(path: Path, *, zipped: bool) -> TextIO:
    if zipped:
        return gzip.open(path, "wt", encoding="utf-8", newline="")
    return path.open("w", encoding="utf-8", newline="")


def write_csv(file: TextIO, parts: Iterable[Any]) -> None:
    """Write tables below each other as CSV: a header, then rows; missing cells are empty."""
    plain = csv.writer(file, lineterminator="\n")
    quoted = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for number, part in enumerate(parts):
        columns = columns_of(part)
        header = [] if number else [list(columns)]
        for row in chain(header, zip(*(map(text_of, cells) for cells in columns.values()), strict=True)):
            # the csv module leaves carriage returns bare, and reads them as ends of rows
            writer = quoted if any("\r" in text for text in row) else plain
            writer.writerow(row)


def columns_of(table: Any) -> dict[str, Sequence[Any]]:
    """Give a frame or a mapping as a dictionary of column names and cells."""
    if not isinstance(table, Mapping):
        frame = nw.from_native(table, eager_only=True)
        return {name: frame[name].to_list() for name in frame.columns}
    return {name: cells.tolist() if isinstance(cells, np.ndarray) else cells for name, cells in table.items()}


def refuse_missing_texts(table: Any) -> None:
    """Refuse values that would mean missing cells when a CSV file is read, such as the text NA."""
    for name, cells in columns_of(table).items():
        for row, cell in enumerate(cells):
            if isinstance(cell, str) and cell in MISSING_IN_CSV:
                raise TableError(
                    f"column {name!r} row {row}: the value {cell!r} would mean a missing cell in a CSV file; write to .parquet"
                )


def text_of(value: Any) -> str:
    """Give a value as text that reads as the value again; nothing for a missing one, true and false for bools."""
    if is_missing(value):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


def _frame_of(table: Any, path: Path) -> nw.DataFrame[Any]:
    if not isinstance(table, Mapping):
        return nw.from_native(table, eager_only=True)
    for backend in ("pyarrow", "polars"):
        try:
            return nw.from_dict(columns_of(table), backend=backend)
        except ImportError:
            continue
    raise TableError(f"{path}: writing Parquet needs pyarrow or polars; try: pip install 'ldfm[parquet]'")
