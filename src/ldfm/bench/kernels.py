"""Time log forest sums with arc marginals, side by side with the libraries people would use instead.

Every peer starts from the same arc weights (graphs, n + 1, n) and ends with log Z and all arc marginals, in float64 on one
thread. Peers take turns in every round; a time is the least over rounds, a ratio is the median over rounds of the ratio within
a round, so that what else the machine does hits all alike. Peers that are not installed are left out.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ldfm.bench.results import provenance, read, store
from ldfm.forests import expected_counts
from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.forest_sums import arc_marginals
from ldfm.networks import load
from ldfm.tables import learn_table, merge_rows, read_source
from ldfm.types import Floats
from ldfm.weights import ArcWeights

Run = Callable[[], tuple[Any, Any]]
PACKAGES = ("numpy", "numba", "scipy", "torch", "torch-struct", "supar")


def _ldfm(arcs: Floats) -> Run:
    work = make_workspace(arcs.shape[2])
    sums, marginals = np.empty(len(arcs)), np.empty(arcs.shape)

    def run() -> tuple[Any, Any]:
        arc_marginals(arcs, work, sums, marginals)
        return sums, marginals

    return run


def _numpy(arcs: Floats) -> Run:
    diagonal = np.arange(arcs.shape[2])

    def run() -> tuple[Any, Any]:
        laplacian = -arcs[:, 1:]
        laplacian[:, diagonal, diagonal] = arcs.sum(axis=1)
        sums = np.linalg.slogdet(laplacian)[1]
        inverse = np.linalg.inv(laplacian)
        own = inverse[:, diagonal, diagonal][:, None, :]
        marginals = np.concatenate([arcs[:, :1] * own, arcs[:, 1:] * (own - inverse.transpose(0, 2, 1))], axis=1)
        return sums, marginals

    return run


def _torch(arcs: Floats) -> Run:
    import torch

    torch.set_num_threads(1)
    weights = torch.from_numpy(arcs)
    unit = torch.eye(arcs.shape[2], dtype=torch.float64).expand(len(arcs), -1, -1)

    def run() -> tuple[Any, Any]:
        laplacian = torch.diag_embed(weights.sum(dim=1)) - weights[:, 1:]
        factors, pivots = torch.linalg.lu_factor(laplacian)
        sums = factors.diagonal(dim1=-2, dim2=-1).abs().log().sum(-1)
        inverse = torch.linalg.lu_solve(factors, pivots, unit)
        own = inverse.diagonal(dim1=-2, dim2=-1)[:, None, :]
        marginals = torch.cat([weights[:, :1] * own, weights[:, 1:] * (own - inverse.transpose(1, 2))], dim=1)
        return sums, marginals

    return run


def _torch_struct(arcs: Floats) -> Run:
    import torch
    from torch_struct import NonProjectiveDependencyCRF

    torch.set_num_threads(1)
    # its potentials have arcs [parent, child] with the arcs from the root on the diagonal
    potentials = torch.from_numpy(arcs[:, 1:]).clone()
    diagonal = torch.arange(arcs.shape[2])
    potentials[:, diagonal, diagonal] = torch.from_numpy(arcs[:, 0])
    potentials = potentials.log()

    def run() -> tuple[Any, Any]:
        forests = NonProjectiveDependencyCRF(potentials, multiroot=True)
        inside = forests.marginals
        rooted = inside[:, diagonal, diagonal][:, None, :]
        inside = inside.clone()
        inside[:, diagonal, diagonal] = 0.0
        return forests.partition.detach(), torch.cat([rooted, inside], dim=1).detach()

    return run


def _supar(arcs: Floats) -> Run:
    import torch
    from supar.structs import MatrixTree

    torch.set_num_threads(1)
    graphs, _, n = arcs.shape
    # its scores are [child, parent] with the root as node 0
    scores = torch.full((graphs, n + 1, n + 1), float("-inf"), dtype=torch.float64)
    scores[:, 1:, :] = torch.from_numpy(arcs).log().transpose(1, 2)
    lengths = torch.full((graphs,), n)

    def run() -> tuple[Any, Any]:
        forests = MatrixTree(scores, lens=lengths, multiroot=True)
        return forests.log_partition.detach(), forests.marginals[:, 1:, :].transpose(1, 2).detach()

    return run


_PEERS: dict[str, tuple[str, Callable[[Floats], Run]]] = {
    "ldfm": ("ldfm", _ldfm),
    "numpy slogdet + inv": ("numpy", _numpy),
    "torch lu_factor + lu_solve": ("torch", _torch),
    "torch-struct": ("torch_struct", _torch_struct),
    "supar": ("supar", _supar),
}


def _arc_weights(graphs: int, n: int, seed: int) -> Floats:
    """Give log-normal weights, which every peer can handle."""
    arcs = np.exp(np.random.default_rng(seed).normal(size=(graphs, n + 1, n)))
    arcs[:, 1 + np.arange(n), np.arange(n)] = 0.0
    return arcs


def _is_usable(module: str) -> bool:
    """Say whether a peer can be imported; an installation with parts missing counts as none."""
    try:
        import_module(module)
    except ImportError:
        return False
    return True


def _time_size(n: int, graphs: int, rounds: int) -> dict[str, Any]:
    """Time all peers at one size, in turns; check that they agree."""
    arcs = _arc_weights(graphs, n, seed=n)
    runs = {name: make(arcs) for name, (module, make) in _PEERS.items() if _is_usable(module)}
    exact_sums, exact_marginals = (np.array(part) for part in runs["numpy slogdet + inv"]())
    errors = {}
    for name, run in runs.items():
        sums, marginals = (np.asarray(part) for part in run())
        errors[name] = {
            "log_sum": float(np.abs(sums - exact_sums).max()),
            "marginals": float(np.abs(marginals - exact_marginals).max()),
        }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            began = perf_counter()
            run()
            seconds[name].append(perf_counter() - began)
    return {"n": n, "graphs": graphs, "seconds": seconds, "largest_difference_from_numpy": errors}


def _time_threads(rounds: int) -> dict[str, Any]:
    """Time expected counts of alarm's rows on one thread and on two, in turns."""
    table = learn_table(read_source(load("alarm").sample(20_000, seed=0)))
    rows = merge_rows(table.codes)
    weights = ArcWeights.uniform(table.schema.cardinalities, "ldfm-s")
    seconds: dict[str, list[float]] = {"1": [], "2": []}
    for round_ in range(rounds + 1):
        for jobs in (1, 2):
            began = perf_counter()
            expected_counts(weights, rows.codes, rows.weights, jobs)
            if round_:  # the first round compiles
                seconds[str(jobs)].append(perf_counter() - began)
    return {"network": "alarm", "distinct_rows": len(rows.codes), "seconds": seconds}


