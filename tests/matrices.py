"""Arc matrices for tests, ordinary and extreme."""

import numpy as np


def random_arcs(
    n: int, rng: np.random.Generator, *, decades: float = 1.0, zeros: float = 0.0, root: float = 1.0
) -> np.ndarray:
    """Give an arc matrix with weights log-uniform over 10^-decades..1, a share of zeros, and scaled root weights."""
    arcs = 10.0 ** rng.uniform(-decades, 0, (n + 1, n))
    arcs[rng.random(arcs.shape) < zeros] = 0.0
    arcs[0] *= root
    arcs[1 + np.arange(n), np.arange(n)] = 0.0
    return arcs


# decades, share of zeros, scale of root weights
EXTREMES = [
    (decades, zeros, root) for decades in (1, 15, 300) for zeros in (0.0, 0.4, 0.75) for root in (1.0, 1e-15, 1e-290)
]
