"""Sweeps over cells and forest of a mixed model: each leaves their distribution given the known cells unchanged.

State of a chain: `cells` (n,) and `parents` (n,). Known cells (`clamped` not NaN) never change; their parents do. What relations
leave of the cells, `rests`, is computed once a sweep and kept in step. `schedule` is that of `elimination.schedule_of` down to
single variables.
"""

from math import inf, log
from typing import NamedTuple

import numpy as np
from numba import njit

from ldfm.kernels.extended_range import choose
from ldfm.kernels.forest_draws import NO_FOREST, cumulate_columns, draw_by_walks
from ldfm.kernels.mixed_arcs import fill_logs, fill_rests, log_sum_of_logs, scale_logs
from ldfm.kernels.mixed_cells import draw_value, draw_with_parent, record_value, shares_of_logs
from ldfm.kernels.mixed_numbers import draw_number, draw_numbers, move_number, pull_of_others, record_numbers
from ldfm.kernels.wide_range import draw_forest_of_logs, log_forest_sum_of_logs
from ldfm.types import Floats, Integers

BLOCKED, TREE, GIBBS, BOTH = 0, 1, 2, 3
SHORT_STEPS_A_VARIABLE = 30  # of erased loops, as below
WALK_STEPS_A_VARIABLE = 200  # elimination in wide numbers costs as much as many walks
MOST_VALUES = 32  # of a variable that is drawn with forests summed out
FIRST_WIDTH, MOST_STEPS = 1.0, 12  # of slice sampling, in standardised units


@njit(nogil=True, cache=True, error_model="numpy")
def make_scratch(model):
    """Allocate what conditionals of one cell need: children, log weights, shares."""
    n = model.continuous.shape[0]
    size = (model.most + 1) * (n + 1)
    return np.empty(n, dtype=np.int64), np.empty(size), np.empty(size)


@njit(nogil=True, cache=True, error_model="numpy")
def draw_forests_of_logs(logs, schedule, budget, generator, parents):
    """Fill `parents` (draws, n) with independent forests of one arc matrix of logs; root = -1, all -2 where Z = 0.

    By walks that erase loops of at most `budget` steps a forest, else by elimination; see `forest_draws`.
    """
    n = logs.shape[1]
    matrix, cumulative = np.empty(logs.shape), np.empty((n, n + 1))
    scale_logs(logs, matrix)
    walkable = True
    for j in range(n):
        walkable &= matrix[:, j].max() > 0.0
    if walkable:
        cumulate_columns(matrix, cumulative)
    for draw in range(parents.shape[0]):
        if walkable and draw_by_walks(cumulative, budget, generator, parents[draw]):
            continue
        if draw == 0 and not (walkable and log_forest_sum_of_logs(logs) > -inf):
            parents[:] = NO_FOREST
            return
        draw_forest_of_logs(logs, schedule, generator, parents[draw])


@njit(nogil=True, cache=True, error_model="numpy")
def walk_forest(model, rests, logs, generator, parents):
    """Try to draw the forest given all cells by short walks; give whether it worked, else `parents` stay.

    Whether walks are short does not depend on the forest they end with, nor on the one there is: to keep this one when they are not
    leaves its distribution as it is.
    """
    n = rests.shape[0]
    matrix, cumulative, found = np.empty(logs.shape), np.empty((n, n + 1)), np.empty(n, dtype=np.int64)
    fill_logs(model, rests, logs)
    scale_logs(logs, matrix)
    for j in range(n):
        if not matrix[:, j].max() > 0.0:
            return False
    cumulate_columns(matrix, cumulative)
    if not draw_by_walks(cumulative, SHORT_STEPS_A_VARIABLE * n, generator, found):
        return False
    parents[:] = found
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def draw_forest(model, rests, logs, schedule, generator, parents):
    """Draw the forest from its posterior given all cells; -2 throughout where there is none."""
    n = rests.shape[0]
    fill_logs(model, rests, logs)
    draw_forests_of_logs(logs, schedule, WALK_STEPS_A_VARIABLE * n, generator, parents.reshape(1, n))