def run(sizes: list[int], graphs: int, rounds: int) -> dict[str, Any]:
    """Run the benchmark; give a result to be stored."""
    with threadpool_limits(1):
        sizes_timed = [_time_size(n, graphs, rounds) for n in sizes]
        threads = _time_threads(max(3, rounds // 3))
    command = f"ldfm bench kernels --sizes {','.join(map(str, sizes))} --graphs {graphs} --rounds {rounds}"
    return {"provenance": provenance(command, PACKAGES), "sizes": sizes_timed, "threads": threads}


def _ratio(seconds: dict[str, list[float]], name: str, base: str) -> float:
    return float(np.median(np.array(seconds[name]) / np.array(seconds[base])))


def table_of(result: dict[str, Any]) -> str:
    """Render a stored result as Markdown."""
    names = [name for name in _PEERS if name in result["sizes"][0]["seconds"]]
    lines = [
        "Log forest sum and all arc marginals of one graph: milliseconds (least of all rounds), and how many times ldfm's time",
        "(median over rounds of the ratio within a round). One thread, float64.",
        "",
        "| | "
        + " | ".join(f"n = {size['n']}" for size in result["sizes"])
        + " | largest difference of log Z from numpy |",
        "|---|" + "---|" * (len(result["sizes"]) + 1),
    ]
    for name in names:
        cells = []
        for size in result["sizes"]:
            milliseconds = min(size["seconds"][name]) / size["graphs"] * 1e3
            ratio = "" if name == "ldfm" else f" ({_ratio(size['seconds'], name, 'ldfm'):.1f}x)"
            cells.append(f"{milliseconds:.4f}{ratio}")
        worst = max(size["largest_difference_from_numpy"][name]["log_sum"] for size in result["sizes"])
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {worst:.0e} |")
    threads, origin = result["threads"], result["provenance"]
    lines += [
        "",
        f"Expected counts of {threads['distinct_rows']} distinct rows of {threads['network']} on two threads: "
        f"{_ratio(threads['seconds'], '1', '2'):.2f} times as fast as on one.",
        "",
        f"`{origin['command']}`, ldfm {origin['ldfm']} ({origin['commit']}), Python {origin['python']}, "
        + ", ".join(f"{name} {number}" for name, number in origin["packages"].items())
        + f"; {origin['machine']['processor']}, {origin['machine']['cores']} cores; {origin['time']}.",
    ]
    return "\n".join(lines) + "\n"


def plot_of(result: dict[str, Any], path: Path) -> None:
    """Draw milliseconds a graph against the number of variables."""
    from ldfm.plots import new_axes

    ax: Any = new_axes((6.5, 4.0))
    sizes = [size["n"] for size in result["sizes"]]
    for name in (name for name in _PEERS if name in result["sizes"][0]["seconds"]):
        times = [min(size["seconds"][name]) / size["graphs"] * 1e3 for size in result["sizes"]]
        ax.plot(sizes, times, marker="o", linewidth=2.5 if name == "ldfm" else 1.2, label=name)
    ax.set(
        xlabel="variables",
        ylabel="milliseconds a graph",
        yscale="log",
        title="Log forest sum and arc marginals, one thread",
    )
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    ax.figure.savefig(path, dpi=150)


def render(result: dict[str, Any], folder: Path) -> str:
    """Store a result in `folder`, render its table and plot from what is stored, and give the table."""
    store(folder / "kernels.json", result)
    stored = read(folder / "kernels.json")
    text = table_of(stored)
    (folder / "kernels.md").write_text(text, encoding="utf-8")
    plot_of(stored, folder / "kernels.png")
    return text
