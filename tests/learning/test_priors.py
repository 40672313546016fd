from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from ldfm.learning import Dirichlet, ModifiedDirichlet
from ldfm.learning.priors import floored_mode

CASES = 1000


def objective(counts: np.ndarray, p: np.ndarray) -> float:
    return float(counts @ np.log(p))


def best_by_optimiser(counts: np.ndarray, floor: float) -> float:
    """Give the best value a generic constrained optimiser finds, started near the middle of every face.

    It moves z = log p: maximise counts @ z, a linear function, with sum exp(z) = 1 and z >= log floor.
    """
    size = len(counts)
    room = 1 - floor * size
    subsets = [np.isin(np.arange(size), chosen) for m in range(1, size + 1) for chosen in combinations(range(size), m)]
    best = -np.inf
    for subset in subsets:
        found = minimize(
            lambda z: -counts @ z,
            np.log(floor + room * subset / subset.sum()),
            jac=lambda z: -counts,
            method="SLSQP",
            bounds=[(np.log(floor), 0)] * size,
            constraints={"type": "eq", "fun": lambda z: np.exp(z).sum() - 1, "jac": np.exp},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        shares = np.maximum(np.exp(found.x) - floor, 0)
        if shares.sum() > 0:
            best = max(best, objective(counts, floor + room * shares / shares.sum()))
    return best


def test_the_mode_equals_a_generic_optimiser_on_random_cases():
    rng = np.random.default_rng(0)
    for case in range(CASES):
        size = int(rng.integers(2, 5))
        floor = float(10 ** rng.uniform(-4, -1) / size)
        alpha = float(rng.uniform(-4, 2))
        counts = np.where(rng.random(size) < 0.3, 0.0, rng.gamma(0.7, 3.0, size)) + alpha - 1
        mode = floored_mode(counts, floor)
        assert abs(mode.sum() - 1) < 1e-12, case
        assert mode.min() >= floor * (1 - 1e-12), case
        best, found = best_by_optimiser(counts, floor), objective(counts, mode)
        assert abs(found - best) <= 1e-6 * max(1.0, abs(found)), (case, counts, floor)
        assert found >= best - 1e-10 * max(1.0, abs(found)), (case, counts, floor)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(-5, 20), min_size=2, max_size=12).map(np.array),
    st.floats(1e-6, 0.05),
    st.integers(0, 2**32 - 1),
)
def test_no_random_point_beats_the_mode(counts, floor, seed):
    mode = floored_mode(counts, floor)
    rng = np.random.default_rng(seed)
    room = 1 - floor * len(counts)
    for concentration in (0.05, 1.0, 20.0):
        other = floor + room * rng.dirichlet(np.full(len(counts), concentration))
        assert objective(counts, mode) >= objective(counts, other) - 1e-9 * max(1.0, abs(objective(counts, mode)))


def test_all_counts_on_the_floor_but_one():
    np.testing.assert_allclose(floored_mode(np.array([-1.0, -0.5, -3.0]), 0.1), [0.1, 0.8, 0.1])
    np.testing.assert_allclose(floored_mode(np.array([5.0, -0.5, -3.0]), 0.1), [0.8, 0.1, 0.1])


def test_shares_below_the_floor_are_raised():
    np.testing.assert_allclose(floored_mode(np.array([98.0, 1.9, 0.1]), 0.05), [0.9, 0.05, 0.05])


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match=r"alpha of a Dirichlet prior must be a number >= 1, not 0.5"):
        Dirichlet(0.5)
    with pytest.raises(ValueError, match="finite number, not nan"):
        ModifiedDirichlet(np.nan, 0.1)
    with pytest.raises(ValueError, match=r"between 0 and 1, not 0$"):
        ModifiedDirichlet(0.0, 0)
    with pytest.raises(ValueError, match=r"floor 0.5 is too high for 2 outcomes: it must be below 1 / 2"):
        floored_mode(np.ones(2), 0.5)
