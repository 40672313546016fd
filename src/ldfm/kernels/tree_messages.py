"""Sums and draws of values on a given forest: the model is then tree-structured and messages are exact.

Arrays: `table` (S + 1, S) arc weights with stop weights folded in, `offsets` (n + 1,) first value of each variable, `clamped` (n,)
the code of a known variable and -1 of a free one, `parents` (n,) with root = -1. Let below(j, v) be the sum over the values of all
descendants of j of the products of their arc weights, given X_j = v; the message of j to its parent's value u is
sum_v w(v|u) below(j, v). What gets small or large on the way up is scaled, so that nothing underflows however many variables
there are.
"""

from math import frexp, inf, ldexp, log

import numpy as np
from numba import njit

from ldfm.kernels.extended_range import choose

ROOT = -1
LOG_2 = log(2.0)
SMALL, LARGE = 1e-6, 1e6  # beyond these numbers are scaled, so that a product with any weight stays a number


@njit(nogil=True, cache=True, error_model="numpy")
def order_from_roots(parents, order):
    """Fill `order` (n,) with the variables, every parent before its children; O(n) but for the first pass."""
    n = parents.shape[0]
    first_child = np.full(n, -1)
    next_sibling = np.full(n, -1)
    tail = 0
    for j in range(n - 1, -1, -1):
        if parents[j] == ROOT:
            order[tail] = j
            tail += 1
        else:
            next_sibling[j] = first_child[parents[j]]
            first_child[parents[j]] = j
    head = 0
    while head < tail:
        child = first_child[order[head]]
        head += 1
        while child >= 0:
            order[tail] = child
            tail += 1
            child = next_sibling[child]


@njit(nogil=True, cache=True, error_model="numpy")
def span_of(offsets, clamped, j):
    """Give the codes that variable j may take as a range low..high-1."""
    if clamped[j] >= 0:
        return clamped[j], clamped[j] + 1
    return 0, offsets[j + 1] - offsets[j]


@njit(nogil=True, cache=True, error_model="numpy")
def send_up(table, offsets, clamped, parents, order, below, messages):
    """Fill `below` and `messages` (n, most values): what is below each value, and what each variable tells its parent.

    Returns
    -------
    the log of the sum, over all free values, of the product of the forest's arc weights; -inf where it is 0.
    """
    n = parents.shape[0]
    for j in range(n):
        low, high = span_of(offsets, clamped, j)
        for v in range(low, high):
            below[j, v] = 1.0
    mantissa, exponent = 1.0, 0
    for place in range(n - 1, -1, -1):
        j = order[place]
        low, high = span_of(offsets, clamped, j)
        p = parents[j]
        p_low, p_high = (0, 1) if p == ROOT else span_of(offsets, clamped, p)
        row = 0 if p == ROOT else 1 + offsets[p] + p_low
        column = offsets[j]
        largest = 0.0
        for u in range(p_low, p_high):
            total = 0.0
            for v in range(low, high):
                total += table[row, column + v] * below[j, v]
            messages[j, u] = total
            row += 1
            if p != ROOT:
                below[p, u] *= total
                largest = max(largest, below[p, u])
        if p == ROOT:
            mantissa *= messages[j, 0]
            largest = 1.0
        if largest == 0.0 or mantissa == 0.0:
            return -inf
        if not SMALL < largest < LARGE:
            exponent += _scale(below, p, p_low, p_high, largest)
        if not SMALL < mantissa < LARGE:
            mantissa, shift = frexp(mantissa)
            exponent += shift
    return log(mantissa) + exponent * LOG_2


@njit(nogil=True, cache=True, error_model="numpy")
def _scale(rows, j, low, high, largest):
    """Divide part of a row by a power of 2 near its largest entry; give the exponent."""
    _, shift = frexp(largest)
    for v in range(low, high):
        rows[j, v] = ldexp(rows[j, v], -shift)
    return shift


@njit(nogil=True, cache=True, error_model="numpy")
def draw_values(table, offsets, clamped, parents, order, below, generator, codes):
    """Draw the free values given the forest, after `send_up`; fills `codes` (n,)."""
    weights = np.empty(below.shape[1])
    for j in order:
        low, high = span_of(offsets, clamped, j)
        if high - low == 1:
            codes[j] = low
            continue
        p = parents[j]
        row = 0 if p == ROOT else 1 + offsets[p] + codes[p]
        for v in range(low, high):
            weights[v - low] = table[row, offsets[j] + v] * below[j, v]
        codes[j] = low + choose(weights[: high - low], generator.random())


@njit(nogil=True, cache=True, error_model="numpy")
def send_down(table, offsets, clamped, parents, order, below, messages, posterior):
    """Fill `posterior` (n, largest number of values) with P(X_j = v | forest, known values), after `send_up`."""
    for j in order:
        low, high = span_of(offsets, clamped, j)
        p = parents[j]
        total = 0.0
        for v in range(low, high):
            if p == ROOT:
                reach = table[0, offsets[j] + v]
            else:
                reach = 0.0
                p_low, p_high = span_of(offsets, clamped, p)
                for u in range(p_low, p_high):
                    if posterior[p, u] > 0.0:
                        reach += posterior[p, u] / messages[j, u] * table[1 + offsets[p] + u, offsets[j] + v]
            posterior[j, v] = reach * below[j, v]
            total += posterior[j, v]
        for v in range(low, high):
            posterior[j, v] /= total
