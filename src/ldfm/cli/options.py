"""Text of options -> values."""

import csv
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # --help is instant without the compiler that learning needs
    from ldfm.learning import Dirichlet, ModifiedDirichlet
    from ldfm.tables import Schema


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
        _note("evidence", found, *_assignment("evidence", part, schema))
    return found


def _note(what: str, found: dict[str, Any], name: str, value: Any) -> None:
    """Note the value of a column; a second one is refused."""
    if found.setdefault(name, value) != value:
        raise ValueError(f"{what} gives column {name!r} two values: {found[name]!r} and {value!r}")


def parse_query(texts: Sequence[str] | None, schema: "Schema") -> dict[str, Any | None]:
    """Read COLUMN,... or COLUMN=VALUE,...; columns without a value have None."""
    from ldfm.tables.evidence import unknown_column

    found: dict[str, Any | None] = {}
    for part in _parts(texts):
        if part in schema.names:
            _note("query", found, part, None)
        elif "=" in part:
            _note("query", found, *_assignment("query", part, schema))
        else:
            raise ValueError(unknown_column("query", part, schema))
    if len({value is None for value in found.values()}) > 1:
        raise ValueError(
            "query must give a value to all of its columns (their joint probability) or to none (posteriors)"
        )
    return found


def _parts(texts: Sequence[str] | None) -> list[str]:
    """Cut options at commas that are not in quotes."""
    return [part for line in csv.reader(texts or [], skipinitialspace=True) for part in line if part]


def _assignment(what: str, part: str, schema: "Schema") -> tuple[str, Any]:
    from ldfm.tables.evidence import unknown_column, value_of_text

    # names and values may have = in them: the longest name of the model's that fits
    fitting = [column for column in schema.columns if part.startswith(f"{column.name}=")]
    if not fitting:
        name, equals, _ = part.partition("=")
        raise ValueError(unknown_column(what, name, schema) if equals else f"{what} must be COLUMN=VALUE, not {part!r}")
    column = max(fitting, key=lambda column: len(column.name))
    text = part[len(column.name) + 1 :]
    if text.startswith('"') and not text.endswith('"'):
        raise ValueError(
            f"{what}: {part!r} was cut at a comma; quote the whole part, name and value, such as '\"{column.name}=a, b\"'"
        )
    return column.name, value_of_text(what, text, column)
