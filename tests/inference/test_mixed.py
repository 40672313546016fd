"""Answers from mixed models against numerical integration."""

import numpy as np
import pytest
from scipy.special import logsumexp

from ldfm.independent_draws import PlainModel
from ldfm.inference import Budget, TooManyStatesError, engine_of
from ldfm.inference.mixed import MixedStarts
from ldfm.mixed_draws import draw_from
from mixed_models import merged, random_mixed, related
from oracles.mixed import Grid

SEED = np.random.SeedSequence(3)
LARGEST = 4.5
RUNS = 4  # a standard error of ten populations is itself uncertain; the mean of four is less so


@pytest.fixture(scope="module", params=["unrelated", "related"])
def small(request):
    weights = random_mixed((0, 0, 3), 4)
    if request.param == "related":
        weights = related(weights, 5)
    draws = draw_from(weights, 512, (0, 8), 1)
    return engine_of(weights, lambda: draws), Grid(weights, points=61)


def test_posteriors_agree_with_integration(small):
    engine, grid = small
    rows = np.array([[np.nan, 0.3, np.nan], [np.nan, np.nan, np.nan], [0.6, np.nan, 1.0]])
    for method in ("auto", "gibbs"):
        found = engine.marginals(merged(rows), method, Budget(target_se=0.01, max_sweeps=40_000), SEED, 0)
        for place, row in enumerate(rows):
            shares = grid.shares(row)
            if np.isnan(row[2]):
                exact = np.array([shares[grid.cells[:, 2] == v].sum() for v in range(3)])
                assert np.abs((found.means[2][place] - exact) / found.errors[2][place]).max() < LARGEST
            for i in (0, 1):
                if np.isnan(row[i]):
                    numbers = found.numbers[i]
                    mean = shares @ grid.cells[:, i]
                    deviation = np.sqrt(shares @ (grid.cells[:, i] - mean) ** 2)
                    assert abs(numbers.means[place] - mean) < LARGEST * numbers.mean_errors[place]
                    assert numbers.deviations[place] == pytest.approx(deviation, rel=0.08)
                    below = shares @ (grid.cells[:, i] < numbers.quantiles([0.9])[place, 0])
                    assert below == pytest.approx(0.9, abs=0.06)  # the grid's own steps are 0.3 wide
        assert found.diagnostics.met.all()


def test_densities_on_a_grid_integrate_to_one(small):
    engine, _ = small
    row = np.array([[np.nan, 0.3, 1.0]])
    numbers = engine.marginals(merged(row), "auto", Budget(), SEED, 0).numbers[0]
    points = np.linspace(-12, 12, 4801)
    density = numbers.density(0, points)
    assert density.sum() * (points[1] - points[0]) == pytest.approx(1.0, abs=1e-6)
    assert density @ points * (points[1] - points[0]) == pytest.approx(numbers.means[0], abs=0.1)
    _, shares = numbers.bins(0)
    assert shares.sum() == pytest.approx(0.99, abs=1e-6)
    known = engine.marginals(merged([[0.1, 0.3, 1.0]]), "auto", Budget(), SEED, 0)
    assert known.numbers[0].means[0] == 0.1
    assert known.numbers[0].deviations[0] == 0
    with pytest.raises(ValueError, match="row 0: the cell is known"):
        known.numbers[0].density(0, points)


@pytest.mark.parametrize("method", ["auto", "gibbs", "tree", "blocked"])
def test_joint_densities_agree_with_integration(small, method):
    engine, grid = small
    step = np.exp(grid.log_step / 2)
    # cells on the grid: its shares divided by its steps are densities
    rows = np.array([[0.0, 0.3, 2.0], [1.5, -0.9, 0.0], [0.0, 0.3, 2.0]])
    asked = np.array([[True, False, True], [True, True, False], [True, True, True]])
    runs = [engine.queries(merged(rows), asked, method, Budget(), np.random.SeedSequence(s), 0) for s in range(RUNS)]
    joint, marginal = (np.mean([getattr(run, name) for run in runs], axis=0) for name in ("joint", "marginal"))
    joint_se, marginal_se = (
        np.sqrt(np.mean([getattr(run, name) ** 2 for run in runs], axis=0) / RUNS)
        for name in ("joint_se", "marginal_se")
    )
    if method != "auto":  # other sweeps, other random numbers
        other = engine.queries(merged(rows), asked, "auto", Budget(), np.random.SeedSequence(0), 0)
        assert (runs[0].joint != other.joint).all()
    for place, row in enumerate(rows):
        evidence = grid.shares(np.where(asked[place], np.nan, row))
        same = np.abs(grid.cells - row) < 1e-9
        exact = np.log(evidence[same.all(axis=1)].sum()) - np.log(step) * asked[place, :2].sum()
        assert abs(joint[place] - exact) < LARGEST * max(joint_se[place], 0.005)
        singles = sum(
            np.log(evidence[same[:, i]].sum()) - (np.log(step) if i < 2 else 0.0) for i in np.flatnonzero(asked[place])
        )
        assert abs(marginal[place] - singles) < LARGEST * max(marginal_se[place], 0.005)


