"""Independent draws of mixed models, their weights, and what learning makes of them, against integration."""

from dataclasses import replace

import numpy as np
import pytest

from ldfm.forests import expected_statistics, log_sums
from ldfm.independent_draws import PlainModel, is_summable
from ldfm.learning import mixed_likelihood
from ldfm.learning.mixed_em import first_weights
from ldfm.learning.mixed_likelihood import MixedLikelihoodFit, MixedLikelihoodSettings
from ldfm.mixed_draws import draw_from, find_log_partition
from ldfm.mixed_weights import MixedWeights
from mixed_models import merged, random_mixed
from oracles.mixed import Grid

LARGEST = 4.5


@pytest.fixture(scope="module")
def model():
    return random_mixed((0, 3, 0), 4)


@pytest.fixture(scope="module")
def grid(model):
    return Grid(model, points=61)


def test_a_plain_model_is_summed_exactly(model):
    plain = PlainModel(model)
    own = Grid(plain.weights, points=61)
    assert plain.log_partition == pytest.approx(own.log_partition, abs=1e-6)
    counts = expected_statistics(plain.weights, own.cells, own.shares()).arcs
    np.testing.assert_allclose(plain.counts(), counts, atol=1e-6)


def test_weights_turn_plain_draws_into_those_of_the_model(model, grid):
    plain = PlainModel(model)
    drawn = plain.draw_weighted(40_000, np.random.default_rng(0))
    off = plain.log_partition + drawn.log_ratio - grid.log_partition
    assert abs(off) < LARGEST * drawn.standard_error
    assert 0.0 < drawn.standard_error < 0.02
    shares = grid.shares()
    for feature in (lambda c: c[:, 0], lambda c: c[:, 2] ** 2, lambda c: c[:, 0] * c[:, 2], lambda c: c[:, 1] == 1):
        values, mean = feature(drawn.cells), drawn.shares @ feature(drawn.cells)
        error = np.sqrt((drawn.shares**2) @ (values - mean) ** 2)
        assert abs(mean - shares @ feature(grid.cells)) < LARGEST * error
        # without weights they are draws of another model
    assert abs(plain.log_partition - grid.log_partition) > 10 * drawn.standard_error


def test_partition_and_draws_of_the_model(model, grid):
    value, error = find_log_partition(model, 512, (0, 1), 1)
    assert abs(value - grid.log_partition) < LARGEST * error
    cells = draw_from(model, 3000, (0, 2), 1)
    assert cells.shape == (3000, 3)
    shares = grid.shares()
    for feature in (lambda c: c[:, 0], lambda c: c[:, 2] ** 2, lambda c: c[:, 1] == 2):
        error = 2 * feature(cells).std() / np.sqrt(len(cells))  # weighted draws come more than once
        assert abs(feature(cells).mean() - shares @ feature(grid.cells)) < LARGEST * error


def test_many_values_are_not_enumerated():
    assert is_summable(random_mixed((0, 2, 3), 0))
    assert not is_summable(random_mixed((0, *(4,) * 7), 0))


def fit_of(model, cells, steps=0):
    rows = merged(cells)
    return MixedLikelihoodFit(rows, model, MixedLikelihoodSettings(steps, n_jobs=1), 0)


def test_the_models_part_of_the_gradient_is_that_of_the_partition(model, monkeypatch):
    monkeypatch.setattr(mixed_likelihood, "DRAWS", 60_000)
    fit = fit_of(model, PlainModel(model).draw(50, np.random.default_rng(0)))
    fit._expect()
    weights, (c, cx, cxx, cy, cxy, cyy) = fit.weights, fit._model
    a, b, v = weights.intercepts, weights.slopes, weights.deviations**2

    def slope(name, place, step=0.02):
        values = []
        for sign in (1, -1):
            array = getattr(weights, name).copy()
            array[place] += sign * step
            values.append(Grid(replace(weights, **{name: array}), points=41).log_partition)
        return (values[0] - values[1]) / (2 * step)

    root, number, logit = (0, 4), (1, 4), (1, 1)
    residuals = (cy - a * c - b * cx) / v
    squares = cyy - 2 * (a * cy + b * cxy) + a * a * c + 2 * a * b * cx + b * b * cxx
    spreads = (squares - v * c) / v**1.5
    for found, name, place in (
        (residuals, "intercepts", root),
        (residuals, "intercepts", number),
        (spreads, "deviations", root),
        (cy, "intercepts", logit),
        (cxy, "slopes", logit),
    ):
        assert found[place] == pytest.approx(slope(name, place), abs=0.0015)
    assert abs(residuals[root]) > 0.005
    assert abs(cxy[logit]) > 0.01


def test_the_recorded_objective_is_the_likelihood(model):
    cells = PlainModel(model).draw(200, np.random.default_rng(0))
    rows = merged(cells)
    first = first_weights(rows, MixedWeights.uniform(model.cardinalities, model.continuous, "ldfm-s"))
    weights, history, draws = fit_of(first, cells, steps=40).run()
    partition, error = find_log_partition(weights, 2048, (0, 3), 1)
    assert error < 0.01
    assert history.objective[-1] == pytest.approx(log_sums(weights, cells).mean() - partition, abs=0.08)
    assert history.objective[-1] > history.objective[0]
    assert draws.shape == (mixed_likelihood.CHAINS, 3)


def test_uneven_weights_lead_to_chains(model, monkeypatch):
    monkeypatch.setattr(mixed_likelihood, "FEWEST", 1.1)
    cells = PlainModel(model).draw(60, np.random.default_rng(0))
    fit = fit_of(model, cells, steps=3)
    weights, history, _ = fit.run()
    assert len(fit.state.chains) == mixed_likelihood.CHAINS
    assert np.isfinite(history.objective).all()
    assert weights.cardinalities == model.cardinalities


def test_no_step_makes_the_same_rows_less_probable(model):
    cells = PlainModel(model).draw(40, np.random.default_rng(0))
    rows = merged(cells)
    first = first_weights(rows, MixedWeights.uniform(model.cardinalities, model.continuous, "ldfm-s"))
    fit = fit_of(first, cells, steps=60)
    rises = []
    for _ in range(30):
        fit._expect()
        before = fit._penalised(fit.weights)
        fit._step()
        rises.append(fit._penalised(fit.weights) - before)  # the same draws: the step is counted up by the caller
        fit.state.step += 1
    assert min(rises) >= 0.0
    assert sum(rises) > 0.05


def test_a_step_too_far_is_shortened_and_one_downhill_is_not_made(model):
    cells = PlainModel(model).draw(40, np.random.default_rng(0))
    fit = fit_of(model, cells, steps=60)
    fit._expect()
    old, before = fit.state.parameters, fit._penalised(fit.weights)
    fit._step()
    uphill = fit.state.parameters - old
    fit.state.parameters, fit.state.pace = old, 1.0
    fit.weights = fit._weights_of(old)
    fit._go_towards(old + 40.0 * uphill)
    assert fit.state.pace < 1.0
    assert fit._penalised(fit.weights) >= before
    fit.state.parameters, fit.state.pace = old, 1.0
    fit.weights = fit._weights_of(old)
    fit._go_towards(old - uphill)
    assert np.array_equal(fit.state.parameters, old)
