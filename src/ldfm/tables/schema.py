"""What a model knows of a table: its variables, their values in a stable order, and the dtypes to give back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ldfm.types import Integers

Scalar = str | int | float | bool | date | datetime
Kind = Literal["discrete"]
MISSING = -1

_TYPES: dict[str, type] = {"str": str, "bool": bool, "int": int, "float": float, "datetime": datetime, "date": date}


def type_name(value: Any) -> str | None:
    """Give the name under which a value's type is stored, None for a type that cannot be a value."""
    # bool is an int and datetime is a date to isinstance: the order of _TYPES puts the narrower type first
    return next((name for name, kind in _TYPES.items() if isinstance(value, kind)), None)


@dataclass(frozen=True)
class Column:
    """One variable.

    Attributes
    ----------
    name
        Column name.
    values
        The values in order of their codes, all of one type.
    dtype
        The dtype the column had in the table it was learned from, for people to read.
    kind
        "discrete".
    """

    name: str
    values: tuple[Scalar, ...]
    dtype: str
    kind: Kind = "discrete"

    @property
    def type_name(self) -> str:
        """Name of the type of all values."""
        return type_name(self.values[0]) or "str"

    def to_json(self) -> dict[str, Any]:
        """Give what `from_json` reads."""
        values = [v.isoformat() if isinstance(v, date) else v for v in self.values]
        return {"name": self.name, "kind": self.kind, "dtype": self.dtype, "type": self.type_name, "values": values}

    @classmethod
    def from_json(cls, record: Any) -> "Column":
        """Read and check what `to_json` gave; any fault is a ValueError."""
        if not isinstance(record, Mapping) or set(record) != {"name", "kind", "dtype", "type", "values"}:
            raise ValueError("a column must have exactly the fields name, kind, dtype, type and values")
        name, kind, dtype, type_, values = (record[k] for k in ("name", "kind", "dtype", "type", "values"))
        if not isinstance(name, str) or not isinstance(dtype, str):
            raise ValueError(f"column name and dtype must be text, not {name!r} and {dtype!r}")
        if kind != "discrete":
            raise ValueError(f"column {name!r}: unknown kind {kind!r}")
        if type_ not in _TYPES or not isinstance(values, list) or not values:
            raise ValueError(f"column {name!r}: needs a known type and at least one value")
        parse = {"date": date.fromisoformat, "datetime": datetime.fromisoformat}.get(type_)
        parsed = tuple(parse(v) if parse else v for v in values)
        if any(type(v) is not _TYPES[type_] for v in parsed) or len(set(parsed)) != len(parsed):
            raise ValueError(f"column {name!r}: values must be different and all of type {type_}")
        return cls(name, parsed, dtype, kind)


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
        for place, name in enumerate(names):
            if name in names[:place]:
                raise ValueError(f"column name {name!r} occurs more than once")

    @classmethod
    def of_values(cls, values: Mapping[str, Any]) -> "Schema":
        """Make a schema from ``{"column": [values], ...}``."""
        columns = []
        for name, given in values.items():
            listed = tuple(v.item() if isinstance(v, np.generic) else v for v in given)
            kinds = {type_name(v) for v in listed}
            if len(kinds) != 1 or None in kinds or len(set(listed)) != len(listed):
                raise ValueError(
                    f"column {name!r}: values must be one or more, different and of one type, not {given!r}"
                )
            columns.append(Column(str(name), listed, dtype=str(kinds.pop())))
        return cls(tuple(columns))

    @property
    def names(self) -> tuple[str, ...]:
        """Column names."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of values of each variable."""
        return tuple(len(column.values) for column in self.columns)

    @cached_property
    def offsets(self) -> Integers:
        """(n + 1,): index of each variable's first value among all values; the last entry is their number S."""
        return np.concatenate([[0], np.cumsum(self.cardinalities)]).astype(np.int64)

    def to_json(self) -> list[dict[str, Any]]:
        """Give what `from_json` reads."""
        return [column.to_json() for column in self.columns]

    @classmethod
    def from_json(cls, records: Any) -> "Schema":
        """Read and check what `to_json` gave; any fault is a ValueError."""
        if not isinstance(records, list) or not records:
            raise ValueError("a schema must be a list of at least one column")
        return cls(tuple(Column.from_json(record) for record in records))
