"""``ldfm forest``: the dependencies of one row."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from ldfm.cli.arguments import Jobs, Json, ModelFile, Quiet, Seed, TableFile
from ldfm.cli.opening import check_file, open_model, open_table
from ldfm.cli.output import print_json, print_listing, shown, tell

if TYPE_CHECKING:  # --help is instant without the compiler
    from ldfm.model import ForestModel
    from ldfm.tables import Source
    from ldfm.types import Floats

_PICTURES = (".png", ".svg", ".pdf")

app = typer.Typer()


@app.command(epilog="Example: ldfm forest asia.ldfm patients.csv --row 3 --against 7 -o forest.png")
def forest(
    model: ModelFile,
    table: TableFile,
    row: Annotated[int, typer.Option(min=0, help="Which row of the table; the first is 0.")] = 0,
    against: Annotated[
        int | None, typer.Option(min=0, help="Another row: show what differs between the forests of the two.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Picture to draw: .png, .svg or .pdf.")] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Arcs less probable than this (0.05), or that differ by less (0.1), are left out."
        ),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Longest list of arcs.")] = 20,
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """List the strongest dependencies of one row, or how they change to another, and draw them."""
    if output is not None:
        check_file(output, {"model": model, "table": table})
        if output.suffix.lower() not in _PICTURES:
            raise ValueError(f"{output}: pictures are written to {', '.join(_PICTURES)} files")
    from ldfm.pictures import names_in_forests

    opened = open_model(model, seed, jobs, quiet)
    source = open_table(table)
    rows = [_row_of(opened, source, place) for place in ((row,) if against is None else (row, against))]
    least = threshold if threshold is not None else 0.05 if against is None else 0.1
    arcs = _arcs(list(rows[0].values), [one.marginals for one in rows], least)[:most]
    if output is not None:
        _draw(opened, rows, output, least)
    if as_json:
        other = {} if against is None else {"against": against, "other_values": rows[1].values}
        picture = {} if output is None else {"output": str(output)}
        print_json({"row": row, "values": rows[0].values, **other, "arcs": arcs, **picture})
        return
    _list(rows, arcs, dict(zip(opened.schema_.names, names_in_forests(opened), strict=True)))
    if output is not None:
        tell(f"wrote {output}", quiet)


class _Row(NamedTuple):
    """A row of a table: its values, None where they are unknown, and its arc marginals."""

    values: dict[str, Any]
    marginals: "Floats"

    @property
    def table(self) -> dict[str, list[Any]]:
        return {name: [value] for name, value in self.values.items()}


def _row_of(model: "ForestModel", table: "Source", row: int) -> _Row:
    from ldfm.tables import encode, missing_cells

    codes = encode(table, model.schema_).codes
    if row >= len(codes):
        raise ValueError(f"the table has no row {row}: it has {len(codes)} rows, the first is row 0")
    columns = model.schema_.columns
    values = {
        column.name: None if missing else column.decode(codes[row, place : place + 1])[0]
        for place, (column, missing) in enumerate(zip(columns, missing_cells(codes[row]), strict=True))
    }
    found = _Row(values, np.empty(0))
    marginals = model.arc_marginals(found.table)[0]
    if not marginals.any():
        raise ValueError(f"row {row} has probability zero under this model, so it has no forest")
    return found._replace(marginals=marginals)


def _arcs(names: list[str], marginals: "list[Floats]", threshold: float) -> list[dict[str, Any]]:
    """Give arcs, most probable first, or of two rows those that differ most; the parent of a root is None."""
    strengths = marginals[0] if len(marginals) == 1 else np.abs(marginals[1] - marginals[0])
    places = np.argwhere(strengths >= threshold)
    order = np.argsort(-strengths[tuple(places.T)], kind="stable")
    return [
        {
            "parent": None if parent == 0 else names[parent - 1],
            "child": names[child],
            **{
                what: float(of_row[parent, child])
                for what, of_row in zip(("probability", "other_probability"), marginals, strict=False)
            },
        }
        for parent, child in places[order].tolist()
    ]


def _list(rows: list[_Row], arcs: list[dict[str, Any]], names: dict[str, str]) -> None:
    def label(name: str | None) -> str:
        if name is None:
            return "(root)"
        texts = ["?" if one.values[name] is None else shown(one.values[name]) for one in rows]
        return f"{shown(names[name])} = {' | '.join(dict.fromkeys(texts))}"

    numbers = ("probability", "other_probability")[: len(rows)]
    lines = [(*(f"{arc[k]:.4f}" for k in numbers), label(arc["parent"]), "->", label(arc["child"])) for arc in arcs]
    print_listing((*(k.replace("_", " ") for k in numbers), "parent", "", "child"), lines)


def _draw(model: "ForestModel", rows: list[_Row], output: Path, threshold: float) -> None:
    from ldfm.files import written_whole

    if len(rows) == 1:
        ax = model.plot_forest(rows[0].table, threshold=threshold)
    else:
        ax = model.plot_contrast(rows[0].table, rows[1].table, threshold=threshold)
    with written_whole(output) as temporary:
        ax.figure.savefig(temporary, format=output.suffix.lower().lstrip("."), dpi=150)
