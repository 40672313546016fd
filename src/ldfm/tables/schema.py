"""What a model knows of a table: its variables, their values in a stable order, and the dtypes to give back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from functools import cached_property
from math import isfinite
from typing import Any, Literal

import numpy as np

from ldfm.tables.units import PLAIN, Units
from ldfm.types import Booleans, Floats, Rows

Scalar = str | int | float | bool | date | datetime
Kind = Literal["discrete", "continuous"]
LARGEST_WHOLE = 2.0**63 - 1024.0  # the largest double that is a whole number of 64 bits
MISSING = -1  # code of a missing cell; a missing cell of a mixed table is NaN

_TYPES: dict[str, type] = {"str": str, "bool": bool, "int": int, "float": float, "datetime": datetime, "date": date}


def type_name(value: Any) -> str | None:
    """Give the name under which a value's type is stored, None for a type that cannot be a value."""
    # bool is an int and datetime is a date to isinstance: the order of _TYPES puts the narrower type first
    return next((name for name, kind in _TYPES.items() if isinstance(value, kind)), None)


def in_python_unit(times: Any) -> Any:
    """Give NumPy datetimes in a unit that Python has: days, or microseconds, which may cut digits off."""
    return times.astype("M8[D]" if np.datetime_data(times.dtype)[0] in ("Y", "M", "W", "D") else "M8[us]")


def plain(value: Any) -> Any:
    """Turn a NumPy or pandas scalar into the Python value it stands for, and leave any other as it is."""
    if isinstance(value, np.datetime64):
        fine, item = in_python_unit(value) == value, in_python_unit(value).item()
    elif isinstance(value, datetime) and hasattr(value, "to_pydatetime") and hasattr(value, "nanosecond"):
        fine, item = value.nanosecond == 0, value.to_pydatetime(warn=False)
    else:
        fine, item = True, value.item() if isinstance(value, np.generic) else value
    if not fine:
        raise ValueError(f"times are read to the microsecond, not as {value}")
    if isinstance(item, datetime) and (offset := item.utcoffset()) is not None:
        # by its place a zone has hours that occur twice, of which Python says that they equal no time elsewhere
        return item.replace(tzinfo=timezone(offset), fold=0)
    return item


def _fault(values: Sequence[Any]) -> str | None:
    """Say what is wrong with the values of a column, None if nothing is."""
    names = {type_name(value) for value in values}
    if len(names) != 1 or None in names:
        return "must be one or more and all of one type: text, whole numbers, numbers, bools, dates or datetimes"
    if names == {"float"} and not all(map(isfinite, values)):
        return "must be finite"
    if len(set(values)) != len(values):
        return "must be different"
    return None


@dataclass(frozen=True)
class Column:
    """One variable.

    Attributes
    ----------
    name
        Column name.
    values
        The values in order of their codes, all of one type; none for a continuous column.
    dtype
        The dtype the column had in the table it was learned from, for people to read.
    kind
        "discrete" or "continuous".
    units
        Of a continuous column: what models see instead of its numbers.
    whole
        Whether its numbers are whole, and come back so.
    """

    name: str
    values: tuple[Scalar, ...]
    dtype: str
    kind: Kind = "discrete"
    units: Units = PLAIN
    whole: bool = False

    @property
    def is_continuous(self) -> bool:
        """Whether it has numbers, not values."""
        return self.kind == "continuous"

    @property
    def type_name(self) -> str:
        """Name of the type of all values."""
        if self.is_continuous:
            return "int" if self.whole else "float"
        return type_name(self.values[0]) or "str"

    def decode(self, codes: Rows) -> list[Any]:
        """Give the values that codes stand for, or the numbers that standardised ones stand for, in the user's units."""
        if not self.is_continuous:
            return [self.values[code] for code in codes.astype(np.int64)]
        numbers = self.units.numbers(np.asarray(codes, dtype=np.float64))
        if not self.whole:
            return [float(number) for number in numbers]
        return [int(number) for number in np.rint(numbers).clip(-LARGEST_WHOLE, LARGEST_WHOLE)]

    def shown(self, code: Any) -> Any:
        """Give the value of a code as people read it: numbers to four digits."""
        value = self.decode(np.array([code]))[0]
        return f"{value:.4g}" if isinstance(value, float) else value

    def to_json(self) -> dict[str, Any]:
        """Give what `from_json` reads."""
        if self.is_continuous:
            units = self.units.to_json()
            return {"name": self.name, "kind": self.kind, "dtype": self.dtype, "type": self.type_name, **units}
        values = [v.isoformat() if isinstance(v, date) else v for v in self.values]
        return {"name": self.name, "kind": self.kind, "dtype": self.dtype, "type": self.type_name, "values": values}

    @classmethod
    def from_json(cls, record: Any) -> "Column":
        """Read and check what `to_json` gave; any fault is a ValueError."""
        if isinstance(record, Mapping) and record.get("kind") == "continuous":
            return _continuous_from_json(record)
        if not isinstance(record, Mapping) or set(record) != {"name", "kind", "dtype", "type", "values"}:
            raise ValueError("a column must have exactly the fields name, kind, dtype, type and values")
        name, kind, dtype, type_, values = (record[k] for k in ("name", "kind", "dtype", "type", "values"))
        if not isinstance(name, str) or not isinstance(dtype, str):
            raise ValueError(f"column name and dtype must be text, not {name!r} and {dtype!r}")
        if kind != "discrete":
            raise ValueError(f"column {name!r}: unknown kind {kind!r}")
        if not isinstance(type_, str) or type_ not in _TYPES or not isinstance(values, list):
            raise ValueError(f"column {name!r}: needs a known type and a list of values")
        if type_ in ("date", "datetime"):
            if not all(isinstance(v, str) for v in values):
                raise ValueError(f"column {name!r}: values of type {type_} must be written as text")
            values = [_TYPES[type_].fromisoformat(v) for v in values]  # type: ignore[attr-defined]
        fault = _fault(values)
        if fault or any(type(v) is not _TYPES[type_] for v in values):
            raise ValueError(f"column {name!r}: values {fault or f'must be of type {type_}'}")
        return cls(name, tuple(values), dtype, kind)


