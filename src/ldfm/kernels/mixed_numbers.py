"""One number of a row, or all free ones, given all other cells and the forest: conditional distributions and draws.

To move the cell of a number moves what relations leave of it, and of the numbers that are measured from it: `rests + t * steps[i]`,
t being how far the cell goes. Every arc between numbers is a normal density whose standardised residual is a line in t, so that
given a forest t is normal, as are all free numbers together. Discrete children of what moves multiply this by softmaxes, which are
log-concave: one peak is left, sums over a grid give its moments, and elliptical slice sampling (Murray, Adams and MacKay, 2010)
draws from it.
"""

from math import cos, exp, inf, log, pi, sin, sqrt

import numpy as np
from numba import njit

from ldfm.kernels.mixed_arcs import log_share, state_of

GRID, REACH = 96, 7.0  # points of a grid each side of the mean, and how far it goes in standard deviations
LOG_2_PI = log(2.0 * pi)
LEAST_PRECISION = 1e-300


@njit(nogil=True, cache=True, error_model="numpy")
def residual_of(model, rests, parent, j, moves):
    """Give log weight of the arc from `parent` to number j at the peak, its standardised residual, and how this moves with t."""
    t = model.offsets[j]
    row, x, by = 0, 0.0, 0.0
    if parent >= 0:
        row = 1 + state_of(model, rests, parent)
        if model.continuous[parent]:
            x, by = rests[parent], moves[parent]
    precision, slope = model.precisions[row, t], model.slopes[row, t]
    rest = (rests[j] - model.intercepts[row, t] - slope * x) * precision
    return model.log_table[row, t], rest, (moves[j] - slope * by) * precision


@njit(nogil=True, cache=True, error_model="numpy")
def pull_of_others(model, rests, parents, i):
    """Give what all arcs but the one into i say of its move t: precision, the best t, and whether softmaxes say something too."""
    moves = model.steps[i]
    precision, weighted, others = 0.0, 0.0, False
    for c in range(rests.shape[0]):
        p = parents[c]
        if c == i or (moves[c] == 0.0 and (p < 0 or moves[p] == 0.0)):
            continue
        if model.continuous[c]:
            _, rest, slope = residual_of(model, rests, p, c, moves)
            precision += slope * slope
            weighted -= slope * rest
        else:
            others = True
    return precision, weighted / precision if precision > 0.0 else 0.0, others


@njit(nogil=True, cache=True, error_model="numpy")
def normal_given(model, rests, parent, i, precision, best):
    """Give log of the integral over t, mean and standard deviation, of the parent's density times what others say of t.

    Up to a factor that all parents share. Written in differences from `best`, so that nothing large cancels.
    """
    log_weight, rest, slope = residual_of(model, rests, parent, i, model.steps[i])
    off = rest + slope * best
    whole = max(precision + slope * slope, LEAST_PRECISION)
    log_integral = log_weight - 0.5 * off * off * (precision / whole) + 0.5 * (LOG_2_PI - log(whole))
    return log_integral, best - slope * off / whole, 1.0 / sqrt(whole)


@njit(nogil=True, cache=True, error_model="numpy")
def log_softmaxes(model, rests, parents, first, a, second, b):
    """Give the log of the probabilities of discrete children of numbers at `rests + a * first + b * second`."""
    total = 0.0
    for c in range(rests.shape[0]):
        p = parents[c]
        if p < 0 or model.continuous[c] or not model.continuous[p] or (first[p] == 0.0 and second[p] == 0.0):
            continue
        row, low, high = 1 + model.offsets[p], model.offsets[c], model.offsets[c + 1]
        total += log_share(model, row, low, high, low + np.int64(rests[c]), rests[p] + a * first[p] + b * second[p])
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def softmax_moments(model, rests, parents, i, mean, deviation):
    """Give the log of the mean of the softmaxes under a normal density of t, and mean and deviation of their product with it."""
    step, moves = REACH / GRID, model.steps[i]
    logs = np.empty(2 * GRID + 1)
    largest = -inf
    for g in range(2 * GRID + 1):
        z = (g - GRID) * step
        logs[g] = log_softmaxes(model, rests, parents, moves, mean + deviation * z, moves, 0.0) - 0.5 * z * z
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
def angle_on_ellipse(model, rests, parents, first, second, generator):
    """Draw an angle so that `rests + (cos - 1) * first + sin * second` has the softmaxes times a normal density.

    `first` is where the state is now less the mean, `second` a draw of the normal density without its mean.
    """
    level = log_softmaxes(model, rests, parents, first, 0.0, second, 0.0) + log(1.0 - generator.random())
    angle = 2.0 * pi * generator.random()
    low, high = angle - 2.0 * pi, angle
    while high - low > 1e-12:
        if log_softmaxes(model, rests, parents, first, cos(angle) - 1.0, second, sin(angle)) > level:
            return angle
        if angle < 0.0:
            low = angle
        else:
            high = angle
        angle = low + (high - low) * generator.random()
    return 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def move_number(model, cells, rests, i, t):
    """Move the cell of a number by t."""
    cells[i] += t
    moves = model.steps[i]
    for j in range(rests.shape[0]):
        if moves[j] != 0.0:
            rests[j] += t * moves[j]


