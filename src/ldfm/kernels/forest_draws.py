"""Exact draws of forests of one row, P(forest) proportional to the product of its arc weights.

Wilson's algorithm walks from each variable to its parents until it meets the forest drawn so far, and erases loops. It takes
2-3 n steps for most rows and any number for rows with strong loops and weak roots. The loops it pops are independent of the
forest it ends with, so giving up after a number of steps and drawing in another way leaves the draws exact. The other way:
leave each variable j alone in turn, draw its parent i with probability arcs[i, j] * escape(i, j) (see `forest_sums`), and let
the walk from j always go there from then on. That is one run of the schedule, O(1.5 n^3) for four forests.
"""

import numpy as np
from numba import njit

from ldfm.kernels import extended_range
from ldfm.kernels.elimination import BLOCK, LOST_AT_START, VISIBLE, condense, leave_alone, scale_columns, task_at
from ldfm.kernels.extended_range import choose
from ldfm.kernels.lanes import LANES

ROOT = -1
NO_FOREST = -2
_draw_forest_extended = extended_range.draw_forest


@njit(nogil=True, cache=True, error_model="numpy")
def can_reach_all(arcs):
    """Say whether every variable can be reached from the root through arcs of positive weight, so that Z > 0; O(n^2)."""
    height, n = arcs.shape
    reached = np.zeros(n, dtype=np.bool_)
    queue = np.empty(height, dtype=np.int64)
    queue[0] = 0
    head, tail = 0, 1
    while head < tail:
        parent = queue[head]
        head += 1
        for j in range(n):
            if not reached[j] and arcs[parent, j] > 0.0:
                reached[j] = True
                queue[tail] = 1 + j
                tail += 1
    return tail == height


@njit(nogil=True, cache=True, error_model="numpy")
def cumulate_columns(arcs, cumulative):
    """Fill `cumulative` (n, n + 1): row j the running sums of column j, scaled to end in 1."""
    height, n = arcs.shape
    for j in range(n):
        largest = 0.0
        for i in range(height):
            largest = max(largest, arcs[i, j])
        total = 0.0
        for i in range(height):
            total += arcs[i, j] / largest
            cumulative[j, i] = total
        for i in range(height):
            cumulative[j, i] /= total


@njit(nogil=True, cache=True, error_model="numpy")
def _step_up(cumulative, j, uniform):
    """Give the parent of j at the quantile `uniform`: the first running sum above that share of the total."""
    low, high = 0, cumulative.shape[1] - 1
    share = uniform * cumulative[j, high]
    while low < high:
        middle = (low + high) // 2
        if cumulative[j, middle] > share:
            high = middle
        else:
            low = middle + 1
    return low - 1


@njit(nogil=True, cache=True, error_model="numpy")
def draw_by_walks(cumulative, budget, generator, parents):
    """Draw one forest by Wilson's algorithm into `parents` (n,); give whether it took at most `budget` steps."""
    n = parents.shape[0]
    done = np.zeros(n, dtype=np.bool_)
    steps = 0
    for start in range(n):
        j = start
        while j != ROOT and not done[j]:
            steps += 1
            if steps > budget:
                return False
            parents[j] = _step_up(cumulative, j, generator.random())
            j = parents[j]
        j = start
        while j != ROOT and not done[j]:
            done[j] = True
            j = parents[j]
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def _fix_parent(steps, base, kept, j, parent, lane):
    """Let the walk from j always go to `parent`, in the walk matrix at `base` with the variables `kept`."""
    low, high = kept
    for k in range(1 + high - low):
        if parent != ROOT and not low <= parent < high:
            value = steps[base + k, LANES * parent + lane]
        elif (k == 0 and parent == ROOT) or (k > 0 and low + k - 1 == parent):
            value = 1.0
        else:
            value = 0.0
        steps[base + k, LANES * j + lane] = value


@njit(nogil=True, cache=True, error_model="numpy")
def _draw_parent(arcs, work, base, block, alone, lane, generator):
    """Draw the parent of one variable of a block, after `leave_alone`, given the parents fixed so far."""
    low, high = block
    steps, multiples = work.steps, work.multiples
    weights = np.empty(arcs.shape[0])
    scale = work.inverses[lane, low + alone]
    weights[0] = arcs[0, low + alone] * scale
    for i in range(arcs.shape[1]):
        escape = steps[base, LANES * i + lane]
        for q in range(high - low):
            escape += multiples[q, LANES * alone + lane] * steps[base + 1 + q, LANES * i + lane]
        weights[1 + i] = arcs[1 + i, low + alone] * scale * escape
    return choose(weights, generator.random()) - 1


@njit(nogil=True, cache=True, error_model="numpy")
def draw_by_elimination(arcs, work, generator, parents):
    """Draw LANES independent forests into `parents` (LANES, n); give whether they can be trusted. Z > 0 is taken for granted."""
    height = arcs.shape[0]
    kept = np.zeros((work.lost.shape[0], 2), dtype=np.int64)
    aside = np.ones(LANES)
    for lane in range(LANES):
        _, _, trusted = scale_columns(arcs, lane, work.steps, work.inverses)
        if not trusted:
            return False
    work.lost[0] = LOST_AT_START
    for t in range(work.schedule.shape[0]):
        task = task_at(work.schedule, t)
        low, high, level = task[0], task[1], task[4]
        if not condense(work, height, task, aside):
            return False
        kept[level, 0], kept[level, 1] = low, high
        if high - low > BLOCK:
            continue
        for alone in range(high - low):
            least = leave_alone(work.steps, level * height, (low, high), alone, work.multiples, aside)
            for lane in range(LANES):
                parent = _draw_parent(arcs, work, level * height, (low, high), alone, lane, generator)
                parents[lane, low + alone] = parent
                for above in range(level + 1):
                    span = (kept[above, 0], kept[above, 1])
                    _fix_parent(work.steps, above * height, span, low + alone, parent, lane)
            if not work.lost[level] * (2.0 + 1.0 / least) ** (high - low - 1) <= least * VISIBLE:
                return False
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def draw_forests(arcs, work, budget, generator, parents):
    """Fill `parents` (draws, n) with independent forests of one arc matrix; root = -1, all -2 where Z = 0.

    `budget` is the number of steps Wilson's algorithm may take a forest; 0 draws all by elimination.

    Returns
    -------
    number of forests not drawn by walks.
    """
    draws, n = parents.shape
    if not can_reach_all(arcs):
        parents[:, :] = NO_FOREST
        return 0
    cumulative = np.empty((n, n + 1))
    cumulate_columns(arcs, cumulative)
    group = np.empty((LANES, n), dtype=np.int64)
    at_hand = 0
    eliminated = 0
    for draw in range(draws):
        if draw_by_walks(cumulative, budget, generator, parents[draw]):
            continue
        eliminated += 1
        if at_hand == 0:
            if draw_by_elimination(arcs, work, generator, group):
                at_hand = LANES
            else:
                _draw_forest_extended(arcs, work.extended_schedule, generator, group[0])
                at_hand = 1
        at_hand -= 1
        parents[draw, :] = group[at_hand]
    return eliminated
