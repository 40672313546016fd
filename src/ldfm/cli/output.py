"""What commands print."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ldfm.json_text import json_text


def print_json(document: Any) -> None:
    """Print one JSON document; infinite numbers and NaN become null, dates text."""
    print(json_text(document))


def shown(value: Any) -> str:
    """Give a name or value as text: quoted if it could be misread, control characters escaped (terminals obey them)."""
    text = str(value)
    plain = text.isprintable() and text == text.strip() and text and "," not in text
    return text if plain else repr(text)


def print_listing(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns of text, each as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def put_table(table: Any, output: Path | None) -> None:
    """Write a table to a file, or as CSV to stdout."""
    from ldfm.tables.writing import write_csv, write_table

    if output is None:
        write_csv(sys.stdout, table)
    else:
        write_table(output, table)


def tell(message: str, quiet: bool) -> None:
    """Print a message for people on stderr."""
    if not quiet:
        print(message, file=sys.stderr)
