"""Gibbs answers to p(query | evidence): query variables are clamped one after another.

log p(query | evidence) = sum over t of log p(q_t | evidence, q_1 .. q_t-1). Each term is the average of the conditional
p(q_t | all other variables) over sweeps and chains; then chains are drawn again in proportion to that conditional (now they follow
the posterior that knows q_t as well) and X_t stays at q_t. Counting how often chains show the whole query would hit a floor at one
over the number of draws; averages of conditionals do not.
"""

from math import log
from typing import NamedTuple

import numpy as np
from numba import njit

from ldfm.kernels.extended_range import choose
from ldfm.peers.kernels.conditionals import fill_conditional


class Effort(NamedTuple):
    """Sweeps of each chain: thrown away at first, averaged for the cells' own posteriors, and averaged after each clamp."""

    burn_in: int
    first: int
    each: int


@njit(nogil=True, cache=True, error_model="numpy")
def _sweep(model, free, state, codes, generator, chances, met):
    """Draw every free variable anew, in order; fill `met` (n,) with the conditional probability of its code in `codes`."""
    for i in range(free.shape[0]):
        if not free[i]:
            continue
        fill_conditional(model, state, i, chances)
        k = model.cardinalities[i]
        total = 0.0
        for v in range(k):
            total += chances[v]
        if codes[i] >= 0:
            met[i] = chances[codes[i]] / total
        state[i] = choose(chances[:k], generator.random())


@njit(nogil=True, cache=True, error_model="numpy")
def _chance(model, state, i, code, chances):
    """Give p(X_i = code | rest)."""
    fill_conditional(model, state, i, chances)
    total = 0.0
    for v in range(model.cardinalities[i]):
        total += chances[v]
    return chances[code] / total


@njit(nogil=True, cache=True, error_model="numpy")
def draw_again(states, weights, generator, spare):
    """Draw chains in proportion to `weights`, by one uniform number (systematic); give the effective number of chains."""
    chains = states.shape[0]
    total, squares = 0.0, 0.0
    for c in range(chains):
        total += weights[c]
        squares += weights[c] * weights[c]
    if not total > 0.0:
        return 0.0
    uniform, reached, source = generator.random(), weights[0], 0
    for c in range(chains):
        wanted = (c + uniform) / chains * total
        while reached < wanted and source < chains - 1:
            source += 1
            reached += weights[source]
        spare[c] = states[source]
    states[:] = spare
    return total * total / squares


@njit(nogil=True, cache=True, error_model="numpy")
def log_mean(means):
    """Give log of the mean over chains, and its variance by that between chains."""
    chains = means.shape[0]
    centre = means.mean()
    if not centre > 0.0:
        return -np.inf, np.inf
    spread = 0.0
    for c in range(chains):
        spread += (means[c] - centre) ** 2
    return log(centre), spread / (chains - 1) / chains / (centre * centre)


@njit(nogil=True, cache=True, error_model="numpy")
def r_hat(sums, squares, length):
    """Give R-hat from sums and sums of squares (chains,) over `length` sweeps."""
    means = sums / length
    within = ((squares - sums * means) / (length - 1)).mean()
    if within <= 1e-30:
        return 1.0
    centre = means.mean()
    between = ((means - centre) ** 2).sum() / (means.shape[0] - 1)
    return np.sqrt((length - 1) / length + between / within)


@njit(nogil=True, cache=True, error_model="numpy")
def _first_stage(model, states, free, wanted, effort, generator, chances):
    """Run all chains before anything is clamped; give sums and sums of squares (chains, n) of the conditionals met."""
    chains, n = states.shape
    met = np.zeros(n)
    sums, squares = np.zeros((chains, n)), np.zeros((chains, n))
    for c in range(chains):
        for sweep in range(effort.burn_in + effort.first):
            _sweep(model, free, states[c], wanted, generator, chances, met)
            if sweep >= effort.burn_in:
                for i in range(n):
                    if wanted[i] >= 0:
                        sums[c, i] += met[i]
                        squares[c, i] += met[i] * met[i]
    return sums, squares


@njit(nogil=True, cache=True, error_model="numpy")
def answer_row(model, states, codes, asked, effort, generator, out):
    """Fill `out` (6,): joint, its variance, marginal, its variance, fewest effective chains, largest R-hat.

    `states` (chains, n) start the chains, evidence in place; `codes` (n,) are -1 where hidden; `asked` (n,) says what is query.
    """
    chains, n = states.shape
    free, wanted = asked | (codes < 0), np.where(asked, codes, -1)
    chances, met = np.empty(model.cardinalities.max()), np.empty(n)
    spare, means = np.empty_like(states), np.empty(chains)
    sums, squares = _first_stage(model, states, free, wanted, effort, generator, chances)
    out[:4] = 0.0
    out[4], out[5] = chains, 1.0
    clamps = 0
    for t in range(n):
        if not asked[t]:
            continue
        means[:] = sums[:, t] / effort.first
        value, variance = log_mean(means)
        out[2] += value
        out[3] += variance
        out[5] = max(out[5], r_hat(sums[:, t], squares[:, t], effort.first))
        if clamps > 0:
            for c in range(chains):
                means[c] = 0.0
                for _ in range(effort.each):
                    _sweep(model, free, states[c], wanted, generator, chances, met)
                    means[c] += met[t] / effort.each
        value, variance = log_mean(means)
        out[0] += value
        out[1] += variance
        for c in range(chains):
            means[c] = _chance(model, states[c], t, codes[t], chances)
            states[c, t] = codes[t]
        out[4] = min(out[4], draw_again(states, means, generator, spare))
        free[t] = False
        clamps += 1
