"""One cell of many states: its conditional probability, and to clamp it; and climbing to the top of a row's density."""

from math import inf

import numpy as np
from numba import njit

from ldfm.kernels.best_forest import best_forest_of_logs
from ldfm.kernels.mixed_arcs import fill_logs, fill_rests, log_sum_of_logs
from ldfm.kernels.mixed_cells import clamp_cell, log_conditional
from ldfm.kernels.mixed_numbers import normal_of_numbers
from ldfm.kernels.mixed_sweeps import free_numbers, make_scratch


@njit(nogil=True, cache=True, error_model="numpy")
def fill_conditionals(model, known, cells, parents, order, values, logs):
    """Fill `logs` (states, order) with the log conditional of each cell of `order` at `values` (n,), one by one.

    `known` (n,) has the known cells, which numbers that are integrated out are not among.
    """
    scratch, rests = make_scratch(model), np.empty(cells.shape[1])
    for p in range(cells.shape[0]):
        fill_rests(model, cells[p], rests)
        for place in range(order.shape[0]):
            i = order[place]
            logs[p, place] = log_conditional(model, known, cells[p], rests, parents[p], i, values[i], scratch)


@njit(nogil=True, cache=True, error_model="numpy")
def clamp_cells_of(model, known, cells, parents, i, value, generator):
    """Set x_i in every state (states, n), and draw what its conditional left out."""
    scratch, rests = make_scratch(model), np.empty(cells.shape[1])
    for p in range(cells.shape[0]):
        fill_rests(model, cells[p], rests)
        clamp_cell(model, known, cells[p], rests, parents[p], i, value, scratch, generator)


@njit(nogil=True, cache=True, error_model="numpy")
def _log_sum_of(model, cells, rests, matrices):
    """Give the log forest sum of a row of cells."""
    fill_rests(model, cells, rests)
    fill_logs(model, rests, matrices[0])
    return log_sum_of_logs(matrices[0], matrices[1])


@njit(nogil=True, cache=True, error_model="numpy")
def _jump(model, cells, rests, free, best, matrices):
    """Move all free numbers to the top given the best forest, if that makes the row more probable; give its log forest sum."""
    count, n = free.shape[0], cells.shape[0]
    factor, mean, parents = np.empty((count, count)), np.empty(count), np.empty(n, dtype=np.int64)
    fill_rests(model, cells, rests)
    fill_logs(model, rests, matrices[0])
    best_forest_of_logs(matrices[0], parents)
    if parents[0] < -1 or not normal_of_numbers(model, rests, parents, free, factor, mean)[0]:
        return best
    moved = cells.copy()
    moved[free] += mean
    found = _log_sum_of(model, moved, rests, matrices)
    if found > best + 1e-12 * abs(best):
        cells[free] = moved[free]
        return found
    return best


@njit(nogil=True, cache=True, error_model="numpy")
def climb_cells(model, known, cells, matrices):
    """Change free cells of one row as long as that makes it more probable; give the log forest sum at the top.

    Values by trying all, numbers by steps that double where they help and shrink where they do not, and all together given the best
    forest: one at a time they would go along a ridge in very small steps where a relation ties them.
    """
    n = cells.shape[0]
    rests, free, steps = np.empty(n), free_numbers(model, known), np.full(n, 0.5)
    best = _log_sum_of(model, cells, rests, matrices)
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
                found = _log_sum_of(model, cells, rests, matrices)
                # rounding must not make it go round in circles
                if found > best + 1e-12 * abs(best) or (best == -inf and found > -inf):
                    best, top = found, cells[i]
            cells[i] = top
            if number:
                steps[i] *= 2.0 if top != now else 0.35
                moving = moving or top != now or steps[i] > 1e-4
            else:
                moving = moving or top != now
        if len(free) > 1:
            top = _jump(model, cells, rests, free, best, matrices)
            moving = moving or top > best + 1e-9 * abs(best)
            best = top
    return best