@njit(nogil=True, cache=True, error_model="numpy")
def draw_number(model, cells, rests, parents, i, pull, generator):
    """Draw a number given its parent and what others say of it."""
    precision, best, others = pull
    _, mean, deviation = normal_given(model, rests, parents[i], i, precision, best)
    t = mean + deviation * generator.standard_normal()
    if others:
        moves = model.steps[i]
        angle = angle_on_ellipse(model, rests, parents, -mean * moves, (t - mean) * moves, generator)
        t = -mean * (cos(angle) - 1.0) + (t - mean) * sin(angle)
    move_number(model, cells, rests, i, t)


@njit(nogil=True, cache=True, error_model="numpy")
def add_arc(model, rests, parent, j, free, slopes, precision, pull):
    """Add what the arc from `parent` to number j says of moves of free numbers to `precision` and `pull`.

    Give its log weight at the peak and its residual.
    """
    count, moved = free.shape[0], False
    log_weight, rest, _ = residual_of(model, rests, parent, j, model.steps[free[0]])
    for k in range(count):
        moves = model.steps[free[k]]
        slopes[k] = 0.0
        if moves[j] != 0.0 or (parent >= 0 and moves[parent] != 0.0):
            _, _, slopes[k] = residual_of(model, rests, parent, j, moves)
            moved = True
    if moved:
        for k in range(count):
            pull[k] -= slopes[k] * rest
            for m in range(k + 1):
                precision[k, m] += slopes[k] * slopes[m]
    return log_weight, rest


@njit(nogil=True, cache=True, error_model="numpy")
def add_arcs(model, rests, parents, free, but, precision, pull):
    """Fill `precision` and `pull` by all arcs into numbers but `but`; give whether softmaxes depend on free numbers."""
    slopes = np.empty(free.shape[0])
    precision[:] = 0.0
    pull[:] = 0.0
    others = False
    for c in range(rests.shape[0]):
        p = parents[c]
        if model.continuous[c]:
            if c != but:
                add_arc(model, rests, p, c, free, slopes, precision, pull)
        elif p >= 0:
            others |= moves_any(model, free, p)
    return others


@njit(nogil=True, cache=True, error_model="numpy")
def moves_any(model, free, j):
    """Say whether the rest of j moves with any of some numbers."""
    found = False
    for i in free:
        found |= model.steps[i, j] != 0.0
    return found


@njit(nogil=True, cache=True, error_model="numpy")
def factorise(matrix):
    """Turn the lower half of a positive definite matrix into its Cholesky factor; give whether that could be done."""
    for k in range(matrix.shape[0]):
        for m in range(k + 1):
            total = matrix[k, m]
            for place in range(m):
                total -= matrix[k, place] * matrix[m, place]
            if m < k:
                matrix[k, m] = total / matrix[m, m]
            elif total > 1e-14 * matrix[k, k]:
                matrix[k, k] = sqrt(total)
            else:  # lost in rounding
                return False
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def _solve_below(factor, sides):
    """Solve with a lower triangular factor, in place."""
    for k in range(sides.shape[0]):
        for m in range(k):
            sides[k] -= factor[k, m] * sides[m]
        sides[k] /= factor[k, k]


@njit(nogil=True, cache=True, error_model="numpy")
def normal_of_numbers(model, rests, parents, free, factor, mean):
    """Fill `factor` (free, free) with the Cholesky factor of the precision of moves of all free numbers, `mean` with their mean.

    Give whether there is one, and whether softmaxes say something too.
    """
    others = add_arcs(model, rests, parents, free, -1, factor, mean)
    if not factorise(factor):
        return False, others
    _solve_below(factor, mean)
    _solve_above(factor, mean)
    return True, others


@njit(nogil=True, cache=True, error_model="numpy")
def _solve_above(factor, sides):
    """Solve with the transpose of a lower triangular factor, in place."""
    count = sides.shape[0]
    for k in range(count - 1, -1, -1):
        for m in range(k + 1, count):
            sides[k] -= factor[m, k] * sides[m]
        sides[k] /= factor[k, k]


