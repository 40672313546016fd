"""One cell of a row and its parent, given all other cells and the rest of the forest: conditional distributions and draws.

A value given the forest has the weight of its arc from the parent times those of its arcs to the children. For numbers see
`mixed_numbers`. `rests` is what relations leave of `cells`, and is kept in step with them.
"""

from math import exp, inf, log

import numpy as np
from numba import njit

from ldfm.kernels.extended_range import choose
from ldfm.kernels.mixed_arcs import log_arc, log_share
from ldfm.kernels.mixed_numbers import (
    draw_number,
    draw_numbers,
    fill_parents_of_tied,
    free_together,
    log_softmaxes,
    move_number,
    normal_given,
    pull_of_others,
    softmax_moments,
)


@njit(nogil=True, cache=True, error_model="numpy")
def children_of(parents, i, children):
    """Fill `children` with the children of i; give how many there are."""
    count = 0
    for c in range(parents.shape[0]):
        if parents[c] == i:
            children[count] = c
            count += 1
    return count


@njit(nogil=True, cache=True, error_model="numpy")
def log_of_values(model, rests, parent, children, i, logs):
    """Fill `logs` with the log weight of each value of discrete i, given its parent and children; give their number."""
    k = model.offsets[i + 1] - model.offsets[i]
    now = rests[i]
    for v in range(k):
        rests[i] = v
        logs[v] = log_arc(model, rests, parent, i)
        for c in children:
            logs[v] += log_arc(model, rests, i, c)
    rests[i] = now
    return k


@njit(nogil=True, cache=True, error_model="numpy")
def shares_of_logs(logs, shares):
    """Fill `shares` with the distribution that has these log weights; give the log of their sum."""
    largest, total = -inf, 0.0
    for k in range(logs.shape[0]):
        largest = max(largest, logs[k])
    if largest == -inf:
        shares[: logs.shape[0]] = 0.0
        return -inf
    for k in range(logs.shape[0]):
        shares[k] = exp(logs[k] - largest)
        total += shares[k]
    for k in range(logs.shape[0]):
        shares[k] /= total
    return largest + log(total)


@njit(nogil=True, cache=True, error_model="numpy")
def draw_value(model, cells, rests, parents, i, scratch, generator):
    """Draw discrete x_i given the forest and all other cells."""
    children, logs, shares = scratch
    family = children[: children_of(parents, i, children)]
    k = log_of_values(model, rests, parents[i], family, i, logs)
    if shares_of_logs(logs[:k], shares) > -inf:
        cells[i] = rests[i] = choose(shares[:k], generator.random())


@njit(nogil=True, cache=True, error_model="numpy")
def record_value(model, rests, parents, i, scratch, shares):
    """Add the distribution of discrete x_i given the forest and all other cells to `shares`."""
    children, logs, found = scratch
    family = children[: children_of(parents, i, children)]
    k = log_of_values(model, rests, parents[i], family, i, logs)
    shares_of_logs(logs[:k], found)
    for v in range(k):
        shares[v] += found[v]


@njit(nogil=True, cache=True, error_model="numpy")
def _mark_descendants(parents, i, below_i):
    """Mark i and all variables below it."""
    n = parents.shape[0]
    below_i[:] = False
    below_i[i] = True
    changed = True
    while changed:
        changed = False
        for j in range(n):
            if not below_i[j] and parents[j] >= 0 and below_i[parents[j]]:
                below_i[j] = True
                changed = True


@njit(nogil=True, cache=True, error_model="numpy")
def fill_parents(model, rests, i, below_i, logs):
    """Fill `logs` (n + 1,) with the log weights of all arcs into i, the root first; -inf from what is below it."""
    # `log_arc` for every parent, written out: calls with all arrays of a model cost more than the arithmetic
    log_table, offsets, continuous = model.log_table, model.offsets, model.continuous
    t = offsets[i] if continuous[i] else offsets[i] + np.int64(rests[i])
    for k in range(rests.shape[0] + 1):
        row, x, from_number = 0, 0.0, False
        if k > 0:
            if below_i[k - 1]:
                logs[k] = -inf
                continue
            from_number, row = continuous[k - 1], 1 + offsets[k - 1]
            if from_number:
                x = rests[k - 1]
            else:
                row += np.int64(rests[k - 1])
        logs[k] = log_table[row, t]
        if continuous[i]:
            z = (rests[i] - model.intercepts[row, t] - model.slopes[row, t] * x) * model.precisions[row, t]
            logs[k] -= 0.5 * z * z
        elif from_number and logs[k] > -inf:
            logs[k] += log_share(model, row, offsets[i], offsets[i + 1], t, x)


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_parents_of_number(model, rests, parents, i, below_i, pull, logs):
    """Fill `logs` (n + 1,) with the log integrals of `normal_given` for all parents, softmaxes included."""
    precision, best, others = pull
    for p in range(-1, rests.shape[0]):
        if p >= 0 and below_i[p]:
            logs[1 + p] = -inf
            continue
        logs[1 + p], mean, deviation = normal_given(model, rests, p, i, precision, best)
        if others and logs[1 + p] > -inf:
            logs[1 + p] += softmax_moments(model, rests, parents, i, mean, deviation)[0]


