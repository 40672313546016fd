"""``ldfm impute``, ``ldfm score`` and ``ldfm sample``: fill, judge and draw rows."""

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ldfm.cli.arguments import Evidence, Jobs, Json, ModelFile, Quiet, Seed, TableFile, TableOutput
from ldfm.cli.opening import STDOUT, check_output, open_model, open_table
from ldfm.cli.options import parse_evidence
from ldfm.cli.output import print_json, put_csv, put_table, tell

app = typer.Typer()


@app.command(epilog="Example: ldfm impute survey.ldfm holes.csv -o filled.csv --how joint")
def impute(
    model: ModelFile,
    table: TableFile,
    output: TableOutput = None,
    how: Annotated[
        str,
        typer.Option(
            help="marginal: each cell's most probable value; joint: the row's most probable completion; draw."
        ),
    ] = "marginal",
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fill the empty cells of a table."""
    from ldfm.cli.filling import fill_in_parts
    from ldfm.tables import in_order
    from ldfm.tables.writing import is_csv

    target = check_output(output, {"model": model, "table": table}, as_json=as_json)
    opened = open_model(model, seed, jobs, quiet)
    source = open_table(table)
    cells = int(sum((column.indices < 0).sum() for column in source.columns))
    facts = {"rows": source.rows, "filled": cells}
    if is_csv(target) if target is not None else not as_json:
        put_csv(fill_in_parts(opened, source, how, seed), target)
        if as_json:
            print_json({**facts, "output": str(target)})
    else:
        filled = opened.impute(source, how)
        # only Parquet files can say which columns are row labels
        _put(in_order(filled, source.names) if target is None else filled, target, facts, as_json)
    if target is not None and not as_json:
        tell(f"filled {cells} cells of {source.rows} rows; wrote {output}", quiet)


@app.command(epilog="Example: ldfm score survey.ldfm new.csv -o scores.csv")
def score(
    model: ModelFile,
    table: TableFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the log probability of each row (- for stdout)."),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Give the mean log probability of rows; empty cells are summed out."""
    target = check_output(output, {"model": model, "table": table}, as_json=as_json)
    opened = open_model(model, seed, jobs, quiet)
    scores = opened.score_samples(open_table(table))
    if not len(scores):
        raise ValueError(f"{table}: the table has no rows to score")
    partition = opened.log_partition()
    # the error that all rows share; rows with many empty cells have one of their own besides
    none = int((scores == -np.inf).sum())
    facts = {
        "rows": len(scores),
        "mean": float(scores.mean()),
        "of_probability_zero": none,
        "log_partition_se": partition.standard_error,
    }
    if output is not None:
        put_table({"row": list(range(len(scores))), "log_probability": scores.tolist()}, target)
    if as_json:
        print_json({**facts, **({} if target is None else {"output": str(target)})})
        return
    sure = "" if partition.exact else f", standard error of the partition {partition.standard_error:.4f}"
    line = f"{facts['mean']:.4f} nats a row, the mean of {len(scores)} rows{sure}"
    line += f"; {none} rows have probability zero" if none else ""
    print(line, file=sys.stderr if output == STDOUT else sys.stdout)


@app.command(epilog="Example: ldfm sample asia.ldfm -n 1000 -o smokers.csv --evidence smoke=yes")
def sample(
    model: ModelFile,
    count: Annotated[int, typer.Option("-n", min=1, help="How many rows.")] = 1,
    output: TableOutput = None,
    evidence: Evidence = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draw rows from a model, with evidence held fixed."""
    target = check_output(output, {"model": model}, as_json=as_json)
    opened = open_model(model, seed, jobs, quiet)
    drawn = opened.sample(count, parse_evidence(evidence, opened.schema_))
    _put(drawn, target, {"rows": count}, as_json)
    if target is not None and not as_json:
        tell(f"drew {count} rows; wrote {output}", quiet)


def _put(table: Any, target: Path | None, facts: dict[str, Any], as_json: bool) -> None:
    """Write a table to a file and say so in JSON if asked, or put it on stdout."""
    from ldfm.tables.writing import columns_of, is_csv, refuse_missing_texts

    if target is not None or not as_json:
        if target is None or is_csv(target):
            refuse_missing_texts(table)
        put_table(table, target)
    if as_json:
        where = {"table": columns_of(table)} if target is None else {"output": str(target)}
        print_json({**facts, **where})
