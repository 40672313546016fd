"""Tables in files: CSV and Parquet."""

import csv
import gzip
import re
import zlib
from itertools import islice
from pathlib import Path
from typing import TextIO

import narwhals as nw
import numpy as np

from ldfm.tables.cells import Cells, Numbering, Source, TableError, check_names
from ldfm.tables.frames import source_of_frame
from ldfm.tables.schema import MISSING
from ldfm.tables.texts import MISSING_IN_CSV
from ldfm.types import Codes

LINES = 1 << 10  # at a time: more do not stay in cache, and take twice as long
_PANDAS_INDEX = re.compile(r"__index_level_[0-9]+__")  # what pandas calls the row labels it writes into Parquet files


class TableNotFoundError(TableError, FileNotFoundError):
    """A path to a table at which there is no file."""


def source_of_path(path: Path) -> Source:
    """Read a file, its format told by its name."""
    if path.is_dir():
        raise TableError(f"{path} is a folder; a table is one .csv, .csv.gz or .parquet file")
    if not path.is_file():
        raise TableNotFoundError(f"no such file: {path}")
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        return read_csv(path)
    if name.endswith((".parquet", ".pq")):
        return _read_parquet(path)
    raise TableError(f"{path}: tables are read from .csv, .csv.gz and .parquet files")


def read_csv(path: Path) -> Source:
    """Read a CSV file (UTF-8, header row, gzip if it ends in .gz) in chunks; empty cells, NA, NaN and null are missing.

    Blank lines are no rows.
    """
    try:
        with _open_text(path) as file:
            header, parts, numberings = _number_csv(path, file)
    except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise TableError(f"{path}: not a readable CSV file ({error})") from error
    columns = []
    for name, numbering, part in zip(header, numberings, parts, strict=True):
        present = [text for text in numbering if text not in MISSING_IN_CSV]
        places = {text: index for index, text in enumerate(present)}
        recode = np.array([places.get(text, MISSING) for text in numbering], dtype=np.int32)
        columns.append(Cells(name, recode[np.concatenate(part)], present, "csv", text=True))
    return Source(columns, len(columns[0].indices))


def _open_text(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _number_csv(path: Path, file: TextIO) -> tuple[list[str], list[list[Codes]], list[Numbering]]:
    """Give the header, and for each column the numbers of its cells, in chunks, and their numbering."""
    reader = csv.reader(file, strict=True)
    header = next(filter(None, reader), None)  # csv gives [] for a blank line
    if header is None:
        raise TableError(f"{path}: the file is empty")
    if any("\0" in name for name in header):
        raise TableError(f"{path}: not a readable CSV file (its first line is not text)")
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise TableError(f"{path}: cells must be separated by commas, but the header is the one cell {header[0]!r}")
    check_names(header)
    numberings = [Numbering() for _ in header]
    parts: list[list[Codes]] = [[np.empty(0, dtype=np.int32)] for _ in header]
    rows = 0
    lines = filter(None, reader)
    while chunk := list(islice(lines, LINES)):
        if set(map(len, chunk)) != {len(header)}:
            place, cells = next((place, len(row)) for place, row in enumerate(chunk) if len(row) != len(header))
            raise TableError(f"{path}: data row {rows + place} has {cells} cells, the header has {len(header)}")
        for numbering, part, column in zip(numberings, parts, zip(*chunk, strict=True), strict=True):
            part.append(numbering.number(column))
        rows += len(chunk)
    return header, parts, numberings


def _read_parquet(path: Path) -> Source:
    for backend in ("pyarrow", "polars"):
        try:
            frame = nw.read_parquet(str(path), backend=backend)
        except ImportError:
            continue
        except Exception as error:  # each backend has its own error classes
            reason = str(error).partition("\n")[0]
            raise TableError(f"{path}: not a readable Parquet file ({reason})") from error
        return source_of_frame(frame.select([name for name in frame.columns if not _PANDAS_INDEX.fullmatch(name)]))
    raise TableError(f"{path}: reading Parquet needs pyarrow or polars; try: pip install 'ldfm[parquet]'")
