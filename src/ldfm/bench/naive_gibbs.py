# mypy: disable-error-code="no-untyped-def"
"""Collapsed Gibbs as the paper has it, the baseline of samplers: a forest sum for every value of every variable, O(k n^3)."""

import numpy as np
from numba import njit

from ldfm.kernels.extended_range import choose
from ldfm.kernels.gibbs import fill_log_sums


@njit(nogil=True, cache=True, error_model="numpy")
def naive_sweeps(model, clamped, codes, sweeps, work, generator, visits):
    """Draw each free value given all others; `visits` (1, n, most values) takes their conditional distributions."""
    n = codes.shape[0]
    logs, shares = np.empty(model.most), np.empty(model.most)
    for _ in range(sweeps):
        for i in range(n):
            if clamped[i] >= 0:
                continue
            k = model.offsets[i + 1] - model.offsets[i]
            fill_log_sums(model, codes, i, work, logs)
            shares[:k] = np.exp(logs[:k] - logs[:k].max())
            shares[:k] /= shares[:k].sum()
            visits[0, i, :k] += shares[:k]
            codes[i] = choose(shares[:k], generator.random())
