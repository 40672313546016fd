"""Gradients of the normalised likelihood against enumeration, and what a fit does with them."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from ldfm import LDFM
from ldfm.forests import expected_counts, log_sums
from ldfm.learning import LikelihoodFit, LikelihoodSettings, likelihood
from ldfm.learning.pairwise import pair_means
from ldfm.networks import load
from ldfm.tables import merge_rows
from ldfm.weights import ArcWeights
from models import random_weights

SETTINGS = LikelihoodSettings(max_iter=40, n_jobs=1)


def fit_of(name: str, rows: int = 400, settings: LikelihoodSettings = SETTINGS) -> LikelihoodFit:
    network = load(name)
    start = random_weights(tuple(len(values) for values in network.values), 0, decades=0.7)
    return LikelihoodFit(merge_rows(network.sample_codes(rows, 0)), start, settings, 0)


def everything(weights: ArcWeights) -> tuple[np.ndarray, np.ndarray]:
    codes = np.stack(np.unravel_index(np.arange(prod(weights.cardinalities)), weights.cardinalities), axis=1)
    logs = log_sums(weights, codes)
    return codes, np.exp(logs - logsumexp(logs))


def mean_log_likelihood(fit: LikelihoodFit, log_table: np.ndarray) -> float:
    weights = ArcWeights(fit._table(log_table), fit.cardinalities)
    codes, _ = everything(weights)
    rows = fit.rows
    return float(
        rows.weights @ log_sums(weights, rows.codes) / rows.weights.sum() - logsumexp(log_sums(weights, codes))
    )


def test_the_exact_gradient_equals_finite_differences():
    fit = fit_of("asia")
    assert fit.all_codes is not None
    weights = ArcWeights(fit._table(fit.state.log_table), fit.cardinalities)
    gradient = fit._data_counts(weights) - fit._model_counts(weights)
    rng = np.random.default_rng(0)
    for _ in range(5):
        direction = np.where(fit.mask, rng.normal(size=fit.mask.shape), 0.0)
        ends = [mean_log_likelihood(fit, fit.state.log_table + step * direction) for step in (-1e-5, 1e-5)]
        assert (ends[1] - ends[0]) / 2e-5 == pytest.approx(float((gradient * direction).sum()), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("name", ["asia", "sachs"])
def test_the_stochastic_gradient_is_the_exact_one_within_its_error(name, monkeypatch):
    monkeypatch.setattr(likelihood, "MAX_ENUMERATED", 1)
    fit = fit_of(name, rows=2000, settings=replace(SETTINGS, batch=256))
    fit._find_chains()
    weights = ArcWeights(fit._table(fit.state.log_table), fit.cardinalities)
    codes, shares = everything(weights)
    total = fit.rows.weights.sum()
    exact_data = expected_counts(weights, fit.rows.codes, fit.rows.weights / total).arcs
    exact_model = expected_counts(weights, codes, shares).arcs
    for _ in range(30):
        fit._move(weights)
    data, model = [], []
    for step in range(24):
        fit.state.step = step
        data.append(fit._data_counts(weights))
        for _ in range(3):
            found = fit._model_counts(weights)
        model.append(found)
    for draws, exact in ((data, exact_data), (model, exact_model)):
        # along fixed directions, so that few numbers are tested and none is rare
        rng = np.random.default_rng(1)
        for _ in range(4):
            direction = np.where(fit.mask, rng.normal(size=fit.mask.shape), 0.0)
            along = np.array([(draw * direction).sum() for draw in draws])
            error = along.std(ddof=1) / np.sqrt(len(along))
            # neighbouring states of chains are alike, and 24 draws have the tails of Student's distribution
            assert abs(along.mean() - (exact * direction).sum()) < 1.8 * norm.isf(5e-5) * error + 1e-12


def test_training_rows_become_more_probable():
    rows = load("asia").sample(800, seed=0)
    before = LDFM(objective="generation", max_iter=20, n_jobs=1).fit(rows).score(rows)
    model = LDFM(random_state=0, n_jobs=1).fit(rows)
    assert model.score(rows) > before
    assert model.history_.objective[-1] > model.history_.objective[0]
    assert model.weights_.is_normalised
    assert model.weights_.variant == "ldfm-s"


def test_how_strong_dependencies_are_is_hardly_pulled_at():
    fit = fit_of("asia")
    rng = np.random.default_rng(0)
    strengths = np.where(fit.mask, pair_means(rng.normal(size=fit.mask.shape) * fit.mask, fit.cardinalities), 0.0)
    shapes = np.where(fit.mask, rng.normal(size=fit.mask.shape), 0.0)
    shapes -= np.where(fit.mask, pair_means(shapes, fit.cardinalities), 0.0)
    for away, part in ((strengths, likelihood.FREE), (shapes, 1.0)):
        assert np.allclose(fit._pull_of(fit.start + away, 3.0), 3.0 * part * away)


STOPPED_BY_FINER = "finer steps made held-out rows not clearly more probable"
WAYS = {  # means of the scores of stages, as long as the fit goes on; pulls of all stages; why it stopped
    "never less": ([0, 1, 2, 3, 4, 5, 5.1], [2.0, 0.6, 0.2, 0.06, 0.02, 0.005, 0.005], STOPPED_BY_FINER),
    "less at once": ([0, -1, 0.1], [2.0, 0.6, 2.0], STOPPED_BY_FINER),
    "a little less, then clearly": ([0, 1, 0.95, 0, 1.1], [2.0, 0.6, 0.2, 0.06, 0.6], STOPPED_BY_FINER),
    "less by noise": ([0, 1, 0, 3, 3.1, 2], [2.0, 0.6, 0.2, 0.6, 0.2, 0.06], "a pull of 0.06 rows made held-out rows"),
    "to the end": ([0, 1, 2, 3, 4, 5, 6, 7], [2.0, 0.6, 0.2, 0.06, 0.02, 0.005, 0.005, 0.005], "reached max_iter"),
}


@pytest.mark.parametrize("way", WAYS)
def test_finer_steps_are_tried_from_the_best_weights(way, monkeypatch):
    means, wanted, reason = WAYS[way]
    noise = np.array([-0.2, 0.2, -0.2, 0.2])  # 0.1 of the mean difference of two stages: gains from 0.2 on are clear
    scores, pulls, rates = (mean + place * noise for place, mean in enumerate(means)), [], []
    monkeypatch.setattr(LikelihoodFit, "_held_out_scores", lambda *_: next(scores))

    def step(fit: LikelihoodFit) -> None:
        stage = fit._stage(fit.state.step)
        pulls.append(stage.pull)
        rates.append(stage.rate)
        fit.state.log_table = fit.state.log_table + 1.0 * fit.mask

    monkeypatch.setattr(LikelihoodFit, "_step", step)
    network = load("asia")
    rows, held_out = (merge_rows(network.sample_codes(100, seed)) for seed in (0, 1))
    start = random_weights(tuple(len(values) for values in network.values), 0, decades=0.7)
    fit = LikelihoodFit(rows, start, LikelihoodSettings(max_iter=8, n_jobs=1), 0, held_out)
    history = fit.run()[1]
    assert pulls == wanted
    assert reason in history.reason
    fine = next((place for place, rate in enumerate(rates) if rate < 0.1), None)
    assert rates[fine:] == [0.03, *[0.015] * (len(rates) - fine - 1)]
    if way == "less at once":  # a step from the start, a worse one, and one from where the first led
        assert np.allclose((fit.state.log_table - fit.start)[fit.mask], 2.0)


def test_without_held_out_rows_all_steps_are_made_and_none_is_finer():
    fit = fit_of("asia", 40, LikelihoodSettings(max_iter=12, n_jobs=1))
    _, history, _ = fit.run()
    assert fit.state.step == 12
    assert [fit._stage(step).pull for step in range(0, 12, 2)] == [stage.pull for stage in likelihood.STAGES]
    assert history.reason == "reached max_iter=12"


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 10, 13])
def test_any_number_of_steps_gives_weights(steps):
    model = LDFM(max_iter=steps, random_state=0, n_jobs=1).fit(load("asia").sample(150, seed=0))
    assert np.isfinite(model.weights_.table).all()


def test_warm_starts_and_more_rows():
    network = load("asia")
    first, second = network.sample(300, seed=0), network.sample(300, seed=1)
    settings = {"objective": "generation", "random_state": 0, "n_jobs": 1, "tol": 0.0}
    once = LDFM(max_iter=8, **settings).fit(first)
    twice = LDFM(max_iter=4, warm_start=True, **settings).fit(first).fit(first)
    np.testing.assert_allclose(twice.weights_.table, once.weights_.table, rtol=1e-12)
    more = LDFM(max_iter=4, **settings).partial_fit(first)
    before = more.score(second)
    assert more.partial_fit(second).score(second) > before
    with pytest.raises(ValueError, match="column 'asia' row 0: value 'maybe'"):
        more.partial_fit({**second, "asia": ["maybe"] * 300})
