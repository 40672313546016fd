"""Collapsed Gibbs: each free value is drawn given all other values, the forest summed out.

The conditional distribution of X_i takes a forest sum a value, O(k n^3). Most draws do not need it. Brackets of the ratios
Z(v) / Z(now) cost O(n^2) a value and bound each probability c(v) from below, by f(v). Then

    c = sum over v of f(v) [v] + doubt * rest,      doubt = 1 - sum of f,   rest = (c - f) / doubt

is a mixture: with probability 1 - doubt draw from f alone, and only else compute c and draw from the rest. The draw has the
distribution c, whatever the brackets are worth. What is recorded is the distribution it was drawn from, f or rest, made to sum
to 1: its mean, given the other values, is c.
"""

from math import exp, inf

import numpy as np
from numba import njit

from ldfm.kernels.arc_matrices import fill_arc_matrices
from ldfm.kernels.brackets import bracket, make_walks, refresh, set_value
from ldfm.kernels.extended_range import choose
from ldfm.kernels.forest_sums import log_forest_sums


@njit(nogil=True, cache=True, error_model="numpy")
def fill_conditional(model, codes, i, matrices, sums, work, shares):
    """Fill `shares` with the distribution of X_i given all other values, from one forest sum a value; O(k n^3)."""
    n = codes.shape[0]
    k = model.offsets[i + 1] - model.offsets[i]
    rows = np.empty((k, n), dtype=np.int64)
    for v in range(k):
        rows[v] = codes
        rows[v, i] = v
    fill_arc_matrices(model.table, model.offsets, rows, matrices[:k])
    log_forest_sums(matrices[:k], work, sums[:k])
    largest = -inf
    for v in range(k):
        largest = max(largest, sums[v])
    total = 0.0
    for v in range(k):
        shares[v] = exp(sums[v] - largest)
        total += shares[v]
    for v in range(k):
        shares[v] /= total


@njit(nogil=True, cache=True, error_model="numpy")
def fill_floors(model, walks, i, now, rounding, brackets, floors):
    """Fill `floors` with a lower bound of the probability of each value of X_i given all other values; give their sum; O(k n^2)."""
    lower, upper = brackets
    k = model.offsets[i + 1] - model.offsets[i]
    most = 0.0
    for v in range(k):
        lower[v], upper[v] = (1.0, 1.0) if v == now else bracket(model, walks, i, v, rounding)
        most += upper[v]
    total = 0.0
    for v in range(k):
        floors[v] = lower[v] / (lower[v] + (most - upper[v])) if most < inf else 0.0
        total += floors[v]
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_rest(conditional, floors, k):
    """Turn `floors` into the weights of what they leave of the conditional."""
    total = 0.0
    for v in range(k):
        floors[v] = max(0.0, conditional[v] - floors[v])
        total += floors[v]
    if total <= 0.0:  # nothing but rounding is left
        floors[:k] = conditional[:k]


@njit(nogil=True, cache=True, error_model="numpy")
def gibbs_sweeps(model, clamped, codes, sweeps, work, generator, visits):
    """Draw each free value given all other values, forests summed out; O(k n^2) a value that stays, O(n^3) one that changes."""
    n = codes.shape[0]
    matrices, sums, conditional = np.empty((model.most, n + 1, n)), np.empty(model.most), np.empty(model.most)
    shares, brackets = np.empty(model.most), (np.empty(model.most), np.empty(model.most))
    walks = make_walks(model, codes)
    stale, rounding = True, inf
    for sweep in range(sweeps):
        for i in range(n):
            if clamped[i] >= 0:
                continue
            if stale:
                rounding = refresh(model, walks)
                stale = False
            k = model.offsets[i + 1] - model.offsets[i]
            certain = fill_floors(model, walks, i, codes[i], rounding, brackets, shares)
            if generator.random() >= certain:
                fill_conditional(model, codes, i, matrices, sums, work, conditional)
                _fill_rest(conditional, shares, k)
            if len(visits):
                total = shares[:k].sum()
                for v in range(k):
                    visits[sweep * len(visits) // sweeps, i, v] += shares[v] / total
            v = choose(shares[:k], generator.random())
            if v != codes[i]:
                codes[i] = v
                set_value(model, walks, i, v)
                stale = True
