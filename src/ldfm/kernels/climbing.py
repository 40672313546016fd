"""The most probable completion of a row: climbing from many states, one value at a time, on the sum over all forests."""

from math import inf

import numpy as np
from numba import njit

from ldfm.kernels.arc_matrices import fill_arc_matrices
from ldfm.kernels.forest_sums import log_forest_sums


@njit(nogil=True, cache=True, error_model="numpy")
def climb(model, known, codes, work):
    """Change values of free variables of one row, `codes` (n,), as long as any single change makes it more probable.

    Returns
    -------
    the log forest sum at the top; -inf where the row is impossible and no single change helps.
    """
    n = codes.shape[0]
    rows = np.empty((model.most, n), dtype=np.int64)
    matrices, sums = np.empty((model.most, n + 1, n)), np.empty(model.most)
    best = -inf
    since = 0  # variables looked at since the last change
    i = 0
    while since < n:
        k = model.offsets[i + 1] - model.offsets[i]
        if known[i] < 0 or best == -inf:
            for v in range(k):
                rows[v] = codes
                if known[i] < 0:
                    rows[v, i] = v
            fill_arc_matrices(model.table, model.offsets, rows[:k], matrices[:k])
            log_forest_sums(matrices[:k], work, sums[:k])
            best = max(best, sums[codes[i]] if known[i] < 0 else sums[0])
            if known[i] < 0:
                top = np.argmax(sums[:k])
                # rounding must not make it go round in circles
                if sums[top] > best + 1e-12 * abs(best) or (best == -inf and sums[top] > -inf):
                    codes[i], best, since = top, sums[top], -1
        since += 1
        i = (i + 1) % n
    return best
