"""Model files and places to write to, checked before anything is computed."""

import os
import sys
from glob import glob
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from ldfm.files import check_target

if TYPE_CHECKING:  # --help is instant without the compiler
    from ldfm.model import ForestModel
    from ldfm.tables import Source

STDIN = STDOUT = Path("-")


def shows_progress(quiet: bool) -> int:
    """Give `verbose` of an estimator: progress is shown on terminals only."""
    return 0 if quiet or not sys.stderr.isatty() else 1


def open_model(path: Path, seed: int, jobs: int | None, quiet: bool) -> "ForestModel":
    """Read a model that will answer with this seed and so many threads."""
    from ldfm.model import ForestModel, read_model_as

    if jobs == 0:
        raise ValueError("--jobs must not be 0; use 1 for no threads")
    model = read_model_as(ForestModel, path)
    model.random_state, model.n_jobs, model.verbose = seed, jobs, shows_progress(quiet)
    return model


def open_table(path: Path) -> "Source":
    """Read a table: a file, all files of a glob, or CSV from stdin."""
    from ldfm.tables import read_source
    from ldfm.tables.files import read_csv_text

    if path != STDIN:
        return read_source(path)
    return read_csv_text(TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline=""), "stdin")


def check_file(output: Path, inputs: dict[str, Path | None]) -> Path:
    """Give the file to write; inputs, by what they are called, are never replaced."""
    if output == STDOUT:
        raise ValueError("this is written to a file, not to stdout; give a name other than -")
    target = check_target(output)
    for what, path in inputs.items():
        names = [] if path is None else [str(path), *glob(str(path), recursive=True)]  # noqa: PTH207 (absolute too)
        for read in names:
            if target == Path(os.path.realpath(read)):
                raise ValueError(f"{output} would replace the {what} {read}")
    return output


def check_output(output: Path | None, inputs: dict[str, Path | None], *, as_json: bool = False) -> Path | None:
    """Give the file to write a table to, None for stdout."""
    from ldfm.tables.writing import is_csv

    if output == STDOUT and as_json:
        raise ValueError("--json and -o - would both write to stdout; give one of them")
    if output is None or output == STDOUT:
        return None
    is_csv(output)  # or an error
    return check_file(output, inputs)
