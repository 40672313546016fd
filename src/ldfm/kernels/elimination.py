"""Eliminate variables from the walk "go to the parent" of a row, four rows at a time, without a subtraction.

Take the arc matrix of a row: ``arcs[0, j]`` the weight of root -> j, ``arcs[1 + i, j]`` that of i -> j. Divide each column by
its sum: column j is then the distribution of the parent met when one steps up from j. For a set K of *kept* variables let

    steps[k, j] = probability that the walk up from j meets K or the root for the next time in k,

row 0 the root, row 1 + q the q-th kept variable, one column for *every* variable. Eliminating a kept variable m, with the
walk's stay at m cut out, is

    leave = sum over k != m of steps[k, m];   steps[k, :] += steps[k, m] / leave * steps[m, :]

Only sums, products and quotients of non-negative numbers: every entry keeps a relative error of about n rounding errors for
any weights, where LU loses all digits once root weights are 1e-16 of the rest. (This is the idea of Grassmann, Taksar and
Heyman for Markov chains.) The forest sum is the product of all column sums and all `leave`s.

What remains to fear is underflow: numbers below 1e-308 lose digits or vanish. `eliminate` carries an upper bound, `lost`, of
the absolute error that underflow can have made in any entry, and stops when `lost` could be seen in a result. The caller then
repeats the work with the numbers of `extended_range`, which cannot underflow.
"""

from functools import cache
from math import frexp, inf, log
from typing import NamedTuple

import numpy as np
from numba import njit

from ldfm.kernels.lanes import LANES, add_rows, add_rows_1, copy_columns, normalise_row, zeros_of_lanes
from ldfm.types import Floats, Integers

BLOCK = 3  # kept variables at which halving ends: each can then be left alone by a formula
PANEL = 4  # variables eliminated together: as many source rows as fit in registers
SCRATCH, SUMS = PANEL, PANEL + 1  # rows of the multiples
LOST_AT_START = 1e-307  # what scaling the columns can lose: less than the smallest normal number
VISIBLE = 1e-18  # a relative error below this is not seen in a double
LOG_2 = log(2.0)


class Workspace(NamedTuple):
    """Scratch arrays for rows of n variables; one a thread. Matrices of lanes but for the schedules.

    Attributes
    ----------
    schedule, extended_schedule
        The order of eliminations of `schedule_of`, down to blocks and down to single variables.
    steps
        (levels * (n + 1), n): walk matrices below each other, one a level of the schedule.
    lost
        (levels,): bound of what underflow took at each level.
    multiples
        (PANEL + 2, n + 1): the multiples of a panel, and the rows SCRATCH and SUMS.
    escapes
        (n, n): row j the escape probabilities from every variable past j.
    inverses
        (LANES, n), no lanes: one divided by the column sums of each arc matrix.
    """

    schedule: Integers
    extended_schedule: Integers
    steps: Floats
    lost: Floats
    multiples: Floats
    escapes: Floats
    inverses: Floats


@cache
def schedule_of(n: int, block: int) -> Integers:
    """List the eliminations that end in blocks of at most `block` variables, halving the kept ones again and again.

    Made once for each size, and shared: not to be written to.

    Of two halves the upper one is kept first, in a copy one level down; the lower one then in place, for the matrix it is taken
    from is needed no more.

    Returns
    -------
    Integers
        (tasks, 5): kept low, kept high, dropped low, dropped high, level of the result, in depth-first order. In all 1.5 n^3
        multiplications, instead of n^4 / 3 for n separate eliminations.
    """
    tasks: list[tuple[int, int, int, int, int]] = []
    pending = [(0, n, 0, 0, 0)]
    while pending:
        low, high, drop_low, drop_high, level = pending.pop()
        tasks.append((low, high, drop_low, drop_high, level))
        if high - low > block:
            middle = (low + high) // 2
            pending.append((low, middle, middle, high, level))
            pending.append((middle, high, low, middle, level + 1))
    return np.array(tasks, dtype=np.int64)