def test_densities_of_incomplete_rows_agree_with_integration(small):
    engine, grid = small
    rows = np.array([[0.0, np.nan, np.nan], [np.nan, 0.3, 1.0], [0.0, 0.3, np.nan], [0.0, 0.3, 1.0]])
    found = engine.log_evidence(merged(rows), SEED, 0)
    for row, value in zip(rows, found, strict=True):
        given = ~np.isnan(row)
        fits = (np.abs(grid.cells[:, given] - row[given]) < 1e-9).all(axis=1)
        missing_numbers = int((~given[:2]).sum())
        exact = logsumexp(grid.logs[fits]) + missing_numbers * grid.log_step / 2
        assert value == pytest.approx(exact, abs=0.15 if missing_numbers else 1e-9)


def test_unknown_values_alone_are_enumerated(small):
    engine, grid = small
    row = np.array([[0.0, 0.3, np.nan]])
    found = engine.marginals(merged(row), "auto", Budget(), SEED, 0)
    shares = grid.shares(row[0])
    exact = [shares[grid.cells[:, 2] == v].sum() for v in range(3)]
    np.testing.assert_allclose(found.means[2][0], exact, rtol=1e-9)
    assert found.diagnostics.exact.all()
    with pytest.raises(TooManyStatesError, match="row 0: a cell of a continuous column is unknown"):
        engine.marginals(merged([[np.nan, 0.3, 1.0]]), "exact", Budget(), SEED, 0)


def test_draws_agree_with_integration(small):
    engine, grid = small
    known = np.array([np.nan, 0.3, np.nan])
    drawn = engine.draw(np.tile(known, (2000, 1)), SEED)
    shares = grid.shares(known)
    assert (drawn[:, 1] == 0.3).all()
    for feature in (lambda c: c[:, 0], lambda c: c[:, 0] ** 2, lambda c: c[:, 2] == 0):
        error = feature(drawn).std() / np.sqrt(len(drawn))
        assert abs(feature(drawn).mean() - shares @ feature(grid.cells)) < LARGEST * error


@pytest.mark.parametrize("method", ["auto", "gibbs", "tree", "blocked"])
def test_climbing_comes_to_the_top(small, method):
    engine, grid = small
    row = np.array([np.nan, 0.3, np.nan])
    top = engine.most_probable(merged(row[None]), method, SEED)[0]
    fits = np.abs(grid.cells[:, 1] - 0.3) < 1e-9
    best = grid.cells[fits][np.argmax(grid.logs[fits])]
    assert top[2] == best[2]
    assert top[0] == pytest.approx(best[0], abs=0.2)  # the grid's steps are 0.3 wide


def test_the_most_probable_value_is_found_by_enumeration(small):
    engine, grid = small
    row = np.array([[0.0, 0.3, np.nan]])
    fits = (np.abs(grid.cells[:, :2] - row[0, :2]) < 1e-9).all(axis=1)
    best = grid.cells[fits][np.argmax(grid.logs[fits])]
    for method in ("auto", "exact"):
        np.testing.assert_allclose(engine.most_probable(merged(row), method, SEED)[0], best, atol=1e-9)
    with pytest.raises(TooManyStatesError, match="row 0: a cell of a continuous column is unknown"):
        engine.most_probable(merged([[np.nan, 0.3, 1.0]]), "exact", SEED)


def test_arc_marginals_of_incomplete_rows_are_averages(small):
    engine, _ = small
    found = engine.arc_marginals(merged([[0.0, 0.3, np.nan], [0.0, 0.3, 1.0]]), SEED)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_numbers_alone_have_an_exact_partition_and_independent_draws():
    weights = random_mixed((0, 0), 9)
    grid = Grid(weights, reach=12.0, points=241)
    assert PlainModel(weights).log_partition == pytest.approx(grid.log_partition, abs=1e-6)
    drawn = PlainModel(weights).draw(4000, np.random.default_rng(0))
    shares = grid.shares()
    for feature in (lambda c: c[:, 0], lambda c: c[:, 1], lambda c: c[:, 0] * c[:, 1], lambda c: c[:, 1] ** 2):
        error = feature(drawn).std() / np.sqrt(len(drawn))
        assert abs(feature(drawn).mean() - shares @ feature(grid.cells)) < LARGEST * error


def test_chains_start_near_what_is_known():
    draws = np.array([[0.0, 1.0], [5.0, 0.0], [0.2, 0.0]])
    chosen = MixedStarts(draws, (True, False)).choose(np.array([0.1, np.nan]), 2, np.random.default_rng(0))
    assert sorted(chosen[:, 1]) == [0.0, 1.0]
    assert (chosen[:, 0] == 0.1).all()
