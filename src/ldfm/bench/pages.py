"""Everything that is stored -> tables and plots in a folder, and the page of results in the docs."""

from collections.abc import Callable
from os.path import relpath
from pathlib import Path
from typing import Any

from ldfm.bench import density, imputation, missing, reading
from ldfm.bench.figures import plot_against_paper, plot_gaps, plot_samplers
from ldfm.bench.headline import headline
from ldfm.bench.results import read
from ldfm.bench.samplers import EXTRAS, KERNELS
from ldfm.bench.tables import (
    CAVEATS,
    Records,
    gap_table,
    markdown,
    origin_of,
    paper_csv,
    paper_page,
    read_records,
)
from ldfm.files import written_whole
from ldfm.inference.clamping import GIBBS_VALUES
from ldfm.inference.sampling import KERNEL_OF

BEGIN, END = "<!-- rendered by `ldfm bench tables`: do not edit -->", "<!-- end of what is rendered -->"


def render_all(results: Path, tables: Path, page: Path | None, readme: Path | None = None) -> list[Path]:
    """Render what is stored under `results`; give the files written, or raise where nothing is stored.

    `page` takes the main tables, `readme` the headline.
    """
    written: list[Path] = []
    parts = []
    tables.mkdir(parents=True, exist_ok=True)
    for folder, render in (
        ("paper", _paper),
        ("samplers", _samplers),
        ("density", _density),
        ("missing", _missing),
        ("imputation", _imputation),
    ):
        if any((results / folder).rglob("*.json")):
            parts += render(results / folder, tables, written, tables if page is None else page.parent)
    if not parts:
        raise ValueError(f"no results are stored in {results}; try: ldfm bench paper --networks asia --rows 500")
    if page is not None:
        _replace_part(page, "\n".join(parts))
        written.append(page)
    if readme is not None:
        _replace_part(readme, "\n".join([*headline(results), ""]))
        written.append(readme)
    return written


def _write(path: Path, text: str, written: list[Path]) -> None:
    with written_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    written.append(path)


def _draw(path: Path, draw: Callable[[Path], None], written: list[Path]) -> None:
    draw(path)
    written.append(path)


def _paper(folder: Path, tables: Path, written: list[Path], home: Path) -> list[str]:
    records: Records = read_records(folder)
    _write(tables / "paper.md", paper_page(records), written)
    _write(tables / "paper.csv", paper_csv(records), written)
    against = tables / "paper-printed.png"
    _draw(against, lambda path: plot_against_paper(records, path), written)
    said = reading.lines_of(records, reading.read_effort(folder.parent / "effort"))
    lines = ["## The paper's protocol", "", CAVEATS, "", *said]
    for rows in sorted({key.rows for key in records} - {0}, reverse=True):
        picture = tables / f"paper-gaps-{rows}.png"
        _draw(picture, lambda path, rows=rows: plot_gaps(records, rows, path), written)  # type: ignore[misc]
        lines += [
            f"{rows} training rows, mean over the splits that all models of a column have:",
            "",
            *gap_table(records, rows, None),
            "",
        ]
        lines += [f"![Gaps to the true network, {rows} rows]({relpath(picture, home)})", ""]
    lines += [f"![Ours against the printed numbers]({relpath(against, home)})", ""]
    more = f"[every cell]({relpath(tables / 'paper.md', home)}) and [as CSV]({relpath(tables / 'paper.csv', home)})"
    return [*lines, f"In full: {more}. {origin_of(records.values())}", ""]


