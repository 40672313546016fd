"""Joints and marginals from populations and chains, against enumeration."""

import numpy as np
import pytest

from fitted_models import fitted, questions
from ldfm import LDFM, Budget
from ldfm.inference import ImpossibleEvidenceError, find_marginals, find_queries
from ldfm.inference.clamping import GIBBS_VALUES, extra_of
from ldfm.kernels.clamping import GIBBS, NO_EXTRA, TREE
from ldfm.tables import unmerged
from ldfm.weights import arc_mask
from models import random_weights, values_of

METHODS = ["blocked", "tree", "gibbs"]
MODELS = [(name, objective) for name in ("asia", "sachs") for objective in ("generation", "likelihood")]


def answers(model: LDFM, rows, asked, method, budget=None, seed=0):
    seeds = np.random.SeedSequence(seed)
    return find_queries(
        model._answers.tables, rows, asked, method, budget or Budget(max_sweeps=8000), seeds, model._answers.starts
    )


@pytest.mark.parametrize(("name", "objective"), MODELS)
def test_errors_of_queries_are_honest(name, objective):
    deviations = {"joint": [], "marginal": []}
    errors = {"joint": [], "marginal": []}
    model = fitted(name, objective)
    for seed, method in enumerate(METHODS):
        rows, asked = questions(name, 14, seed)
        exact, found = answers(model, rows, asked, "exact"), answers(model, rows, asked, method)
        for what in deviations:
            error = getattr(found, what) - getattr(exact, what)
            assert np.isfinite(error).all()
            if method != "blocked":  # which alone gets stuck, and says so by its standard error
                errors[what].append(error)
            deviations[what].append(np.abs(error) / getattr(found, f"{what}_se"))
    for what, found in deviations.items():
        # 42 numbers: a share of 0.9 within 2 standard errors falls below 0.76 once in 200 times
        assert np.mean(np.concatenate(found) <= 2) >= 0.76, what
        all_errors = np.concatenate(errors[what])
        assert abs(all_errors.mean()) < 0.05 + 3 * all_errors.std(ddof=1) / np.sqrt(len(all_errors)), what
        assert np.median(np.abs(all_errors)) < 0.3, what


def test_two_standard_errors_hold_for_nine_in_ten_of_300_queries():
    deviations = {"joint": [], "marginal": []}
    for name, objective in MODELS:
        model = fitted(name, objective)
        rows, asked = questions(name, 75, 40)
        exact, found = answers(model, rows, asked, "exact"), answers(model, rows, asked, "gibbs", Budget())
        for what, seen in deviations.items():
            errors = np.abs(getattr(found, what) - getattr(exact, what))
            seen.append(errors / np.maximum(getattr(found, f"{what}_se"), 1e-12))
    for what, seen in deviations.items():
        assert 0.9 <= np.mean(np.concatenate(seen) <= 2) <= 0.99, what


@pytest.mark.parametrize("method", METHODS)
def test_more_budget_gives_smaller_errors(method):
    model = fitted("asia", "likelihood")
    rows, asked = questions("asia", 8, 9)
    short = answers(model, rows, asked, method, Budget(max_sweeps=1))
    long = answers(model, rows, asked, method, Budget(target_se=1e-3, max_sweeps=60_000))
    assert np.median(long.joint_se) < np.median(short.joint_se)
    assert (long.diagnostics.sweeps > short.diagnostics.sweeps).all()
    assert not long.diagnostics.met.all()


@pytest.mark.parametrize(("name", "objective"), MODELS)
def test_errors_of_marginals_are_honest(name, objective):
    model, rng = fitted(name, objective), np.random.default_rng(0)
    deviations = []
    for seed, method in enumerate(METHODS):
        codes = questions(name, 6, seed)[0].codes
        rows = unmerged(np.where(rng.random(codes.shape) < 0.6, -1, codes))
        budget, seeds = Budget(max_sweeps=6000), np.random.SeedSequence(seed)
        exact, _, _ = find_marginals(model._answers.tables, rows, "exact", budget, seeds, model._answers.starts)
        found, errors, _ = find_marginals(model._answers.tables, rows, method, budget, seeds, model._answers.starts)
        for truth, mean, error in zip(exact, found, errors, strict=True):
            moving = error > 1e-9
            deviations.append((np.abs(mean - truth)[moving] / error[moving]).ravel())
            np.testing.assert_allclose(mean.sum(axis=1), 1.0)
            np.testing.assert_allclose(mean[~moving], truth[~moving], atol=1e-6)
    assert np.mean(np.concatenate(deviations) <= 2) >= 0.85


def test_the_number_of_threads_changes_no_bit_of_an_answer():
    model = fitted("asia", "likelihood")
    rows, asked = questions("asia", 5, 3)
    tables, found = model._answers.tables, []
    for jobs in (1, 2):
        tables.n_jobs = jobs
        found.append(answers(model, rows, asked, "tree", Budget(max_sweeps=1)))
    tables.n_jobs = 1
    assert np.array_equal(found[0].joint, found[1].joint)
    assert np.array_equal(found[0].marginal_se, found[1].marginal_se)


# --- edges -----------------------------------------------------------------------------------------------------------


