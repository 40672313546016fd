import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldfm.kernels.best_forest import best_forest
from matrices import EXTREMES, random_arcs
from oracles.forests import forest_weights


@pytest.mark.parametrize(("decades", "zeros", "root"), EXTREMES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_equals_the_best_of_all_forests(n, decades, zeros, root):
    rng = np.random.default_rng([n, decades])
    for _ in range(8):
        arcs = random_arcs(n, rng, decades=decades, zeros=zeros, root=root)
        weights = forest_weights(arcs)
        best = max(weights.values())
        parents = np.empty(n, dtype=np.int64)
        found = best_forest(arcs, parents)
        if best == 0:
            assert found == -np.inf
            assert (parents == -2).all()
            continue
        assert abs(found - float(mpmath.log(best))) <= 1e-12 * max(1.0, abs(found))
        assert abs(float(mpmath.log(weights[tuple(parents.tolist())])) - found) <= 1e-12 * max(1.0, abs(found))


@settings(max_examples=60, deadline=None)
@given(st.integers(6, 40), st.integers(0, 2**32 - 1))
def test_is_a_forest_that_no_single_change_improves(n, seed):
    rng = np.random.default_rng(seed)
    arcs = random_arcs(n, rng, decades=3, root=1e-4)
    parents = np.empty(n, dtype=np.int64)
    best_forest(arcs, parents)

    def is_forest(tree: np.ndarray) -> bool:
        for j in range(n):
            steps = 0
            while j != -1 and steps <= n:
                j = tree[j]
                steps += 1
            if steps > n:
                return False
        return True

    assert is_forest(parents)
    for child in range(n):
        for other in range(-1, n):
            if other != child and arcs[1 + other, child] > arcs[1 + parents[child], child] * (1 + 1e-9):
                changed = parents.copy()
                changed[child] = other
                assert not is_forest(changed)


def test_nested_cycles():
    # 0 <-> 1 strongest, 2 <-> that pair next, the root weakly into 2: the pair must be broken up twice
    arcs = np.full((4, 3), 1e-9)
    arcs[1 + np.arange(3), np.arange(3)] = 0.0
    arcs[1 + 0, 1] = arcs[1 + 1, 0] = 1.0
    arcs[1 + 1, 2] = 0.5
    arcs[1 + 2, 0] = 0.4
    arcs[0, 2] = 1e-3
    parents = np.empty(3, dtype=np.int64)
    best_forest(arcs, parents)
    assert parents.tolist() == [2, 0, -1]
