"""Draws from a model: many chains at once, and annealing, which needs no start and gives the partition on the way.

Chains come in blocks, each with random numbers of its own made from a key and the block's place, so that nothing depends on the
number of threads and a run can be taken up again at any step.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from ldfm.forests import log_sums
from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.gibbs import gibbs_rows
from ldfm.kernels.sweeps import Folded, blocked_sweeps
from ldfm.parallel import blocks, map_in_order, stop_if_unwanted
from ldfm.types import Codes, Floats, Integers
from ldfm.weights import ArcWeights

BLOCK_CHAINS = 64
_SWEEPS_A_DRAW = 10  # blocked ones, from one draw of a chain to the next
_SWEEPS_A_STEP = 1
_LAST_SWEEPS = 30


def fold(weights: ArcWeights) -> Folded:
    """Give a model as samplers see it."""
    return fold_table(weights.folded, weights)


def fold_table(table: Floats, like: ArcWeights) -> Folded:
    """Give as samplers see it a model with this table of arc weights, stop weights folded in, and the variables of another."""
    table = np.ascontiguousarray(table)
    return Folded(table, np.ascontiguousarray(table.T), like.offsets, max(like.cardinalities))


def no_visits(model: Folded, codes: Codes) -> Floats:
    """Give a place for what chains (chains, n) visit that records nothing."""
    return np.empty((len(codes), 0, codes.shape[1], model.most))


def move(
    model: Folded,
    known: Codes,
    codes: Integers,
    parents: Integers,
    sweeps: int,
    key: Sequence[int],
    n_jobs: int | None = 1,
    collapsed: Sequence[int] = (),
) -> None:
    """Run a chain from each row of `codes` (chains, n), in place; known cells (`known` >= 0) stay.

    The blocks of chains at the places `collapsed` then make a sweep of collapsed Gibbs, which knows no forest: their `parents` are
    those of earlier values.
    """

    def one_block(job: tuple[int, slice]) -> None:
        place, rows = job
        generator = np.random.default_rng([*key, place])
        work = make_workspace(codes.shape[1])
        nothing = no_visits(model, codes[rows])
        blocked_sweeps(model, known[rows], codes[rows], parents[rows], sweeps, work, generator, nothing)
        if place in collapsed:
            gibbs_rows(model, known[rows], codes[rows], 1, work, generator)

    list(map_in_order(one_block, enumerate(blocks(len(codes), BLOCK_CHAINS)), n_jobs))


def prolong(weights: ArcWeights, draws: Codes, count: int, key: Sequence[int], n_jobs: int | None = 1) -> Integers:
    """Give (count, n): draws of a model, and where they are too few those that chains come to from them."""
    model, found = fold(weights), [draws.astype(np.int64)]
    while sum(map(len, found)) < count:
        states = found[-1].copy()
        free = np.full(states.shape, -1, dtype=np.int64)
        move(model, free, states, free.copy(), _SWEEPS_A_DRAW, (*key, len(found)), n_jobs)
        found.append(states)
    return np.concatenate(found)[:count]


class Annealed(NamedTuple):
    """What annealing gives.

    Attributes
    ----------
    log_partitions
        (blocks,): an independent estimate of the log partition from each block of chains.
    codes, parents
        (chains, n): draws from the model.
    """

    log_partitions: Floats
    codes: Integers
    parents: Integers

    @property
    def value(self) -> float:
        """Estimate of the log partition."""
        return float(logsumexp(self.log_partitions) - np.log(len(self.log_partitions)))

    @property
    def standard_error(self) -> float:
        """Its standard error."""
        shares = np.exp(self.log_partitions - self.value)
        return float(shares.std(ddof=1) / np.sqrt(len(shares)))


def anneal(
    weights: ArcWeights, chains: int, key: Sequence[int], n_jobs: int | None = 1, spread: float = 0.1
) -> Annealed:
    """Draw from a model by going there from one of independent variables, in steps that are small for the chains.

    Chains are resampled within their block as they go, in proportion to the ratio of their probabilities under one model and the
    next; steps are chosen so that the logs of these ratios have the standard deviation `spread`. The product of the mean ratios
    is an unbiased estimate of the partition.
    """
    table, largest = weights.balanced(weights.folded)
    if not (largest > 0).all():
        raise ValueError("no row has positive probability under this model")
    shift = float(np.log(largest).sum()) + (0.0 if weights.stop is None else float(np.log(weights.stop[0])))
    start = _independent(table, weights)

    def one_block(job: tuple[int, slice]) -> tuple[float, Integers, Integers]:
        place, rows = job
        generator = np.random.default_rng([*key, place])
        return _anneal_block(weights, (start, table), rows.stop - rows.start, spread, generator)

    cuts = enumerate(blocks(chains, BLOCK_CHAINS))
    logs, codes, parents = zip(*map_in_order(one_block, cuts, n_jobs), strict=True)
    return Annealed(np.array(logs) + shift, np.concatenate(codes), np.concatenate(parents))


def _independent(table: Floats, weights: ArcWeights) -> Floats:
    """Give the table of a model without arcs between variables: every variable by the weights of all arcs into its values."""
    start = np.zeros(table.shape)
    for a, b in zip(weights.offsets[:-1], weights.offsets[1:], strict=True):
        shares = table[:, a:b].sum(axis=0)
        # no value may be out of reach on the way
        start[0, a:b] = 0.9 * shares / shares.sum() + 0.1 / (b - a)
    return start


def _anneal_block(
    weights: ArcWeights, way: tuple[Floats, Floats], chains: int, spread: float, generator: np.random.Generator
) -> tuple[float, Integers, Integers]:
    """Anneal one block of chains from independent variables; give log partition of the goal, values and forests."""
    start, goal = way
    n = len(weights.cardinalities)
    codes = np.empty((chains, n), dtype=np.int64)
    for i, (a, b) in enumerate(zip(weights.offsets[:-1], weights.offsets[1:], strict=True)):
        codes[:, i] = generator.choice(b - a, size=chains, p=start[0, a:b] / start[0, a:b].sum())
    parents = np.full((chains, n), -1, dtype=np.int64)
    known = np.full((chains, n), -1, dtype=np.int64)
    work = make_workspace(n)
    log_partition, share = 0.0, 0.0
    logs = _logs(start, weights, codes)
    while share < 1.0:
        stop_if_unwanted()
        step = next_share(partial(_gains, weights, way, codes, logs), share, spread)
        ahead = _between(start, goal, step)
        gains = _logs(ahead, weights, codes) - logs
        if not np.isfinite(gains.max()):
            raise ValueError("no row that annealing reached has positive probability under this model")
        chosen = resample(gains, generator)
        moved = codes[chosen]
        moved_parents = parents[chosen]
        sweeps = _SWEEPS_A_STEP if step < 1.0 else _LAST_SWEEPS
        model = fold_table(ahead, weights)
        blocked_sweeps(model, known, moved, moved_parents, sweeps, work, generator, no_visits(model, moved))
        ahead_logs = _logs(ahead, weights, moved)
        log_partition += float(logsumexp(gains)) - np.log(chains)
        codes, parents, logs, share = moved, moved_parents, ahead_logs, step
    return log_partition, codes, parents


def _between(start: Floats, goal: Floats, share: float) -> Floats:
    return goal if share >= 1.0 else (1.0 - share) * start + share * goal


def _logs(table: Floats, weights: ArcWeights, codes: Integers) -> Floats:
    return log_sums(ArcWeights(table, weights.cardinalities), codes)


def _gains(weights: ArcWeights, way: tuple[Floats, Floats], codes: Integers, logs: Floats, share: float) -> Floats:
    """Give by how much the log forest sums of rows rise on the way to a share."""
    return _logs(_between(*way, share), weights, codes) - logs


def next_share(gains_at: Callable[[float], Floats], share: float, wanted: float) -> float:
    """Find how far to go so that the log weights of the chains have the standard deviation `wanted`."""

    def spread(share: float) -> float:
        gains = gains_at(share)
        return float(gains.std()) if np.isfinite(gains).all() else np.inf

    if spread(1.0) <= wanted:
        return 1.0
    low, high = share, 1.0
    for _ in range(14):
        # shares of goal span orders of magnitude at first
        middle = float(np.sqrt(max(low, 1e-8) * high)) if high > 4 * max(low, 1e-8) else (low + high) / 2
        if spread(middle) <= wanted:
            low = middle
        else:
            high = middle
        if low > share and high - low < 0.2 * (low - share):
            break
    return low if low > share else high


def resample(gains: Floats, generator: np.random.Generator) -> Integers:
    """Draw chains in proportion to their weights, systematically."""
    shares = np.exp(gains - logsumexp(gains))
    points = (np.arange(len(gains)) + generator.random()) / len(gains)
    chosen: Integers = np.minimum(np.searchsorted(np.cumsum(shares), points), len(gains) - 1)
    return chosen
