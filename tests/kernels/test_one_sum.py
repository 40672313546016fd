import numpy as np
import pytest

from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.forest_sums import log_forest_sums
from ldfm.kernels.one_sum import log_forest_sum, make_arcs, make_elimination
from oracles.forests import exact_log_sum

RELATIVE = 1e-13


def arc_matrix(n: int, decades: float, seed: int) -> np.ndarray:
    arcs = 10.0 ** np.random.default_rng(seed).uniform(-decades, 0, (n + 1, n))
    arcs[1 + np.arange(n), np.arange(n)] = 0.0
    return arcs


def one_sum(arcs: np.ndarray) -> float:
    n = arcs.shape[1]
    into = make_arcs(n)
    into[:n, : n + 1] = arcs.T
    return log_forest_sum(into, n, make_elimination(n))


@pytest.mark.parametrize("decades", [1.0, 8.0, 30.0])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 13])
def test_equals_whole_number_arithmetic(n, decades):
    arcs = arc_matrix(n, decades, n)
    assert one_sum(arcs) == pytest.approx(exact_log_sum(arcs), rel=RELATIVE, abs=10 * RELATIVE)


@pytest.mark.parametrize("n", [15, 16, 17, 40, 76])
def test_equals_sums_of_four_rows(n):
    arcs = arc_matrix(n, 12.0, n)
    arcs[0] *= 1e-12  # weak roots, strong loops
    sums = np.empty(1)
    log_forest_sums(arcs[None], make_workspace(n), sums)
    assert one_sum(arcs) == pytest.approx(sums[0], rel=RELATIVE)


def test_owns_up_to_what_doubles_cannot_hold():
    unreachable = arc_matrix(6, 1.0, 0)
    unreachable[:, 3] = 0.0
    closed = arc_matrix(6, 1.0, 0)
    closed[0] = 0.0
    wide = arc_matrix(6, 1.0, 0)
    wide[0] = 1e-300
    for arcs in (unreachable, closed, wide):
        assert np.isnan(one_sum(arcs))
