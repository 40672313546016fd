"""The elimination of `elimination`, one row at a time, in numbers that cannot underflow.

A number is a pair (mantissa, exponent): mantissa * 2^exponent, mantissa 0 or in [0.5, 1). About 30 times slower than doubles
and met only where weights of one row span hundreds of orders of magnitude.
"""

from math import frexp, inf, ldexp
from typing import NamedTuple

import numpy as np
from numba import njit

from ldfm.kernels.elimination import copy_rows, log_of, task_at


class ExtendedNumbers(NamedTuple):
    """A matrix of pairs."""

    mantissas: np.ndarray
    exponents: np.ndarray


@njit(nogil=True, cache=True, error_model="numpy")
def add(mantissa, exponent, other, other_exponent):
    """Add two numbers; the second's mantissa may be any double >= 0."""
    if other == 0.0:
        return mantissa, exponent
    if mantissa == 0.0:
        fraction, shift = frexp(other)
        return fraction, other_exponent + shift
    gap = other_exponent - exponent
    if gap < -200:
        return mantissa, exponent
    if gap > 200:
        fraction, shift = frexp(other)
        return fraction, other_exponent + shift
    fraction, shift = frexp(mantissa + ldexp(other, int(gap)))
    return fraction, exponent + shift


@njit(nogil=True, cache=True, error_model="numpy")
def make_numbers(n, levels):
    """Allocate the walk matrices of `levels` levels."""
    shape = (levels * (n + 1), n)
    return ExtendedNumbers(np.zeros(shape), np.zeros(shape, dtype=np.int64))


@njit(nogil=True, cache=True, error_model="numpy")
def scale_columns(arcs, steps):
    """Divide the columns of an arc matrix by their sums; the product of the sums is 0 with a column of zeros."""
    n = arcs.shape[1]
    product = 1.0
    product_exponent = np.int64(0)
    for j in range(n):
        total = 0.0
        total_exponent = np.int64(0)
        for k in range(n + 1):
            mantissa, exponent = frexp(arcs[k, j])
            steps.mantissas[k, j] = mantissa
            steps.exponents[k, j] = exponent
            total, total_exponent = add(total, total_exponent, mantissa, exponent)
        if total == 0.0:
            return 0.0, 0
        product, shift = frexp(product * total)
        product_exponent += total_exponent + shift
        for k in range(n + 1):
            mantissa, shift = frexp(steps.mantissas[k, j] / total)
            steps.mantissas[k, j] = mantissa
            steps.exponents[k, j] += shift - total_exponent
    return product, product_exponent


@njit(nogil=True, cache=True, error_model="numpy")
def eliminate(steps, base, rows, kept, drop_low):
    """Eliminate rows; give the product of the `leave`s, 0 where no walk leads to the root."""
    mantissas, exponents = steps.mantissas, steps.exponents
    product = 1.0
    product_exponent = np.int64(0)
    for m in range(base + rows - 1, base + kept - 1, -1):
        column = drop_low + m - base - kept
        leave = 0.0
        leave_exponent = np.int64(0)
        for k in range(base, m):
            leave, leave_exponent = add(leave, leave_exponent, mantissas[k, column], exponents[k, column])
        if leave == 0.0:
            return 0.0, 0
        product, shift = frexp(product * leave)
        product_exponent += leave_exponent + shift
        for k in range(base, m):
            multiple = mantissas[k, column] / leave
            if multiple == 0.0:
                continue
            exponent = exponents[k, column] - leave_exponent
            for j in range(mantissas.shape[1]):
                mantissas[k, j], exponents[k, j] = add(
                    mantissas[k, j], exponents[k, j], multiple * mantissas[m, j], exponent + exponents[m, j]
                )
    return product, product_exponent


@njit(nogil=True, cache=True, error_model="numpy")
def condense(steps, height, task):
    """Carry out one task of the schedule; give the product of the `leave`s."""
    low, high, drop_low, drop_high, level = task
    if drop_low < low:
        copy_rows(steps.mantissas, height, task)
        copy_rows(steps.exponents, height, task)
    kept = 1 + high - low
    return eliminate(steps, level * height, kept + drop_high - drop_low, kept, drop_low)


