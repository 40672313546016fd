"""Forest sums and arc marginals of arc matrices.

An arc matrix is (n + 1, n): row 0 the weights of the arcs from the root, row 1 + i those from variable i; columns are children;
the entries i -> i are 0. It is all that these kernels see of a row of a table.

    forest sum       Z = sum over forests of the product of their arc weights = det L (matrix-tree theorem)
    arc marginal     mu[i, j] = arcs[i, j] * escape(i, j) / sum over i' of arcs[i', j] * escape(i', j)

with escape(i, j) the probability that the walk "go to the parent" from i comes to the root before j. (With G = inv(L),
G[j, i] / G[j, j] is the probability that it meets j, so this is the textbook's arcs[i, j] (G[j, j] - G[j, i]) without its
subtraction: columns sum to 1 and entries lie in [0, 1] whatever the weights are.) Leaving j alone in the elimination gives
escape(., j) for all i at once, and the schedule of `elimination` does so for every j in 1.5 n^3 multiplications.
"""

from math import inf

import numpy as np
from numba import njit

from ldfm.kernels import extended_range
from ldfm.kernels.elimination import (
    BLOCK,
    LOST_AT_START,
    VISIBLE,
    condense,
    eliminate,
    leave_alone,
    log_of,
    scale_columns,
    task_at,
    times,
)
from ldfm.kernels.lanes import LANES, add_rows

_log_forest_sum_extended = extended_range.log_forest_sum
_arc_marginals_extended = extended_range.arc_marginals


@njit(nogil=True, cache=True, error_model="numpy")
def _load_lanes(matrices, start, work, scales):
    """Scale the columns of four arc matrices into the walk matrix of level 0, the last one again where rows run out.

    Fills `scales` = (mantissas, exponents) with the product of the column sums, a lane each; gives whether to trust them.
    """
    mantissas, exponents = scales
    trusted = True
    for lane in range(LANES):
        row = min(start + lane, matrices.shape[0] - 1)
        mantissas[lane], exponents[lane], fine = scale_columns(matrices[row], lane, work.steps, work.inverses)
        trusted = trusted and fine
    work.lost[0] = LOST_AT_START
    return trusted


@njit(nogil=True, cache=True, error_model="numpy")
def _log_sum(scales, products, lane):
    """Give log Z of a lane from the column sums and the product of the `leave`s, rounded at the size of the result."""
    mantissas, exponents = scales
    mantissa, exponent = times(mantissas[lane], exponents[lane], products[lane])
    return log_of(mantissa, exponent)


@njit(nogil=True, cache=True, error_model="numpy")
def log_forest_sums(matrices, work, sums):
    """Fill `sums` (rows,) with log Z of each of `matrices` (rows, n + 1, n); O(n^3 / 3) a row.

    -inf where some variable cannot be reached from the root.
    """
    rows, height, _ = matrices.shape
    scales = np.empty(LANES), np.empty(LANES, dtype=np.int64)
    products = np.empty(LANES)
    # plain numbers have types of their own: `eliminate` would be compiled once more
    none, one = np.int64(0), np.int64(1)
    for start in range(0, rows, LANES):
        trusted = _load_lanes(matrices, start, work, scales)
        if trusted:
            products[:] = 1.0
            trusted = eliminate(work.steps, none, work.multiples, height, one, none, LOST_AT_START, products) < inf
        for lane in range(min(LANES, rows - start)):
            if trusted:
                sums[start + lane] = _log_sum(scales, products, lane)
            else:
                sums[start + lane] = _log_forest_sum_extended(matrices[start + lane])


@njit(nogil=True, cache=True, error_model="numpy")
def _escapes_of_block(work, base, block, lost, products, aside):
    """Leave each variable of a block alone in turn; fill its rows of `work.escapes`; give whether to trust them."""
    low, high = block
    size = high - low
    least = inf
    for alone in range(size):
        least = min(least, leave_alone(work.steps, base, block, alone, work.multiples, aside))
        if low + alone == 0:
            for lane in range(LANES):
                products[lane] *= aside[lane]
        for i in range(work.steps.shape[1]):
            work.escapes[low + alone, i] = work.steps[base, i]
    add_rows(work.escapes, low, work.steps, base + 1, size, work.multiples, (0, size), work.steps.shape[1] // LANES)
    return lost * (2.0 + 1.0 / least) ** (size - 1) <= least * VISIBLE


@njit(nogil=True, cache=True, error_model="numpy")
def _escapes(work, height, products, aside):
    """Leave every variable alone in turn; fill `work.escapes`, multiply into `products`; give whether to trust them."""
    for t in range(work.schedule.shape[0]):
        task = task_at(work.schedule, t)
        low, high, level = task[0], task[1], task[4]
        if not condense(work, height, task, products if low == 0 else aside):
            return False
        if high - low <= BLOCK and not _escapes_of_block(
            work, level * height, (low, high), work.lost[level], products, aside
        ):
            return False
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def _weigh_and_normalise(arcs, work, lane, marginals):
    """Turn the escape probabilities of one lane into arc marginals."""
    n = arcs.shape[1]
    escapes, inverses, totals = work.escapes, work.inverses, work.multiples
    for j in range(n):
        # scaled as the walk matrix is, so that no product underflows unless `lost` says so
        marginals[0, j] = arcs[0, j] * inverses[lane, j]
        totals[0, j] = marginals[0, j]
    for i in range(n):
        for j in range(n):
            weight = arcs[1 + i, j] * inverses[lane, j] * escapes[j, LANES * i + lane]
            marginals[1 + i, j] = weight
            totals[0, j] += weight
    for j in range(n):
        totals[0, j] = 1.0 / totals[0, j]
    for i in range(n + 1):
        for j in range(n):
            marginals[i, j] *= totals[0, j]


@njit(nogil=True, cache=True, error_model="numpy")
def arc_marginals(matrices, work, sums, marginals):
    """Fill `sums` (rows,) with log Z and `marginals` (rows, n + 1, n) with P(arc in the forest of the row); O(1.5 n^3) a row.

    Where Z = 0 there is no forest: the marginals are all 0 and log Z is -inf. `marginals` must not be `matrices`.
    """
    rows, height, _ = matrices.shape
    scales = np.empty(LANES), np.empty(LANES, dtype=np.int64)
    products, aside = np.empty(LANES), np.ones(LANES)
    for start in range(0, rows, LANES):
        trusted = _load_lanes(matrices, start, work, scales)
        if trusted:
            products[:] = 1.0
            trusted = _escapes(work, height, products, aside)
        for lane in range(min(LANES, rows - start)):
            row = start + lane
            if trusted:
                _weigh_and_normalise(matrices[row], work, lane, marginals[row])
                sums[row] = _log_sum(scales, products, lane)
            else:
                sums[row] = _arc_marginals_extended(matrices[row], work.extended_schedule, marginals[row])
