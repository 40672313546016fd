"""Names of columns and texts of values that people give as evidence -> values that a model has."""

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
    values = ", ".join(map(repr, column.values[:12])) + (", ..." if len(column.values) > 12 else "")
    raise ValueError(f"{what}: column {column.name!r} has no value {text!r}; its values are {values}")


def unknown_column(what: str, name: str, schema: Schema) -> str:
    """Say that a question names a column that the model does not have, and which it has."""
    names = ", ".join(map(repr, schema.names[:12])) + (", ..." if len(schema.names) > 12 else "")
    return f"{what} names column {name!r}, which the model does not have; it has {names}"
