"""Text of options -> values."""

import csv
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # --help is instant without the compiler that learning needs
    from ldfm.learning import Dirichlet, ModifiedDirichlet
    from ldfm.tables import Column, Schema


def parse_prior(text: str) -> "Dirichlet | ModifiedDirichlet | None":
    """Read none, dirichlet:ALPHA or modified:ALPHA,FLOOR."""
    from ldfm.learning import Dirichlet, ModifiedDirichlet

    name, _, rest = text.partition(":")
    try:
        numbers = [float(part) for part in rest.split(",")] if rest else []
    except ValueError:
        numbers = []
    if text == "none":
        return None
    if name == "dirichlet" and len(numbers) == 1:
        return Dirichlet(numbers[0])
    if name == "modified" and len(numbers) == 2:
        return ModifiedDirichlet(numbers[0], numbers[1])
    raise ValueError(f"prior must be none, dirichlet:ALPHA or modified:ALPHA,FLOOR, not {text!r}")


def parse_evidence(texts: Sequence[str] | None, schema: "Schema") -> dict[str, Any]:
    """Read COLUMN=VALUE,... into values of the types that the columns have in the model."""
    found: dict[str, Any] = {}
    for part in _parts(texts):
        name, value = _assignment("evidence", part, schema)
        if found.setdefault(name, value) != value:
            raise ValueError(f"evidence gives column {name!r} two values: {found[name]!r} and {value!r}")
    return found


def parse_query(texts: Sequence[str] | None, schema: "Schema") -> dict[str, Any | None]:
    """Read COLUMN,... or COLUMN=VALUE,...; columns without a value have None."""
    found: dict[str, Any | None] = {}
    for part in _parts(texts):
        if part in schema.names:
            found[part] = None
        elif "=" in part:
            name, value = _assignment("query", part, schema)
            found[name] = value
        else:
            raise ValueError(_unknown("query", part, schema))
    if len({value is None for value in found.values()}) > 1:
        raise ValueError(
            "query must give a value to all of its columns (their joint probability) or to none (posteriors)"
        )
    return found


def _parts(texts: Sequence[str] | None) -> list[str]:
    """Cut options at commas that are not in quotes."""
    return [part for line in csv.reader(texts or [], skipinitialspace=True) for part in line if part]


def _assignment(what: str, part: str, schema: "Schema") -> tuple[str, Any]:
    # names and values may have = in them: the longest name of the model's that fits
    fitting = [column for column in schema.columns if part.startswith(f"{column.name}=")]
    if not fitting:
        name, equals, _ = part.partition("=")
        raise ValueError(_unknown(what, name, schema) if equals else f"{what} must be COLUMN=VALUE, not {part!r}")
    column = max(fitting, key=lambda column: len(column.name))
    return column.name, _value(what, part[len(column.name) + 1 :], column)


def _value(what: str, text: str, column: "Column") -> Any:
    from ldfm.tables.texts import text_as
    from ldfm.tables.writing import text_of

    value = text_as(text, column.type_name)
    if column.is_continuous:
        if not isinstance(value, (int, float)):
            raise ValueError(f"{what}: column {column.name!r} has numbers, not {text!r}")
        return value
    for known in column.values:
        # True == 1, but is not what was asked for
        if text_of(known) == text or (known == value and isinstance(known, bool) == isinstance(value, bool)):
            return known
    values = ", ".join(map(repr, column.values[:12])) + (", ..." if len(column.values) > 12 else "")
    raise ValueError(f"{what}: column {column.name!r} has no value {text!r}; its values are {values}")


def _unknown(what: str, name: str, schema: "Schema") -> str:
    names = ", ".join(map(repr, schema.names[:12])) + (", ..." if len(schema.names) > 12 else "")
    return f"{what} names column {name!r}, which the model does not have; it has {names}"
