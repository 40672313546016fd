"""A page about a model and a table: what is in the rows, what the model made of them, and how far to believe it."""

from pathlib import Path
from typing import Any

from ldfm.files import check_target, written_whole
from ldfm.model import ForestModel
from ldfm.report.html import page
from ldfm.report.sections import Subject, write_sections
from ldfm.tables import TableError, encode, read_source

__all__ = ["write_report"]

ROWS = 500  # rows that dependencies and predictions are computed for


def write_report(model: ForestModel, X: Any, path: str | Path, *, rows: int = ROWS, title: str = "Report") -> None:
    """Write one HTML page that needs nothing but itself, whole or not at all.

    It summarises the table and the fit, shows the strongest dependencies and how they change with the values, compares predicted
    probabilities with what is in the cells, and scores the rows: held-out scores if the model was not fitted to them.

    Parameters
    ----------
    model
        A fitted model.
    X
        Rows, of any type that `LDFM.fit` takes; missing cells are welcome.
    path
        The file to write.
    rows
        Most rows that dependencies, predictions and scores are computed for, drawn from the table at random.
    title
        Title of the page.
    """
    target = check_target(Path(path))
    if rows < 1:
        raise ValueError(f"rows must be 1 or more, not {rows}")
    table = encode(read_source(X), model.schema_)
    if not len(table.codes):
        raise TableError("the table has no rows to report on")
    text = page(title, write_sections(Subject.of(model, table.codes, rows)))
    with written_whole(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
