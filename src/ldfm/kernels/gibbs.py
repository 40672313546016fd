"""Collapsed Gibbs with a kept inverse: the forest is summed out, and changing one value costs O(n) instead of O(n^3).

Let L be the Laplacian of the row and G its inverse. Changing X_i from a to v changes column i of L and, for the children j in
R = {j : w(x_j|v) != w(x_j|a)}, column j by delta_j (e_j - e_i), delta_j = w(x_j|v) - w(x_j|a). With U the differences of the
changed columns and E the unit vectors of i and R,

    Z(v) / Z(a) = det(I + E' G U),      size |R| + 1,  O(n (|R| + 1)) to set up.

G changes only when a value does (Woodbury, O(n^2 (|R| + 1))) and is computed afresh now and then. Weights of the form floor(t)
plus few large ones make R small. Where R is large, or G too large to be trusted to 1e-9 (loops that hardly ever leave for the
root), the conditional is taken from fresh forest sums, one a value.
"""

from math import exp, inf

import numpy as np
from numba import njit

from ldfm.kernels.arc_matrices import fill_arc_matrices
from ldfm.kernels.extended_range import choose
from ldfm.kernels.forest_sums import log_forest_sums

MOST_CHANGED = 24  # children whose weight changes: beyond this a fresh forest sum is as cheap
REFRESH = 25  # changes of the inverse before it is computed afresh
TRUSTED = 1e5  # largest column sum times diagonal entry of the inverse: its rounding error, times n, stays below 1e-9


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _dot(rows, a, vector):
    total = 0.0
    for k in range(vector.shape[0]):
        total += rows[a, k] * vector[k]
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def invert(laplacian, inverse):
    """Invert a column-dominant M-matrix by Gauss-Jordan without pivoting; both (n, n), `laplacian` is spoilt."""
    n = laplacian.shape[0]
    inverse[:, :] = 0.0
    for k in range(n):
        inverse[k, k] = 1.0
    for k in range(n):
        pivot = 1.0 / laplacian[k, k]
        for j in range(n):
            laplacian[k, j] *= pivot
            inverse[k, j] *= pivot
        for i in range(n):
            factor = laplacian[i, k]
            if i != k and factor != 0.0:
                for j in range(n):
                    laplacian[i, j] -= factor * laplacian[k, j]
                    inverse[i, j] -= factor * inverse[k, j]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_laplacian(arcs, laplacian):
    """Fill `laplacian` (n, n) from an arc matrix."""
    n = arcs.shape[1]
    for j in range(n):
        total = arcs[0, j]
        for i in range(n):
            total += arcs[1 + i, j]
            laplacian[i, j] = -arcs[1 + i, j]
        laplacian[j, j] = total


@njit(nogil=True, cache=True, error_model="numpy")
def _refresh(model, codes, kept):
    """Compute column sums and inverse afresh; give whether the inverse can be trusted."""
    arcs, laplacian, inverse, sums = kept
    n = codes.shape[0]
    fill_arc_matrices(model.table, model.offsets, codes.reshape(1, n), arcs)
    fill_laplacian(arcs[0], laplacian)
    for j in range(n):
        sums[j] = laplacian[j, j]
    invert(laplacian, inverse)
    return _is_trusted(inverse, sums)


@njit(nogil=True, cache=True, error_model="numpy")
def _is_trusted(inverse, sums):
    largest = 0.0
    for j in range(sums.shape[0]):
        # NaN must not pass
        largest = max(largest, sums[j] * inverse[j, j]) if sums[j] * inverse[j, j] >= 0.0 else inf
    return largest <= TRUSTED


@njit(nogil=True, cache=True, error_model="numpy")
def _set_up_change(model, codes, i, v, inverse, change):
    """Fill `change` = (column, places, deltas, matrix) for X_i becoming v; give its size |R| + 1, -1 where that is too large."""
    column, places, deltas, matrix = change
    offsets = model.offsets
    n = codes.shape[0]
    old, new = offsets[i] + codes[i], offsets[i] + v
    size = 1
    places[0] = i
    total = model.by_child[new, 0] - model.by_child[old, 0]
    for k in range(n):
        if k == i:
            continue
        value = offsets[k] + codes[k]
        gain = model.by_child[new, 1 + value] - model.by_child[old, 1 + value]
        column[k] = -gain
        total += gain
        delta = model.table[1 + new, value] - model.table[1 + old, value]
        if delta != 0.0:
            if size > MOST_CHANGED:
                return -1
            places[size] = k
            deltas[size] = delta
            size += 1
    column[i] = total
    for a in range(size):
        row = places[a]
        matrix[a, 0] = _dot(inverse, row, column)
        for b in range(1, size):
            matrix[a, b] = deltas[b] * (inverse[row, places[b]] - inverse[row, i])
        matrix[a, a] += 1.0
    return size


