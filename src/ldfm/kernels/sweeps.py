"""Sweeps over values and forest: each leaves the distribution of (values, forest) given the known values unchanged.

State of a chain: `codes` (n,) values and `parents` (n,) forest, with probability proportional to the product of the forest's arc
weights. Known variables (`clamped` >= 0) never change their value, only their parent. Every function runs one chain, or one a
row, for some number of sweeps. `visits` (records, n, most values) takes the conditional distributions of the free values met on
the way, those of sweep s added to record s * records // sweeps: their average estimates the marginals with less noise than
counting values does. With no records nothing is recorded.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ldfm.kernels.arc_matrices import fill_arc_matrices
from ldfm.kernels.extended_range import choose
from ldfm.kernels.forest_draws import draw_by_elimination, draw_by_walks, draw_forests
from ldfm.kernels.lanes import LANES
from ldfm.kernels.tree_messages import draw_values, order_from_roots, send_down, send_up
from ldfm.types import Floats, Integers

ROOT = -1
WALK_STEPS_A_VARIABLE = 15  # of erased loops: as many cost about as much as a forest by elimination, four at a time


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
def draw_forests_of(model, codes, work, generator, parents):
    """Draw a forest for each row of `codes` (rows, n), given all its values; -2 throughout where there is none.

    Rows whose walks take long wait for each other, to be drawn LANES at a time.
    """
    rows, n = codes.shape
    cumulative = np.empty((n, n + 1))
    matrices, waiting = np.empty((LANES, n + 1, n)), np.empty(LANES, dtype=np.int64)
    count = 0
    for row in range(rows):
        ordinary = _cumulate(model, codes[row], cumulative)
        if ordinary and draw_by_walks(cumulative, WALK_STEPS_A_VARIABLE * n, generator, parents[row]):
            continue
        fill_arc_matrices(model.table, model.offsets, codes[row : row + 1], matrices[count : count + 1])
        if not ordinary:
            draw_forests(matrices[count], work, WALK_STEPS_A_VARIABLE * n, generator, parents[row : row + 1])
            continue
        waiting[count] = row
        count += 1
        if count == LANES:
            _draw_waiting(matrices, waiting, work, generator, parents)
            count = 0
    if count:
        _draw_waiting(matrices, waiting[:count], work, generator, parents)


@njit(nogil=True, cache=True, error_model="numpy")
def _draw_waiting(matrices, waiting, work, generator, parents):
    """Draw by elimination the forests of the rows `waiting`, of the first of `matrices`, into their places in `parents`."""
    for lane in range(len(waiting), LANES):
        matrices[lane] = matrices[0]
    group = np.empty((LANES, parents.shape[1]), dtype=np.int64)
    if draw_by_elimination(matrices, work, generator, group):
        for lane in range(len(waiting)):
            parents[waiting[lane]] = group[lane]
    else:  # one of them needs another range of numbers, or has no forest
        for lane in range(len(waiting)):
            draw_forests(matrices[lane], work, 0, generator, parents[waiting[lane] : waiting[lane] + 1])


@njit(nogil=True, cache=True, error_model="numpy")
def blocked_sweeps(model, clamped, codes, parents, sweeps, work, generator, visits):
    """Draw forests given the values, then all free values given the forests; O(n^2 + n k^2) a row and sweep but for slow walks.

    A chain a row: `clamped`, `codes` and `parents` (rows, n), `visits` (rows, records, n, most values).
    """
    rows, n = codes.shape
    table, offsets, records = model.table, model.offsets, visits.shape[1]
    order = np.empty(n, dtype=np.int64)
    below, messages, posterior = np.empty((n, model.most)), np.empty((n, model.most)), np.zeros((n, model.most))
    for sweep in range(sweeps):
        draw_forests_of(model, codes, work, generator, parents)
        for row in range(rows):
            known, forest = clamped[row], parents[row]
            order_from_roots(forest, order)
            send_up(table, offsets, known, forest, order, below, messages)
            draw_values(table, offsets, known, forest, order, below, generator, codes[row])
            if records:
                send_down(table, offsets, known, forest, order, below, messages, posterior)
                _add_free(posterior, offsets, known, visits[row, sweep * records // sweeps])


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