def make_workspace(n: int) -> Workspace:
    """Allocate the scratch arrays for rows of n variables."""
    schedule = schedule_of(n, BLOCK)
    levels = int(schedule[:, 4].max()) + 1
    return Workspace(
        schedule=schedule,
        extended_schedule=schedule_of(n, 1),
        steps=zeros_of_lanes(levels * (n + 1), n),
        lost=np.zeros(levels),
        multiples=zeros_of_lanes(PANEL + 2, n + 1),
        escapes=zeros_of_lanes(n, n),
        inverses=np.zeros((LANES, n)),
    )


@njit(nogil=True, cache=True, error_model="numpy")
def times(mantissa, exponent, factor):
    """Multiply mantissa * 2^exponent by a positive factor; neither comes near the ends of the range."""
    if 1e-100 < factor < 1e100 and 1e-100 < mantissa < 1e100:
        return mantissa * factor, exponent
    mantissa, shift = frexp(mantissa)
    factor, factor_shift = frexp(factor)
    return mantissa * factor, exponent + shift + factor_shift


@njit(nogil=True, cache=True, error_model="numpy")
def log_of(mantissa, exponent):
    """Give the log of mantissa * 2^exponent, rounded at the size of the result."""
    return log(mantissa) + exponent * LOG_2


@njit(nogil=True, cache=True, error_model="numpy")
def scale_columns(arcs, lane, steps, inverses):
    """Divide the columns of one arc matrix by their sums into one lane of `steps`; keep one divided by the sums.

    Returns
    -------
    product of the sums (mantissa, exponent), whether all sums lie in the range in which doubles are trusted.
    """
    n = arcs.shape[1]
    product = 1.0
    exponent = np.int64(0)  # to Numba a plain 0 has a type of its own, and what it is given to is compiled once more
    for j in range(n):
        inverses[lane, j] = 0.0
    for k in range(n + 1):
        for j in range(n):
            inverses[lane, j] += arcs[k, j]
    for j in range(n):
        if not 1e-290 < inverses[lane, j] < 1e290:
            return 0.0, 0, False
        product, exponent = times(product, exponent, inverses[lane, j])
        inverses[lane, j] = 1.0 / inverses[lane, j]
    for k in range(n + 1):
        for j in range(n):
            steps[k, LANES * j + lane] = arcs[k, j] * inverses[lane, j]
    return product, exponent, True


@njit(nogil=True, cache=True, error_model="numpy")
def _factor_panel(steps, base, multiples, panel, column, width, lost):
    """Eliminate the rows `panel` = (first, count), variables column.., among themselves, last one first.

    Leaves in ``multiples[q, :first]`` what of row first + q the rows above must receive.

    Returns
    -------
    products of the `leave`s a lane, the new `lost` (inf: not to be trusted).
    """
    first, count = panel
    a = b = d = e = 1.0
    copy_columns(steps, base, column, count, first + count, multiples)
    for p in range(count - 1, -1, -1):
        row = first + p
        normalise_row(multiples, p, row, SUMS)
        t, u, v, w = multiples[SUMS, 0], multiples[SUMS, 1], multiples[SUMS, 2], multiples[SUMS, 3]
        least = min(min(t, u), min(v, w))
        if not lost <= least * VISIBLE:
            return a, b, d, e, inf
        # an entry is off by lost itself, by lost / leave in a multiple of a number <= 1, by a multiple <= 1 of lost
        lost *= 2.0 + 1.0 / least
        a, b, d, e = a * t, b * u, d * v, e * w
        if p > 0:
            for q in range(p):
                for lane in range(LANES):
                    multiples[SCRATCH, LANES * q + lane] = multiples[q, LANES * row + lane]
            add_rows_1(multiples, 0, multiples, p, multiples, SCRATCH, (0, p), row)
            add_rows_1(steps, base, steps, base + row, multiples, p, (first, row), width)
    return a, b, d, e, lost


