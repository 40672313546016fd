"""``ldfm explore``: a page to explore a model with."""

import webbrowser
from typing import Annotated

import typer

from ldfm.cli.arguments import Jobs, ModelFile, Quiet, Seed
from ldfm.cli.opening import open_model
from ldfm.cli.output import tell

app = typer.Typer()


@app.command(epilog="Example: ldfm explore survey.ldfm --port 8123")
def explore(
    model: ModelFile,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0: any that is free.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address and open no browser.")] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Show a web page, for this machine alone, on which values are set and posteriors and dependencies follow."""
    from ldfm.explorer import Explorer

    opened = open_model(model, seed, jobs, quiet=True)
    try:
        with Explorer(opened, model.name, port) as server:
            print(server.address, flush=True)
            tell("Ctrl-C stops; after an installation the first answer compiles, which takes a minute or two", quiet)
            if not no_browser:
                webbrowser.open(server.address)
            server.serve_forever()
    except KeyboardInterrupt:  # the way to end it
        tell("stopped", quiet)
