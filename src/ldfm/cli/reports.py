"""``ldfm report``: a page about a model and a table."""

from pathlib import Path
from typing import Annotated

import typer

from ldfm.cli.arguments import Jobs, ModelFile, Quiet, Seed, TableFile
from ldfm.cli.opening import check_file, open_model
from ldfm.cli.output import tell

app = typer.Typer()


@app.command(epilog="Example: ldfm report survey.ldfm new.csv -o report.html")
def report(
    model: ModelFile,
    table: TableFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")],
    rows: Annotated[int, typer.Option(min=1, help="Most rows to look at closely, drawn at random.")] = 500,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Write a page about a model and a table: data, fit, dependencies, calibration and scores."""
    from ldfm.report import write_report

    check_file(output, {"model": model, "table": table})
    if output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{output}: reports are written to .html files")
    opened = open_model(model, seed, jobs, quiet)
    write_report(opened, table, output, rows=rows, title=f"{table.name} seen by {model.name}")
    tell(f"wrote {output}", quiet)
