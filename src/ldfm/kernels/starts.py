"""States to start chains from."""

import numpy as np
from numba import njit

from ldfm.kernels.extended_range import choose

ROOT = -1


@njit(nogil=True, cache=True, error_model="numpy")
def grow_forest(model, clamped, generator, codes, parents):
    """Grow a forest arc by arc, each drawn in proportion to its weight among all that reach a new variable; O(n^2 S).

    Any state it ends in has positive probability. It is no draw from the model, only a place to start.

    Returns
    -------
    whether every variable was reached.
    """
    table, offsets = model.table, model.offsets
    n = codes.shape[0]
    placed = np.zeros(n, dtype=np.bool_)
    reach = np.zeros(table.shape[1])  # weight of all arcs from the forest into each value
    weights = np.zeros(table.shape[1])
    arcs = np.empty(n + 1)
    reach[:] = table[0]
    for _ in range(n):
        total = 0.0
        for j in range(n):
            for t in range(offsets[j], offsets[j + 1]):
                possible = not placed[j] and (clamped[j] < 0 or clamped[j] == t - offsets[j])
                weights[t] = reach[t] if possible else 0.0
                total += weights[t]
        if total <= 0.0:
            return False
        t = choose(weights, generator.random())
        j = np.searchsorted(offsets, t, side="right") - 1
        arcs[0] = table[0, t]
        for i in range(n):
            arcs[1 + i] = table[1 + offsets[i] + codes[i], t] if placed[i] else 0.0
        parents[j] = choose(arcs, generator.random()) - 1
        codes[j] = t - offsets[j]
        placed[j] = True
        reach += table[1 + t]
    return True
