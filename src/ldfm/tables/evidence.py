"""Names of columns and texts of values that people give as evidence -> values that a model has."""

from collections.abc import Mapping
from typing import Any

from ldfm.tables.schema import Column, Schema
from ldfm.tables.texts import text_as
from ldfm.tables.writing import text_of


def value_of_text(what: str, text: str, column: Column) -> Any:
    """Give the value of a column that a text stands for; `what` is the part of a question it was given in."""
    value = text_as(text, column.type_name)
    if column.is_continuous:
        if not isinstance(value, (int, float)):
            raise ValueError(f"{what}: column {column.name!r} has numbers, not {text!r}")
        return value
    for known in column.values:
        # True == 1, but is not what was asked for
        if text_of(known) == text or (known == value and isinstance(known, bool) == isinstance(value, bool)):
            return known
    texts = (repr(known) if isinstance(known, str) else text_of(known) for known in column.values[:12])
    values = ", ".join(texts) + (", ..." if len(column.values) > 12 else "")
    raise ValueError(f"{what}: column {column.name!r} has no value {text!r}; its values are {values}")


def row_of_evidence(evidence: Mapping[Any, Any], schema: Schema) -> dict[str, list[Any]]:
    """Give a table of one row in which all that is no evidence is missing; columns are known by the texts of their names."""
    row: dict[str, list[Any]] = {name: [None] for name in schema.names}
    given: dict[str, Any] = {}
    for name, value in evidence.items():
        if str(name) not in row:
            raise ValueError(unknown_column("evidence", name, schema))
        if str(name) in given:
            raise ValueError(f"evidence names column {str(name)!r} twice: as {given[str(name)]!r} and as {name!r}")
        given[str(name)], row[str(name)] = name, [value]
    return row


def unknown_column(what: str, name: Any, schema: Schema) -> str:
    """Say that a question names a column that the model does not have, and which it has."""
    names = ", ".join(map(repr, schema.names[:12])) + (", ..." if len(schema.names) > 12 else "")
    return f"{what} names column {name!r}, which the model does not have; it has {names}"
