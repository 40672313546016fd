"""Forests and draws in the forms of other libraries: networkx graphs and ArviZ data (``pip install 'ldfm[interchange]'``)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ldfm.draws import fold
from ldfm.forests import log_sums
from ldfm.inference.chains import Chains, Kernel, Starts, start_states
from ldfm.learning import draw_from
from ldfm.model import ForestModel
from ldfm.tables import MISSING, TableError, encode, missing_cells, read_source
from ldfm.types import Codes, Integers
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
        Nodes are variables, with `value` (None where it is missing) and `root`, the probability of being a root. Arcs lead from
        parent to child and have their `probability`.
    """
    import networkx

    codes = _codes_of(model, row)
    marginals = model.arc_marginals(row)[0]
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    for place, column in enumerate(model.schema_.columns):
        value = None if missing_cells(codes)[place] else column.decode(codes[place : place + 1])[0]
        graph.add_node(column.name, value=value, root=float(marginals[0, place]))
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
        Group `posterior` has for each unknown variable an array (chain, draw, its values): 1 for the value drawn and else 0, so
        that means are posterior probabilities, and ``data["posterior"]["lung"].idxmax("lung_value")`` are the values.
        Group `sample_stats` has `lp`, the log probability of the draw up to the partition; `observed_data` the known cells.
    """
    try:
        from arviz_base import from_dict
    except ImportError as error:
        raise ImportError("draws for ArviZ need arviz-base; try: pip install 'ldfm[interchange]'") from error

    if model.schema_.is_mixed:
        raise TableError("draws for ArviZ are made from discrete columns, and this model has continuous ones")
    known = _codes_of(model, row)
    columns = model.schema_.columns
    unknown = [place for place, code in enumerate(known) if code == MISSING]
    if not unknown:
        raise TableError("row 0 has no unknown cell to draw")
    states = _run_chains(model, known, (chains, draws, sweeps), method)
    flat = states.reshape(-1, states.shape[-1])
    indicators = {columns[i].name: np.eye(len(columns[i].values))[states[..., i]] for i in unknown}
    groups: dict[str, Any] = {
        "posterior": indicators,
        "sample_stats": {"lp": log_sums(model.weights_, flat, model.n_jobs).reshape(states.shape[:2])},
    }
    seen = {c.name: np.array(str(c.values[code])) for c, code in zip(columns, known, strict=True) if code != MISSING}
    if seen:
        groups["observed_data"] = seen
    dimensions = {columns[i].name: [f"{columns[i].name}_value"] for i in unknown}
    labels: dict[str, Any] = {f"{columns[i].name}_value": list(columns[i].values) for i in unknown}
    attributes = {"inference_library": "ldfm", "inference_library_version": __version__, "method": method}
    data: xarray.DataTree = from_dict(groups, coords=labels, dims=dimensions, attrs={"posterior": attributes})
    return data


def _run_chains(model: ForestModel, known: Codes, counts: tuple[int, int, int], method: Kernel) -> Integers:
    """Give (chains, draws, n): states of chains, some sweeps apart."""
    chains, draws, sweeps = counts
    if min(counts) < 1:
        raise ValueError(f"chains, draws and sweeps must be 1 or more, not {chains}, {draws} and {sweeps}")
    if method not in ("gibbs", "tree", "blocked"):
        raise ValueError(f"method must be 'gibbs', 'tree' or 'blocked', not {method!r}")
    weights, folded = model.weights_, fold(model.weights_)
    seed = model.random_state
    generator = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    kept = model.draws_ if hasattr(model, "draws_") else draw_from(weights, 0, model.n_jobs)
    codes, parents = start_states(folded, known, chains, generator, 0, Starts(kept, weights.cardinalities))
    running = Chains(folded, known, codes, parents, generator)
    running.move(method, _WARM_UP)
    states = np.empty((draws, *codes.shape), dtype=np.int64)
    for draw in range(draws):
        running.move(method, sweeps)
        states[draw] = running.codes
    return np.swapaxes(states, 0, 1)


def _codes_of(model: ForestModel, row: Any) -> Codes:
    """Give the codes of a table with one row."""
    codes = encode(read_source(row), model.schema_).codes
    if len(codes) != 1:
        raise TableError(f"one row is wanted, the table has {len(codes)}")
    first: Codes = codes[0]
    return first
