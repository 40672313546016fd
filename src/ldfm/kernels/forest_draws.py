"""Exact draws of forests of one row, P(forest) proportional to the product of its arc weights.

Wilson's algorithm walks from each variable to its parents until it meets the forest drawn so far, and erases loops. It takes
2-3 n steps for many rows and any number for rows with strong loops and weak roots. Most loops go to and fro between two variables,
each of which is the other's most probable parent. Such *partners* can be found beforehand, and their loops are then not walked but
skipped: walks that take long are begun again in this way.

The loops that are popped are independent of the forest it ends with, and so is the number of steps without those that were
skipped. So giving up after a number of steps and drawing in another way leaves the draws exact. The last way:
leave each variable j alone in turn, draw its parent i with probability arcs[i, j] * escape(i, j) (see `forest_sums`), and let
the walk from j always go there from then on. That is one run of the schedule, O(1.5 n^3) for forests of four arc matrices.
"""

import numpy as np
from numba import njit

from ldfm.kernels import extended_range
from ldfm.kernels.elimination import BLOCK, LOST_AT_START, VISIBLE, condense, leave_alone, scale_columns, task_at
from ldfm.kernels.extended_range import choose
from ldfm.kernels.lanes import LANES

ROOT = -1
NO_FOREST = -2
OFF_PATH, IN_FOREST = -1, -2  # places of variables that are not on the path of a walk
PLAIN_STEPS_A_VARIABLE = 3  # of erased loops, before partners are looked for: that takes about as long
MOST_RETURNS = 1.0 - 1e-6  # nearer to 1, running sums say too little of how a pair is left, and walks give up instead
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
def _share(cumulative, j, i):
    """Give the probability that the walk goes from j to i next."""
    return (cumulative[j, 1 + i] - cumulative[j, i]) / cumulative[j, cumulative.shape[1] - 1]


@njit(nogil=True, cache=True, error_model="numpy")
def find_partners(cumulative, partners):
    """Fill `partners` (n,) with the most probable parent of each variable, where it is mutual, else with -1; O(n^2).

    Pairs that are hardly ever left have none either.
    """
    n = partners.shape[0]
    for j in range(n):
        most = cumulative[j, 0]
        partners[j] = ROOT
        for i in range(n):
            weight = cumulative[j, 1 + i] - cumulative[j, i]
            if weight > most:
                most = weight
                partners[j] = i
    for j in range(n):
        i = partners[j]
        if i != ROOT and (partners[i] != j or _share(cumulative, j, i) * _share(cumulative, i, j) > MOST_RETURNS):
            partners[j] = ROOT


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
def _step_up(cumulative, j, share):
    """Give the parent of j where its running sums come to `share`."""
    low, high = 0, cumulative.shape[1] - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[j, middle] > share:
            high = middle
        else:
            low = middle + 1
    # a share that was rounded up to the total is that of the last parent there is
    while low > 0 and cumulative[j, low] == cumulative[j, low - 1]:
        low -= 1
    return low - 1


@njit(nogil=True, cache=True, error_model="numpy")
def _step_from_pair(cumulative, j, i, cut, uniform):
    """Give the parent of j at the quantile `uniform` of the weights in `cumulative`, that of i less by `cut`."""
    share = uniform * (cumulative[j, cumulative.shape[1] - 1] - cut)
    return _step_up(cumulative, j, share + cut if share >= cumulative[j, 1 + i] - cut else share)


@njit(nogil=True, cache=True, error_model="numpy")
def walk_plainly(cumulative, budget, generator, parents):
    """Draw one forest by Wilson's algorithm into `parents` (n,); give whether at most `budget` steps were erased in loops."""
    n = parents.shape[0]
    done = np.zeros(n, dtype=np.bool_)
    left = budget + n
    for start in range(n):
        j = start
        while j != ROOT and not done[j]:
            left -= 1
            if left < 0:
                return False
            # a step out of a loop writes over the one into it, which erases the loop
            parents[j] = _step_up(cumulative, j, generator.random() * cumulative[j, n])
            j = parents[j]
        j = start
        while j != ROOT and not done[j]:
            done[j] = True
            j = parents[j]
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def _come_to(k, path, places, length):
    """Add k to the first `length` of `path`, or erase the loop that it closes; give the length then."""
    at = places[k]
    if at == OFF_PATH:
        path[length] = k
        places[k] = length
        return length + 1
    for place in range(at + 1, length):
        places[path[place]] = OFF_PATH
    return at + 1