def _continuous_from_json(record: Mapping[str, Any]) -> Column:
    if set(record) - {"bend"} != {"name", "kind", "dtype", "type", "centre", "scale"}:
        raise ValueError(
            "a continuous column must have exactly the fields name, kind, dtype, type, centre and scale, and perhaps bend"
        )
    name, dtype, type_ = (record[k] for k in ("name", "dtype", "type"))
    if not isinstance(name, str) or not isinstance(dtype, str) or type_ not in ("int", "float"):
        raise ValueError(f"continuous column {name!r}: needs text as name and dtype, and int or float as type")
    try:
        units = Units.from_json(record)
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from error
    return Column(name, (), dtype, "continuous", units, type_ == "int")


def missing_cells(codes: Rows) -> Booleans:
    """Say which cells are missing: of codes those that are MISSING, of cells of a mixed table those that are NaN."""
    found: Booleans = np.isnan(codes) if codes.dtype.kind == "f" else codes == MISSING
    return found


def only_cells(codes: Rows, kept: Booleans) -> Rows:
    """Give the cells that are kept, all others missing."""
    return np.where(kept, codes, np.nan if codes.dtype.kind == "f" else MISSING)


@dataclass(frozen=True)
class Schema:
    """The variables of a model in order.

    Attributes
    ----------
    columns
        One `Column` a variable.
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        names = self.names
        if not names:
            raise ValueError("a schema needs at least one column")
        for place, name in enumerate(names):
            if name in names[:place]:
                raise ValueError(f"column name {name!r} occurs more than once")

    @classmethod
    def of_values(cls, values: Mapping[str, Any]) -> "Schema":
        """Make a schema from ``{"column": [values], ...}``."""
        columns = []
        if not isinstance(values, Mapping):
            raise TypeError(f"values must be a mapping of column names to values, not {type(values).__name__}")
        for name, given in values.items():
            if isinstance(given, (set, frozenset)):
                raise TypeError(f"column {name!r}: values must be in order, not a {type(given).__name__}")
            if isinstance(given, str):
                raise ValueError(f"column {name!r}: needs a list of values, not the text {given!r}")
            listed = tuple(plain(value) for value in given)
            if fault := _fault(listed):
                raise ValueError(f"column {name!r}: values {fault}, not {list(given)!r}")
            columns.append(Column(str(name), listed, dtype=str(type_name(listed[0]))))
        return cls(tuple(columns))

    @property
    def names(self) -> tuple[str, ...]:
        """Column names."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each variable, 1 for a continuous one."""
        return tuple(1 if column.is_continuous else len(column.values) for column in self.columns)

    @cached_property
    def continuous(self) -> tuple[bool, ...]:
        """Which variables are continuous."""
        return tuple(column.is_continuous for column in self.columns)

    @property
    def is_mixed(self) -> bool:
        """Whether any variable is continuous: rows are then cells, not codes."""
        return any(self.continuous)

    def log_slopes(self, cells: Rows, kept: Booleans | None = None) -> Floats:
        """Give (rows,) what the log density of rows, or of their cells `kept` (rows, n), loses on the way to the user's units."""
        lost = np.zeros(len(cells))
        for place, column in enumerate(self.columns):
            if column.is_continuous:
                slopes = column.units.log_slopes(cells[:, place])
                lost += slopes if kept is None else np.where(kept[:, place], slopes, 0.0)
        return lost

    @property
    def straight(self) -> "Schema":
        """The same without bends."""
        return Schema(tuple(replace(c, units=replace(c.units, bend=None)) for c in self.columns))

    def to_json(self) -> list[dict[str, Any]]:
        """Give what `from_json` reads."""
        return [column.to_json() for column in self.columns]

    @classmethod
    def from_json(cls, records: Any) -> "Schema":
        """Read and check what `to_json` gave; any fault is a ValueError."""
        if not isinstance(records, list):
            raise ValueError("a schema must be a list of columns")
        return cls(tuple(Column.from_json(record) for record in records))
