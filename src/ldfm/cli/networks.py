"""``ldfm network``: rows of Bayesian networks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldfm.cli.arguments import Json, Quiet, Seed, TableOutput
from ldfm.cli.opening import check_output
from ldfm.cli.output import print_json, put_table, tell

if TYPE_CHECKING:
    from ldfm.networks import Network

app = typer.Typer()
NAMES = "alarm, asia, child, hailfinder, hepar2, insurance, sachs, water, win95pts"  # help loads no network


@app.command(epilog="Example: ldfm network alarm.bif -n 5000 -o alarm.csv")
def network(
    source: Annotated[str, typer.Argument(help=f"BIF file (.bif or .bif.gz), or a network that comes along: {NAMES}.")],
    count: Annotated[int, typer.Option("-n", min=1, help="How many rows.")] = 1000,
    output: TableOutput = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draw rows from a Bayesian network."""
    from ldfm.tables.writing import columns_of

    path = Path(source)
    target = check_output(output, {"network": path if path.exists() else None}, as_json=as_json)
    opened = _open(source)
    rows = opened.sample(count, seed)
    if target is not None or not as_json:
        put_table(rows, target)
    if as_json:
        size = {"variables": len(opened.variables), "arcs": sum(map(len, opened.parents))}
        where = {"table": columns_of(rows)} if target is None else {"output": str(target)}
        print_json({"network": opened.name, **size, "rows": count, **where})
    elif target is not None:
        tell(f"drew {count} rows of {len(opened.variables)} variables; wrote {output}", quiet)


def _open(source: str) -> "Network":
    from ldfm.networks import load, names, read_bif

    if source in names():
        return load(source)
    if not Path(source).exists():
        raise ValueError(f"{source}: no such file, and no network that comes along; these are {', '.join(names())}")
    return read_bif(source)
