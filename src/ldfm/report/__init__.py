"""A page about a model and a table: what is in the rows, what the model made of them, and how far to believe it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ldfm.files import check_target, written_whole
from ldfm.model import ForestModel
from ldfm.report.html import page
from ldfm.report.parts import Section
from ldfm.report.sections import Subject, write_sections
from ldfm.tables import TableError, encode, read_source

__all__ = ["Report", "make_report", "write_report"]

ROWS = 500  # rows that dependencies and predictions are computed for


class Report(NamedTuple):
    """What is to be said about a model and a table.

    Attributes
    ----------
    title
        Title of the page.
    sections
        Its sections.
    """

    title: str
    sections: Sequence[Section]

    def write(self, path: str | Path) -> None:
        """Write one HTML page that needs nothing but itself, whole or not at all."""
        text = page(self.title, self.sections)
        with written_whole(Path(path)) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def to_json(self) -> dict[str, Any]:
        """Give what the page says, a key a section: its facts, and its tables as lists of rows; numbers are not rounded."""
        return {"title": self.title} | {section.name: section.to_json() for section in self.sections}


def make_report(model: ForestModel, X: Any, *, rows: int = ROWS, title: str = "Report") -> Report:
    """Compute what there is to say about a model and a table.

    It summarises the table and the fit, shows the strongest dependencies and how they change with the values, compares predicted
    probabilities with what is in the cells, and scores the rows: held-out scores if the model was not fitted to them.

    Parameters
    ----------
    model
        A fitted model.
    X
        Rows, of any type that `LDFM.fit` takes; missing cells are welcome.
    rows
        Most rows that dependencies, predictions and scores are computed for, drawn from the table at random.
    title
        Title of the page.
    """
    if rows < 1:
        raise ValueError(f"rows must be 1 or more, not {rows}")
    table = encode(read_source(X), model.schema_)
    if not len(table.codes):
        raise TableError("the table has no rows to report on")
    return Report(title, write_sections(Subject.of(model, table.codes, rows)))


def write_report(model: ForestModel, X: Any, path: str | Path, *, rows: int = ROWS, title: str = "Report") -> None:
    """Write the page of `make_report` to an HTML file; a place that cannot be written to is refused before anything is computed."""
    target = check_target(Path(path))
    make_report(model, X, rows=rows, title=title).write(target)
