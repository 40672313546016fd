"""What a report is made of, before it is a page or a document of JSON."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Shown(NamedTuple):
    """A cell that people read as text."""

    value: Any
    text: str


class Note(NamedTuple):
    """A paragraph in small print."""

    text: str


class Facts(NamedTuple):
    """Names and what is so; `title` stands above the second column."""

    title: str
    facts: Mapping[str, Any]


class Listing(NamedTuple):
    """A table; `name` is what documents of JSON call it."""

    name: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]


class Picture(NamedTuple):
    """A picture, drawn when it is asked for; `what` says it in words."""

    draw: "Callable[[], Axes]"
    what: str


Part = str | Note | Facts | Listing | Picture


class Section(NamedTuple):
    """Parts under a title: text, and the classes above; `name` is what documents of JSON call it."""

    name: str
    title: str
    parts: Sequence[Part]

    def to_json(self) -> dict[str, Any]:
        """Give what the section says in numbers: facts by their names, listings as rows with a name a cell; no pictures."""
        document: dict[str, Any] = {"text": [part for part in self.parts if isinstance(part, str)]}
        for part in self.parts:
            if isinstance(part, Facts):
                document |= {name: _value(cell) for name, cell in part.facts.items()}
            elif isinstance(part, Listing):
                document[part.name] = [
                    {name: _value(cell) for name, cell in zip(part.header, row, strict=True)} for row in part.rows
                ]
        return document


def percent(share: float) -> Shown:
    """Give a share as per cent."""
    return Shown(float(share), f"{100 * share:.1f}%")


def rounded(number: float, digits: int) -> Shown:
    """Give a number with so many digits after the point."""
    return Shown(float(number), f"{number:.{digits}f}")


def with_error(number: float, error: float) -> Shown:
    """Give a number and its standard error."""
    return Shown(
        {"value": float(number), "standard_error": float(error)}, f"{number:.4f}" + (f" ± {error:.4f}" if error else "")
    )


def _value(cell: Any) -> Any:
    return cell.value if isinstance(cell, Shown) else cell
