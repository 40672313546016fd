"""One cell of a row given all other cells and the forest: conditional distributions and draws.

A value given the forest has the weight of its arc from the parent times those of its arcs to the children. For a continuous
variable the parent and continuous children give a normal density. Discrete children multiply it by softmaxes, which are
log-concave: one peak is left, sums over a grid give its moments, and elliptical slice sampling (Murray, Adams and MacKay, 2010)
draws from it.
"""

from math import cos, exp, inf, log, pi, sin, sqrt

import numpy as np
from numba import njit

from ldfm.kernels.extended_range import choose
from ldfm.kernels.mixed_arcs import log_arc, log_share, state_of

GRID, REACH = 96, 7.0  # points of a grid each side of the mean, and how far it goes in standard deviations
LOG_2_PI = log(2.0 * pi)


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
def log_of_values(model, cells, parent, children, i, logs):
    """Fill `logs` with the log weight of each value of discrete i, given its parent and children; give their number."""
    k = model.offsets[i + 1] - model.offsets[i]
    now = cells[i]
    for v in range(k):
        cells[i] = v
        logs[v] = log_arc(model, cells, parent, i)
        for c in children:
            logs[v] += log_arc(model, cells, i, c)
    cells[i] = now
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
def normal_of_children(model, cells, children, i):
    """Give what continuous children say of continuous i: precision, precision times mean, log factor; and whether all are."""
    row = 1 + model.offsets[i]
    precision, weighted, log_factor = 0.0, 0.0, 0.0
    others = False
    for c in children:
        if model.continuous[c]:
            t = model.offsets[c]
            slope = model.slopes[row, t] * model.precisions[row, t]
            rest = (cells[c] - model.intercepts[row, t]) * model.precisions[row, t]
            precision += slope * slope
            weighted += slope * rest
            log_factor += model.log_table[row, t] - 0.5 * rest * rest
        else:
            log_factor += model.log_table[row, state_of(model, cells, c)]
            others = True
    return precision, weighted, log_factor, others


@njit(nogil=True, cache=True, error_model="numpy")
def normal_given(model, cells, parent, i, from_children):
    """Give log of the integral over x_i, mean and standard deviation, of the parent's density times what children say."""
    precision, weighted, log_factor = from_children
    t = model.offsets[i]
    row, x = 0, 0.0
    if parent >= 0:
        row = 1 + state_of(model, cells, parent)
        if model.continuous[parent]:
            x = cells[parent]
    centre = model.intercepts[row, t] + model.slopes[row, t] * x
    own = model.precisions[row, t] * model.precisions[row, t]
    whole = own + precision
    mean = (own * centre + weighted) / whole
    log_integral = model.log_table[row, t] + log_factor + 0.5 * (LOG_2_PI - log(whole))
    # completed square, in differences from the mean so that nothing large cancels
    log_integral -= 0.5 * own * centre * (centre - mean) - 0.5 * weighted * mean
    return log_integral, mean, 1.0 / sqrt(whole)


@njit(nogil=True, cache=True, error_model="numpy")
def log_softmaxes(model, cells, children, i, x):
    """Give the log of the probabilities that x_i = x gives the values of its discrete children."""
    row = 1 + model.offsets[i]
    total = 0.0
    for c in children:
        if not model.continuous[c]:
            low, high = model.offsets[c], model.offsets[c + 1]
            total += log_share(model, row, low, high, low + np.int64(cells[c]), x)
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def softmax_moments(model, cells, children, i, mean, deviation):
    """Give the log of the mean of the softmaxes under a normal density, and mean and deviation of their product with it."""
    step = REACH / GRID
    logs = np.empty(2 * GRID + 1)
    largest = -inf
    for g in range(2 * GRID + 1):
        z = (g - GRID) * step
        logs[g] = log_softmaxes(model, cells, children, i, mean + deviation * z) - 0.5 * z * z
        largest = max(largest, logs[g])
    total, first, second = 0.0, 0.0, 0.0
    for g in range(2 * GRID + 1):
        z = (g - GRID) * step
        share = exp(logs[g] - largest)
        total += share
        first += share * z
        second += share * z * z
    first /= total
    spread = sqrt(max(second / total - first * first, 1e-12))
    return largest + log(total * step) - 0.5 * LOG_2_PI, mean + deviation * first, deviation * spread


