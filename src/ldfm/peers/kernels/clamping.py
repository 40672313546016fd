"""Gibbs answers to p(query | evidence): query variables are clamped one after another.

log p(query | evidence) = sum over t of log p(q_t | evidence, q_1 .. q_t-1). Each term is the average of the conditional
p(q_t | all other variables) over sweeps and chains; then chains are drawn again in proportion to that conditional (now they follow
the posterior that knows q_t as well) from all states visited since the last clamp, and X_t stays at q_t. Counting how often chains
show the whole query would hit a floor at one over the number of draws; averages of conditionals do not.

Evidence may be clamped in the same way, starting from draws of the model: chains that start with all of it in place are stuck
where near-deterministic conditionals tie a variable to the value it had before. Chains may also be left alone, clamped but never
drawn again. What no sweep can change dies out bit by bit where all are drawn again, and the next clamp may need it.
"""

from math import log
from typing import NamedTuple

import numpy as np
from numba import njit

from ldfm.kernels.extended_range import choose
from ldfm.peers.kernels.conditionals import fill_conditional, plan_sweep
from ldfm.types import Booleans, Floats, Integers


class Effort(NamedTuple):
    """Sweeps of each chain: at first, averaged for the cells' own posteriors given the evidence, and averaged after each clamp."""

    burn_in: int
    first: int
    each: int


class Question(NamedTuple):
    """What is asked of one row.

    Attributes
    ----------
    codes
        (n,): -1 where hidden.
    asked
        (n,): what is query.
    known
        (n,): evidence that is in place when chains start; the rest is clamped.
    """

    codes: Integers
    asked: Booleans
    known: Booleans


class Population(NamedTuple):
    """Chains of one row on their way.

    Attributes
    ----------
    states
        (chains, n): where chains are.
    visited
        (chains * most sweeps, n): the states after each sweep since the last clamp, chain by chain.
    sums, squares
        (chains, n): sums over these sweeps of the conditionals of the wanted codes, and of their squares.
    free, wanted
        (n,): what is not clamped; codes asked for, -1 elsewhere.
    """

    states: Integers
    visited: Integers
    sums: Floats
    squares: Floats
    free: Booleans
    wanted: Integers


@njit(nogil=True, cache=True, error_model="numpy")
def _chance(model, state, i, code, counts, chances):
    """Give p(X_i = code | rest); `chances` keeps the whole distribution up to a constant."""
    fill_conditional(model, state, i, counts, chances)
    total = 0.0
    for v in range(model.cardinalities[i]):
        total += chances[v]
    return chances[code] / total


@njit(nogil=True, cache=True, error_model="numpy")
def _plan(model, free):
    """Give what counts, the variables that a sweep visits in their order, and a place for chances."""
    counts, visits = np.empty(free.shape[0], dtype=np.bool_), np.empty(free.shape[0], dtype=np.int64)
    length = plan_sweep(model, free, counts, visits)
    return counts, visits[:length], np.empty(model.cardinalities.max())


@njit(nogil=True, cache=True, error_model="numpy")
def _run(model, population, sweeps, generator):
    """Run all chains; give how many states were visited."""
    states, visited, sums, squares, free, wanted = population
    counts, visits, chances = _plan(model, free)
    sums[:] = 0.0
    squares[:] = 0.0
    for c in range(states.shape[0]):
        state = states[c]
        for sweep in range(sweeps):
            for i in visits:
                if wanted[i] >= 0:
                    chance = _chance(model, state, i, wanted[i], counts, chances)
                    sums[c, i] += chance
                    squares[c, i] += chance * chance
                else:
                    fill_conditional(model, state, i, counts, chances)
                state[i] = choose(chances[: model.cardinalities[i]], generator.random())
            visited[c * sweeps + sweep] = state
    return states.shape[0] * sweeps


@njit(nogil=True, cache=True, error_model="numpy")
def _clamp(model, population, count, t, code, alone, generator):
    """Draw all but the first `alone` chains from the `count` states visited, by what these say of X_t = code, and put it in.

    Gives the effective number of chains.
    """
    counts, _, chances = _plan(model, population.free)
    states, visited, weights = population.states, population.visited[:count], np.empty(count)
    for k in range(count):
        weights[k] = _chance(model, visited[k], t, code, counts, chances)
    effective = draw_from(visited, weights, generator, states[alone:])
    states[:, t] = code
    population.free[t] = False
    return effective * states.shape[0] / count


@njit(nogil=True, cache=True, error_model="numpy")
def draw_from(population, weights, generator, states):
    """Draw `states` from a population in proportion to `weights`, by one uniform number (systematic); give its effective size."""
    total, squares = 0.0, 0.0
    for weight in weights:
        total += weight
        squares += weight * weight
    if not total > 0.0:
        return 0.0
    uniform, reached, source = generator.random(), weights[0], 0
    chains = states.shape[0]
    for c in range(chains):
        wanted = (c + uniform) / chains * total
        while reached < wanted and source < weights.shape[0] - 1:
            source += 1
            reached += weights[source]
        states[c] = population[source]
    return total * total / squares


@njit(nogil=True, cache=True, error_model="numpy")
def draw_again(states, weights, generator, spare):
    """Draw chains in proportion to `weights`; give the effective number of chains."""
    spare[:] = states
    return draw_from(spare, weights, generator, states)


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
def sweeps_of_evidence(effort):
    """Give the sweeps after each clamp of evidence: nothing is averaged there, half as many will do."""
    return (effort.each + 1) // 2


@njit(nogil=True, cache=True, error_model="numpy")
def _populate(states, question, effort):
    chains, n = states.shape
    visited = np.empty((chains * max(effort.burn_in, effort.first, effort.each), n), dtype=np.int64)
    wanted = np.where(question.asked, question.codes, -1)
    return Population(states, visited, np.empty((chains, n)), np.empty((chains, n)), ~question.known, wanted)


@njit(nogil=True, cache=True, error_model="numpy")
def answer_row(model, states, question, alone, effort, generator, out):
    """Fill `out` (6,): joint, its variance, marginal, its variance, fewest effective chains, largest R-hat.

    `states` (chains, n) start the chains, with what is known in place; the first `alone` of them are never drawn again.
    """
    codes, asked, known = question
    population = _populate(states, question, effort)
    out[:4] = 0.0
    out[4], out[5] = states.shape[0], 1.0
    count = _run(model, population, max(effort.burn_in, 1), generator)  # clamps need states to draw from
    for t in model.order:
        if codes[t] >= 0 and not asked[t] and not known[t]:
            out[4] = min(out[4], _clamp(model, population, count, t, codes[t], alone, generator))
            count = _run(model, population, sweeps_of_evidence(effort), generator)
    length, left = effort.first, asked.sum()
    count = _run(model, population, length, generator)
    sums, squares = population.sums.copy(), population.squares.copy()
    for t in model.order:
        if not asked[t]:
            continue
        value, variance = log_mean(sums[:, t] / effort.first)
        out[2] += value
        out[3] += variance
        out[5] = max(out[5], r_hat(sums[:, t], squares[:, t], effort.first))
        value, variance = log_mean(population.sums[:, t] / length)
        out[0] += value
        out[1] += variance
        left -= 1
        if left > 0:
            out[4] = min(out[4], _clamp(model, population, count, t, codes[t], alone, generator))
            length = effort.each
            count = _run(model, population, length, generator)
