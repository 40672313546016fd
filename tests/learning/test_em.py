import numpy as np
import pytest

from ldfm.forests import expected_counts
from ldfm.learning import Dirichlet, EMSettings, ModifiedDirichlet, fit_generation
from ldfm.networks import load
from ldfm.tables import merge_rows, unmerged
from ldfm.weights import ArcWeights
from oracles.em import fit as plain_fit

PRIORS = [None, Dirichlet(1.5), ModifiedDirichlet(0.3, 1e-4), ModifiedDirichlet(-3.0, 1e-5)]
ALL = EMSettings(max_iter=60, tol=0.0, n_jobs=1)


def network_rows(name: str, rows: int, seed: int = 0) -> tuple[np.ndarray, tuple[int, ...]]:
    network = load(name)
    return network.sample_codes(rows, seed), tuple(len(values) for values in network.values)


@pytest.mark.parametrize("variant", ["ldfm", "ldfm-s"])
@pytest.mark.parametrize("prior", PRIORS, ids=repr)
@pytest.mark.parametrize("name", ["asia", "sachs"])
def test_the_objective_never_falls(name, prior, variant):
    codes, cardinalities = network_rows(name, 400)
    weights, history = fit_generation(merge_rows(codes), ArcWeights.uniform(cardinalities, variant), prior, ALL)
    assert len(history) == 61
    assert (np.diff(history.objective) >= -1e-12 * np.abs(history.objective[1:])).all()
    assert weights.is_normalised
    assert history.objective[-1] > history.objective[0]


@pytest.mark.parametrize("variant", ["ldfm", "ldfm-s"])
@pytest.mark.parametrize(("name", "rows"), [("asia", 300), ("sachs", 120), ("child", 60)])
def test_equals_plain_numpy_after_50_iterations(name, rows, variant):
    codes, cardinalities = network_rows(name, rows)
    settings = EMSettings(max_iter=50, tol=0.0)
    weights, _ = fit_generation(merge_rows(codes), ArcWeights.uniform(cardinalities, variant), None, settings)
    table, stop = plain_fit(codes, cardinalities, variant == "ldfm-s", 50)
    np.testing.assert_allclose(weights.table, table, rtol=0, atol=1e-10)
    if stop is not None:
        np.testing.assert_allclose(weights.stop, stop, rtol=0, atol=1e-10)


def test_a_row_of_weight_two_is_the_row_twice():
    codes, cardinalities = network_rows("asia", 50)
    twice = np.concatenate([codes, codes[:20]])
    row_weights = np.ones(50)
    row_weights[:20] = 2.0
    start = ArcWeights.uniform(cardinalities, "ldfm-s")
    for prior in (None, Dirichlet(1.2), ModifiedDirichlet(-1.0, 1e-4)):
        by_weight, _ = fit_generation(merge_rows(codes, row_weights), start, prior, ALL)
        by_rows, _ = fit_generation(merge_rows(twice), start, prior, ALL)
        np.testing.assert_allclose(by_weight.table, by_rows.table, rtol=0, atol=1e-13)


def test_merging_rows_changes_nothing():
    codes, cardinalities = network_rows("asia", 300)
    start = ArcWeights.uniform(cardinalities, "ldfm")
    a, _ = fit_generation(merge_rows(codes), start, None, ALL)
    b, _ = fit_generation(unmerged(codes), start, None, ALL)
    np.testing.assert_allclose(a.table, b.table, rtol=0, atol=1e-12)


@pytest.mark.parametrize("jobs", [2, 3, 7])
def test_the_number_of_threads_changes_no_bit(jobs):
    codes, cardinalities = network_rows("child", 5000)
    weights = ArcWeights.uniform(cardinalities, "ldfm-s")
    row_weights = np.random.default_rng(0).random(5000)
    one = expected_counts(weights, codes, row_weights, 1)
    many = expected_counts(weights, codes, row_weights, jobs)
    assert one.log_sum == many.log_sum
    assert np.array_equal(one.arcs, many.arcs)


def test_stops_by_tolerance_and_says_so():
    codes, cardinalities = network_rows("asia", 200)
    start = ArcWeights.uniform(cardinalities, "ldfm")
    _, history = fit_generation(merge_rows(codes), start, None, EMSettings(max_iter=5000, tol=1e-2))
    assert history.converged
    assert "less than tol=0.01" in history.reason
    assert np.diff(history.objective)[-1] < 1e-2 <= np.diff(history.objective)[:-1].min()
    _, history = fit_generation(merge_rows(codes), start, None, EMSettings(max_iter=3, tol=0.0))
    assert not history.converged
    assert history.reason == "reached max_iter=3"
    assert len(history) == 4


def test_validation_rows_stop_overfitting_and_the_best_weights_are_kept():
    codes, cardinalities = network_rows("sachs", 60)
    held_out, _ = network_rows("sachs", 200, seed=1)
    seen = []
    weights, history = fit_generation(
        merge_rows(codes),
        ArcWeights.uniform(cardinalities, "ldfm"),
        None,
        EMSettings(max_iter=2000, tol=0.0, patience=5),
        merge_rows(held_out),
        lambda state: seen.append(state.weights),
    )
    assert history.converged
    assert "validation" in history.reason
    best = int(np.argmax(history.validation))
    assert best == len(history) - 6
    assert np.array_equal(weights.table, seen[best].table)


def test_rows_of_weight_zero_count_nothing():
    codes, cardinalities = network_rows("asia", 60)
    row_weights = np.ones(60)
    row_weights[30:] = 0.0
    start = ArcWeights.uniform(cardinalities, "ldfm-s")
    a, _ = fit_generation(merge_rows(codes, row_weights), start, None, ALL)
    b, _ = fit_generation(merge_rows(codes[:30]), start, None, ALL)
    np.testing.assert_allclose(a.table, b.table, rtol=0, atol=1e-12)


def test_a_value_never_seen_gets_the_mode_of_its_prior():
    codes = np.zeros((50, 2), dtype=np.int64)
    codes[::2, 1] = 1
    start = ArcWeights.uniform((2, 2), "ldfm-s")
    settings = EMSettings(max_iter=30, tol=0.0)
    weights, history = fit_generation(merge_rows(codes), start, ModifiedDirichlet(-5.0, 1e-4), settings)
    np.testing.assert_allclose(np.sort([*weights.table[2][2:], weights.stop[2]]), [1e-4, 1e-4, 1 - 2e-4])
    assert (np.diff(history.objective) >= -1e-12 * np.abs(history.objective[1:])).all()
    # without a prior nothing speaks for any distribution: it keeps the one it started with
    weights, _ = fit_generation(merge_rows(codes), start, None, settings)
    np.testing.assert_allclose(weights.table[2], start.table[2])