@njit(nogil=True, cache=True, error_model="numpy")
def draw_on_ellipse(model, cells, children, i, mean, deviation, generator):
    """Move x_i by elliptical slice sampling: the normal density times softmaxes stays as it is."""
    now = cells[i] - mean
    other = deviation * generator.standard_normal()
    level = log_softmaxes(model, cells, children, i, cells[i]) + log(1.0 - generator.random())
    angle = 2.0 * pi * generator.random()
    low, high = angle - 2.0 * pi, angle
    while high - low > 1e-12:
        x = mean + now * cos(angle) + other * sin(angle)
        if log_softmaxes(model, cells, children, i, x) > level:
            return x
        if angle < 0.0:
            low = angle
        else:
            high = angle
        angle = low + (high - low) * generator.random()
    return cells[i]


@njit(nogil=True, cache=True, error_model="numpy")
def _draw_number(model, cells, parent, family, i, factor, others, generator):
    """Draw the number x_i given its parent and its children: `factor` stands for normal ones, `others` says if there are more."""
    _, mean, deviation = normal_given(model, cells, parent, i, factor)
    if others:
        cells[i] = draw_on_ellipse(model, cells, family, i, mean, deviation, generator)
    else:
        cells[i] = mean + deviation * generator.standard_normal()


@njit(nogil=True, cache=True, error_model="numpy")
def draw_given_parent(model, cells, parents, i, scratch, generator):
    """Draw x_i given the forest and all other cells."""
    children, logs, shares = scratch
    family = children[: children_of(parents, i, children)]
    if not model.continuous[i]:
        k = log_of_values(model, cells, parents[i], family, i, logs)
        if shares_of_logs(logs[:k], shares) > -inf:
            cells[i] = choose(shares[:k], generator.random())
        return
    precision, weighted, log_factor, others = normal_of_children(model, cells, family, i)
    _draw_number(model, cells, parents[i], family, i, (precision, weighted, log_factor), others, generator)


@njit(nogil=True, cache=True, error_model="numpy")
def record_given_parent(model, cells, parents, i, scratch, shares):
    """Add the distribution of a discrete cell given forest and other cells to `shares`; give mean and deviation of another."""
    children, logs, found = scratch
    family = children[: children_of(parents, i, children)]
    if not model.continuous[i]:
        k = log_of_values(model, cells, parents[i], family, i, logs)
        shares_of_logs(logs[:k], found)
        for v in range(k):
            shares[v] += found[v]
        return 0.0, 0.0
    precision, weighted, log_factor, others = normal_of_children(model, cells, family, i)
    _, mean, deviation = normal_given(model, cells, parents[i], i, (precision, weighted, log_factor))
    if others:
        _, mean, deviation = softmax_moments(model, cells, family, i, mean, deviation)
    return mean, deviation


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
def fill_parents(model, cells, i, below_i, logs):
    """Fill `logs` (n + 1,) with the log weights of all arcs into i, the root first; -inf from what is below it."""
    # `log_arc` for every parent, written out: calls with all arrays of a model cost more than the arithmetic
    log_table, offsets, continuous = model.log_table, model.offsets, model.continuous
    t = offsets[i] if continuous[i] else offsets[i] + np.int64(cells[i])
    for k in range(cells.shape[0] + 1):
        row, x, from_number = 0, 0.0, False
        if k > 0:
            if below_i[k - 1]:
                logs[k] = -inf
                continue
            from_number, row = continuous[k - 1], 1 + offsets[k - 1]
            if from_number:
                x = cells[k - 1]
            else:
                row += np.int64(cells[k - 1])
        logs[k] = log_table[row, t]
        if continuous[i]:
            z = (cells[i] - model.intercepts[row, t] - model.slopes[row, t] * x) * model.precisions[row, t]
            logs[k] -= 0.5 * z * z
        elif from_number and logs[k] > -inf:
            logs[k] += log_share(model, row, offsets[i], offsets[i + 1], t, x)


@njit(nogil=True, cache=True, error_model="numpy")
def fill_parents_of_normal(model, cells, i, below_i, from_children, logs):
    """Fill `logs` (n + 1,) with the log integrals of `normal_given` for all parents, up to a number they share."""
    precision, weighted = from_children
    offsets, continuous, t = model.offsets, model.continuous, model.offsets[i]
    for k in range(cells.shape[0] + 1):
        row, x = 0, 0.0
        if k > 0:
            if below_i[k - 1]:
                logs[k] = -inf
                continue
            row = 1 + offsets[k - 1]
            if continuous[k - 1]:
                x = cells[k - 1]
            else:
                row += np.int64(cells[k - 1])
        centre = model.intercepts[row, t] + model.slopes[row, t] * x
        own = model.precisions[row, t] * model.precisions[row, t]
        whole = own + precision
        mean = (own * centre + weighted) / whole
        logs[k] = model.log_table[row, t] - 0.5 * (log(whole) + own * centre * (centre - mean) - weighted * mean)


