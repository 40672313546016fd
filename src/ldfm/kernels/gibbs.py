"""Collapsed Gibbs: each free value is drawn given all other values, the forest summed out.

The conditional distribution of X_i takes a forest sum a value, O(k n^3). Most draws do not need it. Brackets of the ratios
Z(v) / Z(now) cost O(n^2) a value and bound each probability c(v) from below, by f(v). Then

    c = sum over v of f(v) [v] + doubt * rest,      doubt = 1 - sum of f,   rest = (c - f) / doubt

is a mixture: with probability 1 - doubt draw from f alone, and only else compute c and draw from the rest. The draw has the
distribution c, whatever the brackets are worth. What is recorded is the distribution it was drawn from, f or rest, made to sum
to 1: its mean, given the other values, is c.
"""

from math import exp, inf, nan

import numpy as np
from numba import njit

from ldfm.kernels.arc_matrices import fill_arc_matrices
from ldfm.kernels.brackets import bracket, make_walks, refresh, set_value
from ldfm.kernels.extended_range import choose
from ldfm.kernels.forest_sums import log_forest_sums
from ldfm.kernels.one_sum import log_forest_sum, make_elimination


@njit(nogil=True, cache=True, error_model="numpy")
def fill_log_sums(model, codes, i, work, logs):
    """Fill `logs` with log Z for each value of X_i, whatever the weights are; O(k n^3)."""
    n = codes.shape[0]
    k = model.offsets[i + 1] - model.offsets[i]
    rows = np.empty((k, n), dtype=np.int64)
    for v in range(k):
        rows[v] = codes
        rows[v, i] = v
    matrices = np.empty((k, n + 1, n))
    fill_arc_matrices(model.table, model.offsets, rows, matrices)
    log_forest_sums(matrices, work, logs[:k])


@njit(nogil=True, cache=True, error_model="numpy")
def fill_conditional(model, walks, codes, i, log_now, scratch, logs, shares):
    """Fill `shares` with the distribution of X_i given all other values, from the log forest sum of each in `logs`; O(k n^3).

    `log_now` is that of the values as they are, nan where it is not known.
    """
    elimination, work = scratch
    n, k = codes.shape[0], model.offsets[i + 1] - model.offsets[i]
    trusted = True
    for v in range(k):
        if v == codes[i] and log_now > -inf:
            logs[v] = log_now
            continue
        set_value(model, walks, i, v)
        logs[v] = log_forest_sum(walks.arcs, n, elimination)
        trusted = trusted and logs[v] > -inf
    set_value(model, walks, i, codes[i])
    if not trusted:
        fill_log_sums(model, codes, i, work, logs)
    largest, total = -inf, 0.0
    for v in range(k):
        largest = max(largest, logs[v])
    for v in range(k):
        shares[v] = exp(logs[v] - largest)
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
    walks, scratch = make_walks(model, codes), (make_elimination(n), work)
    logs, conditional, shares = np.empty(model.most), np.empty(model.most), np.empty(model.most)
    brackets = np.empty(model.most), np.empty(model.most)
    stale, rounding, log_now = True, inf, nan
    for sweep in range(sweeps):
        for i in range(n):
            if clamped[i] >= 0:
                continue
            if stale:
                rounding = refresh(walks)
                stale = False
            k = model.offsets[i + 1] - model.offsets[i]
            certain = fill_floors(model, walks, i, codes[i], rounding, brackets, shares)
            doubtful = generator.random() >= certain
            if doubtful:
                fill_conditional(model, walks, codes, i, log_now, scratch, logs, conditional)
                _fill_rest(conditional, shares, k)
            if len(visits):
                total = shares[:k].sum()
                for v in range(k):
                    visits[sweep * len(visits) // sweeps, i, v] += shares[v] / total
            v = choose(shares[:k], generator.random())
            if v != codes[i]:
                codes[i] = v
                set_value(model, walks, i, v)
                stale, log_now = True, nan
            if doubtful:
                log_now = logs[v]


@njit(nogil=True, cache=True, error_model="numpy")
def gibbs_rows(model, known, codes, sweeps, work, generator):
    """Run collapsed Gibbs on many rows; `known` and `codes` (rows, n)."""
    nothing = np.empty((0, codes.shape[1], model.most))
    for row in range(codes.shape[0]):
        gibbs_sweeps(model, known[row], codes[row], sweeps, work, generator, nothing)