@njit(nogil=True, cache=True, error_model="numpy")
def parent_weights(arcs, steps, row, j, weights):
    """Fill `weights` (n + 1,) with arcs[i, j] * escape(i, j), scaled so that the largest is about 1.

    `row` is the root's row of the walk matrix in which j is left alone.
    """
    n = arcs.shape[1]
    shifts = np.zeros(n + 1, dtype=np.int64)
    largest = -(2**62)
    for i in range(n + 1):
        product, shift = frexp(arcs[i, j])
        if i > 0:
            product *= steps.mantissas[row, i - 1]
            shift += steps.exponents[row, i - 1]
        weights[i] = product
        shifts[i] = shift
        if product > 0.0:
            largest = max(largest, shift)
    for i in range(n + 1):
        weights[i] = ldexp(weights[i], int(max(shifts[i] - largest, -1100))) if weights[i] > 0.0 else 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def log_forest_sum(arcs):
    """Give log Z of one arc matrix, -inf where some variable cannot be reached from the root."""
    n = arcs.shape[1]
    # plain numbers have types of their own: `eliminate` would be compiled once more
    none, one = np.int64(0), np.int64(1)
    steps = make_numbers(n, one)
    scale, scale_exponent = scale_columns(arcs, steps)
    if scale == 0.0:
        return -inf
    product, exponent = eliminate(steps, none, n + 1, one, none)
    if product == 0.0:
        return -inf
    return log_of(scale * product, scale_exponent + exponent)


@njit(nogil=True, cache=True, error_model="numpy")
def arc_marginals(arcs, schedule, marginals):
    """Fill `marginals` (n + 1, n); give log Z. Without any forest the marginals are 0 and log Z is -inf."""
    height, n = arcs.shape
    steps = make_numbers(n, schedule[:, 4].max() + 1)
    weights = np.empty(height)
    mantissa, exponent = scale_columns(arcs, steps)
    for t in range(schedule.shape[0]):
        task = task_at(schedule, t)
        low, row = task[0], task[4] * height
        alone = task[1] - low == 1
        product, shift = 0.0, 0
        if mantissa > 0.0:
            product, shift = condense(steps, height, task)
        if product > 0.0 and alone:
            product *= steps.mantissas[row, low]
            shift += steps.exponents[row, low]
        if product == 0.0:
            marginals[:, :] = 0.0
            return -inf
        if low == 0:
            mantissa, carry = frexp(mantissa * product)
            exponent += shift + carry
        if alone:
            parent_weights(arcs, steps, row, low, weights)
            total = weights.sum()
            for i in range(height):
                marginals[i, low] = weights[i] / total
    return log_of(mantissa, exponent)


@njit(nogil=True, cache=True, error_model="numpy")
def draw_forest(arcs, schedule, generator, parents):
    """Draw one forest with probability proportional to its weight, as `forest_draws.draw_by_elimination` does."""
    height, n = arcs.shape
    levels = schedule[:, 4].max() + 1
    steps = make_numbers(n, levels)
    kept = np.zeros((levels, 2), dtype=np.int64)
    weights = np.empty(height)
    scale_columns(arcs, steps)
    for t in range(schedule.shape[0]):
        task = task_at(schedule, t)
        condense(steps, height, task)
        j, level = task[0], task[4]
        kept[level, 0], kept[level, 1] = j, task[1]
        if task[1] - j > 1:
            continue
        parent_weights(arcs, steps, level * height, j, weights)
        parent = choose(weights, generator.random()) - 1
        parents[j] = parent
        for above in range(level + 1):
            fix_parent(steps, above * height, (kept[above, 0], kept[above, 1]), j, parent)


@njit(nogil=True, cache=True, error_model="numpy")
def fix_parent(steps, base, kept, j, parent):
    """Let the walk from j always go to `parent`."""
    low, high = kept
    for k in range(1 + high - low):
        mantissa, exponent = 0.0, 0
        if parent >= 0 and not low <= parent < high:
            mantissa, exponent = steps.mantissas[base + k, parent], steps.exponents[base + k, parent]
        elif (k == 0 and parent < 0) or (k > 0 and low + k - 1 == parent):
            mantissa, exponent = 0.5, 1
        steps.mantissas[base + k, j] = mantissa
        steps.exponents[base + k, j] = exponent


@njit(nogil=True, cache=True, error_model="numpy")
def choose(weights, uniform):
    """Give an index with probability proportional to its weight, never one of weight 0."""
    total = 0.0
    for weight in weights:
        total += weight
    left = uniform * total
    last = 0
    for k in range(weights.shape[0]):
        if weights[k] > 0.0:
            last = k
            left -= weights[k]
            if left < 0.0:
                break
    return last
