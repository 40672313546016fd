"""Clamping in turn is unbiased, whatever chains do; versions that look alike are not, and must fail the same test."""

import numpy as np
import pytest
from scipy.stats import norm

from ldfm.draws import fold
from ldfm.forests import draws_of_forests
from ldfm.kernels.clamping import clamp_in_turn
from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.tree_messages import order_from_roots, send_up
from ldfm.weights import ArcWeights, arc_mask
from models import random_weights
from oracles.forests import all_forests
from oracles.joint import joint_table

FALSE_ALARM = 1e-4  # chance that a right estimate fails the check of one model
MODELS = range(6)
RUNS, FIRST, CHAINS, SWEEPS = 3000, 4, 2, 3


class Case:
    """A random model, known cells, and query cells with values and their exact probability."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 6))
        self.cardinalities = tuple(int(k) for k in rng.integers(2, 4, n))
        self.weights = random_weights(self.cardinalities, seed, stops=seed % 2 == 0, decades=3.0)
        self.rows = np.stack(list(np.ndindex(self.cardinalities)))
        self.prior = joint_table(self.weights.table, self.weights.stop, self.cardinalities).ravel()
        self.known = np.full(n, -1)
        self.known[0] = rng.integers(self.cardinalities[0])
        self.given = self.prior * (self.rows[:, 0] == self.known[0])
        self.given /= self.given.sum()
        self.values = self.rows[rng.choice(len(self.rows), p=self.given)].astype(np.int64)
        self.cells = np.arange(1, n - (seed % 2 and n > 3))
        self.truth = float(self.given[(self.rows[:, self.cells] == self.values[self.cells]).all(axis=1)].sum())

    def forests(self, probabilities: np.ndarray, seed: int) -> np.ndarray:
        """Give (RUNS, FIRST, n): exact draws of forests of rows with such probabilities."""
        rng = np.random.default_rng(seed)
        codes = self.rows[rng.choice(len(self.rows), size=RUNS * FIRST, p=probabilities)]
        drawn = draws_of_forests(self.weights, codes, 1, np.random.SeedSequence(seed), 1)
        return drawn.reshape(RUNS, FIRST, -1)

    def estimates(self, first: np.ndarray, stages: list[int], extra: int = 0, seed: int = 1) -> np.ndarray:
        """Give an estimate from each population, the cells in any order; stages of 0: decided by the population itself."""
        model, work, generator = fold(self.weights), make_workspace(len(self.known)), np.random.default_rng(seed)
        forests = np.empty((SWEEPS, CHAINS, len(self.known)), dtype=np.int64)
        nothing = np.empty((0, len(self.known), model.most))
        found = np.empty(RUNS)
        for run in range(RUNS):
            sizes = np.array(stages[: len(self.cells)])
            order, known = generator.permutation(self.cells), self.known.copy()
            found[run], _ = clamp_in_turn(
                model, known, order, self.values, sizes, LEAST, first[run], forests, extra, work, generator, nothing
            )
            assert (known[self.cells] == self.values[self.cells]).all() or found[run] == -np.inf
        return np.exp(found)

    def deviation(self, estimates: np.ndarray) -> float:
        """Give by how many standard errors the mean is off."""
        return abs(estimates.mean() - self.truth) / (estimates.std(ddof=1) / np.sqrt(len(estimates)))


LEAST = 0.3 * CHAINS * SWEEPS
LIMIT = float(norm.isf(FALSE_ALARM / 2))


@pytest.mark.parametrize("seed", MODELS)
def test_the_mean_of_estimates_is_the_probability(seed):
    case = Case(seed)
    stages = [1] * 5 if seed % 2 else [2, 1, 1, 1, 1]
    if len(case.cells) < 3:
        stages = [1] * 5
    assert case.deviation(case.estimates(case.forests(case.given, seed), stages, extra=seed % 3)) < LIMIT


def test_forests_drawn_without_regard_to_what_is_known_fail():
    cases = [Case(seed) for seed in MODELS]
    deviations = [case.deviation(case.estimates(case.forests(case.prior, 0), [1] * 5)) for case in cases]
    assert max(deviations) > 2 * LIMIT


def test_averages_of_logs_fail():
    case = Case(1)
    logs = np.log(case.estimates(case.forests(case.given, 0), [1] * 5))
    error = logs.std(ddof=1) / np.sqrt(RUNS)
    assert abs(logs.mean() - np.log(case.truth)) / error > 2 * LIMIT


def test_populations_that_decide_by_their_own_weights_fail():
    case = Case(1)
    estimates = [case.estimates(case.forests(case.given, seed), [0] * 5, seed=seed) for seed in range(16)]
    assert case.deviation(np.concatenate(estimates)) > LIMIT


def test_stages_that_a_population_decides_are_told():
    case = Case(3)
    sizes, nothing = np.zeros(len(case.cells), dtype=np.int64), np.empty((0, len(case.known), 3))
    forests = np.empty((SWEEPS, CHAINS, len(case.known)), dtype=np.int64)
    clamp_in_turn(
        fold(case.weights),
        case.known.copy(),
        case.cells,
        case.values,
        sizes,
        LEAST,
        case.forests(case.given, 0)[0],
        forests,
        0,
        make_workspace(len(case.known)),
        np.random.default_rng(0),
        nothing,
    )
    assert sizes.sum() == len(case.cells)


@pytest.mark.parametrize("scale", [1.0, 1e-300])
@pytest.mark.parametrize("clamped", [(-1, -1, -1, -1), (1, -1, -1, 2), (-1, 2, -1, -1), (0, 1, 1, 3)])
def test_the_sum_on_every_forest_equals_enumeration(clamped, scale):
    cardinalities = (2, 3, 2, 4)
    weights = random_weights(cardinalities, 0, decades=3, normalise=False)
    model = fold(ArcWeights(weights.table * scale, cardinalities))
    rows = np.stack(
        [row for row in np.ndindex(cardinalities) if all(c in (-1, v) for c, v in zip(clamped, row, strict=True))]
    )
    values = weights.offsets[:-1] + rows
    below, messages, order = np.zeros((4, 4)), np.zeros((4, 4)), np.empty(4, dtype=np.int64)
    for forest in all_forests(4):
        order_from_roots(np.array(forest), order)
        found = send_up(model.table, model.offsets, np.array(clamped), np.array(forest), order, below, messages)
        parts = [weights.table[0 if p == -1 else 1 + values[:, p], values[:, j]] for j, p in enumerate(forest)]
        assert found == pytest.approx(np.log(np.prod(parts, axis=0).sum()) + 4 * np.log(scale), rel=1e-12)


def test_the_sum_of_an_impossible_forest_is_zero():
    table = np.where(arc_mask((2, 2)), 1.0, 0.0)
    table[0, 2:] = 0.0
    model = fold(ArcWeights(table, (2, 2)))
    below, messages, order = np.zeros((2, 2)), np.zeros((2, 2)), np.array([0, 1])
    roots = np.array([-1, -1])
    assert send_up(model.table, model.offsets, np.array([-1, -1]), roots, order, below, messages) == -np.inf
