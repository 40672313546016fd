"""``ldfm bench``: run benchmarks, store their results, render tables and plots from what is stored."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Run benchmarks; results are stored with where they came from.", no_args_is_help=True)

Jobs = Annotated[int, typer.Option(help="Threads.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed.")]


def _command() -> str:
    """Give the command line as typed, without where its results go."""
    words = sys.argv[1:]
    kept = [w for before, w in zip(["", *words], words, strict=False) if not {before, w} & {"-o", "--output"}]
    return " ".join(["ldfm", *map(shlex.quote, kept)])


def _whole_numbers(option: str, text: str) -> list[int]:
    numbers = [int(part) if part.isdecimal() else 0 for part in text.split(",")]
    if min(numbers) < 1:
        raise ValueError(f"{option} must be whole numbers such as 20,37, not {text!r}")
    return numbers


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ValueError(f"{option} must be numbers such as 0.1,1, not {text!r}") from error


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


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

    result = run(_whole_numbers("--sizes", sizes), graphs, rounds)
    print(render(result, output))


@app.command(epilog="Example: ldfm bench paper --networks asia,child --rows 500 --queries 200")
def paper(
    networks: Annotated[str, typer.Option(help="Networks, comma-separated; all nine if not given.")] = "",
    rows: Annotated[str, typer.Option(help="Training rows, comma-separated.")] = "5000,2000,500",
    splits: Annotated[str, typer.Option(help="Query and evidence in percent, comma-separated.")] = (
        "40/30,30/20,30/40,20/30"
    ),
    models: Annotated[str, typer.Option(help="Models, comma-separated; all if not given.")] = "",
    queries: Annotated[int, typer.Option(min=1, max=1000, help="Test queries a cell.")] = 1000,
    em_iterations: Annotated[int, typer.Option(min=1, help="Most iterations of EM.")] = 100,
    alphas: Annotated[str, typer.Option(help="Of EM's prior, to choose from, comma-separated.")] = "1.1,1,0",
    tuning_queries: Annotated[int, typer.Option(min=1, help="Validation queries to choose by.")] = 100,
    likelihood_steps: Annotated[int | None, typer.Option(min=1, help="Steps on the likelihood.")] = None,
    sweeps: Annotated[int, typer.Option(min=1, help="Most sweeps a query of an LDFM.")] = 6_000,
    peer_chains: Annotated[int | None, typer.Option(min=2, help="Chains a query of peers.")] = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the records.")] = Path(
        "benchmarks/results/paper"
    ),
) -> None:
    """Run the paper's tables; cells that are stored are not run again."""
    from ldfm.bench.models import MODELS, Effort
    from ldfm.bench.paper import Plan, run
    from ldfm.bench.protocol import Split

    effort = Effort(
        em_iterations, tuple(_numbers("--alphas", alphas)), tuning_queries, likelihood_steps, sweeps, peer_chains
    )
    sizes, divided = _whole_numbers("--rows", rows), [Split.of(part) for part in _listed(splits)]
    chosen = _listed(models) or list(MODELS)
    plan = Plan(_listed(networks), sizes, divided, chosen, queries, effort, seed, jobs, output)
    done = run(plan, _command())
    print(f"ran {done} cells; records are in {output}, `ldfm bench tables` renders them", file=sys.stderr)


@app.command(epilog="Example: ldfm bench tables")
def tables(
    results: Annotated[Path, typer.Option(help="Folder of stored results.")] = Path("benchmarks/results"),
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for tables and plots.")] = Path(
        "benchmarks/tables"
    ),
    page: Annotated[Path | None, typer.Option(help="Page to put the main tables in, between its markers.")] = None,
    readme: Annotated[Path | None, typer.Option(help="Page to put the headline in, between its markers.")] = None,
) -> None:
    """Render tables and plots from stored results alone."""
    from ldfm.bench.pages import render_all

    for path in render_all(results, output, page, readme):
        print(path)