@njit(nogil=True, cache=True, error_model="numpy")
def walk_past_partners(cumulative, partners, budget, generator, parents):
    """Draw one forest as `walk_plainly` does, but skip loops between partners, which do not count either."""
    n = parents.shape[0]
    path, places = np.empty(n, dtype=np.int64), np.full(n, OFF_PATH)
    erased = 0
    for start in range(n):
        if places[start] == IN_FOREST:
            continue
        path[0], places[start], length = start, 0, 1
        j = start
        while j != ROOT and places[j] != IN_FOREST:
            if length - 1 != places[j]:
                length = _come_to(j, path, places, length)
            i = partners[j]
            if i == ROOT or places[i] == IN_FOREST:
                k = _step_up(cumulative, j, generator.random() * cumulative[j, n])
            else:
                back, weight = _share(cumulative, i, j), cumulative[j, 1 + i] - cumulative[j, i]
                if generator.random() < _share(cumulative, j, i) * back and 0 <= places[i] < length - 2:
                    # to i, which was met earlier, and from there straight to j; all later such loops change nothing
                    erased += length - places[i]
                    length = _come_to(j, path, places, _come_to(i, path, places, length))
                k = _step_from_pair(cumulative, j, i, weight * back, generator.random())
                if k == i:  # and from there not back to j
                    erased += length - places[i] if 0 <= places[i] < length - 2 else 0
                    length = _come_to(i, path, places, length)
                    weight = cumulative[i, 1 + j] - cumulative[i, j]
                    k = _step_from_pair(cumulative, i, j, weight, generator.random())
            if k != ROOT and places[k] >= 0:
                erased += length - places[k]
                length = _come_to(k, path, places, length)
            if erased > budget:
                return False
            j = k
        for place in range(length):
            parents[path[place]] = path[place + 1] if place + 1 < length else j
            places[path[place]] = IN_FOREST
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def draw_by_walks(cumulative, budget, generator, parents):
    """Draw one forest by walks into `parents` (n,); give whether the loops erased had at most `budget` steps in all.

    `cumulative` (n, n + 1) has running sums of the weights of the parents of each variable, root first.
    """
    n = parents.shape[0]
    if walk_plainly(cumulative, min(budget, PLAIN_STEPS_A_VARIABLE * n), generator, parents):
        return True
    partners = np.empty(n, dtype=np.int64)
    find_partners(cumulative, partners)
    return walk_past_partners(cumulative, partners, budget, generator, parents)


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
def draw_by_elimination(matrices, work, generator, parents):
    """Draw a forest of each of LANES arc matrices (LANES, n + 1, n) into `parents` (LANES, n); give whether they can be trusted."""
    height = matrices.shape[1]
    kept = np.zeros((work.lost.shape[0], 2), dtype=np.int64)
    aside = np.ones(LANES)
    for lane in range(LANES):
        _, _, trusted = scale_columns(matrices[lane], lane, work.steps, work.inverses)
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
                parent = _draw_parent(matrices[lane], work, level * height, (low, high), alone, lane, generator)
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

    `budget` is how many steps of loops Wilson's algorithm may erase a forest; 0 draws all by elimination.

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
    matrices, group = np.empty((LANES, n + 1, n)), np.empty((LANES, n), dtype=np.int64)
    at_hand = 0
    eliminated = 0
    for draw in range(draws):
        if budget > 0 and draw_by_walks(cumulative, budget, generator, parents[draw]):
            continue
        eliminated += 1
        if at_hand == 0:
            for lane in range(LANES):
                matrices[lane] = arcs
            if draw_by_elimination(matrices, work, generator, group):
                at_hand = LANES
            else:
                _draw_forest_extended(arcs, work.extended_schedule, generator, group[0])
                at_hand = 1
        at_hand -= 1
        parents[draw, :] = group[at_hand]
    return eliminated
