"""``ldfm query``: posteriors and joint probabilities given evidence."""

import sys
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ldfm.cli.arguments import TABLES, Evidence, Jobs, Json, ModelFile, Quiet, Seed, TableOutput
from ldfm.cli.opening import check_output, open_model, open_table
from ldfm.cli.options import parse_evidence, parse_query
from ldfm.cli.output import print_json, print_listing, put_table, shown, tell

if TYPE_CHECKING:  # --help is instant without the compiler
    from ldfm import Budget
    from ldfm.inference import Diagnostics, Marginals
    from ldfm.model import ForestModel

app = typer.Typer()


class _Question(NamedTuple):
    """What is asked: of which model, given what, which columns (with values: their joint), and with how much effort."""

    model: "ForestModel"
    given: dict[str, Any]
    wanted: dict[str, Any]
    method: Any
    budget: "Budget"

    @property
    def is_joint(self) -> bool:
        return any(value is not None for value in self.wanted.values())

    def check(self, table: Path | None, output: Path | None) -> None:
        both = next((name for name in self.wanted if name in self.given), None)
        if both is not None:
            raise ValueError(f"column {both!r} is both query and evidence")
        if table is not None and self.given:
            raise ValueError("--table and --evidence both say what is known; give one of them")
        if self.is_joint and (table is not None or output is not None):
            raise ValueError("a joint probability (--query COLUMN=VALUE) is one number: it takes no --table and no -o")


