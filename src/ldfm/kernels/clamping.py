"""Sequential Monte Carlo by clamping: the probability of some values given others, a few cells at a time.

A population of forests of one row stands for the posterior given the cells clamped so far. Given a forest the probability of the
next cells is an exact sum over all free values. Its average over the population estimates their probability; some forests are
drawn in proportion to it, the cells are clamped, and each of those drawn starts a chain of the blocked sampler. All forests that
the chains visit are the next population. The product of the averages is an unbiased estimate of the probability of all cells
given the first ones, if the first population were draws given those, however short the chains are, and if how many cells are
clamped at a time was fixed before: a population that decides this by its own weights is biased, so a first one decides for others.
"""

from math import exp, inf, log

import numpy as np
from numba import njit

from ldfm.kernels.gibbs import gibbs_sweeps
from ldfm.kernels.sweeps import draw_forests_of, tree_sweeps
from ldfm.kernels.tree_messages import draw_values, order_from_roots, send_down, send_up

NO_EXTRA, GIBBS, TREE = 0, 1, 2


@njit(nogil=True, cache=True, error_model="numpy")
def _effective(logs):
    """Give the effective number of members of a population with such log weights, and the log of their mean."""
    largest = -inf
    for p in range(logs.shape[0]):
        largest = max(largest, logs[p])
    if largest == -inf:
        return 0.0, -inf
    total, squares = 0.0, 0.0
    for p in range(logs.shape[0]):
        weight = exp(logs[p] - largest)
        total += weight
        squares += weight * weight
    return total * total / squares, largest + log(total / logs.shape[0])


@njit(nogil=True, cache=True, error_model="numpy")
def _draw_ancestors(logs, log_mean, forests, generator, ancestors):
    """Fill `ancestors` (chains, n) with forests drawn in proportion to their weights, systematically."""
    scale = ancestors.shape[0] / logs.shape[0]
    point = generator.random()
    reached, p = exp(logs[0] - log_mean) * scale, 0
    for chain in range(ancestors.shape[0]):
        while reached < point + chain and p < logs.shape[0] - 1:
            p += 1
            reached += exp(logs[p] - log_mean) * scale
        ancestors[chain] = forests[p]


@njit(nogil=True, cache=True, error_model="numpy")
def _clamp_some(model, known, cells, values, forests, fixed, least, logs):
    """Clamp the first of `cells`, `fixed` many, and weight forests by their probability; give how many were clamped.

    With `fixed` 0, as many as leave `least` effective forests, and at least one.
    """
    count, n = forests.shape
    below, messages = np.empty((n, model.most)), np.empty((n, model.most))
    orders = np.empty((count, n), dtype=np.int64)
    before, trial = np.empty(count), np.empty(count)
    for p in range(count):
        order_from_roots(forests[p], orders[p])
        before[p] = send_up(model.table, model.offsets, known, forests[p], orders[p], below, messages)
    clamped = 0
    for j in cells:
        known[j] = values[j]
        clamped += 1
        if clamped < fixed:
            continue
        for p in range(count):
            after = send_up(model.table, model.offsets, known, forests[p], orders[p], below, messages)
            trial[p] = after - before[p] if after > -inf else -inf
        if fixed == 0 and clamped > 1 and _effective(trial)[0] < least:
            known[j] = -1
            clamped -= 1
            break
        logs[:] = trial
        if clamped == fixed:
            break
    return clamped


@njit(nogil=True, cache=True, error_model="numpy")
def run_chains(model, known, ancestors, extra, work, generator, forests, visits):
    """Run a chain from each of `ancestors` (chains, n); `forests` (sweeps, chains, n) takes the forests they visit.

    A sweep draws all free values given the forest and the forest given the values, the first one with a sweep of `extra` in
    between. `visits` (records, n, most values) takes the conditional distributions of the values given the forests, those
    of chain c in record c * records // chains.
    """
    sweeps, chains, n = forests.shape
    order, codes = np.empty(n, dtype=np.int64), np.empty((chains, n), dtype=np.int64)
    below, messages = np.empty((n, model.most)), np.empty((n, model.most))
    posterior, nothing = np.zeros((n, model.most)), np.empty((0, n, model.most))
    for sweep in range(sweeps):
        forests[sweep] = ancestors if sweep == 0 else forests[sweep - 1]
        for chain in range(chains):
            forest, values = forests[sweep, chain], codes[chain]
            order_from_roots(forest, order)
            send_up(model.table, model.offsets, known, forest, order, below, messages)
            draw_values(model.table, model.offsets, known, forest, order, below, generator, values)
            if len(visits):
                send_down(model.table, model.offsets, known, forest, order, below, messages, posterior)
                visits[chain * len(visits) // chains] += posterior
            if sweep == 0 and extra == GIBBS:
                gibbs_sweeps(model, known, values, 1, work, generator, nothing)
            elif sweep == 0 and extra == TREE:
                tree_sweeps(model, known, values, forest, 1, generator, nothing)
        draw_forests_of(model, codes, work, generator, forests[sweep])


@njit(nogil=True, cache=True, error_model="numpy")
def clamp_in_turn(model, known, cells, values, stages, least, population, forests, extra, work, generator, visits):
    """Estimate log p(values of `cells` | known cells) from one population; give it, and how often chains were run.

    Parameters
    ----------
    known
        (n,): codes of the known cells, -1 elsewhere; `cells` become known on the way.
    cells, values
        Variables to clamp, in this order, and (n,) the codes to clamp them to.
    stages
        (cells,): how many to clamp at each stage; 0: as many as leave `least` effective forests of this population, then filled in.
    population
        (any number, n): forests drawn given the known cells.
    forests
        (sweeps, chains, n): takes the forests that chains visit.
    extra
        Sweeps that chains make besides blocked ones: NO_EXTRA, GIBBS or TREE.
    visits
        With records, chains are run also after the last clamp, and recorded there as in `run_chains`.
    """
    logs = np.empty(max(len(population), forests.shape[0] * forests.shape[1]))
    nothing = np.empty((0, len(known), model.most))
    ancestors = np.empty((forests.shape[1], len(known)), dtype=np.int64)
    visited = forests.reshape(-1, len(known))
    total, done, runs = 0.0, 0, 0
    if not len(cells) and len(visits):
        logs[:] = 0.0
        _draw_ancestors(logs[: len(population)], 0.0, population, generator, ancestors)
        run_chains(model, known, ancestors, extra, work, generator, forests, visits)
        runs = 1
    while done < len(cells):
        weights = logs[: len(population)]
        stages[runs] = _clamp_some(model, known, cells[done:], values, population, stages[runs], least, weights)
        done += stages[runs]
        log_mean = _effective(weights)[1]
        total += log_mean
        last = done == len(cells)
        if total == -inf or (last and not len(visits)):
            break
        _draw_ancestors(weights, log_mean, population, generator, ancestors)
        run_chains(model, known, ancestors, extra, work, generator, forests, visits if last else nothing)
        population = visited
        runs += 1
    return total, runs
