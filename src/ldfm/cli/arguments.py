"""Arguments and options that several commands have."""

import warnings
from pathlib import Path
from typing import Annotated

import typer

TABLES = "CSV or Parquet file, a quoted glob of them ('part-*.csv'), or - for CSV from stdin"
ModelFile = Annotated[Path, typer.Argument(help="Model file.")]
TableFile = Annotated[Path, typer.Argument(help=f"{TABLES}, with the model's columns; empty cells are unknown.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed.")]
Jobs = Annotated[int | None, typer.Option(help="Threads; all cores if not given.")]


def _hush(quiet: bool) -> bool:
    """Let warnings be silent, too."""
    if quiet:
        warnings.simplefilter("ignore")
    return quiet


Quiet = Annotated[bool, typer.Option("--quiet", "-q", callback=_hush, help="No progress and no messages.")]
Evidence = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=VALUE,...", help="What is known; may be given several times. Quote parts with commas."
    ),
]
TableOutput = Annotated[
    Path | None,
    typer.Option("--output", "-o", help=".csv, .csv.gz or .parquet file to write; - or nothing: CSV on stdout."),
]
