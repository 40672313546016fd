import numpy as np
import pytest
from numba import njit

from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.extended_range import choose, draw_forest
from ldfm.kernels.forest_draws import (
    can_reach_all,
    cumulate_columns,
    draw_by_walks,
    draw_forests,
    find_partners,
    walk_past_partners,
    walk_plainly,
)
from ldfm.kernels.sweeps import Folded, draw_forests_of
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


@pytest.mark.parametrize("walk", [walk_plainly, draw_by_walks])
@pytest.mark.parametrize("budget", [0, 3, 6])
def test_short_walks_alone_are_exact_too(walk, budget):
    """Why giving up is allowed: the number of steps of a walk does not depend on the forest it ends with."""
    arcs = reachable_arcs(3, 10, 1, 0.0, 0.1)
    cumulative = np.empty((3, 4))
    cumulate_columns(arcs, cumulative)
    generator = np.random.default_rng(3)
    kept = []
    while len(kept) < DRAWS:
        parents = np.empty(3, dtype=np.int64)
        if walk(cumulative, budget, generator, parents):
            kept.append(tuple(parents.tolist()))
    assert p_value(kept, probabilities(arcs)) > FALSE_ALARM


def paired_arcs(n: int, seed: int) -> np.ndarray:
    """Arcs between two pairs of variables, each by far the most probable parent of the other, and weak roots."""
    rng = np.random.default_rng(seed)
    arcs = rng.random((n + 1, n))
    arcs[0] *= 0.05
    arcs[1 + np.arange(n), np.arange(n)] = 0.0
    arcs[1, 1], arcs[2, 0] = 20.0, 30.0
    if n == 4:
        arcs[3, 3], arcs[4, 2] = 9.0, 12.0
    return arcs


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("budget", [0, 3, 10**6])
def test_loops_between_partners_that_are_skipped_leave_draws_exact(n, budget):
    """However soon walks are given up: what is counted must not depend on the forest."""
    arcs = paired_arcs(n, 11)
    cumulative, partners = np.empty((n, n + 1)), np.empty(n, dtype=np.int64)
    cumulate_columns(arcs, cumulative)
    find_partners(cumulative, partners)
    assert partners.tolist() == {2: [1, 0], 3: [1, 0, -1], 4: [1, 0, 3, 2]}[n]
    generator = np.random.default_rng(12)
    kept = []
    while len(kept) < DRAWS:
        parents = np.empty(n, dtype=np.int64)
        if walk_past_partners(cumulative, partners, budget, generator, parents):
            kept.append(tuple(parents.tolist()))
    assert p_value(kept, probabilities(arcs)) > FALSE_ALARM


@njit
def _walk_many(cumulative, partners, budget, generator, kept):
    found = 0
    while found < len(kept):
        if walk_past_partners(cumulative, partners, budget, generator, kept[found]):
            found += 1


@pytest.mark.parametrize("budget", [0, 3])
def test_what_walks_count_does_not_depend_on_the_forest(budget):
    """Weak partners, whose loops are often parts of longer ones, and many draws: a loop that is counted wrongly shows."""
    arcs = np.array([[0.2, 0.4, 0.3], [0.0, 2.0, 1.0], [2.5, 0.0, 0.7], [0.9, 1.2, 0.0]])
    cumulative, partners = np.empty((3, 4)), np.empty(3, dtype=np.int64)
    cumulate_columns(arcs, cumulative)
    find_partners(cumulative, partners)
    assert partners.tolist() == [1, 0, -1]
    kept = np.empty((400_000, 3), dtype=np.int64)
    _walk_many(cumulative, partners, budget, np.random.default_rng(16), kept)
    assert p_value(list(map(tuple, kept.tolist())), probabilities(arcs)) > FALSE_ALARM


