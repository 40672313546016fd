"""Networks of pgmpy and pyAgrum."""

import itertools
import warnings

import numpy as np
import pytest

from ldfm.networks import Network, import_network, load
from ldfm.peers.junction_tree import import_pyagrum

NETWORK = Network(
    "weather",
    ("rain", "wind", "grass"),
    (("yes", "no"), ("calm", "breeze", "storm"), ("dry", "damp", "wet")),
    ((), (), (0, 1)),
    (np.array([0.25, 0.75]), np.array([0.5, 0.3, 0.2]), np.random.default_rng(0).dirichlet(np.ones(3), (2, 3))),
)


def by_names(network):
    """Give the probability of every row, by the names of its variables and values, multiplied out here."""
    found = {}
    for codes in itertools.product(*(range(k) for k in network.cardinalities)):
        share = 1.0
        for child, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
            share *= table[(*(codes[p] for p in parents), codes[child])]
        row = frozenset((n, v[c]) for n, v, c in zip(network.variables, network.values, codes, strict=True))
        found[row] = share
    return found


def in_pgmpy(network, *, shuffled):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.models import DiscreteBayesianNetwork

    arcs = [(network.variables[p], network.variables[c]) for c, ps in enumerate(network.parents) for p in ps]
    built = DiscreteBayesianNetwork(arcs)
    for child, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        values = {network.variables[i]: list(network.values[i]) for i in (*parents, child)}
        for axis, parent in enumerate(parents if shuffled else ()):
            table = np.flip(table, axis=axis)
            values[network.variables[parent]].reverse()
        columns = np.moveaxis(table, -1, 0).reshape(network.cardinalities[child], -1)
        of_parents = {
            "evidence": [network.variables[p] for p in parents],
            "evidence_card": [network.cardinalities[p] for p in parents],
        }
        settings = of_parents if parents else {}
        built.add_cpds(
            TabularCPD(network.variables[child], len(columns), columns.tolist(), state_names=values, **settings)
        )
    return built


def in_pyagrum(network):
    gum = import_pyagrum()
    built = gum.BayesNet()
    for name, values in zip(network.variables, network.values, strict=True):
        built.add(gum.LabelizedVariable(name, "", list(values)))
    for child, parents in enumerate(network.parents):
        for parent in parents:
            built.addArc(network.variables[parent], network.variables[child])
    for child, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        for codes in itertools.product(*(range(k) for k in table.shape[:-1])):
            given = {network.variables[p]: c for p, c in zip(parents, codes, strict=True)}
            built.cpt(network.variables[child])[given] = table[codes].tolist()
    return built


@pytest.mark.parametrize("network", [NETWORK, load("asia")], ids=lambda network: network.name)
@pytest.mark.parametrize("library", ["pgmpy", "pgmpy, values in another order", "pyAgrum"])
def test_every_row_has_its_probability(network, library):
    built = in_pyagrum(network) if library == "pyAgrum" else in_pgmpy(network, shuffled="order" in library)
    found = import_network(built)
    expected, seen = by_names(network), by_names(found)
    assert seen.keys() == expected.keys()
    for row, share in expected.items():
        assert seen[row] == pytest.approx(share, abs=1e-12)
    assert set(found.sample(20, seed=0)) == set(network.variables)


def test_what_is_no_network_is_refused():
    with pytest.raises(TypeError, match="not dict"):
        import_network({})


def test_a_network_without_tables_is_refused():
    from pgmpy.models import DiscreteBayesianNetwork

    with pytest.raises(ValueError, match="variable 'a' has no table"):
        import_network(DiscreteBayesianNetwork([("a", "b")]))
