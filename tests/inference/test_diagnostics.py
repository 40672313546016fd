import numpy as np
import pytest
from arviz_stats.base import array_stats

from ldfm.inference.diagnostics import effective_draws, r_hat, standard_error


def autoregressive(correlation: float, seed: int = 0) -> np.ndarray:
    """Give (6 chains, 400 draws, 5 quantities) with variance 1 and mean 0."""
    draws = np.random.default_rng(seed).normal(size=(6, 400, 5))
    for t in range(1, 400):
        draws[:, t] = correlation * draws[:, t - 1] + np.sqrt(1 - correlation**2) * draws[:, t]
    return draws


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, -0.5])
def test_equal_arviz(correlation):
    draws = autoregressive(correlation)
    ess = array_stats.ess(draws, chain_axis=0, draw_axis=1, method="mean")
    np.testing.assert_allclose(effective_draws(draws), ess, rtol=0.03)
    np.testing.assert_allclose(
        r_hat(draws), array_stats.rhat(draws, chain_axis=0, draw_axis=1, method="split"), rtol=1e-10
    )


def test_standard_errors_cover():
    inside = []
    for seed in range(200):
        draws = autoregressive(0.7, seed)
        inside.append(np.abs(draws.mean(axis=(0, 1))) <= 2 * standard_error(draws))
    assert 0.90 < np.mean(inside) < 0.99


def test_constants_and_stuck_chains():
    constant = np.full((4, 20, 1), 0.3)
    assert r_hat(constant)[0] == 1.0
    assert standard_error(constant)[0] < 1e-15
    stuck = np.zeros((4, 20, 1))
    stuck[2:] = 1.0
    assert r_hat(stuck)[0] == np.inf
    assert effective_draws(stuck)[0] < 10