@njit(nogil=True, cache=True, error_model="numpy")
def _log_sum_at(model, rests, i, t, matrices):
    """Give the log forest sum of a row with the code t, or the number i moved by t."""
    moved = rests.copy()
    if model.continuous[i]:
        moved += t * model.steps[i]
    else:
        moved[i] = t
    fill_logs(model, moved, matrices[0])
    return log_sum_of_logs(matrices[0], matrices[1])


@njit(nogil=True, cache=True, error_model="numpy")
def draw_collapsed(model, cells, rests, i, matrices, generator):
    """Draw x_i given all other cells, forests summed out: by its forest sums, or by slice sampling on them (Neal, 2003)."""
    if not model.continuous[i]:
        k = model.offsets[i + 1] - model.offsets[i]
        logs, shares = np.empty(k), np.empty(k)
        for v in range(k):
            logs[v] = _log_sum_at(model, rests, i, float(v), matrices)
        if shares_of_logs(logs, shares) > -inf:
            cells[i] = rests[i] = choose(shares, generator.random())
        return
    level = _log_sum_at(model, rests, i, 0.0, matrices) + log(1.0 - generator.random())
    low = -FIRST_WIDTH * generator.random()
    high = low + FIRST_WIDTH
    left = np.int64(MOST_STEPS * generator.random())
    right = MOST_STEPS - 1 - left
    while left > 0 and _log_sum_at(model, rests, i, low, matrices) > level:
        low -= FIRST_WIDTH
        left -= 1
    while right > 0 and _log_sum_at(model, rests, i, high, matrices) > level:
        high += FIRST_WIDTH
        right -= 1
    while high - low > 1e-13 * (1.0 + abs(cells[i])):
        t = low + (high - low) * generator.random()
        if _log_sum_at(model, rests, i, t, matrices) > level:
            move_number(model, cells, rests, i, t)
            return
        if t < 0.0:
            low = t
        else:
            high = t


@njit(nogil=True, cache=True, error_model="numpy")
def free_numbers(model, clamped):
    """Give the places of numbers that are not known."""
    found = np.empty(clamped.shape[0], dtype=np.int64)
    count = 0
    for i in range(clamped.shape[0]):
        if model.continuous[i] and np.isnan(clamped[i]):
            found[count] = i
            count += 1
    return found[:count]


@njit(nogil=True, cache=True, error_model="numpy")
def free_values(model, clamped):
    """Give the places of discrete variables that are not known and have few values."""
    found = np.empty(clamped.shape[0], dtype=np.int64)
    count = 0
    for i in range(clamped.shape[0]):
        if not model.continuous[i] and np.isnan(clamped[i]) and model.offsets[i + 1] - model.offsets[i] <= MOST_VALUES:
            found[count] = i
            count += 1
    return found[:count]


class Plan(NamedTuple):
    """What sweeps over one row keep to.

    Attributes
    ----------
    clamped
        (n,): the known cells, NaN elsewhere.
    numbers, values
        Places of the numbers, and of the discrete variables with few values, that are not known.
    schedule
        Of elimination.
    """

    clamped: Floats
    numbers: Integers
    values: Integers
    schedule: Integers


@njit(nogil=True, cache=True, error_model="numpy")
def _draw_value_and_forest(model, plan, state, generator):
    """Draw one of some values, picked at random, with forests summed out, and then the forest.

    A value that many numbers hang on hardly ever changes while they do.
    """
    cells, rests, parents = state
    n = cells.shape[0]
    matrices = np.empty((2, n + 1, n))
    i = plan.values[np.int64(generator.random() * len(plan.values))]
    draw_collapsed(model, cells, rests, i, matrices, generator)
    draw_forest(model, rests, matrices[0], plan.schedule, generator, parents)


@njit(nogil=True, cache=True, error_model="numpy")
def _sweep_collapsed(model, plan, state, generator):
    """Draw every free cell with forests summed out, then a forest."""
    cells, rests, parents = state
    n = cells.shape[0]
    matrices = np.empty((2, n + 1, n))
    for i in range(n):
        if np.isnan(plan.clamped[i]):
            draw_collapsed(model, cells, rests, i, matrices, generator)
    draw_forest(model, rests, matrices[0], plan.schedule, generator, parents)