@app.command(epilog="Example: ldfm bench samplers --networks asia,alarm --seconds 0.1,1,10")
def samplers(
    networks: Annotated[str, typer.Option(help="Networks, comma-separated.")] = (
        "asia,sachs,child,alarm,win95pts,hailfinder"
    ),
    seconds: Annotated[str, typer.Option(help="Seconds a query, comma-separated.")] = "0.1,1,10",
    questions: Annotated[int, typer.Option(min=1, help="Queries a network.")] = 4,
    rows: Annotated[int, typer.Option(min=1, help="Training rows.")] = 2000,
    em_iterations: Annotated[int, typer.Option(min=1, help="Iterations of EM.")] = 40,
    likelihood_steps: Annotated[int, typer.Option(min=1, help="Steps on the likelihood.")] = 200,
    reference_seconds: Annotated[float, typer.Option(min=0.01, help="Of long runs, a query.")] = 10.0,
    seed: Seed = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path(
        "benchmarks/results/samplers"
    ),
) -> None:
    """Compare samplers by their error in a given time; what is stored is not run again."""
    from ldfm.bench.pages import samplers_tables
    from ldfm.bench.samplers import Settings, run

    settings = Settings(
        _listed(networks),
        tuple(_numbers("--seconds", seconds)),
        questions,
        rows,
        em_iterations,
        likelihood_steps,
        reference_seconds,
        seed,
    )
    found = run(settings, output, _command(), lambda text: print(text, file=sys.stderr, flush=True))
    print("\n".join(samplers_tables(found)))


@app.command(epilog="Example: ldfm bench density data/ --names nltcs,plants --models ldfm,mt,spn")
def density(
    data: Annotated[Path, typer.Argument(help="Folder of files such as nltcs.train.data, .valid. and .test., or .gz.")],
    names: Annotated[str, typer.Option(help="Data sets, comma-separated.")] = "nltcs,plants",
    models: Annotated[str, typer.Option(help="Models, comma-separated, of ldfm, bn, mt and spn.")] = "ldfm",
    steps: Annotated[int | None, typer.Option(min=1, help="Steps on the likelihood.")] = None,
    chains: Annotated[int, typer.Option(min=128, help="Chains that find the partition.")] = 4096,
    seed: Seed = 0,
    jobs: Jobs = 1,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path(
        "benchmarks/results/density"
    ),
) -> None:
    """Learn from files of 0/1 rows and score their test rows; a data set whose files are absent is skipped."""
    from ldfm.bench.density import MODELS, Effort, Files, lines_of, run

    chosen = _listed(models)
    unknown = [model for model in chosen if model not in MODELS]
    if unknown:
        raise ValueError(f"no model is called {unknown[0]!r}; the models are {', '.join(MODELS)}")
    results = []
    for name in _listed(names):
        files = Files.named(data, name)
        if files.missing:
            print(f"skipped {name}: no file {files.missing[0]}", file=sys.stderr)
            continue
        effort = Effort(steps, chains, seed, jobs)
        results += [run(name, files, effort, output, _command(), model) for model in chosen]
    if results:
        print("\n".join(lines_of(results)))


@app.command(epilog="Example: ldfm bench missing --network alarm --removed 0.3")
def missing(
    network: Annotated[str, typer.Option(help="Network that rows are drawn from.")] = "alarm",
    rows: Annotated[int, typer.Option(min=1, help="Training rows.")] = 5000,
    removed: Annotated[float, typer.Option(min=0.0, max=0.99, help="Share of cells removed at random.")] = 0.3,
    queries: Annotated[int, typer.Option(min=2, max=1000, help="Test queries.")] = 200,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps on the likelihood.")] = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path(
        "benchmarks/results/missing"
    ),
) -> None:
    """Learn from tables with missing cells, beside filling them in first and dropping incomplete rows."""
    from ldfm.bench.missing import Settings, lines_of, run

    settings = Settings(network, rows, removed, queries, steps, seed, jobs)
    print("\n".join(lines_of([run(settings, output, _command())])))


@app.command(epilog="Example: ldfm bench imputation --tables iris,wine")
def imputation(
    tables: Annotated[str, typer.Option(help="Tables of scikit-learn, comma-separated.")] = (
        "iris,wine,diabetes,breast_cancer"
    ),
    seed: Seed = 0,
    jobs: Jobs = 1,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path(
        "benchmarks/results/imputation"
    ),
) -> None:
    """Fill removed cells of mixed tables, and score held-out rows, beside scikit-learn's methods."""
    from ldfm.bench.imputation import TABLES, lines_of, run

    chosen = _listed(tables)
    unknown = [name for name in chosen if name not in TABLES]
    if unknown:
        raise ValueError(f"--tables must be some of {', '.join(TABLES)}, not {unknown[0]!r}")
    print("\n".join(lines_of([run(name, seed, jobs, output, _command()) for name in chosen])))
