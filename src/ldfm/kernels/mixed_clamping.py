"""Sequential Monte Carlo by clamping, for mixed models: the probability or density of some cells given others, one at a time.

A population of states (cells and forest) stands for the posterior given the cells clamped so far. A state gives the next cell the
probability it has given all other cells and the forest, its own parent summed out. The mean over the population estimates the
probability of the cell given those clamped; states are drawn in proportion to it, the cell is clamped, its parent is drawn, and
each state moves on by some sweeps. The product of the means is an unbiased estimate, if the first population was right.
"""

from math import exp, inf, log

import numpy as np
from numba import njit

from ldfm.kernels.mixed_arcs import fill_logs, log_sum_of_logs
from ldfm.kernels.mixed_cells import draw_with_parent, log_conditional
from ldfm.kernels.mixed_sweeps import BOTH, make_scratch, sweep


@njit(nogil=True, cache=True, error_model="numpy")
def _log_mean(logs):
    largest = -inf
    for log_weight in logs:
        largest = max(largest, log_weight)
    if largest == -inf:
        return -inf
    total = 0.0
    for log_weight in logs:
        total += exp(log_weight - largest)
    return largest + log(total / logs.shape[0])


@njit(nogil=True, cache=True, error_model="numpy")
def _draw_again(logs, log_mean, cells, parents, generator):
    """Draw states in proportion to their weights, systematically."""
    count = logs.shape[0]
    old_cells, old_parents = cells.copy(), parents.copy()
    point, reached, place = generator.random(), exp(logs[0] - log_mean), 0
    for p in range(count):
        while reached < point + p and place < count - 1:
            place += 1
            reached += exp(logs[place] - log_mean)
        cells[p] = old_cells[place]
        parents[p] = old_parents[place]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_conditionals(model, cells, parents, order, values, logs):
    """Fill `logs` (states, order) with the log conditional of each cell of `order` at `values` (n,), one by one."""
    scratch = make_scratch(model)
    for p in range(cells.shape[0]):
        for place in range(order.shape[0]):
            i = order[place]
            logs[p, place] = log_conditional(model, cells[p], parents[p], i, values[i], scratch)


@njit(nogil=True, cache=True, error_model="numpy")
def clamp_cells(model, known, cells, parents, order, values, sweeps, schedule, generator):
    """Clamp the cells of `order` to `values` (n,) in turn; give the log of the estimate.

    `cells` and `parents` (states, n) are the population given `known` (n,), and become one given `known` and those cells.
    """
    scratch = make_scratch(model)
    logs = np.empty(cells.shape[0])
    total = 0.0
    for i in order:
        for p in range(cells.shape[0]):
            logs[p] = log_conditional(model, cells[p], parents[p], i, values[i], scratch)
        log_mean = _log_mean(logs)
        if log_mean == -inf:
            return -inf
        total += log_mean
        _draw_again(logs, log_mean, cells, parents, generator)
        known[i] = values[i]
        for p in range(cells.shape[0]):
            cells[p, i] = values[i]
            draw_with_parent(model, cells[p], parents[p], i, False, scratch, generator)
            for _ in range(sweeps):
                sweep(model, known, cells[p], parents[p], BOTH, schedule, scratch, generator)
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def climb_cells(model, known, cells, matrices):
    """Change free cells of one row, one at a time, as long as that makes it more probable; give the log forest sum at the top.

    Values by trying all, numbers by steps that double where they help and shrink where they do not.
    """
    n = cells.shape[0]
    steps = np.full(n, 0.5)
    fill_logs(model, cells, matrices[0])
    best = log_sum_of_logs(matrices[0], matrices[1])
    moving = True
    while moving:
        moving = False
        for i in range(n):
            if not np.isnan(known[i]):
                continue
            number = model.continuous[i]
            count = 2 if number else model.offsets[i + 1] - model.offsets[i]
            now, top = cells[i], cells[i]
            for v in range(count):
                cells[i] = now + (steps[i] if v == 0 else -steps[i]) if number else v
                fill_logs(model, cells, matrices[0])
                found = log_sum_of_logs(matrices[0], matrices[1])
                # rounding must not make it go round in circles
                if found > best + 1e-12 * abs(best) or (best == -inf and found > -inf):
                    best, top = found, cells[i]
            cells[i] = top
            if number:
                steps[i] *= 2.0 if top != now else 0.35
                moving = moving or top != now or steps[i] > 1e-4
            else:
                moving = moving or top != now
    return best
