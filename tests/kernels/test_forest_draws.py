import numpy as np
import pytest

from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.extended_range import choose, draw_forest
from ldfm.kernels.forest_draws import can_reach_all, cumulate_columns, draw_by_walks, draw_forests
from matrices import random_arcs
from oracles.forests import forest_weights
from statistics_checks import FALSE_ALARM, p_value

DRAWS = 20_000
# the roots of 1e-295 are beyond what doubles are trusted with: those draws are made in the extended range
CASES = [(1, 0.0, 1.0), (1, 0.3, 1e-15), (6, 0.0, 1e-3), (1, 0.0, 1e-200), (1, 0.0, 1e-295)]


def probabilities(arcs: np.ndarray) -> dict[tuple[int, ...], float]:
    weights = forest_weights(arcs)
    total = sum(weights.values())
    return {forest: float(weight / total) for forest, weight in weights.items()}


def reachable_arcs(n: int, seed: int, decades: float, zeros: float, root: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    while True:
        arcs = random_arcs(n, rng, decades=decades, zeros=zeros, root=root)
        if can_reach_all(arcs):
            return arcs


def draw(arcs: np.ndarray, budget: int, seed: int = 0) -> tuple[list[tuple[int, ...]], int]:
    parents = np.empty((DRAWS, arcs.shape[1]), dtype=np.int64)
    eliminated = draw_forests(arcs, make_workspace(arcs.shape[1]), budget, np.random.default_rng(seed), parents)
    return list(map(tuple, parents.tolist())), eliminated


@pytest.mark.parametrize(("decades", "zeros", "root"), CASES)
@pytest.mark.parametrize("n", [1, 3, 4])
def test_draws_by_elimination_match_enumeration(n, decades, zeros, root):
    arcs = reachable_arcs(n, 5, decades, zeros, root)
    truth = probabilities(arcs)
    assert n == 1 or sum(p > 0.01 for p in truth.values()) > 2  # a test of draws needs more than one likely forest
    draws, eliminated = draw(arcs, budget=0)
    assert eliminated == DRAWS
    assert p_value(draws, truth) > FALSE_ALARM


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_draws_by_walks_match_enumeration(n):
    arcs = reachable_arcs(n, 6, 2, 0.2, 0.3)
    draws, eliminated = draw(arcs, budget=10**6)
    assert eliminated == 0
    assert p_value(draws, probabilities(arcs)) > FALSE_ALARM


def test_giving_up_walks_early_leaves_draws_exact():
    arcs = reachable_arcs(4, 7, 1, 0.0, 0.05)
    draws, eliminated = draw(arcs, budget=12)
    assert 0.01 * DRAWS < eliminated < 0.99 * DRAWS
    assert p_value(draws, probabilities(arcs)) > FALSE_ALARM


def test_draws_in_the_extended_range_match_enumeration():
    arcs = reachable_arcs(4, 8, 1, 0.2, 0.1)
    generator = np.random.default_rng(1)
    schedule = make_workspace(4).extended_schedule
    draws = []
    for _ in range(DRAWS):
        parents = np.empty(4, dtype=np.int64)
        draw_forest(arcs, schedule, generator, parents)
        draws.append(tuple(parents.tolist()))
    assert p_value(draws, probabilities(arcs)) > FALSE_ALARM


def test_a_walk_that_forgets_to_erase_loops_is_caught():
    """The check must be able to fail: parents drawn one by one from their columns, cycles redrawn, is not the distribution."""
    arcs = reachable_arcs(3, 9, 1, 0.0, 0.3)
    cumulative = np.empty((3, 4))
    cumulate_columns(arcs, cumulative)
    rng = np.random.default_rng(2)
    wrong = []
    for _ in range(DRAWS):
        parents = [-2, -2, -2]
        for j in range(3):
            parents[j] = int(np.searchsorted(cumulative[j], rng.random(), side="right")) - 1
            while parents[j] >= 0 and parents[parents[j]] == j:
                parents[j] = int(np.searchsorted(cumulative[j], rng.random(), side="right")) - 1
        wrong.append(tuple(parents))
    truth = probabilities(arcs)
    kept = [forest for forest in wrong if truth.get(forest, 0.0) > 0]
    assert p_value(kept, truth) < FALSE_ALARM


def test_short_walks_alone_are_exact_too():
    """Why giving up is allowed: the number of steps of a walk does not depend on the forest it ends with."""
    arcs = reachable_arcs(3, 10, 1, 0.0, 0.1)
    cumulative = np.empty((3, 4))
    cumulate_columns(arcs, cumulative)
    generator = np.random.default_rng(3)
    kept = []
    while len(kept) < DRAWS:
        parents = np.empty(3, dtype=np.int64)
        if draw_by_walks(cumulative, 6, generator, parents):
            kept.append(tuple(parents.tolist()))
    assert p_value(kept, probabilities(arcs)) > FALSE_ALARM


def test_rows_without_forest_are_marked():
    arcs = random_arcs(4, np.random.default_rng(0))
    arcs[:, 2] = 0.0
    parents = np.zeros((3, 4), dtype=np.int64)
    assert draw_forests(arcs, make_workspace(4), 100, np.random.default_rng(0), parents) == 0
    assert (parents == -2).all()


def test_choose_never_takes_a_weight_of_zero():
    weights = np.array([0.0, 1.0, 0.0, 1e-300, 0.0])
    assert {choose(weights, u) for u in (0.0, 0.5, 1 - 1e-16, np.nextafter(1, 0))} <= {1, 3}
