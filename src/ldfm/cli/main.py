"""``ldfm``: thin commands over the library. Results go to stdout, messages and progress to stderr."""

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from ldfm import __version__
from ldfm.cli import bench
from ldfm.cli.options import parse_prior
from ldfm.cli.output import print_json, shown
from ldfm.files import check_target

app = typer.Typer(
    name="ldfm",
    help="Latent dependency forest models of tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # boxes break the reason for an error into lines
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench.app, name="bench")

_BAD_PATHS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)

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
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Threads; all cores if not given.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: Json = False,
) -> None:
    """Fit a model to a table and write it to a file."""
    from ldfm import LDFM

    if check_target(output) == Path(os.path.realpath(table)):
        raise ValueError(f"the model would replace the table {table}")
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
        print_json({"model": str(output), "variables": model.n_features_in_, **model.history_.to_json()})
    elif not quiet:
        print(
            f"{model.n_features_in_} variables, {sum(model.schema_.cardinalities)} values; {last.iteration} iterations in "
            f"{last.seconds:.1f} s, objective {last.objective:.4f} nats a row ({model.history_.reason}); wrote {output}",
            file=sys.stderr,
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
        "library_version": record.library_version,
        "iterations": max(0, len(record.history) - 1),
        "stopped": record.history.reason,
    }
    if as_json:
        print_json({**facts, "settings": record.settings, "schema": record.schema.to_json()})
        return
    for name, fact in facts.items():
        print(f"{name.replace('_', ' '):16} {shown(fact)}")
    print()
    width = max(len(shown(name)) for name in ("variable", *record.schema.names))
    print(f"{'variable':{width}}  {'type':8}  values")
    for column in record.schema.columns:
        values = ", ".join(shown(value) for value in column.values[:8])
        more = f", ... ({len(column.values)} in all)" if len(column.values) > 8 else ""
        print(f"{shown(column.name):{width}}  {column.type_name:8}  {values}{more}")


@app.command(epilog="Example: ldfm demo -o demo")
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("demo"),
) -> None:
    """Fit a built-in network's data, answer a question and draw a forest."""
    from ldfm.cli.demo import run_demo

    run_demo(output)


def run() -> None:
    """Run the command line: exit code 0 done, 2 bad usage or input with a one-line reason, 1 anything else."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of values may have letters the terminal lacks
    try:
        try:
            app(prog_name="ldfm")
        finally:
            _flush_output()
    except SystemExit as stop:
        if stop.code == 130:  # typer's code for Ctrl-C
            _fail("stopped", 1)
        raise
    except (ValueError, *_BAD_PATHS) as error:
        _fail(_reason(error), 2)
    except BrokenPipeError:  # whoever read our output wants no more of it
        sys.exit(1)
    except (OSError, ImportError) as error:
        _fail(_reason(error), 1)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _fail(reason: str, code: int) -> NoReturn:
    print(f"ldfm: {' '.join(reason.split())}", file=sys.stderr)
    sys.exit(code)


def _flush_output() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        # into nowhere with what is left, or Python would try again, and complain, when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
