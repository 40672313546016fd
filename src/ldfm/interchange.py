"""Forests and draws in the forms of other libraries: networkx graphs and ArviZ data (``pip install 'ldfm[interchange]'``)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ldfm.draws import fold
from ldfm.forests import log_sums
from ldfm.inference import mixed
from ldfm.inference.chains import Chains, Kernel, Starts, start_states
from ldfm.kernels.elimination import schedule_of
from ldfm.kernels.mixed_sweeps import sweep_rows
from ldfm.learning import draw_from
from ldfm.model import ForestModel
from ldfm.tables import TableError, encode, missing_cells, read_source
from ldfm.types import Rows
from ldfm.version import __version__

if TYPE_CHECKING:
    import networkx
    import xarray

__all__ = ["to_arviz", "to_networkx"]

_WARM_UP = 200  # sweeps before draws are kept


def to_networkx(model: ForestModel, row: Any, *, threshold: float = 0.0, best: bool = False) -> "networkx.DiGraph[str]":
    """Give the dependencies of one row as a directed graph.

    Parameters
    ----------
    model
        A fitted model.
    row
        A table with one row; what depends on missing cells is averaged over them.
    threshold
        Arcs that are not more probable than this are left out.
    best
        Only the arcs of the most probable forest, for which the row must be complete.

    Returns
    -------
    graph
        Nodes are variables, with `value` (None where it is missing), `root`, the probability of being a root, and `related`,
        whether a variable is measured from others, so that its arcs are those of what that leaves. Arcs lead from parent to child
        and have their `probability`.
    """
    import networkx

    codes = _codes_of(model, row)
    marginals = model.arc_marginals(row)[0]
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    for place, column in enumerate(model.schema_.columns):
        value = None if missing_cells(codes)[place] else column.decode(codes[place : place + 1])[0]
        related = bool(model.weights_.related[place])
        graph.add_node(column.name, value=value, root=float(marginals[0, place]), related=related)
    arcs = np.argwhere(marginals[1:] > threshold)
    if best:
        parents = model.best_forest(row)[0]
        arcs = arcs[parents[arcs[:, 1]] == arcs[:, 0]]
    names = model.schema_.names
    for parent, child in arcs.tolist():
        graph.add_edge(names[parent], names[child], probability=float(marginals[1 + parent, child]))
    return graph


def to_arviz(
    model: ForestModel, row: Any, *, chains: int = 4, draws: int = 1000, sweeps: int = 1, method: Kernel = "gibbs"
) -> "xarray.DataTree":
    """Give posterior draws of the unknown cells of one row, for ArviZ.

    Parameters
    ----------
    model
        A fitted model; its `random_state` decides the draws.
    row
        A table with one row that has missing cells.
    chains, draws
        How many chains, and draws kept of each.
    sweeps
        Sweeps from one draw to the next.
    method
        "gibbs", "tree" or "blocked".

    Returns
    -------
    data
        Group `posterior` has for each unknown discrete variable an array (chain, draw, its values): 1 for the value drawn and else
        0, so that means are posterior probabilities, and ``data["posterior"]["lung"].idxmax("lung_value")`` are the values. Unknown
        numbers are arrays (chain, draw) in the table's units. Group `sample_stats` has `lp`, the log probability, or density, of
        the draw up to the partition; `observed_data` the known cells.
    """
    try:
        from arviz_base import from_dict
    except ImportError as error:
        raise ImportError("draws for ArviZ need arviz-base; try: pip install 'ldfm[interchange]'") from error

    known = _codes_of(model, row)
    columns = model.schema_.columns
    missing = missing_cells(known)
    if not missing.any():
        raise TableError("row 0 has no unknown cell to draw")
    states = _run_chains(model, known, (chains, draws, sweeps), method)
    flat = states.reshape(-1, len(columns))
    logs = log_sums(model.weights_, flat, model.n_jobs) - model.schema_.log_slopes(flat)
    groups: dict[str, dict[str, Any]] = {"posterior": {}, "sample_stats": {"lp": logs.reshape(states.shape[:2])}}
    dimensions: dict[str, list[str]] = {}
    labels: dict[str, Any] = {}
    for i, column in enumerate(columns):
        drawn = states[..., i]
        if not missing[i]:
            value = column.decode(known[i : i + 1])[0]
            groups.setdefault("observed_data", {})[column.name] = np.array(
                value if column.is_continuous else str(value)
            )
        elif column.is_continuous:
            groups["posterior"][column.name] = column.units.numbers(drawn)
        else:
            groups["posterior"][column.name] = np.eye(len(column.values))[drawn.astype(np.int64)]
            dimensions[column.name] = [f"{column.name}_value"]
            labels[f"{column.name}_value"] = list(column.values)
    attributes = {"inference_library": "ldfm", "inference_library_version": __version__, "method": method}
    data: xarray.DataTree = from_dict(groups, coords=labels, dims=dimensions, attrs={"posterior": attributes})
    return data


def _run_chains(model: ForestModel, known: Rows, counts: tuple[int, int, int], method: Kernel) -> Rows:
    """Give (chains, draws, n): states of chains, some sweeps apart."""
    chains, draws, sweeps = counts
    if min(counts) < 1:
        raise ValueError(f"chains, draws and sweeps must be 1 or more, not {chains}, {draws} and {sweeps}")
    if method not in ("gibbs", "tree", "blocked"):
        raise ValueError(f"method must be 'gibbs', 'tree' or 'blocked', not {method!r}")
    seed = model.random_state
    generator = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    start = _start_mixed if model.schema_.is_mixed else _start_discrete
    move = start(model, known, chains, method, generator)
    move(_WARM_UP)
    return np.stack([move(sweeps) for _ in range(draws)], axis=1)


Move = Callable[[int], Rows]  # makes so many sweeps of all chains; gives a copy of their states


def _draws_of(model: ForestModel) -> Rows:
    return model.draws_ if hasattr(model, "draws_") else draw_from(model.weights_, 0, model.n_jobs)


def _start_discrete(
    model: ForestModel, known: Rows, chains: int, method: Kernel, generator: np.random.Generator
) -> Move:
    weights, folded = model.weights_, fold(model.weights_)
    starts = Starts(_draws_of(model), weights.cardinalities)
    codes, parents = start_states(folded, known, chains, generator, 0, starts)
    running = Chains(folded, known, codes, parents, generator)

    def move(sweeps: int) -> Rows:
        running.move(method, sweeps)
        return running.codes.copy()

    return move


def _start_mixed(model: ForestModel, known: Rows, chains: int, method: Kernel, generator: np.random.Generator) -> Move:
    weights = model.weights_
    starts = mixed.MixedStarts(_draws_of(model), weights.continuous)
    cells, parents = mixed.start_states(weights, known, chains, generator, 0, starts)
    tiled, schedule = np.tile(known, (chains, 1)), schedule_of(len(known), 1)

    def move(sweeps: int) -> Rows:
        kernel = mixed.KERNEL_OF[method]
        sweep_rows(weights.model, tiled, cells, parents, kernel, sweeps, schedule, generator)
        return cells.copy()

    return move


def _codes_of(model: ForestModel, row: Any) -> Rows:
    """Give the codes of a table with one row."""
    codes = encode(read_source(row), model.schema_).codes
    if len(codes) != 1:
        raise TableError(f"one row is wanted, the table has {len(codes)}")
    first: Rows = codes[0]
    return first
