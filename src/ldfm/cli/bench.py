"""``ldfm bench``: run benchmarks, store their results, render tables and plots from what is stored."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Run benchmarks; results are stored with where they came from.", no_args_is_help=True)


@app.command(epilog="Example: ldfm bench kernels --sizes 20,37,76")
def kernels(
    sizes: Annotated[str, typer.Option(help="Numbers of variables, comma-separated.")] = "8,20,37,56,76",
    graphs: Annotated[int, typer.Option(min=1, help="Arc matrices a size.")] = 1000,
    rounds: Annotated[int, typer.Option(min=1, help="Times each peer is run; they take turns.")] = 15,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for results, table and plot.")] = Path(
        "benchmarks/results"
    ),
) -> None:
    """Time the forest kernels beside NumPy and torch."""
    from ldfm.bench.kernels import render, run

    numbers = [int(part) if part.isdecimal() else 0 for part in sizes.split(",")]
    if min(numbers) < 1:
        raise ValueError(f"--sizes must be whole numbers such as 20,37, not {sizes!r}")
    result = run(numbers, graphs, rounds)
    print(render(result, output))
