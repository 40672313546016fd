"""The forest sum of one arc matrix at a time: `forest_sums` does four in the time of two or three.

The elimination is that of `elimination`, without a subtraction and so with a relative error near that of one operation, but
turned around: row l of `steps` is the walk up from l, column 0 the root and column 1 + j variable j. PANEL variables B leave
together. With M[p, q] the expected visits to q of the walk from p before it leaves B,

    steps[k, j] += sum over p, q in B of steps[k, p] M[p, q] steps[q, j]        for all k, j not in B,

and Z is the product of all sums of arcs into a variable and of the det(1 - steps) of all B, products of four `leave`s each.
"""

from math import nan
from typing import NamedTuple

import numpy as np
from numba import njit

from ldfm.kernels.elimination import LOST_AT_START, VISIBLE, log_of, times
from ldfm.kernels.panels import COLUMNS, PANEL, add_four_rows, mix_four_rows, take_factors

LEAST_SUM, LARGEST_SUM = 1e-290, 1e290  # between which doubles are trusted


class Elimination(NamedTuple):
    """Scratch arrays for one arc matrix.

    Attributes
    ----------
    steps
        (rows, width): as above.
    factors
        (rows, PANEL): M, and what of the rows of a panel the others receive.
    block
        (PANEL, PANEL + 1): steps within a panel; last the steps out of it.
    """

    steps: np.ndarray
    factors: np.ndarray
    block: np.ndarray


@njit(nogil=True, cache=True, error_model="numpy")
def make_arcs(n):
    """Allocate (rows, width) for the arcs into n variables, the root in column 0; filled up with zeros."""
    return np.zeros((-(-n // PANEL) * PANEL, (-(-n // COLUMNS) + 1) * COLUMNS))


@njit(nogil=True, cache=True, error_model="numpy")
def make_elimination(n):
    """Allocate the scratch arrays."""
    steps = make_arcs(n)
    return Elimination(steps, np.zeros((steps.shape[0], PANEL)), np.zeros((PANEL, PANEL + 1)))


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _sum_of_row(matrix, row, stop):
    total = 0.0
    for k in range(stop):
        total += matrix[row, k]
    return total


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _load(arcs, n, steps):
    """Divide each row by its sum; give the product of the sums (mantissa, exponent), mantissa 0 where they are not trusted."""
    rows, width = arcs.shape
    product, exponent = 1.0, 0
    for j in range(n):
        total = _sum_of_row(arcs, j, width)
        if not LEAST_SUM < total < LARGEST_SUM:
            return 0.0, 0
        product, exponent = times(product, exponent, total)
        scale = 1.0 / total
        for k in range(width):
            steps[j, k] = arcs[j, k] * scale
    for j in range(n, rows):
        for k in range(width):
            steps[j, k] = 1.0 if k == 0 else 0.0
    return product, exponent


@njit(nogil=True, cache=True, error_model="numpy")
def _leave_panel(work, first, lost):
    """Fill the rows of `factors` of a panel with -M; give the product of its `leave`s and the new `lost` (nan: not trusted)."""
    steps, factors, block = work.steps, work.factors, work.block
    product = 1.0
    for p in range(PANEL):
        for q in range(PANEL):
            block[p, q] = steps[first + p, 1 + first + q]
            factors[first + p, q] = -1.0 if p == q else 0.0
        block[p, PANEL] = _sum_of_row(steps, first + p, 1 + first)
    for q in range(PANEL - 1, -1, -1):
        leave = block[q, PANEL]
        for r in range(q):
            leave += block[q, r]
        if not lost <= leave * VISIBLE:
            return product, nan
        # an entry is off by lost itself, by lost / leave in a multiple of a number <= 1, by a multiple <= 1 of lost
        lost *= 2.0 + 1.0 / leave
        product *= leave
        for r in range(PANEL + 1):
            block[q, r] /= leave
        for r in range(PANEL):
            factors[first + q, r] /= leave
        for p in range(PANEL):
            if p == q:
                continue
            share = block[p, q]
            # variables above q are gone; the walk's stays at p are cut out
            for r in range(q):
                block[p, r] += share * block[q, r]
            block[p, PANEL] += share * block[q, PANEL]
            for r in range(PANEL):
                factors[first + p, r] += share * factors[first + q, r]
    return product, lost


@njit(nogil=True, cache=True, error_model="numpy")
def log_forest_sum(arcs, n, work):
    """Give log Z, nan where doubles cannot be trusted to give it (Z = 0 among them); O(n^3 / 3)."""
    mantissa, exponent = _load(arcs, n, work.steps)
    if mantissa == 0.0:
        return nan
    lost = LOST_AT_START
    for first in range(arcs.shape[0] - PANEL, -1, -PANEL):
        product, lost = _leave_panel(work, first, lost)
        if not lost >= 0.0:
            return nan
        mantissa, exponent = times(mantissa, exponent, product)
        stop = 1 + first
        mix_four_rows(work.steps, first, work.factors, stop)
        take_factors(work.steps, stop, work.factors, 0, first)
        # both the rows of the panel and the factors carry a minus
        add_four_rows(work.steps, first, work.factors, 0, first, stop)
    return log_of(mantissa, exponent)