@njit(nogil=True, cache=True, error_model="numpy")
def draw_with_parent(model, cells, parents, i, free, scratch, generator):
    """Draw the parent of i, and x_i with it where it is free, given all other cells and the rest of the forest."""
    children, logs, shares = scratch
    n = cells.shape[0]
    below_i = np.empty(n, dtype=np.bool_)
    _mark_descendants(parents, i, below_i)
    if free and not model.continuous[i]:
        _draw_value_with_parent(model, cells, parents, i, below_i, scratch, generator)
        return
    family = children[: children_of(parents, i, children)]
    precision, weighted, log_factor, others = 0.0, 0.0, 0.0, True
    if free:
        precision, weighted, log_factor, others = normal_of_children(model, cells, family, i)
    if others:  # the parent given the cell
        fill_parents(model, cells, i, below_i, logs)
    else:  # the parent, the cell integrated out
        fill_parents_of_normal(model, cells, i, below_i, (precision, weighted), logs)
    if shares_of_logs(logs[: n + 1], shares) > -inf:
        parents[i] = choose(shares[: n + 1], generator.random()) - 1
    if free:
        _draw_number(model, cells, parents[i], family, i, (precision, weighted, log_factor), others, generator)


@njit(nogil=True, cache=True, error_model="numpy")
def _draw_value_with_parent(model, cells, parents, i, below_i, scratch, generator):
    """Draw value and parent of a discrete variable together."""
    children, logs, shares = scratch
    n, k = cells.shape[0], model.offsets[i + 1] - model.offsets[i]
    family = children[: children_of(parents, i, children)]
    now = cells[i]
    for v in range(k):
        cells[i] = v
        below = 0.0
        for c in family:
            below += log_arc(model, cells, i, c)
        here = logs[v * (n + 1) : (v + 1) * (n + 1)]
        fill_parents(model, cells, i, below_i, here)
        for place in range(n + 1):
            here[place] += below
    cells[i] = now
    if shares_of_logs(logs[: k * (n + 1)], shares) > -inf:
        chosen = choose(shares[: k * (n + 1)], generator.random())
        cells[i] = chosen // (n + 1)
        parents[i] = chosen % (n + 1) - 1


@njit(nogil=True, cache=True, error_model="numpy")
def log_conditional(model, cells, parents, i, value, scratch):
    """Give log p(x_i = value | all other cells, the forest without the arc into i)."""
    children, logs, shares = scratch
    n = cells.shape[0]
    below_i = np.empty(n, dtype=np.bool_)
    _mark_descendants(parents, i, below_i)
    family = children[: children_of(parents, i, children)]
    now = cells[i]
    cells[i] = value
    above, below = -inf, 0.0
    for c in family:
        below += log_arc(model, cells, i, c)
    for p in range(-1, n):
        logs[1 + p] = -inf if p >= 0 and below_i[p] else log_arc(model, cells, p, i)
    above = shares_of_logs(logs[: n + 1], shares)
    if not model.continuous[i]:
        k = model.offsets[i + 1] - model.offsets[i]
        for v in range(k):
            cells[i] = v
            for p in range(-1, n):
                logs[p + 1] = -inf if p >= 0 and below_i[p] else log_arc(model, cells, p, i)
            total = shares_of_logs(logs[: n + 1], shares)
            for c in family:
                total += log_arc(model, cells, i, c)
            logs[n + 1 + v] = total
        whole = shares_of_logs(logs[n + 1 : n + 1 + k], shares)
    else:
        precision, weighted, log_factor, others = normal_of_children(model, cells, family, i)
        for p in range(-1, n):
            if p >= 0 and below_i[p]:
                logs[1 + p] = -inf
                continue
            found = normal_given(model, cells, p, i, (precision, weighted, log_factor))
            logs[1 + p] = found[0]
            if others and found[0] > -inf:
                logs[1 + p] += softmax_moments(model, cells, family, i, found[1], found[2])[0]
        whole = shares_of_logs(logs[: n + 1], shares)
    cells[i] = now
    return above + below - whole if whole > -inf else -inf
