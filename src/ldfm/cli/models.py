"""``ldfm fit`` and ``ldfm info``: make a model file, look into it."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ldfm.cli.arguments import TABLES, Jobs, Json, ModelFile, Quiet, Seed
from ldfm.cli.opening import check_file, open_table, shows_progress
from ldfm.cli.options import parse_prior
from ldfm.cli.output import print_json, shown, tell

app = typer.Typer()


@app.command(epilog="Example: ldfm fit survey.csv -o survey.ldfm --checkpoint survey.part")
def fit(
    table: Annotated[Path, typer.Argument(help=f"{TABLES}: one column a variable; empty cells are missing.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    objective: Annotated[
        str, typer.Option(help="likelihood (normalised, better, slower) or generation (EM, as in the paper).")
    ] = "likelihood",
    variant: Annotated[str, typer.Option(help="ldfm-s or ldfm; ldfm needs --objective generation.")] = "ldfm-s",
    prior: Annotated[str, typer.Option(help="none, dirichlet:ALPHA or modified:ALPHA,FLOOR.")] = "none",
    max_iter: Annotated[
        int | None,
        typer.Option(help="Most steps; if not given 3200 (likelihood; 800 of small tables) or 200 (generation)."),
    ] = None,
    tol: Annotated[float, typer.Option(help="EM stops when the objective rises by less, in nats a row.")] = 1e-5,
    validation: Annotated[float | None, typer.Option(help="Share of the rows held out to stop by.")] = None,
    discrete: Annotated[list[str] | None, typer.Option(help="Column of numbers to take as categories.")] = None,
    continuous: Annotated[list[str] | None, typer.Option(help="Column of whole numbers to take as continuous.")] = None,
    bend: Annotated[bool, typer.Option(help="Model skewed columns of numbers on a bent scale.")] = True,
    relate: Annotated[
        bool, typer.Option(help="Measure columns of numbers from several others, where these tell more than one.")
    ] = True,
    checkpoint: Annotated[
        Path | None, typer.Option(help="File that keeps the state of a long fit; the same command goes on from it.")
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fit a model to a table and write it to a file."""
    from ldfm.model import ForestModel

    check_file(output, {"table": table})
    if checkpoint is not None:
        check_file(checkpoint, {"table": table, "model": output})
    model = ForestModel(
        variant=variant,  # type: ignore[arg-type]
        objective=objective,  # type: ignore[arg-type]
        prior=parse_prior(prior),
        max_iter=max_iter,
        tol=tol,
        validation_fraction=validation,
        kinds=dict.fromkeys(discrete or [], "discrete") | dict.fromkeys(continuous or [], "continuous"),
        bend=bend,
        relate=relate,
        checkpoint=checkpoint,
        random_state=seed,
        n_jobs=jobs,
        verbose=shows_progress(quiet),
    ).fit(open_table(table))
    model.save(output)
    if as_json:
        print_json({"model": str(output), "variables": model.n_features_in_, **model.history_.to_json()})
    else:
        tell(f"{_what_happened(model)}; wrote {output}", quiet)


def _what_happened(model: Any) -> str:
    size = f"{model.n_features_in_} variables, {sum(model.schema_.cardinalities)} values"
    if not len(model.history_):
        return f"{size}; {model.history_.reason}"
    last = model.history_.steps[-1]
    return (
        f"{size}; {last.iteration} iterations in {last.seconds:.1f} s, objective {last.objective:.4f} nats a row "
        f"({model.history_.reason})"
    )


@app.command(epilog="Example: ldfm info survey.ldfm --json")
def info(model: ModelFile, as_json: Json = False) -> None:
    """Show what is in a model file."""
    from ldfm.model_file import read_model

    record = read_model(model)
    facts: dict[str, Any] = {
        "variant": record.weights.variant,
        "objective": record.settings["objective"],
        "variables": len(record.schema.columns),
        "values": sum(record.schema.cardinalities),
        "arcs": int((record.weights.table > 0).sum()),
        "normalised": record.weights.is_normalised,
        "library_version": record.library_version,
        "iterations": record.history.steps[-1].iteration if len(record.history) else 0,
        "stopped": record.history.reason,
    }
    relations = getattr(record.weights, "relations", None)
    if as_json:
        related = None if relations is None else relations.to_json(record.schema.names)
        print_json({**facts, "relations": related, "settings": record.settings, "schema": record.schema.to_json()})
        return
    for name, fact in facts.items():
        print(f"{name.replace('_', ' '):16} {shown(fact)}")
    _print_columns(record)
    if relations is not None:
        print("\nrelations, in standard units")
        for line in relations.described([shown(name) for name in record.schema.names]):
            print(line)


def _print_columns(record: Any) -> None:
    print()
    width = max(len(shown(name)) for name in ("variable", *record.schema.names))
    print(f"{'variable':{width}}  {'type':8}  values")
    for column in record.schema.columns:
        if column.is_continuous:
            units = column.units
            low, middle, high = units.numbers(np.array([-1.0, 0.0, 1.0])).tolist()
            bent = "" if units.bend is None else ", on a bent scale"
            where = f"around {middle:.4g}, mostly {low:.4g} to {high:.4g}{bent}"
            print(f"{shown(column.name):{width}}  {column.type_name:8}  {where}")
            continue
        values = ", ".join(shown(value) for value in column.values[:8])
        more = f", ... ({len(column.values)} in all)" if len(column.values) > 8 else ""
        print(f"{shown(column.name):{width}}  {column.type_name:8}  {values}{more}")