@njit(nogil=True, cache=True, error_model="numpy")
def _sweep_given_forest(model, plan, state, scratch, generator):
    """Draw free values one by one and free numbers together, given the forest."""
    cells, rests, parents = state
    for i in range(cells.shape[0]):
        if np.isnan(plan.clamped[i]) and not model.continuous[i]:
            draw_value(model, cells, rests, parents, i, scratch, generator)
    if len(plan.numbers) and not draw_numbers(model, cells, rests, parents, plan.numbers, generator):
        for i in plan.numbers:
            draw_number(model, cells, rests, parents, i, pull_of_others(model, rests, parents, i), generator)


@njit(nogil=True, cache=True, error_model="numpy")
def sweep(model, plan, state, kernel, scratch, generator):
    """Make one sweep: BLOCKED, TREE, GIBBS, or BOTH; `state` is cells, rests and parents.

    The last draws a value and the forest, or where no value is free the forest alone, if walks are short; then cells with their
    parents; then all numbers.
    """
    cells, rests, parents = state
    n = cells.shape[0]
    fill_rests(model, cells, rests)
    if kernel == GIBBS:
        _sweep_collapsed(model, plan, state, generator)
        return
    logs = np.empty((n + 1, n))
    if kernel == BLOCKED:
        draw_forest(model, rests, logs, plan.schedule, generator, parents)
        _sweep_given_forest(model, plan, state, scratch, generator)
        return
    walked = False
    if kernel == BOTH and len(plan.values):
        _draw_value_and_forest(model, plan, state, generator)
        walked = True
    elif kernel == BOTH:
        walked = walk_forest(model, rests, logs, generator, parents)
    for i in range(n):
        unknown = np.isnan(plan.clamped[i])
        if unknown or not walked:
            draw_with_parent(model, cells, rests, parents, i, unknown, scratch, generator)
    if kernel == BOTH and len(plan.numbers) > 1:
        draw_numbers(model, cells, rests, parents, plan.numbers, generator)


@njit(nogil=True, cache=True, error_model="numpy")
def mixed_sweeps(model, clamped, cells, parents, kernel, sweeps, schedule, generator, shares, normals):
    """Run one chain for some sweeps.

    `shares` (records, n, most values) takes the distributions of free discrete cells given the forest and all other cells, those of
    sweep s added to record s * records // sweeps; `normals` (sweeps, n, 2) mean and deviation of free continuous cells, after every
    sweep. With no records neither is filled.
    """
    plan = Plan(clamped, free_numbers(model, clamped), free_values(model, clamped), schedule)
    scratch, rests = make_scratch(model), np.empty(cells.shape[0])
    records = shares.shape[0]
    for s in range(sweeps):
        sweep(model, plan, (cells, rests, parents), kernel, scratch, generator)
        if records:
            for i in range(cells.shape[0]):
                if np.isnan(clamped[i]) and not model.continuous[i]:
                    record_value(model, rests, parents, i, scratch, shares[s * records // sweeps, i])
            record_numbers(model, cells, rests, parents, plan.numbers, normals[s])


@njit(nogil=True, cache=True, error_model="numpy")
def sweep_rows(model, known, cells, parents, kernel, sweeps, schedule, generator):
    """Run one chain on each of many rows; `known`, `cells` and `parents` (rows, n)."""
    n = cells.shape[1]
    no_shares, no_normals = np.empty((0, n, model.most)), np.empty((0, n, 2))
    for row in range(cells.shape[0]):
        mixed_sweeps(
            model, known[row], cells[row], parents[row], kernel, sweeps, schedule, generator, no_shares, no_normals
        )


@njit(nogil=True, cache=True, error_model="numpy")
def draw_forests_of(model, cells, schedule, generator, parents):
    """Draw a forest for each row of `cells` (rows, n) given all its cells; -2 throughout where there is none."""
    logs, rests = np.empty((cells.shape[1] + 1, cells.shape[1])), np.empty(cells.shape[1])
    for row in range(cells.shape[0]):
        fill_rests(model, cells[row], rests)
        draw_forest(model, rests, logs, schedule, generator, parents[row])
