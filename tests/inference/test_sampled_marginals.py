import numpy as np
import pytest

from ldfm import LDFM, Budget
from ldfm.inference import ImpossibleEvidenceError
from ldfm.networks import load as load_network
from ldfm.weights import arc_mask
from models import random_weights, values_of


@pytest.fixture(scope="module")
def many() -> LDFM:
    """A model whose joint is too large to enumerate."""
    weights = random_weights((3,) * 14, 0, decades=1.0)
    model = LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values_of((3,) * 14))
    return model.set_params(random_state=0)


def rows_with_missing(model: LDFM, rows: int, share: float, seed: int) -> dict[str, list]:
    rng = np.random.default_rng(seed)
    return {
        column.name: [
            None if rng.random() < share else column.values[rng.integers(len(column.values))] for _ in range(rows)
        ]
        for column in model.schema_.columns
    }


@pytest.mark.parametrize("method", ["gibbs", "tree", "blocked"])
def test_estimates_agree_with_exact_answers_within_their_errors(many, method):
    rows = rows_with_missing(many, 12, 0.5, 1)
    exact = many.marginals(rows, method="exact")
    sampled = many.marginals(rows, method=method)
    assert sampled.diagnostics.met.all()
    assert (sampled.diagnostics.sweeps > 0).all()
    assert sampled.diagnostics.method == method
    deviations = []
    for name, values in sampled.probabilities.items():
        np.testing.assert_allclose(values.sum(axis=1), 1.0)
        errors = sampled.standard_errors[name]
        assert errors.max() <= 0.01
        moving = errors > 1e-6
        deviations.append(np.abs(values - exact.probabilities[name])[moving] / errors[moving])
    deviations = np.concatenate(deviations)
    assert np.mean(deviations <= 2) > 0.88
    assert deviations.max() < 6


def test_auto_samples_only_rows_with_too_many_states(many):
    rows = rows_with_missing(many, 6, 0.3, 2)
    for name in rows:
        rows[name][3] = None
    answer = many.marginals(rows, budget=Budget(max_sweeps=4000))
    assert answer.diagnostics.exact.tolist() == [True, True, True, False, True, True]
    assert np.isinf(answer.diagnostics.effective_draws[0])
    assert np.isfinite(answer.diagnostics.effective_draws[3])


def test_same_seed_same_answer_any_number_of_threads(many):
    rows = rows_with_missing(many, 5, 0.6, 3)
    budget = Budget(max_sweeps=1000)
    answers = [many.set_params(n_jobs=jobs).marginals(rows, "tree", budget).probabilities for jobs in (1, 2, 4)]
    many.set_params(n_jobs=None)
    for other in answers[1:]:
        assert all(np.array_equal(answers[0][name], other[name]) for name in rows)


def test_a_budget_is_kept_and_said(many):
    rows = rows_with_missing(many, 2, 0.7, 4)
    short = many.marginals(rows, "gibbs", Budget(target_se=1e-5, max_sweeps=500))
    assert not short.diagnostics.met.any()
    assert (short.diagnostics.sweeps < 2000).all()
    with pytest.raises(ValueError, match="max_sweeps must be at least 1, not 0"):
        Budget(max_sweeps=0)
    with pytest.raises(ValueError, match="seconds must be positive, not -1"):
        many.marginals(rows, "gibbs", budget=-1)
    with pytest.raises(
        ValueError, match="method must be one of 'auto', 'exact', 'gibbs', 'tree', 'blocked', not 'magic'"
    ):
        many.marginals(rows, "magic")


def test_impossible_evidence_is_named():
    table = np.where(arc_mask((2, 2)), 0.5, 0.0)
    table[:, 1] = 0.0
    model = LDFM.from_weights(table[0], table[1:], values=values_of((2, 2)))
    with pytest.raises(
        ImpossibleEvidenceError, match="row 1: no completion of its known cells with positive probability"
    ):
        model.marginals({"x0": ["v0", "v1"], "x1": [None, None]}, method="tree")


def test_a_network_too_large_to_enumerate():
    network = load_network("child")
    model = LDFM(objective="generation", max_iter=15, random_state=0).fit(network.sample(500, seed=0))
    question = {name: [None] for name in network.variables}
    question["Disease"] = ["TGA"]
    answer = model.marginals(question, budget=Budget(target_se=0.05, max_sweeps=8000))
    assert not answer.diagnostics.exact[0]
    np.testing.assert_allclose(answer.probabilities["Age"].sum(), 1.0)
