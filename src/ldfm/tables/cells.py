"""Columns of cells, each distinct value once.

A column becomes `Cells`: an index into its distinct values for every row, -1 for missing. Everything after this step works on
distinct values, of which there are few, so nothing later loops over cells.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import narwhals as nw
import numpy as np

from ldfm.tables.schema import MISSING, plain
from ldfm.types import Booleans, Codes

CHUNK = 1 << 16
_BOOLS = frozenset({bool, np.bool_})


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
    """A table as columns of cells, with what it came from.

    Attributes
    ----------
    columns
        In the table's order.
    rows
        Number of rows.
    frame
        The frame, its columns named by text; None for anything else. It may have row labels beside the columns.
    given
        The array, mapping, list of rows or frame as the user gave it; None for files.
    named
        False where columns have places but no names of their own (arrays, lists of rows).
    """

    columns: list[Cells]
    rows: int
    frame: nw.DataFrame[Any] | None = None
    given: Any = None
    named: bool = True

    @property
    def names(self) -> list[str]:
        """Column names in the table's order."""
        return [cells.name for cells in self.columns]

    def parts(self, rows: int) -> Iterator["Source"]:
        """Give the cells in parts of so many rows, one at least; they know all distinct values, but not what they came from."""
        for start in range(0, max(self.rows, 1), rows):
            cut = slice(start, start + rows)
            columns = [replace(cells, indices=cells.indices[cut]) for cells in self.columns]
            yield Source(columns, len(columns[0].indices), named=self.named)


class Numbering(dict[Any, int]):
    """Numbers keys in order of first occurrence: looking up a new key gives it the next number."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number

    def number(self, keys: Sequence[Any]) -> Codes:
        """Give the numbers of keys, in the smallest type that fits; only new keys are seen by Python code."""
        numbers = np.fromiter(map(self.__getitem__, keys), dtype=np.int32, count=len(keys))
        return numbers.astype(smallest_type(len(self)))


def smallest_type(count: int) -> type[np.signedinteger[Any]]:
    """Give the smallest type that holds so many codes and -1 for missing."""
    return next(kind for kind in (np.int8, np.int16, np.int32) if count <= np.iinfo(kind).max)


def check_names(names: Sequence[str]) -> None:
    """Refuse a name that occurs twice."""
    seen = set()
    for name in names:
        if name in seen:
            raise TableError(f"column name {name!r} occurs more than once")
        seen.add(name)


def is_missing(value: Any) -> bool:
    """Say whether a Python object stands for a missing cell: None, NaN, pandas' NA and NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    # NaN and NumPy's NaT are the only values that differ from themselves
    return isinstance(value, (float, np.generic)) and bool(value != value)


def cells_of_numbers(name: str, numbers: np.ndarray[Any, Any], missing: Booleans, dtype: str) -> Cells:
    """Make cells of an array of numbers or bools; NaN counts as missing, infinity is refused."""
    if numbers.dtype.kind == "f":
        missing = missing | np.isnan(numbers)
        bad = np.flatnonzero(np.isinf(numbers) & ~missing)
        if bad.size:
            raise TableError(f"column {name!r} row {bad[0]}: value {float(numbers[bad[0]])} is not finite")
    distinct, inverse = np.unique(numbers[~missing], return_inverse=True)
    indices = np.full(len(numbers), MISSING, dtype=smallest_type(len(distinct)))
    indices[~missing] = inverse
    return Cells(name, indices, distinct.tolist(), dtype)


def cells_of_objects(name: str, chunks: Callable[[], Iterable[Sequence[Any]]], dtype: str) -> Cells:
    """Make cells of Python objects that come in chunks; None, NaN and the like count as missing."""
    numbering = Numbering()
    types: set[type] = set()
    parts: list[Codes] = [np.empty(0, dtype=np.int8)]
    try:
        for chunk in chunks():
            parts.append(numbering.number(chunk))
            types.update(map(type, chunk))
    except TypeError as error:
        raise _unhashable(name, chain.from_iterable(chunks())) from error
    if not types.isdisjoint(_BOOLS) and not types <= _BOOLS:
        _refuse_bools_among_others(name, chain.from_iterable(chunks()))
    numbered = np.concatenate(parts)
    places: dict[Any, int] = {}  # values that differ as objects may be the same once plain
    recode = np.empty(len(numbering), dtype=smallest_type(len(numbering)))
    for number, value in enumerate(numbering):
        if is_missing(value):
            recode[number] = MISSING
            continue
        try:
            recode[number] = places.setdefault(plain(value), len(places))
        except ValueError as error:
            raise TableError(f"column {name!r} row {np.argmax(numbered == number)}: {error}") from error
    return Cells(name, recode[numbered], list(places), dtype)


def _unhashable(name: str, values: Iterable[Any]) -> TableError:
    row, value = next((row, value) for row, value in enumerate(values) if not _can_hash(value))
    return TableError(f"column {name!r} row {row}: a {type(value).__name__} cannot be a value")


def _can_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _refuse_bools_among_others(name: str, values: Iterable[Any]) -> None:
    # True == 1 and False == 0, also as keys: the numbering cannot tell them apart
    first: dict[bool, tuple[int, Any]] = {}
    for row, value in enumerate(values):
        if not is_missing(value):
            first.setdefault(type(value) in _BOOLS, (row, value))
    if len(first) == 2:
        (row, value), (other_row, other) = first.values()
        raise TableError(
            f"column {name!r} mixes types: {value!r} ({type(value).__name__}) row {row}, "
            f"{other!r} ({type(other).__name__}) row {other_row}"
        )