@njit(nogil=True, cache=True, error_model="numpy")
def draw_numbers(model, cells, rests, parents, free, generator):
    """Draw all free numbers together given the forest and all other cells; give whether that could be done."""
    count = free.shape[0]
    factor, mean, other = np.empty((count, count)), np.empty(count), np.empty(count)
    found, others = normal_of_numbers(model, rests, parents, free, factor, mean)
    if not found:
        return False
    for k in range(count):
        other[k] = generator.standard_normal()
    _solve_above(factor, other)
    ahead, aside = 1.0, 1.0
    if others:
        first, second = np.zeros(rests.shape[0]), np.zeros(rests.shape[0])
        for k in range(count):
            first -= mean[k] * model.steps[free[k]]
            second += other[k] * model.steps[free[k]]
        angle = angle_on_ellipse(model, rests, parents, first, second, generator)
        ahead, aside = 1.0 - cos(angle), sin(angle)
    for k in range(count):
        move_number(model, cells, rests, free[k], ahead * mean[k] + aside * other[k])
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def record_numbers(model, cells, rests, parents, free, normals):
    """Fill `normals` (n, 2) with mean and deviation of free numbers given the forest and the cells that are known.

    Other free numbers are integrated out, where no softmaxes depend on them; else they are given too.
    """
    count = free.shape[0]
    factor, mean, column = np.empty((count, count)), np.empty(count), np.empty(count)
    found, others = normal_of_numbers(model, rests, parents, free, factor, mean)
    for k in range(count):
        i = free[k]
        if found and not others:
            column[:] = 0.0
            column[k] = 1.0
            _solve_below(factor, column)
            normals[i, 0], normals[i, 1] = cells[i] + mean[k], sqrt((column * column).sum())
            continue
        precision, best, more = pull_of_others(model, rests, parents, i)
        _, centre, deviation = normal_given(model, rests, parents[i], i, precision, best)
        if more:
            _, centre, deviation = softmax_moments(model, rests, parents, i, centre, deviation)
        normals[i, 0], normals[i, 1] = cells[i] + centre, deviation


@njit(nogil=True, cache=True, error_model="numpy")
def free_together(model, known, parents, i):
    """Give the free numbers that no softmax depends on, and number i at the end."""
    n = parents.shape[0]
    found = np.empty(n, dtype=np.int64)
    count = 0
    for j in range(n):
        if j == i or not model.continuous[j] or not np.isnan(known[j]):
            continue
        felt = False
        for c in range(n):
            p = parents[c]
            felt |= p >= 0 and not model.continuous[c] and model.steps[j, p] != 0.0
        if not felt:
            found[count] = j
            count += 1
    found[count] = i
    return found[: count + 1]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_parents_of_tied(model, rests, parents, t, below_i, group, logs):
    """Fill `logs` (2, n + 1) with the log weights of the last number's parents, all others of a group integrated out.

    Row 0: it is moved by t; row 1: it is integrated out too. Up to a factor that all share. Give whether that could be done.
    Tied numbers are needles given each other: densities given all others would say nothing of how probable a number is.
    """
    count, i = group.shape[0], group[-1]
    base, side, slopes = np.empty((count, count)), np.empty(count), np.empty(count)
    add_arcs(model, rests, parents, group, i, base, side)
    last = group[count - 1 :]
    felt = False
    for c in range(rests.shape[0]):
        felt |= parents[c] >= 0 and not model.continuous[c] and moves_any(model, last, parents[c])
    for p in range(-1, rests.shape[0]):
        logs[:, 1 + p] = -inf
        if p >= 0 and below_i[p]:
            continue
        factor, mean = base.copy(), side.copy()
        log_weight, rest = add_arc(model, rests, p, i, group, slopes, factor, mean)
        if log_weight == -inf:
            continue
        if not factorise(factor):
            return False
        _solve_below(factor, mean)
        precision = factor[-1, -1]
        centre = mean[-1] / precision
        whole = log_weight - 0.5 * rest * rest
        for k in range(count):
            whole += 0.5 * mean[k] * mean[k] - log(factor[k, k])
        off = (t - centre) * precision
        logs[0, 1 + p] = whole - 0.5 * off * off + log(precision) - 0.5 * LOG_2_PI
        logs[1, 1 + p] = whole
        if felt:
            moves = model.steps[i]
            logs[0, 1 + p] += log_softmaxes(model, rests, parents, moves, t, moves, 0.0)
            logs[1, 1 + p] += softmax_moments(model, rests, parents, i, centre, 1.0 / precision)[0]
    return True