@njit(nogil=True, cache=True, error_model="numpy")
def draw_with_parent(model, cells, rests, parents, i, free, scratch, generator):
    """Draw the parent of i, and x_i with it where it is free, given all other cells and the rest of the forest."""
    _, logs, shares = scratch
    n = cells.shape[0]
    below_i = np.empty(n, dtype=np.bool_)
    _mark_descendants(parents, i, below_i)
    if free and not model.continuous[i]:
        _draw_value_with_parent(model, cells, rests, parents, i, below_i, scratch, generator)
        return
    pull = (0.0, 0.0, True)
    if free:
        pull = pull_of_others(model, rests, parents, i)
    if pull[2]:  # the parent given the cell
        fill_parents(model, rests, i, below_i, logs)
    else:  # the parent, the cell integrated out
        _fill_parents_of_number(model, rests, parents, i, below_i, pull, logs)
    if shares_of_logs(logs[: n + 1], shares) > -inf:
        parents[i] = choose(shares[: n + 1], generator.random()) - 1
    if free:
        draw_number(model, cells, rests, parents, i, pull, generator)


@njit(nogil=True, cache=True, error_model="numpy")
def _draw_value_with_parent(model, cells, rests, parents, i, below_i, scratch, generator):
    """Draw value and parent of a discrete variable together."""
    children, logs, shares = scratch
    n, k = cells.shape[0], model.offsets[i + 1] - model.offsets[i]
    family = children[: children_of(parents, i, children)]
    for v in range(k):
        rests[i] = v
        below = 0.0
        for c in family:
            below += log_arc(model, rests, i, c)
        here = logs[v * (n + 1) : (v + 1) * (n + 1)]
        fill_parents(model, rests, i, below_i, here)
        for place in range(n + 1):
            here[place] += below
    rests[i] = cells[i]
    if shares_of_logs(logs[: k * (n + 1)], shares) > -inf:
        chosen = choose(shares[: k * (n + 1)], generator.random())
        cells[i] = rests[i] = chosen // (n + 1)
        parents[i] = chosen % (n + 1) - 1


@njit(nogil=True, cache=True, error_model="numpy")
def log_conditional(model, known, cells, rests, parents, i, value, scratch):
    """Give log p(x_i = value | the forest without the arc into i, and other cells); of number i but for other free numbers.

    These are integrated out where no softmax depends on them.
    """
    children, logs, shares = scratch
    n = cells.shape[0]
    below_i = np.empty(n, dtype=np.bool_)
    _mark_descendants(parents, i, below_i)
    if model.continuous[i]:
        group, both = free_together(model, known, parents, i), np.empty((2, n + 1))
        if not fill_parents_of_tied(model, rests, parents, value - cells[i], below_i, group, both):
            _fill_parents_alone(model, rests, parents, i, value - cells[i], below_i, both)
        found, whole = shares_of_logs(both[0], shares), shares_of_logs(both[1], shares)
        return found - whole if whole > -inf else -inf
    k = model.offsets[i + 1] - model.offsets[i]
    family = children[: children_of(parents, i, children)]
    found = -inf
    for v in range(k):
        rests[i] = v
        fill_parents(model, rests, i, below_i, logs[: n + 1])
        total = shares_of_logs(logs[: n + 1], shares)
        for c in family:
            total += log_arc(model, rests, i, c)
        logs[n + 1 + v] = total
        if v == np.int64(value):
            found = total
    rests[i] = cells[i]
    whole = shares_of_logs(logs[n + 1 : n + 1 + k], shares)
    return found - whole if whole > -inf else -inf


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_parents_alone(model, rests, parents, i, t, below_i, logs):
    """Do as `fill_parents_of_tied` does, all other numbers given."""
    moves = model.steps[i]
    precision, best, others = pull_of_others(model, rests, parents, i)
    fill_parents(model, rests + t * moves, i, below_i, logs[0])
    logs[0] -= 0.5 * precision * (t - best) ** 2
    if others:
        logs[0] += log_softmaxes(model, rests, parents, moves, t, moves, 0.0)
    _fill_parents_of_number(model, rests, parents, i, below_i, (precision, best, others), logs[1])


@njit(nogil=True, cache=True, error_model="numpy")
def clamp_cell(model, known, cells, rests, parents, i, value, scratch, generator):
    """Set x_i, and draw its parent, and the numbers that `log_conditional` integrates out, given the rest of the forest."""
    shares, n = scratch[2], cells.shape[0]
    if not model.continuous[i]:
        cells[i] = rests[i] = value
        draw_with_parent(model, cells, rests, parents, i, False, scratch, generator)
        return
    below_i, both = np.empty(n, dtype=np.bool_), np.empty((2, n + 1))
    _mark_descendants(parents, i, below_i)
    group = free_together(model, known, parents, i)
    tied = fill_parents_of_tied(model, rests, parents, value - cells[i], below_i, group, both)
    if not tied:
        _fill_parents_alone(model, rests, parents, i, value - cells[i], below_i, both)
    if shares_of_logs(both[0], shares) > -inf:
        parents[i] = choose(shares[: n + 1], generator.random()) - 1
    move_number(model, cells, rests, i, value - cells[i])
    cells[i] = value
    if tied and len(group) > 1:
        draw_numbers(model, cells, rests, parents, group[:-1], generator)
