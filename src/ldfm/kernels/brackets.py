"""Bounds of the ratio Z(v) / Z(now) of forest sums when one variable X_i takes another value v; O(n^2) instead of O(n^3).

Divide every column of the arc matrix by its sum D: from a variable l one then walks up to its parent, until the root is met. Let
V[l, j] be the expected number of visits to j of the walk from l, the inverse of (1 - steps). With the value v,

- i takes its parent by other weights: one row of (1 - steps) changes, and Z becomes D'_i / D_i * first times as large;
- the arc from i to each other variable l gains delta_l, so that row l of (1 - steps) gains tau_l (e_l - e_i), tau_l =
  delta_l / D_l. Let W[l, j] be how many more visits the walk from l pays to j than that from i does, the new parents of i
  heeded. Any one of these gains alone makes Z  1 + tau_l W[l, l] =: Lambda_l  times as large.

Both are exact. All gains together make it  det(1 + diag(tau) W) = product of Lambda_l * det(1 + N),  N[l, j] = theta_l W[l, j]
with theta_l = tau_l / Lambda_l off the diagonal and 0 on it. Two walks from different variables visit most others about as
often, so N is small, and with f its Frobenius norm, or that of any a_l N[l, j] / a_j,

    |log det(1 + N)| <= sum over m >= 2 of |trace N^m| / m <= sum of f^m / m <= f^2 / (2 (1 - f)).

V is kept in single precision, for all it is good for is to leave out work; the bounds allow for its rounding.
"""

from math import exp, inf, sqrt
from typing import NamedTuple

import numpy as np
from numba import njit

from ldfm.kernels.one_sum import make_arcs
from ldfm.kernels.panels import (
    COLUMNS,
    PANEL,
    add_four_rows,
    mix_four_rows,
    sum_rows,
    sum_squares,
    take_factors,
)

ROUNDING = 2.0**-22  # four times the rounding error of one operation
LARGEST_BOUND = 2.0  # of a log: beyond it a bracket is not worth having
WORTH_ANOTHER = 0.01  # doubt about a draw that makes a second look at the norm pay
SMALLEST_SCALE = 1e-9

SUMS, OWN, TAUS, THETAS, REACHES, SCALES = range(6)
PARENTS, TOTALS, SHIFTS, LEVELS, SLOPES, WEIGHTS = range(6)


class Walks(NamedTuple):
    """The walks up from every variable of one chain, and scratch lines for a change of X_i; rows and width filled up.

    Attributes
    ----------
    values
        (n,): index of the value of each variable.
    arcs
        (rows, width + 16): row l the weights of the arcs into l, from the root in column 0 and from j in column 1 + j.
    visits
        (rows, width), single: V, filled up with ones on the diagonal.
    factors
        (rows, PANEL), single: scratch of the inversion.
    doubles
        (6, width): D; the diagonal of V; tau; |theta|; sizes of the numbers of which `slopes` is the difference; a^-2.
    singles
        (6, width), single: share of each variable among the parents that X_i would take; what is added up over the rows of V;
        shifts, levels and slopes, of which W[l, j] = V[l, j] - shifts[j] - levels[l] * slopes[j] is made; a^2 theta^2.
    """

    values: np.ndarray
    arcs: np.ndarray
    visits: np.ndarray
    factors: np.ndarray
    doubles: np.ndarray
    singles: np.ndarray


