"""Rows of codes <-> arc matrices: the one step that knows how weights of a discrete model are laid out.

`table` is (S + 1, S): row 0 the root, row 1 + u value u, column t the child value. Value index of variable i with code c is
offsets[i] + c.
"""

from math import log

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def fill_arc_matrices(table, offsets, codes, matrices):
    """Fill `matrices` (rows, n + 1, n) with the arc weights between the values of each row of `codes`."""
    rows, n = codes.shape
    values = np.empty(n, dtype=np.int64)
    for row in range(rows):
        for i in range(n):
            values[i] = offsets[i] + codes[row, i]
        for j in range(n):
            matrices[row, 0, j] = table[0, values[j]]
        for i in range(n):
            for j in range(n):
                matrices[row, 1 + i, j] = table[1 + values[i], values[j]]


@njit(nogil=True, cache=True, error_model="numpy")
def add_marginals(marginals, offsets, codes, row_weights, counts):
    """Add the arc marginals of each row, times its weight, to `counts` (S + 1, S)."""
    rows, n = codes.shape
    values = np.empty(n, dtype=np.int64)
    for row in range(rows):
        weight = row_weights[row]
        for i in range(n):
            values[i] = offsets[i] + codes[row, i]
        for j in range(n):
            counts[0, values[j]] += weight * marginals[row, 0, j]
        for i in range(n):
            for j in range(n):
                counts[1 + values[i], values[j]] += weight * marginals[row, 1 + i, j]


@njit(nogil=True, cache=True, error_model="numpy")
def add_log_stops(stop, offsets, codes, sums):
    """Add to `sums` (rows,) the log stop weights of the root and of the values of each row."""
    rows, n = codes.shape
    logs = np.empty(stop.shape[0])
    for t in range(stop.shape[0]):
        logs[t] = log(stop[t])
    for row in range(rows):
        total = logs[0]
        for i in range(n):
            total += logs[1 + offsets[i] + codes[row, i]]
        sums[row] += total