@njit(nogil=True, cache=True, error_model="numpy")
def _eliminate_with(matrix, size, right):
    """Solve matrix X = right in place (right (size, m)), with row pivots; give the determinant."""
    determinant = 1.0
    for k in range(size):
        pivot = k
        for a in range(k + 1, size):
            if abs(matrix[a, k]) > abs(matrix[pivot, k]):
                pivot = a
        if matrix[pivot, k] == 0.0:
            return 0.0
        if pivot != k:
            determinant = -determinant
            for b in range(size):
                matrix[k, b], matrix[pivot, b] = matrix[pivot, b], matrix[k, b]
            for b in range(right.shape[1]):
                right[k, b], right[pivot, b] = right[pivot, b], right[k, b]
        determinant *= matrix[k, k]
        for a in range(k + 1, size):
            factor = matrix[a, k] / matrix[k, k]
            if factor != 0.0:
                for b in range(k, size):
                    matrix[a, b] -= factor * matrix[k, b]
                for b in range(right.shape[1]):
                    right[a, b] -= factor * right[k, b]
    for k in range(size - 1, -1, -1):
        for b in range(right.shape[1]):
            total = right[k, b]
            for a in range(k + 1, size):
                total -= matrix[k, a] * right[a, b]
            right[k, b] = total / matrix[k, k]
    return determinant


@njit(nogil=True, cache=True, error_model="numpy")
def _apply_change(inverse, sums, change, size, solved):
    """Update inverse and column sums for a change that has been set up: G -= (G U) inv(I + E' G U) E' G."""
    column, places, deltas, matrix = change
    n = inverse.shape[0]
    i = places[0]
    for a in range(size):
        solved[a, :] = inverse[places[a]]
    _eliminate_with(matrix, size, solved[:size])
    images = np.empty((n, size))
    for k in range(n):
        images[k, 0] = _dot(inverse, k, column)
        for b in range(1, size):
            images[k, b] = deltas[b] * (inverse[k, places[b]] - inverse[k, i])
    for k in range(n):
        for a in range(size):
            factor = images[k, a]
            for j in range(n):
                inverse[k, j] -= factor * solved[a, j]
    sums[i] += column[i]
    for b in range(1, size):
        sums[places[b]] += deltas[b]


@njit(nogil=True, cache=True, error_model="numpy")
def _ratios(model, codes, i, inverse, change, weights):
    """Fill `weights` with Z(v) / Z(now) for all values of X_i; give False where some change is too large for this way."""
    nothing = np.empty((MOST_CHANGED + 1, 0))
    for v in range(model.offsets[i + 1] - model.offsets[i]):
        if v == codes[i]:
            weights[v] = 1.0
            continue
        size = _set_up_change(model, codes, i, v, inverse, change)
        if size < 0:
            return False
        # a ratio of forest sums is not negative; rounding may make a tiny one so
        weights[v] = max(0.0, _eliminate_with(change[3], size, nothing[:size]))
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def _fresh_ratios(model, codes, i, matrices, sums, work, weights):
    """Fill `weights` with numbers proportional to Z(v), from one forest sum a value."""
    n = codes.shape[0]
    k = model.offsets[i + 1] - model.offsets[i]
    rows = np.empty((k, n), dtype=np.int64)
    for v in range(k):
        rows[v] = codes
        rows[v, i] = v
    fill_arc_matrices(model.table, model.offsets, rows, matrices[:k])
    log_forest_sums(matrices[:k], work, sums[:k])
    largest = -inf
    for v in range(k):
        largest = max(largest, sums[v])
    for v in range(k):
        weights[v] = exp(sums[v] - largest)


@njit(nogil=True, cache=True, error_model="numpy")
def gibbs_sweeps(model, clamped, codes, sweeps, work, generator, visits):
    """Draw each free value given all other values, forests summed out; O(n (|R| + 1)) a value that stays."""
    n = codes.shape[0]
    kept = np.empty((1, n + 1, n)), np.empty((n, n)), np.empty((n, n)), np.empty(n)
    inverse, sums = kept[2], kept[3]
    most = MOST_CHANGED + 1
    change = np.empty(n), np.empty(most, dtype=np.int64), np.empty(most), np.empty((most, most))
    solved = np.empty((most, n))
    matrices, logs, weights = np.empty((model.most, n + 1, n)), np.empty(model.most), np.empty(model.most)
    trusted = _refresh(model, codes, kept)
    changes = 0
    for sweep in range(sweeps):
        for i in range(n):
            if clamped[i] >= 0:
                continue
            k = model.offsets[i + 1] - model.offsets[i]
            cheap = trusted and _ratios(model, codes, i, inverse, change, weights)
            if not cheap:
                _fresh_ratios(model, codes, i, matrices, logs, work, weights)
            total = weights[:k].sum()
            if len(visits):
                for v in range(k):
                    visits[sweep * len(visits) // sweeps, i, v] += weights[v] / total
            v = choose(weights[:k], generator.random())
            if v == codes[i]:
                continue
            changes += 1
            if cheap and changes < REFRESH:
                size = _set_up_change(model, codes, i, v, inverse, change)
                _apply_change(inverse, sums, change, size, solved)
                codes[i] = v
                trusted = _is_trusted(inverse, sums)
            else:
                codes[i] = v
                trusted = _refresh(model, codes, kept)
                changes = 0