@njit(nogil=True, cache=True, error_model="numpy")
def make_walks(model, codes):
    """Allocate the walks of a chain and fill in its arcs."""
    n = codes.shape[0]
    rows, width = -(-n // PANEL) * PANEL, -(-n // COLUMNS) * COLUMNS
    values = model.offsets[:n] + codes
    arcs = make_arcs(n)
    for j in range(n):
        arcs[j, 0] = model.by_child[values[j], 0]
        for k in range(n):
            arcs[j, 1 + k] = model.by_child[values[j], 1 + values[k]]
    visits, factors = np.zeros((rows, width), dtype=np.float32), np.zeros((rows, PANEL), dtype=np.float32)
    return Walks(values, arcs, visits, factors, np.zeros((6, width)), np.zeros((6, width), dtype=np.float32))


@njit(nogil=True, cache=True, error_model="numpy")
def set_value(model, walks, i, v):
    """Let X_i be v; the visits are then out of date."""
    values, arcs = walks.values, walks.arcs
    value = model.offsets[i] + v
    values[i] = value
    arcs[i, 0] = model.by_child[value, 0]
    for k in range(values.shape[0]):
        arcs[i, 1 + k] = model.by_child[value, 1 + values[k]]
        arcs[k, 1 + i] = model.table[1 + value, values[k]]


@njit(nogil=True, cache=True, error_model="numpy")
def _take_inverse_of_panel(matrix, first, factors):
    """Invert the pivots of a panel into `factors`, leave the unit matrix in their place; PANEL x PANEL."""
    for p in range(PANEL):
        for q in range(PANEL):
            factors[first + p, q] = matrix[first + p, first + q]
            matrix[first + p, first + q] = 1.0 if p == q else 0.0
    for p in range(PANEL):
        pivot = np.float32(1.0) / factors[first + p, p]
        factors[first + p, p] = 1.0
        for q in range(PANEL):
            factors[first + p, q] *= pivot
        for k in range(PANEL):
            if k != p:
                factor = factors[first + k, p]
                factors[first + k, p] = 0.0
                for q in range(PANEL):
                    factors[first + k, q] -= factor * factors[first + p, q]


@njit(nogil=True, cache=True, error_model="numpy")
def invert(matrix, factors):
    """Invert a row-dominant M-matrix of singles in place, by Gauss-Jordan without pivoting, PANEL pivots at once; 2 n^3."""
    rows, width = matrix.shape
    for first in range(0, rows, PANEL):
        last = first + PANEL
        _take_inverse_of_panel(matrix, first, factors)
        mix_four_rows(matrix, first, factors, width)
        take_factors(matrix, first, factors, 0, first)
        take_factors(matrix, first, factors, last, rows)
        add_four_rows(matrix, first, factors, 0, first, width)
        add_four_rows(matrix, first, factors, last, rows, width)


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _load_steps(walks):
    """Fill `visits` with (1 - steps)."""
    n, arcs, visits = walks.values.shape[0], walks.arcs, walks.visits
    rows, width = visits.shape
    for j in range(rows):
        total = 0.0 if j < n else 1.0
        for k in range(width + COLUMNS):
            total += arcs[j, k]
        walks.doubles[SUMS, j] = total
        scale = -1.0 / total
        for k in range(width):
            visits[j, k] = arcs[j, 1 + k] * scale
        visits[j, j] = 1.0


@njit(nogil=True, cache=True, error_model="numpy")
def refresh(walks):
    """Bring the visits up to date.

    Returns
    -------
    a bound of their rounding errors, relative to the largest numbers met, inf where they cannot be trusted.
    """
    n = walks.values.shape[0]
    _load_steps(walks)
    invert(walks.visits, walks.factors)
    most = 0.0
    for j in range(n):
        own = walks.visits[j, j]
        walks.doubles[OWN, j] = own
        most = max(most, own) if own >= 0.5 else inf  # NaN must not pass; every walk visits its start
    return ROUNDING * n * most


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _gather(model, walks, i, new):
    """Fill `TAUS` and `PARENTS` for X_i taking the value of index `new`; give D'_i / D_i, 0 where that value has no parent."""
    values, doubles, singles = walks.values, walks.doubles, walks.singles
    n, old = values.shape[0], values[i]
    total = model.by_child[new, 0]
    for j in range(n):
        value = values[j]
        weight = model.by_child[new, 1 + value]
        total += weight
        doubles[THETAS, j] = weight
        # arcs within X_i have weight 0, so that tau_i = 0
        doubles[TAUS, j] = model.table[1 + new, value] - model.table[1 + old, value]
    if total == 0.0:
        return 0.0
    scale = 1.0 / total
    for j in range(n):
        singles[PARENTS, j] = doubles[THETAS, j] * scale
        doubles[TAUS, j] /= doubles[SUMS, j]
    return total / doubles[SUMS, i]


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _gains(walks, i):
    """Fill what W and N are made of; give first * product of Lambda_l, and how much of a rounding error in V its log takes on."""
    visits, doubles, singles = walks.visits, walks.doubles, walks.singles
    n, top = walks.values.shape[0], visits[i, i]
    for j in range(n):
        singles[SHIFTS, j] = visits[i, j]
        singles[LEVELS, j] = visits[j, i] - top
    first = np.float64(top - singles[TOTALS, i])
    if not first > 0.0:
        return 0.0, inf
    scale = 1.0 / first
    product, error = first, 2.0 * top * scale
    for j in range(n):
        shift, level, tau, own = singles[SHIFTS, j], singles[LEVELS, j], doubles[TAUS, j], doubles[OWN, j]
        slope = (shift - singles[TOTALS, j]) * scale
        reach = (shift + singles[TOTALS, j]) * scale
        gain = 1.0 + tau * (own - shift - level * slope)
        theta = abs(tau / gain)
        product *= gain
        # slopes are off by a share of `reach`, levels by a share of `top`, which none exceeds
        error += theta * (own + shift + 2.0 * top * reach)
        singles[SLOPES, j] = slope
        doubles[REACHES, j] = reach
        doubles[THETAS, j] = theta
    return product, error


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _norm(walks, top, rounding):
    """Bound the Frobenius norm of a_l N[l, j] / a_j."""
    visits, doubles, singles = walks.visits, walks.doubles, walks.singles
    n = walks.values.shape[0]
    for j in range(n):
        # W[j, j] is no part of N: make it 0
        visits[j, j] = singles[SHIFTS, j] + singles[LEVELS, j] * singles[SLOPES, j]
    sum_squares(visits, singles, WEIGHTS, LEVELS, SHIFTS, SLOPES, TOTALS)
    squares = error = total = 0.0
    for j in range(n):
        own, scale = doubles[OWN, j], doubles[SCALES, j]
        visits[j, j] = own
        squares += scale * singles[TOTALS, j]
        # no walk visits j more often than that from j
        error += scale * (2.0 * own + 2.0 * doubles[REACHES, j] * top) ** 2
        total += singles[WEIGHTS, j]
    return sqrt(squares) + rounding * sqrt(error * total)


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _scale_by_sums(walks):
    """Choose a_j^2 = D_j / (D'_j |theta_j|)."""
    doubles, singles = walks.doubles, walks.singles
    for j in range(walks.values.shape[0]):
        theta = doubles[THETAS, j]
        scale = min(max(1.0 + doubles[TAUS, j], SMALLEST_SCALE), 1.0 / SMALLEST_SCALE)
        doubles[SCALES, j] = theta * scale
        singles[WEIGHTS, j] = theta / scale


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _scale_by_thetas(walks):
    """Choose a_j^2 = |theta_j|^(-1/2)."""
    doubles, singles = walks.doubles, walks.singles
    for j in range(walks.values.shape[0]):
        theta = doubles[THETAS, j]
        root = sqrt(theta)
        doubles[SCALES, j] = root
        singles[WEIGHTS, j] = root * theta


@njit(nogil=True, cache=True, error_model="numpy")
def bracket(model, walks, i, v, rounding):
    """Give two numbers between which Z(v) / Z(now) lies for X_i becoming v, (0, inf) where nothing is known; O(n^2).

    `rounding` is what `refresh` gave.
    """
    if not rounding < LARGEST_BOUND:
        return 0.0, inf
    top = walks.doubles[OWN, i]
    ratio = _gather(model, walks, i, model.offsets[i] + v)
    if ratio == 0.0:
        return 0.0, 0.0
    sum_rows(walks.visits, walks.singles, PARENTS, TOTALS)
    product, error = _gains(walks, i)
    ratio *= product
    if not 1e-200 < ratio < 1e200:
        return 0.0, inf
    _scale_by_sums(walks)
    norm = _norm(walks, top, rounding)
    if not _bound(norm) * min(ratio, 1.0 / ratio) < WORTH_ANOTHER:
        _scale_by_thetas(walks)
        other = _norm(walks, top, rounding)
        norm = norm if norm < other else other
    # |log(1 + x)| <= 2 |x| for |x| <= 1/2
    bound = _bound(norm) + 2.0 * rounding * error
    if not (bound < LARGEST_BOUND and rounding * error < 0.5):
        return 0.0, inf
    return ratio * exp(-bound), ratio * exp(bound)


@njit(nogil=True, cache=True, error_model="numpy")
def _bound(norm):
    """Bound |log det(1 + N)|."""
    return norm * norm / (2.0 - 2.0 * norm) if norm < 1.0 else inf