def small(cardinalities=(2, 3, 1, 2)) -> LDFM:
    weights = random_weights(cardinalities, 5, decades=1.0)
    model = LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values_of(cardinalities))
    return model.set_params(random_state=0, n_jobs=1)


ROW = {"x0": ["v1"], "x1": ["v2"], "x2": ["v0"], "x3": ["v0"]}


@pytest.mark.parametrize("method", [*METHODS, "auto", "exact"])
def test_queries_of_everything_and_of_nothing(method):
    model = small()
    everything = model.query_log_likelihood(ROW, list(ROW), [], method=method)
    assert everything.joint[0] == pytest.approx(model.score_samples(ROW)[0], abs=max(4 * everything.joint_se[0], 1e-9))
    nothing = model.query_log_likelihood(ROW, [], list(ROW), method=method)
    assert (nothing.joint[0], nothing.marginal[0], nothing.n_query[0]) == (pytest.approx(0.0, abs=1e-12), 0.0, 0)
    assert (nothing.joint_se[0], nothing.marginal_se[0]) == (pytest.approx(0.0, abs=1e-12), 0.0)
    assert nothing.diagnostics.met.all()
    neither = model.query_log_likelihood(ROW, [], [], method=method)
    assert (neither.joint[0], neither.marginal[0]) == (pytest.approx(0.0, abs=1e-12), 0.0)
    one_value = model.query_log_likelihood(ROW, ["x2"], ["x0"], method=method)
    assert one_value.joint[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("method", [*METHODS, "auto", "exact"])
def test_marginals_of_nothing_known_and_of_nothing_missing(method):
    model = small()
    nothing_known = model.marginals({name: [None] for name in ROW}, method=method)
    exact = model.marginals({name: [None] for name in ROW}, method="exact")
    for name, values in nothing_known.probabilities.items():
        np.testing.assert_allclose(values, exact.probabilities[name], atol=0.05)
    known = model.marginals(ROW, method=method)
    assert known.probabilities["x1"].tolist() == [[0.0, 0.0, 1.0]]
    assert known.diagnostics.met.all()
    assert model.most_probable(ROW, method=method)["x3"][0] == "v0"


@pytest.mark.parametrize("method", [*METHODS, "auto", "exact"])
def test_one_variable(method):
    model = LDFM.from_weights([1.0, 3.0], np.zeros((2, 2)), values={"a": ["x", "y"]}).set_params(random_state=0)
    assert model.query_log_likelihood({"a": ["x"]}, ["a"], [], method=method).joint[0] == pytest.approx(np.log(0.25))
    np.testing.assert_allclose(
        model.marginals({"a": [None]}, method=method).probabilities["a"], [[0.25, 0.75]], atol=1e-5
    )
    assert model.most_probable({"a": [None]}, method=method)["a"][0] == "y"
    assert model.score_samples({"a": ["y", None]}).tolist() == pytest.approx([np.log(0.75), 0.0], abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_evidence_and_queries_of_probability_zero(method):
    table = np.where(arc_mask((2, 2, 2)), 0.5, 0.0)
    table[:, 1] = 0.0  # x0 = v1 cannot be generated
    model = LDFM.from_weights(table[0], table[1:], values=values_of((2, 2, 2))).set_params(random_state=0)
    rows = {"x0": ["v0", "v1"], "x1": ["v0", "v0"], "x2": ["v0", "v1"]}
    with pytest.raises(ImpossibleEvidenceError, match="row 1: no completion of its known cells"):
        model.query_log_likelihood(rows, ["x1"], ["x0"], method=method)
    with pytest.raises(ImpossibleEvidenceError, match="row 1: no completion of its known cells"):
        model.most_probable({**rows, "x1": [None, None]}, method=method)
    impossible = model.query_log_likelihood(rows, ["x0"], ["x1"], method=method)
    assert impossible.joint[1] == impossible.marginal[1] == -np.inf
    assert not np.isnan(impossible.joint_se).any()
    assert impossible.joint[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_evidence_that_no_draw_has(method):
    """A value that only a rare one can lead to, for which forests must be grown."""
    table = np.where(arc_mask((2, 2, 2)), 0.5, 0.0)
    table[:, 1] *= 1e-12
    table[:, 3] = 0.0
    table[2, 3] = 1.0  # x1 = v1 only from x0 = v1
    model = LDFM.from_weights(table[0], table[1:], values=values_of((2, 2, 2))).set_params(random_state=0)
    row = {"x0": ["v1"], "x1": ["v1"], "x2": ["v1"]}
    exact = model.query_log_likelihood(row, ["x0", "x2"], ["x1"], method="exact")
    found = model.query_log_likelihood(row, ["x0", "x2"], ["x1"], method=method)
    assert found.joint[0] == pytest.approx(exact.joint[0], abs=max(4 * found.joint_se[0], 1e-9))


def test_auto_makes_the_sweeps_that_pay():
    assert [extra_of("auto", values) for values in (8, GIBBS_VALUES, GIBBS_VALUES + 1)] == [GIBBS, GIBBS, TREE]
    assert extra_of("gibbs", 1000) == GIBBS
    assert extra_of("tree", 8) == TREE
    assert extra_of("blocked", 8) == NO_EXTRA
