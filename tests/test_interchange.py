"""Graphs for networkx and draws for ArviZ."""

import numpy as np
import pytest

from ldfm import LDFM
from ldfm.interchange import to_arviz, to_networkx
from models import random_weights, values_of

SHAPE = (2, 3, 2, 2)


def model_of(seed, random_state=0):
    weights = random_weights(SHAPE, seed)
    model = LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values_of(SHAPE))
    return model.set_params(random_state=random_state)


def test_a_graph_has_the_arc_marginals_of_its_row():
    model, row = model_of(0), {"x0": ["v1"], "x1": ["v2"], "x2": [None], "x3": ["v0"]}
    marginals = model.arc_marginals(row)[0]
    graph = to_networkx(model, row)
    assert list(graph) == ["x0", "x1", "x2", "x3"]
    assert [graph.nodes[name]["value"] for name in graph] == ["v1", "v2", None, "v0"]
    for child in range(4):
        name = f"x{child}"
        assert graph.nodes[name]["root"] == marginals[0, child]
        into = sum(arc["probability"] for _, _, arc in graph.in_edges(name, data=True))
        assert into + graph.nodes[name]["root"] == pytest.approx(1.0)
        for parent in set(range(4)) - {child}:
            assert graph.edges[f"x{parent}", name]["probability"] == marginals[1 + parent, child]
    assert to_networkx(model, row, threshold=0.2).number_of_edges() == (marginals[1:] > 0.2).sum()


def test_the_best_forest_as_a_graph():
    import networkx

    model, row = model_of(1), {"x0": ["v1"], "x1": ["v2"], "x2": ["v1"], "x3": ["v0"]}
    graph = to_networkx(model, row, best=True)
    parents = model.best_forest(row)[0]
    assert set(graph.edges) == {(f"x{p}", f"x{c}") for c, p in enumerate(parents) if p >= 0}
    assert networkx.is_forest(graph)
    with pytest.raises(ValueError, match="one row is wanted, the table has 2"):
        to_networkx(model, {name: cells * 2 for name, cells in row.items()})


@pytest.mark.parametrize("method", ["gibbs", "tree", "blocked"])
def test_draws_follow_the_posterior(method):
    from arviz_stats.base import array_stats

    model, row = model_of(2), {"x0": ["v1"], "x1": [None], "x2": [None], "x3": [None]}
    data = to_arviz(model, row, draws=500, method=method)
    exact = model.marginals(row, method="exact").probabilities
    posterior = data["posterior"]
    assert set(posterior.data_vars) == {"x1", "x2", "x3"}
    for name in posterior.data_vars:
        assert posterior[name].dims == ("chain", "draw", f"{name}_value")
        for place, value in enumerate(posterior[f"{name}_value"].values):
            drawn = posterior[name].sel({f"{name}_value": value}).values
            effective = array_stats.ess(drawn, chain_axis=0, draw_axis=1, method="mean")
            # 5 standard errors: a false alarm in a million a number
            assert abs(drawn.mean() - exact[name][0, place]) < 5 * drawn.std() / np.sqrt(effective)


def test_draws_carry_what_they_came_from():
    model, row = model_of(3), {"x0": ["v1"], "x1": [None], "x2": ["v0"], "x3": [None]}
    data = to_arviz(model, row, chains=2, draws=10)
    assert data["observed_data"]["x0"].item() == "v1"
    assert data["posterior"].attrs["method"] == "gibbs"
    values = {name: data["posterior"][name].idxmax(f"{name}_value").values for name in ("x1", "x3")}
    table = {"x0": ["v1"] * 20, "x1": values["x1"].ravel(), "x2": ["v0"] * 20, "x3": values["x3"].ravel()}
    np.testing.assert_allclose(data["sample_stats"]["lp"].values.ravel(), model.log_forest_sum(table))
    again = to_arviz(model_of(3), row, chains=2, draws=10)
    assert (again["posterior"]["x1"].values == data["posterior"]["x1"].values).all()
    assert "observed_data" not in to_arviz(model, {name: [None] for name in row}, draws=8)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"draws": 0}, "must be 1 or more"), ({"method": "exact"}, "method must be 'gibbs', 'tree' or 'blocked'")],
)
def test_bad_settings_are_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        to_arviz(model_of(0), {name: [None] for name in ("x0", "x1", "x2", "x3")}, **settings)


def test_a_row_without_unknown_cells_is_refused():
    with pytest.raises(ValueError, match="no unknown cell"):
        to_arviz(model_of(0), {"x0": ["v1"], "x1": ["v2"], "x2": ["v1"], "x3": ["v0"]})


def test_draws_of_numbers_follow_the_posterior():
    from arviz_stats.base import array_stats

    rng = np.random.default_rng(0)
    size = rng.normal(50.0, 10.0, 200)
    table = {"size": size, "weight": 2 * size + rng.normal(0, 9, 200), "kind": np.where(size > 52, "large", "small")}
    model = LDFM(objective="generation", max_iter=10, random_state=0, n_jobs=1).fit(table)
    row = {"size": [55.0], "weight": [np.nan], "kind": [None]}
    data = to_arviz(model, row, draws=300, method="tree")
    answer = model.marginals(row)
    weight, kind = data["posterior"]["weight"].values, data["posterior"]["kind"].sel(kind_value="large").values
    for drawn, found, error in (
        (weight, answer.numbers["weight"].means[0], answer.numbers["weight"].mean_errors[0]),
        (kind, answer.probabilities["kind"][0, 0], answer.standard_errors["kind"][0, 0]),
    ):
        effective = array_stats.ess(drawn, chain_axis=0, draw_axis=1, method="mean")
        assert abs(drawn.mean() - found) < 5 * np.hypot(error, drawn.std() / np.sqrt(effective))
    assert weight.std() == pytest.approx(answer.numbers["weight"].deviations[0], rel=0.2)
    assert data["observed_data"]["size"].item() == pytest.approx(55.0)
    kinds = data["posterior"]["kind"].idxmax("kind_value").values.ravel()
    drawn = {"size": np.full(1200, 55.0), "weight": weight.ravel(), "kind": kinds}
    np.testing.assert_allclose(data["sample_stats"]["lp"].values.ravel(), model.log_forest_sum(drawn))
