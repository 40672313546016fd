"""Sums over all spanning trees of a row, and answers by drawing trees.

Spanning trees are forests with variable 0 in the place of the root, so that the kernels for forests serve here too: an edge matrix
(n, n - 1) has row 0 for the edges of variable 0 and row i for those of variable i, column j - 1 for variable j.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ldfm.kernels.forest_draws import cumulate_columns, draw_by_walks, draw_forests
from ldfm.kernels.tree_messages import draw_values, order_from_roots, send_down, send_up
from ldfm.peers.kernels.clamping import draw_again, log_mean, r_hat
from ldfm.types import Floats, Integers

ROOT = -1
WALK_STEPS_A_VARIABLE = 50


class AllTrees(NamedTuple):
    """The model as samplers see it.

    Attributes
    ----------
    edges
        (S, S): weight of an edge between two values: the edge's own times p(both) / (p(one) p(other)).
    table
        (S + 1, S): row 0 p(value), row 1 + u p(value | value u).
    offsets
        (n + 1,): first value of each variable.
    """

    edges: Floats
    table: Floats
    offsets: Integers


@njit(nogil=True, cache=True, error_model="numpy")
def fill_edge_matrices(edges, offsets, codes, matrices):
    """Fill `matrices` (rows, n, n - 1) with the weights of the edges between the values of each row of `codes`."""
    rows, n = codes.shape
    for row in range(rows):
        for i in range(n):
            value = offsets[i] + codes[row, i]
            for j in range(1, n):
                matrices[row, i, j - 1] = 0.0 if i == j else edges[value, offsets[j] + codes[row, j]]


@njit(nogil=True, cache=True, error_model="numpy")
def add_edge_marginals(marginals, row_weights, sums):
    """Add the edge marginals of each row, times its weight, to `sums` (n, n), which stays symmetric."""
    rows, n, _ = marginals.shape
    for row in range(rows):
        for i in range(n):
            for j in range(1, n):
                part = row_weights[row] * marginals[row, i, j - 1]
                sums[i, j] += part
                sums[j, i] += part


@njit(nogil=True, cache=True, error_model="numpy")
def _heaviest(model, codes):
    """Give the variable whose edges weigh most in a row: walks come to it soonest."""
    n = codes.shape[0]
    best, most = 0, -1.0
    for i in range(n):
        total = 0.0
        for j in range(n):
            if i != j:
                total += model.edges[model.offsets[i] + codes[i], model.offsets[j] + codes[j]]
        if total > most:
            best, most = i, total
    return best


@njit(nogil=True, cache=True, error_model="numpy")
def _draw_tree(model, codes, matrices, cumulative, work, generator, parents):
    """Draw a spanning tree given all values, hung from the heaviest variable."""
    n = codes.shape[0]
    top = _heaviest(model, codes)
    names = np.arange(n)  # the heaviest variable and variable 0 change places
    names[0], names[top] = top, 0
    for a in range(n):
        value = model.offsets[names[a]] + codes[names[a]]
        for b in range(1, n):
            other = model.offsets[names[b]] + codes[names[b]]
            matrices[0, a, b - 1] = 0.0 if a == b else model.edges[value, other]
    drawn = np.empty((1, n - 1), dtype=np.int64)
    cumulate_columns(matrices[0], cumulative)
    if not draw_by_walks(cumulative, WALK_STEPS_A_VARIABLE * n, generator, drawn[0]):
        draw_forests(matrices[0], work, 0, generator, drawn)
    # in the forest -1 is the root, here place 0, and 0 is place 1
    for b in range(1, n):
        parents[names[b]] = names[drawn[0, b - 1] + 1]
    parents[top] = ROOT


class Scratch(NamedTuple):
    """Arrays that sweeps work in."""

    matrices: Floats
    cumulative: Floats
    order: Integers
    below: Floats
    messages: Floats
    posterior: Floats
    codes: Integers


@njit(nogil=True, cache=True, error_model="numpy")
def _make_scratch(n, most):
    return Scratch(
        np.empty((1, n, n - 1)),
        np.empty((n - 1, n)),
        np.empty(n, dtype=np.int64),
        np.empty((n, most)),
        np.empty((n, most)),
        np.empty((n, most)),
        np.empty(n, dtype=np.int64),
    )


@njit(nogil=True, cache=True, error_model="numpy")
def _sweep(model, clamped, parents, wanted, work, scratch, generator, met):
    """Draw the free values given the tree, then the tree given all values; fill `met` (n,) with p(wanted cell | tree, clamped)."""
    table, offsets = model.table, model.offsets
    below, messages, order = scratch.below, scratch.messages, scratch.order
    order_from_roots(parents, order)
    send_up(table, offsets, clamped, parents, order, below, messages)
    draw_values(table, offsets, clamped, parents, order, below, generator, scratch.codes)
    _draw_tree(model, scratch.codes, scratch.matrices, scratch.cumulative, work, generator, parents)
    order_from_roots(parents, order)
    send_up(table, offsets, clamped, parents, order, below, messages)
    send_down(table, offsets, clamped, parents, order, below, messages, scratch.posterior)
    for i in range(met.shape[0]):
        if wanted[i] >= 0 and clamped[i] < 0:
            met[i] = scratch.posterior[i, wanted[i]]


@njit(nogil=True, cache=True, error_model="numpy")
def _first_stage(model, states, clamped, wanted, effort, work, scratch, generator, met):
    """Run all chains before anything is clamped; give sums and sums of squares (chains, n) of `met`, `states` become trees."""
    chains, n = states.shape
    sums, squares = np.zeros((chains, n)), np.zeros((chains, n))
    for c in range(chains):
        codes = states[c].copy()
        _draw_tree(model, codes, scratch.matrices, scratch.cumulative, work, generator, states[c])
        for sweep in range(effort.burn_in + effort.first):
            _sweep(model, clamped, states[c], wanted, work, scratch, generator, met[c])
            if sweep >= effort.burn_in:
                for i in range(n):
                    if wanted[i] >= 0:
                        sums[c, i] += met[c, i]
                        squares[c, i] += met[c, i] * met[c, i]
    return sums, squares


@njit(nogil=True, cache=True, error_model="numpy")
def answer_row(model, states, question, effort, work, generator, out):
    """Fill `out` (6,): joint, its variance, marginal, its variance, fewest effective chains, largest R-hat.

    As in `clamping.answer_row`, with trees for states: query variables are clamped one after another, and chains are drawn again
    by what their trees say of each. `states` (chains, n) start as values; `question` is (codes, asked).
    """
    codes, asked = question
    chains, n = states.shape
    scratch = _make_scratch(n, np.diff(model.offsets).max())
    clamped, wanted = np.where(asked, -1, codes), np.where(asked, codes, -1)
    met, spare, means = np.zeros((chains, n)), np.empty_like(states), np.empty(chains)
    sums, squares = _first_stage(model, states, clamped, wanted, effort, work, scratch, generator, met)
    out[:4] = 0.0
    out[4], out[5] = chains, 1.0
    clamps = 0
    for t in range(n):
        if not asked[t]:
            continue
        value, variance = log_mean(sums[:, t] / effort.first)
        out[2] += value
        out[3] += variance
        out[5] = max(out[5], r_hat(sums[:, t], squares[:, t], effort.first))
        for c in range(chains):
            means[c] = sums[c, t] / effort.first
            if clamps > 0:
                means[c] = 0.0
                for _ in range(effort.each):
                    _sweep(model, clamped, states[c], wanted, work, scratch, generator, met[c])
                    means[c] += met[c, t] / effort.each
        value, variance = log_mean(means)
        out[0] += value
        out[1] += variance
        out[4] = min(out[4], draw_again(states, met[:, t].copy(), generator, spare))
        clamped[t] = codes[t]
        clamps += 1
