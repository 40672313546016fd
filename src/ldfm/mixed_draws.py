"""Draws from a mixed model: many chains at once, and annealing, which gives the partition on the way.

Blocks of chains have random numbers of their own, as in `ldfm.draws`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ldfm.draws import BLOCK_CHAINS, Annealed, next_share, resample
from ldfm.independent_draws import PlainModel, is_summable
from ldfm.kernels.elimination import schedule_of
from ldfm.kernels.mixed_arcs import MixedModel, fill_sums
from ldfm.kernels.mixed_sweeps import BOTH, sweep_rows
from ldfm.mixed_weights import MixedWeights
from ldfm.parallel import blocks, map_in_order
from ldfm.types import Floats, Integers

_SWEEPS_A_STEP = 2
_LAST_SWEEPS = 30
_DRAWS = 8  # independent draws that weights choose among, for one that is kept
FEWEST = 0.05  # part of weighted draws that must be effective
_WIDER = 1.5  # how much wider than its densities a number starts


def move(
    model: MixedModel,
    known: Floats,
    cells: Floats,
    parents: Integers,
    sweeps: int,
    key: Sequence[int],
    n_jobs: int | None = 1,
    kernel: int = BOTH,
) -> None:
    """Run a chain from each row of `cells` (chains, n), in place; known cells (not NaN) stay."""
    schedule = schedule_of(cells.shape[1], 1)

    def one_block(job: tuple[int, slice]) -> None:
        place, rows = job
        generator = np.random.default_rng([*key, place])
        sweep_rows(model, known[rows], cells[rows], parents[rows], kernel, sweeps, schedule, generator)

    list(map_in_order(one_block, enumerate(blocks(len(cells), BLOCK_CHAINS)), n_jobs))


def anneal(
    weights: MixedWeights, chains: int, key: Sequence[int], n_jobs: int | None = 1, spread: float = 0.1
) -> Annealed:
    """Draw from a model by going there from independent variables, as `ldfm.draws.anneal` does; gives cells as codes.

    On the way there is one variable more, a second root: all arcs of the independent model come from it.
    """
    given, weights = weights, replace(weights, relations=None)  # free cells have no use for relations
    folded = weights.table if weights.stop is None else weights.table * weights.stop[1:]
    largest = np.array([folded[:, a:b].max() for a, b in zip(weights.offsets[:-1], weights.offsets[1:], strict=True)])
    if not (largest > 0).all():
        raise ValueError("no row has positive probability under this model")
    shift = float(np.log(largest).sum()) + (0.0 if weights.stop is None else float(np.log(weights.stop[0])))
    way = _Way(weights, folded / np.repeat(largest, weights.cardinalities))

    def one_block(job: tuple[int, slice]) -> tuple[float, Floats, Integers]:
        place, rows = job
        return _anneal_block(way, rows.stop - rows.start, spread, np.random.default_rng([*key, place]))

    cuts = enumerate(blocks(chains, BLOCK_CHAINS))
    logs, cells, parents = zip(*map_in_order(one_block, cuts, n_jobs), strict=True)
    codes: Any = given.cells(np.concatenate(cells))  # cells, in place of the codes of discrete models
    return Annealed(np.array(logs) + shift, codes, np.concatenate(parents))


class _Way:
    """Models from independent variables (share 0) to the goal (share 1)."""

    def __init__(self, weights: MixedWeights, table: Floats) -> None:
        size = len(weights.root)
        self.goal, self.start = np.zeros((size + 2, size + 1)), np.zeros((size + 2, size + 1))
        self.goal[:-1, :-1] = table
        self.goal[0, -1] = self.start[0, -1] = 1.0
        into = table / table.sum(axis=0)
        wide = _WIDER * np.sqrt(
            (into * (weights.intercepts**2 + weights.slopes**2 + weights.deviations**2)).sum(axis=0)
        )
        for i, (a, b) in enumerate(zip(weights.offsets[:-1], weights.offsets[1:], strict=True)):
            shares = table[:, a:b].sum(axis=0)
            # no value may be out of reach on the way
            self.start[-1, a:b] = 1.0 if weights.continuous[i] else 0.9 * shares / shares.sum() + 0.1 / (b - a)
        intercepts, slopes, deviations = (
            np.pad(array, ((0, 1), (0, 1)), constant_values=value)
            for array, value in ((weights.intercepts, 0.0), (weights.slopes, 0.0), (weights.deviations, 1.0))
        )
        deviations[-1, :-1] = np.where(weights.numeric, wide, 1.0)
        self.weights = MixedWeights(
            self.start, intercepts, slopes, deviations, (*weights.cardinalities, 1), (*weights.continuous, False)
        )

    def at(self, share: float) -> MixedModel:
        """Give the model at a share of the way."""
        return self.weights.folded((1.0 - share) * self.start + share * self.goal)

    def logs(self, share: float, cells: Floats) -> Floats:
        """Give the log forest sums of rows under it."""
        sums = np.empty(len(cells))
        fill_sums(self.at(share), cells, sums)
        return sums

    def draw(self, count: int, generator: np.random.Generator) -> Floats:
        """Give draws from the start."""
        weights = self.weights
        cells = np.zeros((count, len(weights.cardinalities)))
        for i, (a, b) in enumerate(zip(weights.offsets[:-2], weights.offsets[1:-1], strict=True)):
            if weights.continuous[i]:
                cells[:, i] = weights.deviations[-1, a] * generator.standard_normal(count)
            else:
                shares = self.start[-1, a:b] / self.start[-1, a:b].sum()
                cells[:, i] = generator.choice(b - a, size=count, p=shares)
        return cells


def _anneal_block(
    way: _Way, chains: int, spread: float, generator: np.random.Generator
) -> tuple[float, Floats, Integers]:
    """Anneal one block of chains; give the log partition of the goal, cells and forests."""
    cells = way.draw(chains, generator)
    n = cells.shape[1]
    known = np.full((chains, n), np.nan)
    known[:, -1] = 0.0
    parents = np.full((chains, n), -1, dtype=np.int64)
    schedule = schedule_of(n, 1)
    log_partition, share = 0.0, 0.0
    logs = way.logs(0.0, cells)

    def gains_at(share: float) -> Floats:
        return way.logs(share, cells) - logs

    while share < 1.0:
        step = next_share(gains_at, share, spread)
        gains = gains_at(step)
        if not np.isfinite(gains.max()):
            raise ValueError("no row that annealing reached has positive probability under this model")
        chosen = resample(gains, generator)
        cells, parents = cells[chosen], parents[chosen]
        sweeps = _SWEEPS_A_STEP if step < 1.0 else _LAST_SWEEPS
        sweep_rows(way.at(step), known, cells, parents, BOTH, sweeps, schedule, generator)
        logs = way.logs(step, cells)
        log_partition += float(logsumexp(gains)) - np.log(chains)
        share = step
    return log_partition, cells[:, :-1].copy(), parents[:, :-1].copy()


def find_log_partition(
    weights: MixedWeights, chains: int, key: Sequence[int], n_jobs: int | None
) -> tuple[float, float]:
    """Give the log partition and its standard error, 0 where it is exact: from independent draws, else by annealing."""
    if is_summable(weights):
        plain = PlainModel(weights)
        if not weights.logits.any():
            return plain.log_partition, 0.0
        found = plain.draw_weighted(_DRAWS * chains, np.random.default_rng(list(key)), n_jobs)
        if found.effective > FEWEST:
            return plain.log_partition + found.log_ratio, found.standard_error
    annealed = anneal(weights, chains, key, n_jobs, spread=0.2)
    return annealed.value, annealed.standard_error


def draw_from(weights: MixedWeights, count: int, key: Sequence[int], n_jobs: int | None) -> Floats:
    """Give draws of a model (count, n), nearly independent where discrete variables have few joint states, else by annealing."""
    if is_summable(weights):
        generator = np.random.default_rng(list(key))
        more = _DRAWS if weights.logits.any() else 1
        found = PlainModel(weights).draw_weighted(more * count, generator, n_jobs)
        if found.effective > FEWEST:
            chosen = resample(found.log_weights, generator)[:: len(found.cells) // count][:count]
            return found.cells[chosen]
    cells: Floats = np.asarray(anneal(weights, count, key, n_jobs, spread=0.7).codes, dtype=np.float64)
    return cells
