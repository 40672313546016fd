# mypy: disable-error-code="no-untyped-def"
"""The tree-augmented sampler as the paper prints it, kept here alone: it is biased, and shows what t-LDFM was.

It draws value and parent of a variable in proportion to the arc weight from the parent to the value, and leaves the variable's
children out, of which it says that the acceptance rate is one. It is not, so that chains tend to something else than the model.
Answers are made from them as for every other sampler: averaged conditionals, query variables clamped in turn.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from ldfm.draws import fold
from ldfm.kernels.extended_range import choose
from ldfm.kernels.starts import grow_forest
from ldfm.kernels.sweeps import Folded
from ldfm.peers import gibbs
from ldfm.peers.kernels.clamping import Effort, draw_again, log_mean, r_hat
from ldfm.types import Booleans, Floats, Integers
from ldfm.weights import ArcWeights

CHAINS = 100
EFFORT = Effort(40, 20, 4)
METHOD = "tree as printed (biased)"


class _Scratch(NamedTuple):
    """Arrays that sweeps work in.

    Attributes
    ----------
    rows
        (n + 1,): row in the table of the root, then of each variable's value.
    first, after
        (n,): first child of each variable and its next sibling, -1 where there is none.
    below
        (n,): variables below the one that is drawn.
    sums
        (most values,): weight of all arcs into each value.
    """

    rows: Integers
    first: Integers
    after: Integers
    below: Integers
    sums: Floats


@njit(nogil=True, cache=True, error_model="numpy")
def make_scratch(n, most):
    """Allocate what sweeps of n variables work in."""
    rows, first, after, below = np.empty((4, n + 1), dtype=np.int64)
    return _Scratch(rows, first, after, below, np.empty(most))


@njit(nogil=True, cache=True, error_model="numpy")
def _enter(model, codes, parents, scratch):
    """Note the values and children of all variables."""
    scratch.rows[0] = 0
    scratch.first[:] = -1
    for i in range(codes.shape[0]):
        scratch.rows[1 + i] = 1 + model.offsets[i] + codes[i]
        _hang(parents[i], i, scratch)


@njit(nogil=True, cache=True, error_model="numpy")
def _hang(parent, i, scratch):
    """Make i the first child of a parent; those of the root are never asked for."""
    if parent >= 0:
        scratch.after[i] = scratch.first[parent]
        scratch.first[parent] = i


@njit(nogil=True, cache=True, error_model="numpy")
def _take_off(parent, i, scratch):
    """Take i out of the children of its parent."""
    if parent < 0:
        return
    if scratch.first[parent] == i:
        scratch.first[parent] = scratch.after[i]
        return
    child = scratch.first[parent]
    while scratch.after[child] != i:
        child = scratch.after[child]
    scratch.after[child] = scratch.after[i]


@njit(nogil=True, cache=True, error_model="numpy")
def _find_below(i, scratch):
    """Fill in the variables below i; give how many."""
    below, count, done = scratch.below, 0, 0
    parent = i
    while True:
        child = scratch.first[parent]
        while child >= 0:
            below[count] = child
            count += 1
            child = scratch.after[child]
        if done == count:
            return count
        parent = below[done]
        done += 1


@njit(nogil=True, cache=True, error_model="numpy")
def _add_at(weights, places):
    """Add the weights at some places, in four sums: in one each addition would wait for the one before."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = places.shape[0] // 4 * 4
    for k in range(0, whole, 4):
        a += weights[places[k]]
        b += weights[places[k + 1]]
        c += weights[places[k + 2]]
        d += weights[places[k + 3]]
    for k in range(whole, places.shape[0]):
        a += weights[places[k]]
    return (a + b) + (c + d)


@njit(nogil=True, cache=True, error_model="numpy")
def _choose_at(weights, places, left):
    """Give the first of some places where the weights so far exceed `left`; rounding never ends in a weight of 0."""
    last = 0
    for k in range(places.shape[0]):
        weight = weights[places[k]]
        if weight > 0.0:
            last = k
            left -= weight
            if left < 0.0:
                break
    return last


@njit(nogil=True, cache=True, error_model="numpy")
def _draw_one(model, i, low, high, code, generator, scratch):
    """Draw value and parent of variable i among the values low .. high - 1; give both, and the chance that `code` had."""
    rows, sums = scratch.rows, scratch.sums
    total = 0.0
    for v in range(low, high):
        sums[v - low] = _add_at(model.by_child[model.offsets[i] + v], rows)
        total += sums[v - low]
    chance = sums[code - low] / total if low <= code < high else 0.0
    value = choose(sums[: high - low], generator.random())
    weights = model.by_child[model.offsets[i] + low + value]
    return low + value, _choose_at(weights, rows, generator.random() * sums[value]) - 1, chance


