"""Annealing and chains against enumeration."""

from math import prod

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from fitted_models import fitted
from ldfm import LDFM
from ldfm.draws import anneal, fold, move
from ldfm.forests import log_sums
from ldfm.weights import ArcWeights, arc_mask
from models import random_weights, values_of
from statistics_checks import FALSE_ALARM, p_value

LIMIT = float(norm.isf(FALSE_ALARM / 2))


def all_rows(weights: ArcWeights) -> tuple[np.ndarray, np.ndarray]:
    """Give all rows and the log of the unnormalised probability of each."""
    states = np.arange(prod(weights.cardinalities))
    codes = np.stack(np.unravel_index(states, weights.cardinalities), axis=1)
    return codes, log_sums(weights, codes)


def model_weights(name: str) -> ArcWeights:
    if name == "binary":
        return random_weights((2,) * 16, 0, decades=2.0)
    return fitted(*name.split()).weights_


@pytest.mark.parametrize("name", ["asia likelihood", "asia generation", "sachs likelihood", "binary"])
def test_annealing_finds_the_partition_and_draws(name):
    weights = model_weights(name)
    codes, logs = all_rows(weights)
    found = anneal(weights, 2048, (1, 2), spread=0.1)
    assert len(found.log_partitions) == 32
    # Student's distribution with 31 degrees has longer tails than the normal one
    assert abs(found.value - logsumexp(logs)) < 1.4 * LIMIT * found.standard_error
    assert found.standard_error < 0.03
    shares = np.exp(logs - logsumexp(logs))
    for i, k in enumerate(weights.cardinalities):
        expected = np.bincount(codes[:, i], weights=shares, minlength=k)
        seen = np.bincount(found.codes[:, i], minlength=k) / len(found.codes)
        # chains of a block share ancestors, so they are worth fewer draws than there are: here a quarter at least
        np.testing.assert_allclose(seen, expected, atol=LIMIT * np.sqrt(0.25 / (len(found.codes) / 4)))


def test_annealing_with_weights_of_zero():
    weights = random_weights((2, 3, 2, 3, 2), 3, decades=1.0)
    table = np.where(np.random.default_rng(1).random(weights.table.shape) < 0.5, 0.0, weights.table)
    table[0, ::2] = 0.0
    sparse = ArcWeights(table, weights.cardinalities, weights.stop)
    _, logs = all_rows(sparse)
    assert np.isneginf(logs).any()
    assert np.isfinite(logs).any()
    found = anneal(sparse, 1024, (5,))
    assert abs(found.value - logsumexp(logs)) < 1.4 * LIMIT * found.standard_error
    assert np.isfinite(log_sums(sparse, found.codes)).all()


def test_no_row_at_all():
    table = np.where(arc_mask((2, 2)), 0.5, 0.0)
    table[:, 2:] = 0.0
    with pytest.raises(ValueError, match="no row has positive probability under this model"):
        anneal(ArcWeights(table, (2, 2)), 64, (0,))
    without_root = np.where(arc_mask((2, 2)), 0.5, 0.0)
    without_root[0] = 0.0
    with pytest.raises(ValueError, match="no row that annealing reached has positive probability"):
        anneal(ArcWeights(without_root, (2, 2)), 64, (0,))


def test_the_number_of_threads_changes_no_bit():
    weights = fitted("asia", "likelihood").weights_
    one, two = (anneal(weights, 256, (0,), jobs) for jobs in (1, 2))
    assert np.array_equal(one.log_partitions, two.log_partitions)
    assert np.array_equal(one.codes, two.codes)


def test_chains_stay_in_the_posterior_and_known_cells_stay():
    weights = random_weights((2, 3, 2), 1, decades=1.5)
    codes, logs = all_rows(weights)
    possible = codes[:, 1] == 2
    shares = np.where(possible, np.exp(logs - logs.max()), 0.0)
    shares /= shares.sum()
    generator = np.random.default_rng(0)
    states = codes[generator.choice(len(codes), size=6000, p=shares)].astype(np.int64)
    known = np.full(states.shape, -1)
    known[:, 1] = 2
    move(fold(weights), known, states, np.full(states.shape, -1), 3, (7,))
    drawn = [tuple(row) for row in states.tolist()]
    assert p_value(drawn, {tuple(row): p for row, p in zip(codes.tolist(), shares, strict=True)}) > FALSE_ALARM


def test_a_partition_beyond_enumeration_adds_up():
    """Of variables that are independent of each other the partition is a product."""
    cardinalities = (3,) * 14
    root = np.random.default_rng(0).uniform(0.2, 1.0, 42)
    model = LDFM.from_weights(root, np.zeros((42, 42)), values=values_of(cardinalities)).set_params(random_state=0)
    partition = model.log_partition()
    assert not partition.exact
    exact = np.log(root.reshape(14, 3).sum(axis=1)).sum()
    assert partition.value == pytest.approx(exact, abs=max(5 * partition.standard_error, 1e-9))
    rows = {f"x{i}": ["v0", None] for i in range(14)}
    scores = model.score_samples(rows)
    assert scores[0] == pytest.approx(np.log(root[::3]).sum() - exact, abs=0.02)
    assert scores[1] == pytest.approx(0.0, abs=0.05)
