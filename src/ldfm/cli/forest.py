"""``ldfm forest``: the dependencies of one row."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ldfm.cli.arguments import Jobs, Json, ModelFile, Quiet, Seed, TableFile
from ldfm.cli.opening import check_file, open_model
from ldfm.cli.output import print_json, print_listing, shown, tell

if TYPE_CHECKING:  # --help is instant without the compiler
    from ldfm import LDFM

_PICTURES = (".png", ".svg", ".pdf")

app = typer.Typer()


@app.command(epilog="Example: ldfm forest asia.ldfm patients.csv --row 3 -o forest.png")
def forest(
    model: ModelFile,
    table: TableFile,
    row: Annotated[int, typer.Option(min=0, help="Which row of the table; the first is 0.")] = 0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Picture to draw: .png, .svg or .pdf.")] = None,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Arcs less probable than this are left out.")] = 0.05,
    most: Annotated[int, typer.Option(min=1, help="Longest list of arcs.")] = 20,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """List the strongest dependencies of one row, and draw them."""
    if output is not None:
        check_file(output, {"model": model, "table": table})
        if output.suffix.lower() not in _PICTURES:
            raise ValueError(f"{output}: pictures are written to {', '.join(_PICTURES)} files")
    opened = open_model(model, seed, jobs, quiet)
    values = _row_of(opened, table, row)
    one = {name: [value] for name, value in values.items()}
    marginals = opened.arc_marginals(one)[0]
    if not marginals.any():
        raise ValueError(f"row {row} has probability zero under this model, so it has no forest")
    if output is not None:
        _draw(opened, one, output, threshold)
    arcs = _arcs(list(values), marginals, threshold)[:most]
    if as_json:
        picture = {} if output is None else {"output": str(output)}
        print_json({"row": row, "values": values, "arcs": arcs, **picture})
        return
    _list(values, arcs)
    if output is not None:
        tell(f"wrote {output}", quiet)


def _row_of(model: "LDFM", table: Path, row: int) -> dict[str, Any]:
    """Give the values of one row of a table, None where they are unknown."""
    from ldfm.tables import encode, missing_cells, read_source

    codes = encode(read_source(table), model.schema_).codes
    if row >= len(codes):
        raise ValueError(f"{table} has no row {row}: it has {len(codes)} rows, the first is row 0")
    columns = model.schema_.columns
    return {
        column.name: None if missing else column.decode(codes[row, place : place + 1])[0]
        for place, (column, missing) in enumerate(zip(columns, missing_cells(codes[row]), strict=True))
    }


def _arcs(names: list[str], marginals: Any, threshold: float) -> list[dict[str, Any]]:
    """Give arcs, most probable first; the parent of a root is None."""
    places = np.argwhere(marginals >= threshold)
    order = np.argsort(-marginals[tuple(places.T)], kind="stable")
    return [
        {
            "parent": None if parent == 0 else names[parent - 1],
            "child": names[child],
            "probability": float(marginals[parent, child]),
        }
        for parent, child in places[order].tolist()
    ]


def _list(values: dict[str, Any], arcs: list[dict[str, Any]]) -> None:
    def label(name: str | None) -> str:
        if name is None:
            return "(root)"
        return f"{shown(name)} = {'?' if values[name] is None else shown(values[name])}"

    lines = [(f"{arc['probability']:.4f}", label(arc["parent"]), "->", label(arc["child"])) for arc in arcs]
    print_listing(("probability", "parent", "", "child"), lines)


def _draw(model: "LDFM", row: dict[str, list[Any]], output: Path, threshold: float) -> None:
    from ldfm.files import written_whole

    ax = model.plot_forest(row, threshold=threshold)
    with written_whole(output) as temporary:
        ax.figure.savefig(temporary, format=output.suffix.lower().lstrip("."), dpi=150)
