from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldfm.kernels.elimination import BLOCK, make_workspace, schedule_of
from ldfm.kernels.forest_sums import arc_marginals, log_forest_sums
from matrices import EXTREMES, random_arcs
from oracles.forests import all_forests, enumerated_log_sum, enumerated_marginals, exact_log_sum, exact_marginal

LOG_SUM = 1e-12  # times max(1, |log sum|)
COLUMN_SUM = 1e-12
MARGINAL = 1e-12


def log_sum(arcs: np.ndarray) -> float:
    sums = np.empty(1)
    log_forest_sums(arcs[None], make_workspace(arcs.shape[1]), sums)
    return float(sums[0])


def sum_and_marginals(arcs: np.ndarray) -> tuple[float, np.ndarray]:
    sums, marginals = np.empty(1), np.empty((1, *arcs.shape))
    arc_marginals(arcs[None], make_workspace(arcs.shape[1]), sums, marginals)
    return float(sums[0]), marginals[0]


def check_sum(found: float, exact: float) -> None:
    if exact == -np.inf:
        assert found == -np.inf
    else:
        assert abs(found - exact) <= LOG_SUM * max(1.0, abs(exact))


def check_marginals_are_distributions(marginals: np.ndarray) -> None:
    assert (marginals >= 0).all()
    assert (marginals <= 1).all()
    np.testing.assert_allclose(marginals.sum(axis=0), 1.0, rtol=0, atol=COLUMN_SUM)


def test_the_oracle_counts_all_forests():
    assert [sum(1 for _ in all_forests(n)) for n in range(1, 6)] == [(n + 1) ** (n - 1) for n in range(1, 6)]


def test_the_two_oracles_agree():
    rng = np.random.default_rng(0)
    for decades, zeros, root in EXTREMES:
        arcs = random_arcs(4, rng, decades=decades, zeros=zeros, root=root)
        check_sum(exact_log_sum(arcs), enumerated_log_sum(arcs))