def test_partners_are_mutual_and_leave_each_other():
    arcs = np.zeros((5, 4))
    arcs[0] = [1.0, 1.0, 1e-9, 1e-9]
    arcs[2, 0] = arcs[1, 1] = 5.0  # 0 and 1 lead to each other
    arcs[4, 2] = arcs[3, 3] = 1.0  # 2 and 3 hardly lead anywhere else: running sums are too coarse for them
    cumulative, partners = np.empty((4, 5)), np.empty(4, dtype=np.int64)
    cumulate_columns(arcs, cumulative)
    find_partners(cumulative, partners)
    assert partners.tolist() == [1, 0, -1, -1]
    arcs[3, 0] = 6.0  # 0 rather leads to 2
    cumulate_columns(arcs, cumulative)
    find_partners(cumulative, partners)
    assert partners.tolist() == [-1, -1, -1, -1]


def test_forests_of_rows_that_wait_for_each_other_are_exact():
    """Rows of one table are drawn four at a time once their walks take long; each forest must come to its own row."""
    n = 3
    arcs = paired_arcs(n, 14)
    arcs[0] *= 1e-3  # walks go in circles among all three
    table = np.zeros((2 * n + 1, 2 * n))
    truths = []
    for value in (0, 1):
        ours = arcs if value == 0 else np.ascontiguousarray(arcs[:, [1, 2, 0]][[0, 2, 3, 1]])
        truths.append(probabilities(ours))
        own = 2 * np.arange(n) + value
        table[np.ix_(np.concatenate([[0], 1 + own]), own)] = ours
    model = Folded(table, np.ascontiguousarray(table.T), 2 * np.arange(n + 1), 2)
    codes = np.repeat(np.arange(DRAWS)[:, None] % 2, n, axis=1)
    parents = np.empty_like(codes)
    draw_forests_of(model, codes, make_workspace(n), np.random.default_rng(15), parents)
    for value in (0, 1):
        assert p_value(list(map(tuple, parents[value::2].tolist())), truths[value]) > FALSE_ALARM
        assert p_value(list(map(tuple, parents[1 - value :: 2].tolist())), truths[value]) < FALSE_ALARM


def test_rows_without_forest_or_of_tiny_weights_leave_others_as_they_are():
    """Among rows that wait for each other: 0 walks in circles, 1 cannot reach the root, 2 has no ordinary numbers."""
    n = 3
    table = np.zeros((3 * n + 1, 3 * n))
    circles = paired_arcs(n, 14)
    circles[0] *= 1e-3
    closed = circles.copy()
    closed[0] = 0.0
    for value, arcs in enumerate((circles, closed, circles * 1e-295)):
        own = 3 * np.arange(n) + value
        table[np.ix_(np.concatenate([[0], 1 + own]), own)] = arcs
    model = Folded(table, np.ascontiguousarray(table.T), 3 * np.arange(n + 1), 3)
    kinds = np.random.default_rng(17).choice(3, size=DRAWS, p=[0.8, 0.1, 0.1])
    codes = np.repeat(kinds[:, None], n, axis=1)
    parents = np.empty_like(codes)
    draw_forests_of(model, codes, make_workspace(n), np.random.default_rng(18), parents)
    assert (parents[kinds == 1] == -2).all()
    for kind in (0, 2):
        assert p_value(list(map(tuple, parents[kinds == kind].tolist())), probabilities(circles)) > FALSE_ALARM


def test_rows_without_forest_are_marked():
    arcs = random_arcs(4, np.random.default_rng(0))
    arcs[:, 2] = 0.0
    parents = np.zeros((3, 4), dtype=np.int64)
    assert draw_forests(arcs, make_workspace(4), 100, np.random.default_rng(0), parents) == 0
    assert (parents == -2).all()


def test_choose_never_takes_a_weight_of_zero():
    weights = np.array([0.0, 1.0, 0.0, 1e-300, 0.0])
    assert {choose(weights, u) for u in (0.0, 0.5, 1 - 1e-16, np.nextafter(1, 0))} <= {1, 3}