@njit(nogil=True, cache=True, error_model="numpy")
def printed_sweep(model, clamped, codes, parents, generator, wanted, met, scratch):
    """Draw value and parent of each variable as printed; fill `met` (n,) with the chance that it gave to the value wanted.

    O(n S) for S values of all variables together.
    """
    offsets, rows = model.offsets, scratch.rows
    _enter(model, codes, parents, scratch)
    for i in range(codes.shape[0]):
        count = _find_below(i, scratch)
        for p in scratch.below[:count]:
            rows[1 + p] = rows[1 + i]  # an arc from a variable to itself weighs 0: none of these can be chosen
        low, high = (0, offsets[i + 1] - offsets[i]) if clamped[i] < 0 else (clamped[i], clamped[i] + 1)
        _take_off(parents[i], i, scratch)
        codes[i], parents[i], met[i] = _draw_one(model, i, low, high, wanted[i], generator, scratch)
        _hang(parents[i], i, scratch)
        rows[1 + i] = 1 + offsets[i] + codes[i]
        for p in scratch.below[:count]:
            rows[1 + p] = 1 + offsets[p] + codes[p]


@njit(nogil=True, cache=True, error_model="numpy")
def _run(model, clamped, states, forests, sweeps, wanted, generator, sums, squares):
    """Run all chains; `sums` and `squares` (chains, n) take the chances of the wanted values that they meet."""
    met, scratch = np.zeros(states.shape[1]), make_scratch(states.shape[1], model.most)
    sums[:] = 0.0
    squares[:] = 0.0
    for c in range(states.shape[0]):
        for _ in range(sweeps):
            printed_sweep(model, clamped, states[c], forests[c], generator, wanted, met, scratch)
            for i in range(met.shape[0]):
                sums[c, i] += met[i]
                squares[c, i] += met[i] * met[i]


@njit(nogil=True, cache=True, error_model="numpy")
def _draw_together(states, forests, weights, generator):
    """Draw chains, values and forest together, in proportion to `weights`; give the effective number of chains."""
    n = states.shape[1]
    both, spare = np.empty((states.shape[0], 2 * n), dtype=np.int64), np.empty((states.shape[0], 2 * n), dtype=np.int64)
    both[:, :n] = states
    both[:, n:] = forests
    effective = draw_again(both, weights, generator, spare)
    states[:] = both[:, :n]
    forests[:] = both[:, n:]
    return effective


@njit(nogil=True, cache=True, error_model="numpy")
def answer_as_printed(model, states, forests, codes, asked, effort, generator, out):
    """Fill `out` (6,): joint, its variance, marginal, its variance, fewest effective chains, largest R-hat."""
    chains, n = states.shape
    clamped, wanted = np.where(asked, -1, codes), np.where(asked, codes, -1)
    sums, squares = np.empty((chains, n)), np.empty((chains, n))
    _run(model, clamped, states, forests, effort.burn_in, wanted, generator, sums, squares)
    _run(model, clamped, states, forests, effort.first, wanted, generator, sums, squares)
    first_sums, first_squares = sums.copy(), squares.copy()
    out[:4] = 0.0
    out[4], out[5] = chains, 1.0
    length = effort.first
    for t in range(n):
        if not asked[t]:
            continue
        value, variance = log_mean(first_sums[:, t] / effort.first)
        out[2] += value
        out[3] += variance
        out[5] = max(out[5], r_hat(first_sums[:, t], first_squares[:, t], effort.first))
        value, variance = log_mean(sums[:, t] / length)
        out[0] += value
        out[1] += variance
        out[4] = min(out[4], _draw_together(states, forests, sums[:, t].copy(), generator))
        clamped[t] = codes[t]
        states[:, t] = codes[t]
        length = effort.each
        _run(model, clamped, states, forests, length, wanted, generator, sums, squares)


def printed_sampling(weights: ArcWeights, chains: int = CHAINS, effort: Effort = EFFORT) -> gibbs.Sampling:
    """Give the printed sampler of a model, as `peers.gibbs.query` takes it."""
    model: Folded = fold(weights)

    def answer(states: Integers, codes: Integers, asked: Booleans, generator: np.random.Generator, out: Floats) -> None:
        clamped = np.where(asked, -1, codes)
        forests = np.full(states.shape, -1, dtype=np.int64)
        for state, forest in zip(states, forests, strict=True):
            grow_forest(model, clamped, generator, state, forest)
        answer_as_printed(model, states, forests, codes, asked, effort, generator, out)

    return gibbs.Sampling(answer, weights.cardinalities, chains, effort, METHOD)
