"""One cell of many states: its conditional probability, its parent; and climbing, cell by cell."""

from math import inf

import numpy as np
from numba import njit

from ldfm.kernels.mixed_arcs import fill_logs, log_sum_of_logs
from ldfm.kernels.mixed_cells import draw_with_parent, log_conditional
from ldfm.kernels.mixed_sweeps import make_scratch


@njit(nogil=True, cache=True, error_model="numpy")
def fill_conditionals(model, cells, parents, order, values, logs):
    """Fill `logs` (states, order) with the log conditional of each cell of `order` at `values` (n,), one by one."""
    scratch = make_scratch(model)
    for p in range(cells.shape[0]):
        for place in range(order.shape[0]):
            i = order[place]
            logs[p, place] = log_conditional(model, cells[p], parents[p], i, values[i], scratch)


@njit(nogil=True, cache=True, error_model="numpy")
def draw_parents_of(model, cells, parents, i, generator):
    """Draw the parent of i in every state (states, n), given all cells and the rest of the forest."""
    scratch = make_scratch(model)
    for p in range(cells.shape[0]):
        draw_with_parent(model, cells[p], parents[p], i, False, scratch, generator)


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
