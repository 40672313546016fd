"""The rows that a report is about."""

from typing import Any

from ldfm.tables import MISSING, Schema
from ldfm.types import Codes


def table_of(schema: Schema, codes: Codes) -> dict[str, list[Any]]:
    """Give codes as a table that a model reads, None where they are missing."""
    return {
        column.name: [None if code == MISSING else column.values[code] for code in codes[:, place].tolist()]
        for place, column in enumerate(schema.columns)
    }
