"""Forest sums, arc marginals and forests of arc matrices given by the logs of their weights, whatever their size.

Densities of one row can differ by factors that no double holds: two copies of a column, both a hundred standard deviations from
the centre, prefer each other to the root by exp(5000). As pairs (mantissa, exponent) such weights are ordinary numbers.
"""

from math import exp, floor, frexp, inf, ldexp

import numpy as np
from numba import njit

from ldfm.kernels.elimination import LOG_2, log_of, task_at
from ldfm.kernels.extended_range import ExtendedNumbers, add, choose, condense, eliminate, fix_parent, make_numbers

LEAST_LOG = -1e15  # less is no weight at all: exponents are whole numbers of 64 bits


@njit(nogil=True, cache=True, error_model="numpy")
def numbers_of(logs):
    """Give weights as pairs from their logs."""
    shape = logs.shape
    numbers = ExtendedNumbers(np.zeros(shape), np.zeros(shape, dtype=np.int64))
    for k in range(shape[0]):
        for j in range(shape[1]):
            if logs[k, j] > LEAST_LOG:
                exponent = floor(logs[k, j] / LOG_2)
                mantissa, shift = frexp(exp(logs[k, j] - exponent * LOG_2))
                numbers.mantissas[k, j] = mantissa
                numbers.exponents[k, j] = np.int64(exponent) + shift
    return numbers


@njit(nogil=True, cache=True, error_model="numpy")
def _scale_columns(arcs, steps):
    """Divide the columns by their sums into the first rows of `steps`; give the product of the sums, 0 with an empty column."""
    height, n = arcs.mantissas.shape
    product, product_exponent = 1.0, 0
    for j in range(n):
        total, exponent = 0.0, 0
        for k in range(height):
            total, exponent = add(total, exponent, arcs.mantissas[k, j], arcs.exponents[k, j])
        if total == 0.0:
            return 0.0, 0
        product, shift = frexp(product * total)
        product_exponent += exponent + shift
        for k in range(height):
            mantissa, shift = frexp(arcs.mantissas[k, j] / total)
            steps.mantissas[k, j] = mantissa
            steps.exponents[k, j] = arcs.exponents[k, j] + shift - exponent
    return product, product_exponent


@njit(nogil=True, cache=True, error_model="numpy")
def _parent_weights(arcs, steps, row, j, weights):
    """Fill `weights` (n + 1,) with arcs[i, j] * escape(i, j), scaled so that the largest is about 1."""
    height = arcs.mantissas.shape[0]
    shifts = np.zeros(height, dtype=np.int64)
    largest = -(2**62)
    for i in range(height):
        product, shift = arcs.mantissas[i, j], arcs.exponents[i, j]
        if i > 0:
            product *= steps.mantissas[row, i - 1]
            shift += steps.exponents[row, i - 1]
        weights[i] = product
        shifts[i] = shift
        if product > 0.0:
            largest = max(largest, shift)
    for i in range(height):
        weights[i] = ldexp(weights[i], int(max(shifts[i] - largest, -1100))) if weights[i] > 0.0 else 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def log_forest_sum_of_logs(logs):
    """Give log Z of one arc matrix (n + 1, n) of logs; -inf where some variable cannot be reached from the root."""
    height, n = logs.shape
    none, one = np.int64(0), np.int64(1)  # not of a type of their own, as plain numbers are
    steps = make_numbers(n, one)
    scale, scale_exponent = _scale_columns(numbers_of(logs), steps)
    if scale == 0.0:
        return -inf
    product, exponent = eliminate(steps, none, height, one, none)
    return log_of(scale * product, scale_exponent + exponent) if product > 0.0 else -inf


@njit(nogil=True, cache=True, error_model="numpy")
def arc_marginals_of_logs(logs, schedule, marginals):
    """Fill `marginals` (n + 1, n); give log Z. Without any forest the marginals are 0 and log Z is -inf."""
    height, n = logs.shape
    arcs, steps = numbers_of(logs), make_numbers(n, schedule[:, 4].max() + 1)
    weights = np.empty(height)
    marginals[:, :] = 0.0
    log_sum = log_forest_sum_of_logs(logs)
    if log_sum == -inf:
        return log_sum
    _scale_columns(arcs, steps)
    for t in range(schedule.shape[0]):
        task = task_at(schedule, t)
        condense(steps, height, task)
        if task[1] - task[0] == 1:
            _parent_weights(arcs, steps, task[4] * height, task[0], weights)
            total = weights.sum()
            for i in range(height):
                marginals[i, task[0]] = weights[i] / total
    return log_sum


@njit(nogil=True, cache=True, error_model="numpy")
def draw_forest_of_logs(logs, schedule, generator, parents):
    """Draw one forest with probability proportional to its weight; there must be one."""
    height, n = logs.shape
    levels = schedule[:, 4].max() + 1
    arcs, steps = numbers_of(logs), make_numbers(n, levels)
    kept = np.zeros((levels, 2), dtype=np.int64)
    weights = np.empty(height)
    _scale_columns(arcs, steps)
    for t in range(schedule.shape[0]):
        task = task_at(schedule, t)
        condense(steps, height, task)
        j, level = task[0], task[4]
        kept[level, 0], kept[level, 1] = j, task[1]
        if task[1] - j > 1:
            continue
        _parent_weights(arcs, steps, level * height, j, weights)
        parents[j] = choose(weights, generator.random()) - 1
        for above in range(level + 1):
            fix_parent(steps, above * height, (kept[above, 0], kept[above, 1]), j, parents[j])
