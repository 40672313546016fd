"""Tables in files: CSV and Parquet."""

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from glob import glob, has_magic
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import narwhals as nw
import numpy as np

from ldfm.tables.cells import Cells, Numbering, Source, TableError, check_names, smallest_type
from ldfm.tables.frames import note_of_pandas, noted_labels, source_of_frame
from ldfm.tables.joining import join_parts
from ldfm.tables.schema import MISSING
from ldfm.tables.texts import MISSING_IN_CSV
from ldfm.types import Codes

LINES = 1 << 10  # at a time: more do not stay in cache, and take twice as long
CHUNKS = 1 << 10  # of lines, joined: what small arrays leave behind when they are freed stays with the process
LARGE = 1 << 26  # cells of a Parquet file that is read in batches, of which only indices are kept
_BATCH = 1 << 16  # rows
_PANDAS_INDEX = re.compile(r"__index_level_[0-9]+__")  # what pandas calls the row labels it writes into Parquet files


class TableNotFoundError(TableError, FileNotFoundError):
    """A path to a table at which there is no file."""


def source_of_path(path: Path) -> Source:
    """Read a file, or all files of a glob such as ``part-*.csv`` in the order of their names, one below the other."""
    if path.exists() or not has_magic(str(path)):
        return _source_of_file(path)
    found = sorted(glob(str(path), recursive=True))  # noqa: PTH207 (Path.glob takes no absolute patterns)
    if not found:
        raise TableNotFoundError(f"no such files: {path}")
    formats = {is_csv_name(name) for name in found}
    if len(formats) > 1:
        raise TableError(f"{path}: files to read as one table must all be CSV or all be Parquet")
    return join_parts((name, _source_of_file(Path(name))) for name in found)


def is_csv_name(name: str) -> bool:
    """Say whether a file of this name is read as CSV."""
    return name.lower().endswith((".csv", ".csv.gz"))


def _source_of_file(path: Path) -> Source:
    """Read a file, its format told by its name."""
    if path.is_dir():
        raise TableError(f"{path} is a folder; a table is one .csv, .csv.gz or .parquet file")
    if not path.is_file():
        raise TableNotFoundError(f"no such file: {path}")
    name = path.name.lower()
    if is_csv_name(name):
        return read_csv(path)
    if name.endswith((".parquet", ".pq")):
        return _read_parquet(path)
    raise TableError(f"{path}: tables are read from .csv, .csv.gz and .parquet files")


def read_csv(path: Path) -> Source:
    """Read a CSV file (UTF-8, header row, gzip if it ends in .gz) in chunks; empty cells, NA, NaN and null are missing.

    Blank lines are no rows, but where there is one column: there they are how an empty cell is written.
    """
    with _open_text(path) as file:
        return read_csv_text(file, str(path))


def read_csv_text(file: TextIO, what: str) -> Source:
    """Read the text of a CSV file, opened with ``newline=""``; `what` is its name in messages."""
    try:
        header, parts, numberings = _number_csv(what, file)
    except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise TableError(f"{what}: not a readable CSV file ({error})") from error
    columns = []
    for name, numbering, part in zip(header, numberings, parts, strict=True):
        present = [text for text in numbering if text not in MISSING_IN_CSV]
        places = {text: index for index, text in enumerate(present)}
        recode = np.array([places.get(text, MISSING) for text in numbering], dtype=smallest_type(len(numbering)))
        columns.append(Cells(name, recode[np.concatenate(part)], present, "csv", text=True))
        part.clear()  # or a large file would be there twice
    return Source(columns, len(columns[0].indices))


def _open_text(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _number_csv(what: str, file: TextIO) -> tuple[list[str], list[list[Codes]], list[Numbering]]:
    """Give the header, and for each column the numbers of its cells, in chunks, and their numbering."""
    reader = csv.reader(file, strict=True)
    header = next(filter(None, reader), None)  # csv gives [] for a blank line
    if header is None:
        raise TableError(f"{what}: the file is empty")
    if any("\0" in name for name in header):
        raise TableError(f"{what}: not a readable CSV file (its first line is not text)")
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise TableError(f"{what}: cells must be separated by commas, but the header is the one cell {header[0]!r}")
    check_names(header)
    numberings = [Numbering() for _ in header]
    parts: list[list[Codes]] = [[np.empty(0, dtype=np.int8)] for _ in header]
    rows = 0
    lines = filter(None, reader) if len(header) > 1 else (row or [""] for row in reader)
    while chunk := list(islice(lines, LINES)):
        if set(map(len, chunk)) != {len(header)}:
            place, cells = next((place, len(row)) for place, row in enumerate(chunk) if len(row) != len(header))
            raise TableError(f"{what}: data row {rows + place} has {cells} cells, the header has {len(header)}")
        for numbering, part, column in zip(numberings, parts, zip(*chunk, strict=True), strict=True):
            part.append(numbering.number(column))
        rows += len(chunk)
        if rows % (CHUNKS * LINES) == 0:
            for part in parts:
                part[-CHUNKS:] = [np.concatenate(part[-CHUNKS:])]
    return header, parts, numberings


def _read_parquet(path: Path) -> Source:
    for backend in ("pyarrow", "polars"):
        try:
            if backend == "pyarrow" and _is_large(path):
                return join_parts((str(path), _source_of_parquet(batch, path)) for batch in _batches(path))
            frame = nw.read_parquet(str(path), backend=backend)
        except ImportError:
            continue
        except TableError:
            raise
        except Exception as error:  # each backend has its own error classes
            reason = str(error).partition("\n")[0]
            raise TableError(f"{path}: not a readable Parquet file ({reason})") from error
        return _source_of_parquet(frame, path)
    raise TableError(f"{path}: reading Parquet needs pyarrow or polars; try: pip install 'ldfm[parquet]'")


def _source_of_parquet(frame: nw.DataFrame[Any], path: Path) -> Source:
    """Make cells of all columns but row labels; only a table of pyarrow keeps these, if it says that they are labels."""
    labels = {name for name in frame.columns if _PANDAS_INDEX.fullmatch(name)}
    if frame.implementation.is_pyarrow():
        labels -= noted_labels(note_of_pandas(frame))
    else:
        read_note = getattr(nw.get_native_namespace(frame), "read_parquet_metadata", None)  # newer than polars 1.0
        labels |= noted_labels(None if read_note is None else read_note(path).get("pandas"))
    return source_of_frame(frame.select([name for name in frame.columns if name not in labels]))


def _is_large(path: Path) -> bool:
    from pyarrow.parquet import read_metadata

    facts = read_metadata(path)
    return bool(facts.num_rows * facts.num_columns > LARGE)


def _batches(path: Path) -> Iterator[nw.DataFrame[Any]]:
    from pyarrow import Table
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH):
            yield nw.from_native(Table.from_batches([batch]), eager_only=True)