@njit(nogil=True, cache=True, error_model="numpy")
def eliminate(steps, base, multiples, rows, kept, drop_low, lost, products):
    """Eliminate the rows kept..rows-1 below `base` of `steps`, the variables drop_low.., from the last to the first.

    With ``kept == 1`` everything goes but the root; the columns of variables gone are then no longer kept up to date. The
    `leave`s are multiplied into `products`, one a lane: `lost` grows by 1 / leave, so products of results that are trusted stay
    above LOST_AT_START / VISIBLE.

    Returns
    -------
    the new `lost` (inf: not to be trusted, `steps` is spoilt).
    """
    end = rows
    width = steps.shape[1] // LANES
    while end > kept:
        count = min(PANEL, end - kept)
        first = end - count
        column = drop_low + first - kept
        if kept == 1:
            width = column + count
        a, b, d, e, lost = _factor_panel(steps, base, multiples, (first, count), column, width, lost)
        if lost == inf:
            return inf
        products[0] *= a
        products[1] *= b
        products[2] *= d
        products[3] *= e
        add_rows(steps, base, steps, base + first, count, multiples, (0, first), width)
        end = first
    return lost


@njit(nogil=True, cache=True, error_model="numpy")
def copy_rows(matrices, height, task):
    """Copy a matrix one level down, the kept upper variables first and the dropped lower ones last."""
    low, high, drop_low, drop_high, level = task
    kept = 1 + high - low
    dropped = drop_high - drop_low
    for row in range(kept + dropped):
        if row == 0:
            origin = 0
        elif row < kept:
            origin = row + dropped
        else:
            origin = 1 + row - kept
        source = (level - 1) * height + origin
        target = level * height + row
        for column in range(matrices.shape[1]):
            matrices[target, column] = matrices[source, column]


@njit(nogil=True, cache=True, error_model="numpy")
def task_at(schedule, t):
    """Give task t of the schedule as a tuple."""
    return schedule[t, 0], schedule[t, 1], schedule[t, 2], schedule[t, 3], schedule[t, 4]


@njit(nogil=True, cache=True, error_model="numpy")
def condense(work, height, task, products):
    """Carry out one task of the schedule, `height` = n + 1; give whether the result can be trusted."""
    low, high, drop_low, drop_high, level = task
    if drop_low < low:
        copy_rows(work.steps, height, task)
        work.lost[level] = work.lost[level - 1]
    kept = 1 + high - low
    work.lost[level] = eliminate(
        work.steps,
        level * height,
        work.multiples,
        kept + drop_high - drop_low,
        kept,
        drop_low,
        work.lost[level],
        products,
    )
    return work.lost[level] < inf


@njit(nogil=True, cache=True, error_model="numpy")
def leave_alone(steps, base, block, alone, multiples, products):
    """Give the escape probabilities of the variables of a block, all but the one left alone, past that one.

    `block` = (low, high), at most three variables, the kept ones of the walk matrix at `base`. Fills ``multiples[q, alone]``,
    q the place of a variable in the block, and `products`, for each lane the product of the `leave`s, that of `alone` included.

    Returns
    -------
    the least `leave` of all lanes.
    """
    low, high = block
    size = high - low
    least = inf
    m = 1 if alone == 0 else 0
    k = 3 - m - alone
    to_alone, to_m, to_k = base + 1 + alone, base + 1 + m, base + 1 + k
    for lane in range(LANES):
        entry = LANES * alone + lane
        home = LANES * (low + alone) + lane
        at_m = LANES * (low + m) + lane
        multiples[alone, entry] = 0.0  # a walk that comes to the variable has not escaped it
        first = second = 1.0
        last = steps[base, home]
        if size == 2:
            first = steps[base, at_m] + steps[to_alone, at_m]
            escape = steps[base, at_m] / first
            multiples[m, entry] = escape
            last += steps[to_m, home] * escape
        elif size == 3:
            at_k = LANES * (low + k) + lane
            first = steps[base, at_m] + steps[to_alone, at_m] + steps[to_k, at_m]
            inverse = 1.0 / first
            from_k = steps[to_m, at_k] * inverse
            root_of_k = steps[base, at_k] + from_k * steps[base, at_m]
            second = root_of_k + steps[to_alone, at_k] + from_k * steps[to_alone, at_m]
            escape_k = root_of_k / second
            escape_m = (steps[base, at_m] + steps[to_k, at_m] * escape_k) * inverse
            multiples[k, entry] = escape_k
            multiples[m, entry] = escape_m
            last += steps[to_k, home] * escape_k + steps[to_m, home] * escape_m
        products[lane] = first * second * last
        # a zero makes the numbers after it NaN; being compared first, it is what min gives
        least = min(least, min(first, min(second, last)))
    return least
