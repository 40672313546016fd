"""``ldfm``: thin commands over the library. Results go to stdout, messages and progress to stderr."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ldfm import __version__
from ldfm.cli import bench
from ldfm.cli.options import parse_prior

app = typer.Typer(
    name="ldfm",
    help="Latent dependency forest models of tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench.app, name="bench")
messages = Console(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


def _version(value: bool) -> None:
    if value:
        print(f"ldfm {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: ldfm fit survey.csv -o survey.ldfm --prior modified:0,1e-6")
def fit(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet file, one column a variable.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    variant: Annotated[str, typer.Option(help="ldfm-s or ldfm.")] = "ldfm-s",
    prior: Annotated[str, typer.Option(help="none, dirichlet:ALPHA or modified:ALPHA,FLOOR.")] = "none",
    max_iter: Annotated[int, typer.Option(help="Largest number of iterations.")] = 200,
    tol: Annotated[float, typer.Option(help="Stop when the objective rises by less, in nats a row.")] = 1e-5,
    validation: Annotated[float | None, typer.Option(help="Share of the rows held out to stop by.")] = None,
    discrete: Annotated[list[str] | None, typer.Option(help="Floating-point column to take as categories.")] = None,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Threads; all cores if not given.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Json = False,
) -> None:
    """Fit a model to a table and write it to a file."""
    from ldfm import LDFM

    if not output.parent.is_dir():
        raise ValueError(f"no such folder: {output.parent}")
    model = LDFM(
        variant=variant,  # type: ignore[arg-type]
        prior=parse_prior(prior),
        max_iter=max_iter,
        tol=tol,
        validation_fraction=validation,
        kinds=dict.fromkeys(discrete or [], "discrete"),
        random_state=seed,
        n_jobs=jobs,
        verbose=0 if quiet or not sys.stderr.isatty() else 1,
    ).fit(table)
    model.save(output)
    last = model.history_.steps[-1]
    if as_json:
        print(json.dumps({"model": str(output), "variables": model.n_features_in_, **model.history_.to_json()}))
    elif not quiet:
        messages.print(
            f"{model.n_features_in_} variables, {sum(model.schema_.cardinalities)} values; {last.iteration} iterations in "
            f"{last.seconds:.1f} s, objective {last.objective:.4f} nats a row ({model.history_.reason}); wrote {output}"
        )


@app.command(epilog="Example: ldfm info survey.ldfm --json")
def info(model: Annotated[Path, typer.Argument(help="Model file.")], as_json: Json = False) -> None:
    """Show what is in a model file."""
    from ldfm.model_file import read_model

    record = read_model(model)
    arcs = int((record.weights.table > 0).sum())
    facts: dict[str, Any] = {
        "variant": record.weights.variant,
        "variables": len(record.schema.columns),
        "values": sum(record.schema.cardinalities),
        "arcs": arcs,
        "normalised": record.weights.is_normalised,
        "library version": record.library_version,
        "iterations": max(0, len(record.history) - 1),
        "stopped": record.history.reason,
    }
    if as_json:
        print(json.dumps({**facts, "settings": record.settings, "schema": record.schema.to_json()}))
        return
    for name, fact in facts.items():
        print(f"{name:16} {fact}")
    columns = Table("variable", "type", "values", box=None, pad_edge=False)
    for column in record.schema.columns:
        shown = ", ".join(str(value) for value in column.values[:8])
        columns.add_row(column.name, column.type_name, shown + (", ..." if len(column.values) > 8 else ""))
    Console(highlight=False, markup=False).print(columns)


@app.command(epilog="Example: ldfm demo -o demo")
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("demo"),
) -> None:
    """Fit a built-in network's data, answer a question and draw a forest."""
    from ldfm.cli.demo import run_demo

    run_demo(output)


def run() -> None:
    """Run the command line: exit code 0 done, 2 bad usage or input with a one-line reason, 1 anything else."""
    try:
        app()
    except (ValueError, TypeError, OSError, ImportError) as error:
        print(f"ldfm: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("ldfm: stopped", file=sys.stderr)
        sys.exit(1)
