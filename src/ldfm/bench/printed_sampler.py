# mypy: disable-error-code="no-untyped-def"
"""The tree-augmented sampler as the paper prints it, kept here alone: it is biased, and shows what t-LDFM was.

It draws value and parent of a variable in proportion to the arc weight from the parent to the value, and leaves the variable's
children out, of which it says that the acceptance rate is one. It is not, so that chains tend to something else than the model.
Answers are made from them as for every other sampler: averaged conditionals, query variables clamped in turn.
"""

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


@njit(nogil=True, cache=True, error_model="numpy")
def _is_below(parents, p, i):
    while p not in (-1, i):
        p = parents[p]
    return p == i


@njit(nogil=True, cache=True, error_model="numpy")
def printed_sweep(model, clamped, codes, parents, generator, wanted, met):
    """Draw value and parent of each variable as printed; fill `met` (n,) with the chance that it gave to the value wanted."""
    n = codes.shape[0]
    table, offsets = model.table, model.offsets
    weights = np.empty(model.most * (n + 1))
    for i in range(n):
        low, high = (0, offsets[i + 1] - offsets[i]) if clamped[i] < 0 else (clamped[i], clamped[i] + 1)
        total, of_wanted = 0.0, 0.0
        for p in range(-1, n):
            row = 0 if p < 0 else 1 + offsets[p] + codes[p]
            allowed = p < 0 or not _is_below(parents, p, i)
            for v in range(low, high):
                weight = table[row, offsets[i] + v] if allowed else 0.0
                weights[(v - low) * (n + 1) + 1 + p] = weight
                total += weight
                of_wanted += weight if v == wanted[i] else 0.0
        met[i] = of_wanted / total
        chosen = choose(weights[: (high - low) * (n + 1)], generator.random())
        codes[i] = low + chosen // (n + 1)
        parents[i] = chosen % (n + 1) - 1


@njit(nogil=True, cache=True, error_model="numpy")
def _run(model, clamped, states, forests, sweeps, wanted, generator, sums, squares):
    """Run all chains; `sums` and `squares` (chains, n) take the chances of the wanted values that they meet."""
    met = np.zeros(states.shape[1])
    sums[:] = 0.0
    squares[:] = 0.0
    for c in range(states.shape[0]):
        for _ in range(sweeps):
            printed_sweep(model, clamped, states[c], forests[c], generator, wanted, met)
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
