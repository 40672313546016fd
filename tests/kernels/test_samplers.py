"""Every sampler against enumeration, in units of its standard error; the sampler printed in the paper must fail."""

import numpy as np
import pytest
from scipy.stats import norm

from chain_starts import started
from ldfm.inference.diagnostics import standard_error
from models import random_weights
from oracles.joint import joint_table
from printed_sampler import printed_tree_sweep

FALSE_ALARM = 1e-4  # chance that a right sampler fails one model's check, over all its numbers together
MODELS = 20
CHAINS, SWEEPS, RECORDS = 8, 2000, 50


def case(seed: int):
    """Give a random model, known cells, and the exact posterior of every cell."""
    rng = np.random.default_rng(seed)
    cardinalities = tuple(int(k) for k in rng.integers(2, 5, rng.integers(3, 5)))
    weights = random_weights(cardinalities, seed, stops=seed % 2 == 0, decades=1.0 + seed % 3)
    known = np.full(len(cardinalities), -1)
    if seed % 4 < 2:
        known[seed % len(cardinalities)] = int(rng.integers(cardinalities[seed % len(cardinalities)]))
    joint = joint_table(weights.table, weights.stop, cardinalities)
    possible = joint[tuple(slice(None) if c < 0 else slice(c, c + 1) for c in known)]
    posteriors = []
    for j in range(len(cardinalities)):
        others = tuple(a for a in range(len(cardinalities)) if a != j)
        posteriors.append(possible.sum(axis=others) / possible.sum())
    return weights, known, posteriors


def largest_deviation(records: np.ndarray, known: np.ndarray, posteriors: list) -> tuple[float, float]:
    """Give the largest |error| / standard error over the free cells, and the limit it passes by chance once in 1 / FALSE_ALARM."""
    means, errors = records.mean(axis=(0, 1)), standard_error(records)
    deviations = [
        abs(means[j, v] - p) / max(errors[j, v], 1e-6)
        for j in np.flatnonzero(known < 0)
        for v, p in enumerate(posteriors[j])
    ]
    return max(deviations), float(norm.isf(FALSE_ALARM / 2 / len(deviations)))


@pytest.mark.parametrize("kernel", ["blocked", "tree", "gibbs"])
@pytest.mark.parametrize("seed", range(MODELS))
def test_marginals_match_enumeration(kernel, seed):
    weights, known, posteriors = case(seed)
    chains = started(weights, known, CHAINS, np.random.default_rng(seed))
    chains.move(kernel, 200)
    records = chains.move(kernel, SWEEPS, RECORDS)
    assert (chains.codes[:, known >= 0] == known[known >= 0]).all()
    deviation, limit = largest_deviation(records, known, posteriors)
    assert deviation < limit


def test_the_printed_tree_sampler_fails():
    failures = 0
    for seed in range(4):
        weights, known, posteriors = case(seed)
        rng = np.random.default_rng(seed)
        chains = started(weights, known, 6, rng)
        most = max(weights.cardinalities)
        records = np.zeros((6, 30, len(known), most))
        for chain in range(6):
            for sweep in range(30 * 15):
                printed_tree_sweep(chains, chain, rng)
                records[chain, sweep // 15, np.arange(len(known)), chains.codes[chain]] += 1 / 15
        deviation, limit = largest_deviation(records, known, posteriors)
        failures += deviation > limit
    assert failures >= 2


def test_values_of_known_cells_never_change_but_their_parents_do():
    weights, _, _ = case(0)
    known = np.zeros(len(weights.cardinalities), dtype=np.int64)
    chains = started(weights, known, 1, np.random.default_rng(0))
    seen = set()
    for _ in range(50):
        chains.move("tree", 1)
        seen.add(tuple(chains.parents[0].tolist()))
    assert (chains.codes == 0).all()
    assert len(seen) > 1
