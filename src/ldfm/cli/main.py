"""``ldfm``: thin commands over the library. Results go to stdout, messages and progress to stderr."""

import io
import os
import sys
import warnings
from typing import Annotated, NoReturn

import typer

from ldfm import __version__
from ldfm.cli import bench, demo, explore, forest, models, networks, questions, reports, rows

app = typer.Typer(
    name="ldfm",
    help="Latent dependency forest models of tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # boxes break the reason for an error into lines
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _part in (models, questions, rows, forest, explore, reports, networks, demo):
    app.add_typer(_part.app)
app.add_typer(bench.app, name="bench")

_BAD_PATHS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


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


def run() -> None:
    """Run the command line: exit code 0 done, 2 bad usage or input with a one-line reason, 1 anything else."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of values may have letters the terminal lacks
    warnings.showwarning = _show_warning
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


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as one line, without the place in our code that it comes from."""
    text = getattr(message, "for_commands", str(message))
    print(f"ldfm: {' '.join(text.split())}", file=sys.stderr)


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
