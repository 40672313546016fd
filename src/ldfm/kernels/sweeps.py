"""Sweeps over values and forest: each leaves the distribution of (values, forest) given the known values unchanged.

State of a chain: `codes` (n,) values and `parents` (n,) forest, with probability proportional to the product of the forest's arc
weights. Known variables (`clamped` >= 0) never change their value, only their parent. Every function runs one chain for some
number of sweeps. `visits` (records, n, most values) takes the conditional distributions of the free values met on the way, those
of sweep s added to record s * records // sweeps: their average estimates the marginals with less noise than counting values does.
With no records nothing is recorded.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ldfm.kernels.arc_matrices import fill_arc_matrices
from ldfm.kernels.extended_range import choose
from ldfm.kernels.forest_draws import NO_FOREST, can_reach_all, draw_by_walks, draw_forests
from ldfm.kernels.tree_messages import draw_values, order_from_roots, send_down, send_up
from ldfm.types import Floats, Integers

ROOT = -1
WALK_STEPS_A_VARIABLE = 50


class Folded(NamedTuple):
    """A model as samplers see it.

    Attributes
    ----------
    table
        (S + 1, S): arc weights, each times the stop weight of its child.
    by_child
        (S, S + 1): the same, child by parent.
    offsets
        (n + 1,): first value of each variable.
    most
        Largest number of values of a variable.
    """

    table: Floats
    by_child: Floats
    offsets: Integers
    most: int


@njit(nogil=True, cache=True, error_model="numpy")
def _cumulate(model, codes, cumulative):
    """Fill `cumulative` (n, n + 1) with running sums of the arcs into each value; give whether all totals are ordinary numbers."""
    n = codes.shape[0]
    ordinary = True
    for j in range(n):
        row = model.by_child[model.offsets[j] + codes[j]]
        total = row[0]
        cumulative[j, 0] = total
        for i in range(n):
            total += row[1 + model.offsets[i] + codes[i]]
            cumulative[j, 1 + i] = total
        ordinary &= 1e-280 < total < 1e300
    return ordinary


@njit(nogil=True, cache=True, error_model="numpy")
def draw_forest(model, codes, matrices, cumulative, work, generator, parents):
    """Draw the forest from its posterior given all values."""
    n = codes.shape[0]
    ordinary = _cumulate(model, codes, cumulative)
    if ordinary and draw_by_walks(cumulative, WALK_STEPS_A_VARIABLE * n, generator, parents):
        return
    fill_arc_matrices(model.table, model.offsets, codes.reshape(1, n), matrices)
    draw_forests(matrices[0], work, 0 if ordinary else WALK_STEPS_A_VARIABLE * n, generator, parents.reshape(1, n))


@njit(nogil=True, cache=True, error_model="numpy")
def blocked_sweeps(model, clamped, codes, parents, sweeps, work, generator, visits):
    """Draw the forest given the values, then all free values given the forest; O(n^2 + n k^2) a sweep but for slow walks."""
    n = codes.shape[0]
    table, offsets = model.table, model.offsets
    matrices, cumulative = np.empty((1, n + 1, n)), np.empty((n, n + 1))
    order = np.empty(n, dtype=np.int64)
    below, messages, posterior = np.empty((n, model.most)), np.empty((n, model.most)), np.zeros((n, model.most))
    for sweep in range(sweeps):
        draw_forest(model, codes, matrices, cumulative, work, generator, parents)
        order_from_roots(parents, order)
        send_up(table, offsets, clamped, parents, order, below, messages)
        draw_values(table, offsets, clamped, parents, order, below, generator, codes)
        if len(visits):
            send_down(table, offsets, clamped, parents, order, below, messages, posterior)
            _add_free(posterior, offsets, clamped, visits[sweep * len(visits) // sweeps])


@njit(nogil=True, cache=True, error_model="numpy")
def draw_forests_of(model, codes, work, generator, parents):
    """Draw a forest for each row of `codes` (rows, n), given all its values; -2 throughout where there is none."""
    rows, n = codes.shape
    matrices, cumulative = np.empty((1, n + 1, n)), np.empty((n, n + 1))
    for row in range(rows):
        fill_arc_matrices(model.table, model.offsets, codes[row : row + 1], matrices)
        if can_reach_all(matrices[0]):
            draw_forest(model, codes[row], matrices, cumulative, work, generator, parents[row])
        else:
            parents[row] = NO_FOREST


@njit(nogil=True, cache=True, error_model="numpy")
def sweep_rows(model, known, codes, parents, sweeps, work, generator):
    """Run the blocked sampler on many rows; `known`, `codes` and `parents` (rows, n)."""
    nothing = np.empty((0, codes.shape[1], model.most))
    for row in range(codes.shape[0]):
        blocked_sweeps(model, known[row], codes[row], parents[row], sweeps, work, generator, nothing)


@njit(nogil=True, cache=True, error_model="numpy")
def _add_free(posterior, offsets, clamped, visits):
    for j in range(clamped.shape[0]):
        if clamped[j] < 0:
            for v in range(offsets[j + 1] - offsets[j]):
                visits[j, v] += posterior[j, v]


@njit(nogil=True, cache=True, error_model="numpy")
def _mark_descendants(parents, i, marks):
    """Set `marks` to 1 for i and all variables below it, else to 0; O(n), as every path up ends where another has been."""
    n = parents.shape[0]
    marks[:] = -1
    marks[i] = 1
    for j in range(n):
        top = j
        while top != ROOT and marks[top] < 0:
            top = parents[top]
        mark = 0 if top == ROOT else marks[top]
        below = j
        while below != top:
            marks[below] = mark
            below = parents[below]


@njit(nogil=True, cache=True, error_model="numpy")
def tree_sweeps(model, clamped, codes, parents, sweeps, generator, visits):
    """Draw value and parent of each variable together, given the rest of the forest and the other values; O(n k) a variable.

    The probability of value v and parent p is proportional to w(v | x_p) times the product over the children c of w(x_c | v), p
    not below the variable. (The paper's printed sampler leaves the children out, and is then not valid.)
    """
    n = codes.shape[0]
    offsets = model.offsets
    marks, values = np.empty(n, dtype=np.int64), 1 + offsets[:n] + codes
    shares, arcs = np.empty(model.most), np.empty(n + 1)
    for sweep in range(sweeps):
        for i in range(n):
            _mark_descendants(parents, i, marks)
            if clamped[i] < 0:
                k = offsets[i + 1] - offsets[i]
                _fill_children(model, values, parents, i, shares[:k])
                for v in range(k):
                    shares[v] *= _fill_arcs(model.by_child[offsets[i] + v], values, marks, arcs)
                if len(visits):
                    _add_shares(shares[:k], visits[sweep * len(visits) // sweeps, i])
                codes[i] = choose(shares[:k], generator.random())
                values[i] = 1 + offsets[i] + codes[i]
            _fill_arcs(model.by_child[values[i] - 1], values, marks, arcs)
            parents[i] = choose(arcs, generator.random()) - 1


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_arcs(into, values, marks, arcs):
    """Fill `arcs` (n + 1,) with the arcs into a value from the root and from all variables that are not marked; give their sum."""
    total = into[0]
    arcs[0] = total
    for p in range(values.shape[0]):
        arcs[1 + p] = 0.0 if marks[p] else into[values[p]]
        total += arcs[1 + p]
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_children(model, values, parents, i, products):
    """Fill `products` with the product of the arcs to the children of i from each of its values, each relative to the largest."""
    products[:] = 1.0
    first = 1 + model.offsets[i]
    for c in range(values.shape[0]):
        if parents[c] == i:
            into, largest = model.by_child[values[c] - 1], 0.0
            for v in range(len(products)):
                largest = max(largest, into[first + v])
            for v in range(len(products)):
                products[v] *= into[first + v] / largest


@njit(nogil=True, cache=True, error_model="numpy")
def _add_shares(weights, shares):
    """Add to `shares` the share of each value in the weights."""
    total = weights.sum()
    for v in range(weights.shape[0]):
        shares[v] += weights[v] / total