@pytest.mark.parametrize(("decades", "zeros", "root"), EXTREMES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_sums_and_marginals_equal_enumeration(n, decades, zeros, root):
    rng = np.random.default_rng([n, decades])
    for _ in range(6):
        arcs = random_arcs(n, rng, decades=decades, zeros=zeros, root=root)
        exact = enumerated_log_sum(arcs)
        check_sum(log_sum(arcs), exact)
        found, marginals = sum_and_marginals(arcs)
        check_sum(found, exact)
        if exact == -np.inf:
            assert (marginals == 0).all()
        else:
            check_marginals_are_distributions(marginals)
            np.testing.assert_allclose(marginals, enumerated_marginals(arcs), rtol=1e-11, atol=1e-17)


@pytest.mark.parametrize(("decades", "zeros", "root"), EXTREMES)
@pytest.mark.parametrize("n", [9, 14])
def test_sums_and_marginals_equal_whole_number_arithmetic(n, decades, zeros, root):
    rng = np.random.default_rng([n, decades])
    arcs = random_arcs(n, rng, decades=decades, zeros=zeros, root=root)
    exact = exact_log_sum(arcs)
    check_sum(log_sum(arcs), exact)
    found, marginals = sum_and_marginals(arcs)
    check_sum(found, exact)
    if exact > -np.inf:
        check_marginals_are_distributions(marginals)
        for child in (0, n // 2, n - 1):
            for parent in (0, 1 + n // 3, n):
                assert abs(marginals[parent, child] - exact_marginal(arcs, parent, child)) <= MARGINAL


@pytest.mark.parametrize("zeros", [0.0, 0.6, 0.85])
@pytest.mark.parametrize("root", [1.0, 1e-15])
def test_thirty_variables_over_300_orders_of_magnitude(zeros, root):
    rng = np.random.default_rng(30)
    arcs = random_arcs(30, rng, decades=300, zeros=zeros, root=root)
    exact = exact_log_sum(arcs)
    check_sum(log_sum(arcs), exact)
    found, marginals = sum_and_marginals(arcs)
    check_sum(found, exact)
    if exact > -np.inf:
        check_marginals_are_distributions(marginals)
        for child in (3, 28):
            parent = int(np.argmax(marginals[:, child]))
            assert abs(marginals[parent, child] - exact_marginal(arcs, parent, child)) <= MARGINAL


def test_weak_roots_defeat_lu_but_not_elimination():
    rng = np.random.default_rng(1)
    arcs = random_arcs(20, rng, root=1e-17)
    laplacian = np.diag(arcs.sum(axis=0)) - arcs[1:]
    exact = exact_log_sum(arcs)
    check_sum(log_sum(arcs), exact)
    assert abs(np.linalg.slogdet(laplacian)[1] - exact) > 1e-3


def test_marginals_are_derivatives_of_the_log_sum():
    rng = np.random.default_rng(2)
    # log Z is convex in log weights with curvature below 1: differences over a step are off by less than its square
    for decades, zeros, root in EXTREMES:
        arcs = random_arcs(6, rng, decades=decades, zeros=zeros / 2, root=root)
        base, marginals = sum_and_marginals(arcs)
        if base == -np.inf:
            continue
        step = 1e-3
        for parent, child in np.argwhere(arcs > 0):
            up, down = arcs.copy(), arcs.copy()
            up[parent, child] *= np.exp(step)
            down[parent, child] *= np.exp(-step)
            slope = (log_sum(up) - log_sum(down)) / (2 * step)
            assert abs(slope - marginals[parent, child]) < step**2 + 1e-12 * max(1.0, abs(base)) / step


def test_an_unreachable_variable_makes_the_sum_zero():
    arcs = random_arcs(6, np.random.default_rng(3))
    arcs[:, 4] = 0.0
    assert log_sum(arcs) == -np.inf
    # a loop that nothing enters
    arcs = random_arcs(6, np.random.default_rng(3))
    arcs[:, [1, 2]] = 0.0
    arcs[1 + 1, 2] = arcs[1 + 2, 1] = 0.5
    found, marginals = sum_and_marginals(arcs)
    assert found == -np.inf
    assert (marginals == 0).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 13), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 30.0, 200.0]))
def test_scaling_and_permuting_variables(n, seed, decades):
    rng = np.random.default_rng(seed)
    arcs = random_arcs(n, rng, decades=decades, zeros=0.1)
    base, marginals = sum_and_marginals(arcs)
    factors = 10.0 ** rng.uniform(-3, 3, n)
    scaled, same = sum_and_marginals(arcs * factors)
    check_sum(scaled, base + np.log(factors).sum())
    np.testing.assert_allclose(same, marginals, rtol=0, atol=MARGINAL)
    order = rng.permutation(n)
    permuted, moved = sum_and_marginals(arcs[np.r_[0, 1 + order]][:, order])
    check_sum(permuted, base)
    np.testing.assert_allclose(moved, marginals[np.r_[0, 1 + order]][:, order], rtol=0, atol=MARGINAL)


def test_a_row_does_not_depend_on_its_neighbours():
    rng = np.random.default_rng(4)
    matrices = np.stack([random_arcs(9, rng, decades=d, zeros=0.2) for d in (1, 300, 5, 1, 100, 2, 300)])
    together, marginals = np.empty(7), np.empty(matrices.shape)
    arc_marginals(matrices, make_workspace(9), together, marginals)
    for row, arcs in enumerate(matrices):
        alone, own = sum_and_marginals(arcs)
        check_sum(together[row], alone)
        np.testing.assert_allclose(marginals[row], own, rtol=0, atol=MARGINAL)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 20, 37])
def test_the_schedule_leaves_every_variable_in_one_block(n):
    schedule = schedule_of(n, BLOCK)
    ends = sorted((low, high) for low, high, *_ in schedule if high - low <= BLOCK)
    assert ends[0][0] == 0
    assert ends[-1][1] == n
    assert all(a[1] == b[0] for a, b in pairwise(ends))
