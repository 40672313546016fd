"""``ldfm report``: a page about a model and a table."""

from pathlib import Path
from typing import Annotated

import typer

from ldfm.cli.arguments import Jobs, Json, ModelFile, Quiet, Seed, TableFile
from ldfm.cli.opening import STDIN, check_file, open_model, open_table
from ldfm.cli.output import print_json, tell

app = typer.Typer()


@app.command(epilog="Example: ldfm report survey.ldfm new.csv -o report.html")
def report(
    model: ModelFile,
    table: TableFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="HTML file to write; needed unless --json is given.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Most rows to look at closely, drawn at random.")] = 500,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a page about a model and a table: data, fit, dependencies, calibration and scores."""
    from ldfm.report import make_report

    if output is not None:
        check_file(output, {"model": model, "table": table})
        if output.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"{output}: reports are written to .html files")
    elif not as_json:
        raise ValueError("give a file to write with -o report.html, or --json")
    opened = open_model(model, seed, jobs, quiet)
    source = "stdin" if table == STDIN else table.name
    made = make_report(opened, open_table(table), rows=rows, title=f"{source} seen by {model.name}")
    if output is not None:
        made.write(output)
        if not as_json:
            tell(f"wrote {output}", quiet)
    if as_json:
        print_json({**made.to_json(), **({} if output is None else {"output": str(output)})})