@app.command(epilog="Example: ldfm query asia.ldfm --evidence smoke=yes,xray=yes --query lung")
def query(
    model: ModelFile,
    evidence: Evidence = None,
    asked: Annotated[
        list[str] | None,
        typer.Option(
            "--query",
            metavar="COLUMN,...",
            help="Columns whose posteriors are asked for; if not given all that are unknown. COLUMN=VALUE,...: joint probability.",
        ),
    ] = None,
    table: Annotated[
        Path | None, typer.Option(help=f"Answer each row of this {TABLES}: its empty cells are unknown.")
    ] = None,
    output: TableOutput = None,
    method: Annotated[str, typer.Option(help="auto, exact, gibbs, tree or blocked.")] = "auto",
    seconds: Annotated[float | None, typer.Option(help="Seconds a row, instead of 4,000 sweeps.")] = None,
    target_se: Annotated[float | None, typer.Option(help="Standard error at which to stop.")] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Give posteriors of unknown columns, or the joint probability of values, with standard errors."""
    from ldfm import Budget

    target = check_output(output, {"model": model, "table": table}, as_json=as_json)
    most = Budget().max_sweeps if seconds is None else sys.maxsize  # who gives seconds wants them used
    budget = Budget(target_se, most, seconds)
    opened = open_model(model, seed, jobs, quiet)
    schema = opened.schema_
    question = _Question(opened, parse_evidence(evidence, schema), parse_query(asked, schema), method, budget)
    question.check(table, output)
    if question.is_joint:
        _answer_joint(question, as_json, quiet)
        return
    answer = _ask(question, table)
    _warn(answer.diagnostics, quiet)
    if target is not None:
        put_table(_written_table(question, answer, target), target)
        tell(
            f"{int(answer.unknown.sum())} unknown cells of {len(answer.unknown)} rows; wrote {output}", quiet or as_json
        )
    if as_json:
        _print_json(question, answer, target)
    elif target is None and table is None and output is None:
        _list(question, answer)
    elif target is None:
        put_table(_written_table(question, answer, None), None)


def _ask(question: _Question, table: Path | None) -> "Marginals":
    row = {name: [question.given.get(name)] for name in question.model.schema_.names}
    return question.model.marginals(row if table is None else open_table(table), question.method, question.budget)


def _posteriors(question: _Question, answer: "Marginals") -> list[dict[str, Any]]:
    """Give the unknown cells that are asked for, one by one."""
    found = []
    ends = {name: numbers.quantiles([0.05, 0.95]) for name, numbers in answer.numbers.items()}
    for row, unknown in enumerate(answer.unknown):
        for column, is_unknown in zip(question.model.schema_.columns, unknown, strict=True):
            if not is_unknown or (question.wanted and column.name not in question.wanted):
                continue
            if column.is_continuous:
                numbers = answer.numbers[column.name]
                found.append(
                    {
                        "row": row,
                        "variable": column.name,
                        "mean": float(numbers.means[row]),
                        "deviation": float(numbers.deviations[row]),
                        "standard_error": float(numbers.mean_errors[row]),
                        "low": float(ends[column.name][row, 0]),
                        "high": float(ends[column.name][row, 1]),
                    }
                )
            else:
                shares, errors = answer.probabilities[column.name][row], answer.standard_errors[column.name][row]
                found.append(
                    {
                        "row": row,
                        "variable": column.name,
                        "values": list(column.values),
                        "probabilities": shares.tolist(),
                        "standard_errors": errors.tolist(),
                    }
                )
    return found


def _written_table(question: _Question, answer: "Marginals", target: Path | None) -> dict[str, list[Any]]:
    """Give the table to write; as CSV values that would be read as missing cells are refused."""
    from ldfm.tables.writing import is_csv, refuse_missing_texts

    table = _long_table(question, answer)
    if target is None or is_csv(target):
        refuse_missing_texts(table)
    return table


def _long_table(question: _Question, answer: "Marginals") -> dict[str, list[Any]]:
    """Give a line a value of each unknown cell; values are text, for columns differ in type.

    A continuous cell has one line: its mean as value, the standard error of that, and the ends of the middle nine tenths.
    """
    from ldfm.tables.writing import text_of

    names = ["row", "variable", "value", "probability", "standard_error"]
    names += ["deviation", "low", "high"] if answer.numbers else []
    table: dict[str, list[Any]] = {name: [] for name in names}
    for cell in _posteriors(question, answer):
        if "mean" in cell:
            line = {**cell, "value": str(cell["mean"])}
            for name, column in table.items():
                column.append(line.get(name))
            continue
        count = len(cell["values"])
        for name in names[5:]:
            table[name] += [None] * count
        table["row"] += [cell["row"]] * count
        table["variable"] += [cell["variable"]] * count
        table["value"] += map(text_of, cell["values"])
        table["probability"] += cell["probabilities"]
        table["standard_error"] += cell["standard_errors"]
    return table


def _print_json(question: _Question, answer: "Marginals", target: Path | None) -> None:
    where = {"posteriors": _posteriors(question, answer)} if target is None else {"output": str(target)}
    print_json({"evidence": question.given, **_facts(answer.diagnostics), **where})


def _list(question: _Question, answer: "Marginals") -> None:
    """Print posteriors for people."""
    cells = _posteriors(question, answer)
    lines = [
        (shown(cell["variable"]), shown(value), f"{share:.4f}", f"{error:.4f}" if error > 0 else "exact")
        for cell in cells
        if "mean" not in cell
        for value, share, error in zip(cell["values"], cell["probabilities"], cell["standard_errors"], strict=True)
    ]
    numbers = [
        (
            shown(cell["variable"]),
            *(f"{cell[name]:.4g}" for name in ("mean", "standard_error", "deviation", "low", "high")),
        )
        for cell in cells
        if "mean" in cell
    ]
    if lines or not numbers:
        print_listing(("variable", "value", "probability", "standard error"), lines)
    if lines and numbers:
        print()
    if numbers:
        print_listing(("variable", "mean", "standard error", "deviation", "5 % below", "5 % above"), numbers)


def _answer_joint(question: _Question, as_json: bool, quiet: bool) -> None:
    """Print the probability of some values together given others."""
    values = {**question.given, **question.wanted}
    row = {name: [values.get(name)] for name in question.model.schema_.names}
    found = question.model.query_log_likelihood(
        row, list(question.wanted), list(question.given), question.method, question.budget
    )
    _warn(found.diagnostics, quiet)
    log, error = float(found.joint[0]), float(found.joint_se[0])
    if as_json:
        numbers = {"log_probability": log, "standard_error": error, "sum_of_marginal_logs": float(found.marginal[0])}
        print_json({"query": question.wanted, "evidence": question.given, **_facts(found.diagnostics), **numbers})
        return
    names = ", ".join(f"{shown(name)} = {shown(value)}" for name, value in question.wanted.items())
    given = ", ".join(f"{shown(name)} = {shown(value)}" for name, value in question.given.items())
    sure = "exact" if error == 0 else f"standard error {error:.4f}"
    columns = question.model.schema_.columns
    what = "density" if any(c.is_continuous for c in columns if c.name in question.wanted) else "p"
    print(f"{what}({names}{' | ' if given else ''}{given}) = {exp(log):.6g}  (log {log:.4f}, {sure})")


def _facts(diagnostics: "Diagnostics") -> dict[str, Any]:
    return {
        "method": diagnostics.method,
        "exact": bool(diagnostics.exact.all()),
        "met_target": bool(diagnostics.met.all()),
    }


def _warn(diagnostics: "Diagnostics", quiet: bool) -> None:
    """Say which answers are less sure than wanted."""
    short = (~diagnostics.met).nonzero()[0]
    if len(short):
        row = int(short[0])
        found = f"R-hat {diagnostics.r_hat[row]:.2f}, {diagnostics.effective_draws[row]:.0f} effective draws"
        tell(
            f"{len(short)} of {len(diagnostics.met)} rows are less sure than wanted, the first is row {row} ({found}); "
            f"--seconds gives them more time",
            quiet,
        )
