"""Networks of other libraries, told by what they offer: neither library is imported."""

from typing import Any

import numpy as np

from ldfm.networks.network import Network
from ldfm.types import Floats


def import_network(network: Any) -> Network:
    """Take over a discrete Bayesian network of pgmpy or pyAgrum, for its rows and probabilities.

    Parameters
    ----------
    network
        pgmpy ``DiscreteBayesianNetwork`` with all its tables, or pyAgrum ``BayesNet``.

    Returns
    -------
    network
        The same network; values are called as there, as text.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If a variable has no table, or its tables disagree.
    """
    if hasattr(network, "get_cpds") and hasattr(network, "nodes"):
        return _from_pgmpy(network)
    if hasattr(network, "cpt") and hasattr(network, "variable"):
        return _from_pyagrum(network)
    raise TypeError(f"expected a network of pgmpy or pyAgrum, not {type(network).__name__}")


def _from_pgmpy(network: Any) -> Network:
    nodes = list(network.nodes())
    tables = {node: network.get_cpds(node) for node in nodes}
    for node, found in tables.items():
        if found is None:
            raise ValueError(f"variable {str(node)!r} has no table")
    values = {node: [str(value) for value in tables[node].state_names[node]] for node in nodes}
    parents, cells = [], []
    for node in nodes:
        table = tables[node]
        named = list(table.variables)
        array = np.asarray(table.values, dtype=np.float64)
        for axis, variable in enumerate(named):
            array = _in_order(array, axis, [str(value) for value in table.state_names[variable]], values[variable])
        parents.append(tuple(nodes.index(variable) for variable in named if variable != node))
        cells.append(_normalised(np.moveaxis(array, named.index(node), -1)))
    names = tuple(str(node) for node in nodes)
    return Network("pgmpy", names, tuple(tuple(values[node]) for node in nodes), tuple(parents), tuple(cells))


def _in_order(array: Floats, axis: int, given: list[str], wanted: list[str]) -> Floats:
    """Bring the values of an axis, which each table may list in an order of its own, into that of the variable."""
    if sorted(given) != sorted(wanted):
        raise ValueError(f"tables disagree on the values of a variable: {', '.join(given)} and {', '.join(wanted)}")
    return np.take(array, [given.index(value) for value in wanted], axis=axis)


def _from_pyagrum(network: Any) -> Network:
    nodes = sorted(network.nodes())
    names = [str(network.variable(node).name()) for node in nodes]
    parents, tables = [], []
    for name, node in zip(names, nodes, strict=True):
        table = network.cpt(node)
        axes = list(reversed(table.names))  # its first name is the axis that changes fastest, NumPy's last
        parents.append(tuple(names.index(axis) for axis in axes if axis != name))
        array = np.asarray(table.toarray(), dtype=np.float64)
        tables.append(_normalised(np.moveaxis(array, axes.index(name), -1)))
    values = tuple(tuple(map(str, network.variable(node).labels())) for node in nodes)
    return Network("pyAgrum", tuple(names), values, tuple(parents), tuple(tables))


def _normalised(table: Floats) -> Floats:
    """Divide out rounding, as the reader of files does; what is no rounding the network itself refuses."""
    sums = table.sum(axis=-1, keepdims=True)
    return table / sums if (np.abs(sums - 1) < 1e-3).all() else table
