r"""Rows of cells <-> arc matrices of a model with continuous variables.

A row is `rests` (n,): the code of a discrete variable, and of a continuous one what its relation leaves of its cell, which is the
cell itself for one without a relation (see `ldfm.relations`). A continuous variable has one column and one row in every array
(S + 1, S): S counts the values of discrete variables and one state a continuous one. The weight of the arc from row u to column t
is table[u, t] times

    parent \ child         discrete value t                        continuous t
    root, discrete u       1                                       Normal(intercept, deviation)
    continuous u           softmax over the child's values of      Normal(intercept + slope x_u, deviation)
                           intercept + slope x_u

Densities of one row differ by factors that doubles do not hold, so weights are logs until each column is divided by its largest.
"""

from math import exp, inf, log
from typing import NamedTuple

import numpy as np
from numba import njit

from ldfm.kernels.wide_range import arc_marginals_of_logs, log_forest_sum_of_logs
from ldfm.types import Booleans, Floats, Integers

LEAST = -600.0  # below this a log forest sum of scaled columns may miss what underflowed: it is computed again
LEAST_LEAVE = 1e-280  # below this what underflowed could be seen in an elimination


class MixedModel(NamedTuple):
    """A model as kernels see it; the first four arrays are (S + 1, S).

    Attributes
    ----------
    log_table
        Log of the arc weights, each times the stop weight of its child; of arcs to continuous variables at the peak of the density.
    intercepts, slopes
        Of normal means and of logits.
    precisions
        One divided by the standard deviation.
    offsets
        (n + 1,): first column of each variable.
    continuous
        (n,): which variables are.
    most
        Largest number of values of a variable.
    related
        Whether any variable has a relation.
    steps
        (n, n): how far what is left of j moves with cell i, row i.
    levels
        (n,): what is left of cells that are all 0, turned round.
    """

    log_table: Floats
    intercepts: Floats
    slopes: Floats
    precisions: Floats
    offsets: Integers
    continuous: Booleans
    most: int
    related: bool
    steps: Floats
    levels: Floats


@njit(nogil=True, cache=True, error_model="numpy")
def fill_rests(model, cells, rests):
    """Fill `rests` (n,) with what relations leave of the cells of a row."""
    rests[:] = cells
    if not model.related:
        return
    n = cells.shape[0]
    for j in range(n):
        if model.continuous[j]:
            rests[j] = -model.levels[j]
            for i in range(n):
                if model.steps[i, j] != 0.0:  # codes have no part in it
                    rests[j] += cells[i] * model.steps[i, j]


@njit(nogil=True, cache=True, error_model="numpy")
def state_of(model, rests, i):
    """Give the state of variable i: its column, and its row less 1."""
    return model.offsets[i] if model.continuous[i] else model.offsets[i] + np.int64(rests[i])


@njit(nogil=True, cache=True, error_model="numpy")
def log_share(model, row, low, high, t, x):
    """Give the log of the softmax over the columns low..high-1 of intercept + slope x, at column t."""
    largest = -inf
    for v in range(low, high):
        largest = max(largest, model.intercepts[row, v] + model.slopes[row, v] * x)
    total = 0.0
    for v in range(low, high):
        total += exp(model.intercepts[row, v] + model.slopes[row, v] * x - largest)
    return model.intercepts[row, t] + model.slopes[row, t] * x - largest - log(total)


@njit(nogil=True, cache=True, error_model="numpy")
def log_arc(model, rests, parent, j):
    """Give the log weight of the arc from a variable, or from the root (-1), to j."""
    t = state_of(model, rests, j)
    row, x, from_number = 0, 0.0, False
    if parent >= 0:
        row = 1 + state_of(model, rests, parent)
        from_number = model.continuous[parent]
        if from_number:
            x = rests[parent]
    log_weight = model.log_table[row, t]
    if log_weight == -inf:
        return log_weight
    if model.continuous[j]:
        z = (rests[j] - model.intercepts[row, t] - model.slopes[row, t] * x) * model.precisions[row, t]
        return log_weight - 0.5 * z * z
    if from_number:
        return log_weight + log_share(model, row, model.offsets[j], model.offsets[j + 1], t, x)
    return log_weight


@njit(nogil=True, cache=True, error_model="numpy")
def fill_logs(model, rests, logs):
    """Fill `logs` (n + 1, n) with the log arc weights of one row."""
    # `log_arc` for every pair, written out: calls with all arrays of a model cost more than the arithmetic
    log_table, intercepts, slopes, precisions = model.log_table, model.intercepts, model.slopes, model.precisions
    offsets, continuous = model.offsets, model.continuous
    n = rests.shape[0]
    for k in range(n + 1):
        row, x, from_number = 0, 0.0, False
        if k > 0:
            from_number = continuous[k - 1]
            row = 1 + offsets[k - 1]
            if from_number:
                x = rests[k - 1]
            else:
                row += np.int64(rests[k - 1])
        for j in range(n):
            if continuous[j]:
                t = offsets[j]
                z = (rests[j] - intercepts[row, t] - slopes[row, t] * x) * precisions[row, t]
                logs[k, j] = log_table[row, t] - 0.5 * z * z
            else:
                t = offsets[j] + np.int64(rests[j])
                logs[k, j] = log_table[row, t]
                if from_number and logs[k, j] > -inf:
                    logs[k, j] += log_share(model, row, offsets[j], offsets[j + 1], t, x)
        if k > 0:
            logs[k, k - 1] = -inf