def samplers_tables(results: list[dict[str, Any]]) -> list[str]:
    """Give the tables of marginals and joints."""
    seconds = [f"{number:g}" for number in results[0]["settings"]["seconds"]]
    longest = seconds[-1]
    header = [
        "network, weights",
        *(f"{kernel} = auto" if kernel == KERNEL_OF["auto"] else kernel for kernel in KERNELS),
    ]
    body, speeds = [], []
    for result in results:
        name = f"{result['network']}, {result['weights']}"
        found = [result["marginals"][kernel] for kernel in KERNELS]
        body.append([name, *(" / ".join(f"{f[s]['error']:.4f}" for s in seconds) for f in found)])
        speeds.append([name, *(_thousands(f[longest]["draws_a_second"]) for f in found)])
    joints = [
        [f"{r['network']}, {r['weights']}{'' if r['reference'][0]['exact'] else '*'}"]
        + [_joint_shown(r["joints"][extra]) for extra in EXTRAS]
        for r in results
    ]
    return [
        f"Error of marginals (total variation, mean over unknown cells) after {' / '.join(seconds)} s a query:",
        *("", *markdown(header, body), ""),
        f"Independent draws a second with the same standard error, thousands (median over values, {longest} s):",
        *("", *markdown(header, speeds), ""),
        "Joints by clamping, one round: mean error / root mean square error, nats / seconds a query (* the reference is a long",
        "run with an error of its own: compare only what differs by much). `auto` makes gibbs sweeps, tree sweeps where the",
        f"variables have more than {GIBBS_VALUES} values together:",
        *("", *markdown(["network, weights", *(f"{extra} sweeps" for extra in EXTRAS)], joints), ""),
    ]


def _joint_shown(joint: dict[str, Any]) -> str:
    error = joint["its_standard_error"]
    root = f"{joint['root_mean_square_error']:.3f}" + ("" if error is None else f" ±{error:.3f}")
    return f"{joint['mean_error']:+.3f} / {root} / {joint['seconds']:.2f} s"


def _thousands(number: float | None) -> str:
    return "-" if number is None else f"{number / 1000:.2f}"


def _samplers(folder: Path, tables: Path, written: list[Path], home: Path) -> list[str]:
    found = [read(path) for path in sorted(folder.glob("*.json"))]
    results = sorted(found, key=lambda result: (result["variables"], result["network"], result["weights"]))
    lines = [*samplers_tables(results), origin_of(results), ""]
    _write(tables / "samplers.md", "\n".join(["# Samplers", "", *lines]), written)
    picture = tables / "samplers.png"
    _draw(picture, lambda path: plot_samplers(results, path), written)
    return ["## Samplers", "", *lines, f"![Error of marginals by sampler]({relpath(picture, home)})", ""]


def _density(folder: Path, tables: Path, written: list[Path], home: Path) -> list[str]:
    del home
    found = [read(path) for path in sorted(folder.glob("*.json"))]
    results = sorted(
        found, key=lambda result: (result["variables"], result["data"], density.model_of(result) != "ldfm")
    )
    lines = [*density.lines_of(results), "", origin_of(results), ""]
    _write(tables / "density.md", "\n".join(["# Density estimation", "", *lines]), written)
    return ["## Density estimation", "", "Mean log-likelihood of test rows, nats:", "", *lines]


def _missing(folder: Path, tables: Path, written: list[Path], home: Path) -> list[str]:
    del home
    results = [read(path) for path in sorted(folder.glob("*.json"))]
    lines = [*missing.lines_of(results), origin_of(results), ""]
    _write(tables / "missing.md", "\n".join(["# Missing cells", "", *lines]), written)
    return ["## Missing cells", "", *lines]


def _imputation(folder: Path, tables: Path, written: list[Path], home: Path) -> list[str]:
    del home
    found = {path.stem: read(path) for path in sorted(folder.glob("*.json"))}
    results = [found[name] for name in imputation.TABLES if name in found]
    lines = [*imputation.lines_of(results), origin_of(results), ""]
    _write(tables / "imputation.md", "\n".join(["# Mixed tables", "", *lines]), written)
    return ["## Mixed tables", "", *lines]


def _replace_part(page: Path, text: str) -> None:
    """Put text between the markers of a page, which stay; a page without them is refused."""
    old = page.read_text(encoding="utf-8")
    if old.count(BEGIN) != 1 or old.count(END) != 1 or old.index(BEGIN) > old.index(END):
        raise ValueError(f"{page} must have the lines {BEGIN!r} and {END!r}, once each")
    head, tail = old.split(BEGIN)[0], old.split(END)[1]
    with written_whole(page) as temporary:
        temporary.write_text(f"{head}{BEGIN}\n\n{text}\n{END}{tail}", encoding="utf-8")