@njit(nogil=True, cache=True, error_model="numpy")
def scale_logs(logs, matrix):
    """Fill `matrix` with the weights, each column divided by its largest; give the sum of the logs of these."""
    height, n = logs.shape
    shift = 0.0
    for j in range(n):
        largest = -inf
        for k in range(height):
            largest = max(largest, logs[k, j])
        if largest == -inf:
            matrix[:, j] = 0.0
            continue
        shift += largest
        for k in range(height):
            matrix[k, j] = exp(logs[k, j] - largest)
    return shift


@njit(nogil=True, cache=True, error_model="numpy")
def fill_scaled(model, rows, matrices, shifts):
    """Fill `matrices` (rows, n + 1, n) with scaled arc matrices and `shifts` (rows,) with the logs of their scales."""
    logs = np.empty(matrices.shape[1:])
    for row in range(rows.shape[0]):
        fill_logs(model, rows[row], logs)
        shifts[row] = scale_logs(logs, matrices[row])


@njit(nogil=True, cache=True, error_model="numpy")
def finish_sums(model, rows, shifts, sums):
    """Turn log forest sums of scaled matrices into those of rows; what may have underflowed is computed again."""
    logs = np.empty((rows.shape[1] + 1, rows.shape[1]))
    for row in range(rows.shape[0]):
        if sums[row] > LEAST:
            sums[row] += shifts[row]
        else:
            fill_logs(model, rows[row], logs)
            sums[row] = log_forest_sum_of_logs(logs)


@njit(nogil=True, cache=True, error_model="numpy")
def finish_marginals(model, rows, shifts, schedule, sums, marginals):
    """Do the same where arc marginals were found too."""
    logs = np.empty((rows.shape[1] + 1, rows.shape[1]))
    for row in range(rows.shape[0]):
        if sums[row] > LEAST:
            sums[row] += shifts[row]
        else:
            fill_logs(model, rows[row], logs)
            sums[row] = arc_marginals_of_logs(logs, schedule, marginals[row])


@njit(nogil=True, cache=True, error_model="numpy")
def log_sum_of_logs(logs, matrix):
    """Give log Z of one arc matrix of logs, by way of `matrix` of the same shape; plain elimination, O(n^3 / 3)."""
    n = logs.shape[1]
    total = scale_logs(logs, matrix)
    found = 0.0
    for j in range(n):
        into = 0.0
        for k in range(n + 1):
            into += matrix[k, j]
        if into == 0.0:
            return -inf
        found += log(into)
        for k in range(n + 1):
            matrix[k, j] /= into
    for m in range(n - 1, -1, -1):
        leave = 0.0
        for k in range(m + 1):
            leave += matrix[k, m]
        if leave < LEAST_LEAVE:
            return log_forest_sum_of_logs(logs)
        found += log(leave)
        for k in range(m + 1):
            share = matrix[k, m] / leave
            for j in range(m):
                matrix[k, j] += share * matrix[1 + m, j]
    return total + found if found > LEAST else log_forest_sum_of_logs(logs)


@njit(nogil=True, cache=True, error_model="numpy")
def fill_sums(model, rows, sums):
    """Fill `sums` with the log forest sums of rows, one by one: for few rows and many models."""
    logs, matrix = np.empty((rows.shape[1] + 1, rows.shape[1])), np.empty((rows.shape[1] + 1, rows.shape[1]))
    for row in range(rows.shape[0]):
        fill_logs(model, rows[row], logs)
        sums[row] = log_sum_of_logs(logs, matrix)


@njit(nogil=True, cache=True, error_model="numpy")
def add_statistics(model, rows, row_weights, marginals, sums):
    """Add the sufficient statistics of rows, weighted by their arc marginals, to `sums` (6, S + 1, S).

    For an arc of weight c from a parent x to a child y: c, cx, cxx, cy, cxy, cyy, where x is 0 for the root and for values. Of an
    arc from a continuous parent to a value, y is the gradient of the log softmax instead, for every value of the child.
    """
    offsets, continuous = model.offsets, model.continuous
    n = rows.shape[1]
    states, shares = np.empty(n, dtype=np.int64), np.empty(model.most)
    for place in range(rows.shape[0]):
        for j in range(n):
            states[j] = offsets[j] if continuous[j] else offsets[j] + np.int64(rows[place, j])
        for k in range(n + 1):
            row, x, from_number = 0, 0.0, False
            if k > 0:
                row, from_number = 1 + states[k - 1], continuous[k - 1]
                if from_number:
                    x = rows[place, k - 1]
            for j in range(n):
                c = row_weights[place] * marginals[place, k, j]
                t = states[j]
                sums[0, row, t] += c
                sums[1, row, t] += c * x
                sums[2, row, t] += c * x * x
                if continuous[j]:
                    y = rows[place, j]
                    sums[3, row, t] += c * y
                    sums[4, row, t] += c * x * y
                    sums[5, row, t] += c * y * y
                elif from_number and c > 0.0:
                    _add_gradient(model, row, (offsets[j], offsets[j + 1], t), x, c, shares, sums)


@njit(nogil=True, cache=True, error_model="numpy")
def _add_gradient(model, row, columns, x, c, shares, sums):
    low, high, t = columns
    largest, total = -inf, 0.0
    for v in range(low, high):
        largest = max(largest, model.intercepts[row, v] + model.slopes[row, v] * x)
    for v in range(low, high):
        shares[v - low] = exp(model.intercepts[row, v] + model.slopes[row, v] * x - largest)
        total += shares[v - low]
    for v in range(low, high):
        y = c * ((1.0 if v == t else 0.0) - shares[v - low] / total)
        sums[3, row, v] += y
        sums[4, row, v] += y * x
