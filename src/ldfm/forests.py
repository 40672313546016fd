"""Forest sums, arc marginals and forests of many rows: kernels mapped over blocks of rows.

This is the one place where codes, weights and forest kernels meet. Blocks are cut by the numbers of rows and variables alone and
results are put together in order, so that nothing depends on the number of threads, to the last bit.
"""

from typing import NamedTuple

import numpy as np

from ldfm.kernels.elimination import make_workspace
from ldfm.mixed_weights import MixedWeights
from ldfm.parallel import blocks, map_in_order
from ldfm.types import Codes, Floats, Integers, Rows
from ldfm.weights import ArcWeights

Weights = ArcWeights | MixedWeights

BLOCK_ROWS = 1024
_LEAST_WORK = 1 << 19  # rows times n^3 of a block: half a millisecond or more, else threads cost more than they give
_BATCH_BYTES = 1 << 19  # arc matrices worked on at once, so that they stay in the cache
WALK_STEPS_A_VARIABLE = 50  # of erased loops, mostly a few; at this many, elimination costs as much for one forest


def _batch_rows(n: int) -> int:
    """Give how many arc matrices of n variables are worked on at once."""
    return max(16, min(BLOCK_ROWS, _BATCH_BYTES // (8 * n * (n + 1))))


def _blocks_of(rows: int, n: int) -> list[slice]:
    """Cut rows of n variables into blocks: eight or more where that is worth it, so that threads have much the same to do."""
    return blocks(rows, min(BLOCK_ROWS, max(64, _LEAST_WORK // n**3, -(-rows // 8))))


def log_sums(weights: Weights, codes: Rows, n_jobs: int | None = 1) -> Floats:
    """Give the log forest sum of complete rows, stop weights included; -inf for a row that cannot be generated.

    O(n^3 / 3) a row.
    """
    n = codes.shape[1]

    def one_block(rows: slice) -> Floats:
        work = make_workspace(n)
        sums = np.empty(rows.stop - rows.start)
        matrices = np.empty((min(_batch_rows(n), len(sums)), n + 1, n))
        for batch in blocks(len(sums), len(matrices)):
            part = codes[rows][batch]
            used = matrices[: len(part)]
            weights.fill_log_sums(part, used, work, sums[batch])
        weights.add_stops(codes[rows], sums)
        return sums

    found = list(map_in_order(one_block, _blocks_of(len(codes), n), n_jobs))
    return np.concatenate(found) if found else np.empty(0)


class Counts(NamedTuple):
    """Expected counts of rows: additive, so that blocks, chunks and workers can be summed.

    Attributes
    ----------
    arcs
        (S + 1, S): expected number of times each arc is in the forests of the rows.
    log_sum
        Sum over rows of weight times log forest sum, stop weights not included.
    """

    arcs: Floats
    log_sum: float


def expected_counts(weights: ArcWeights, codes: Codes, row_weights: Floats, n_jobs: int | None = 1) -> Counts:
    """Give the expected arc counts of complete rows; O(1.5 n^3) a row. Merge identical rows first.

    Rows of weight 0 count nothing, also where their forest sum is 0.
    """
    n = codes.shape[1]

    def one_block(rows: slice) -> Counts:
        work = make_workspace(n)
        counts = np.zeros(weights.table.shape)
        size = rows.stop - rows.start
        sums = np.empty(size)
        matrices = np.empty((min(_batch_rows(n), size), n + 1, n))
        marginals = np.empty(matrices.shape)
        for batch in blocks(size, len(matrices)):
            part = codes[rows][batch]
            used, found = matrices[: len(part)], marginals[: len(part)]
            weights.fill_marginals(part, used, work, sums[batch], found)
            weights.add_counts(found, part, row_weights[rows][batch], counts)
        counted = row_weights[rows] > 0
        return Counts(counts, float(row_weights[rows][counted] @ sums[counted]))

    total = Counts(np.zeros(weights.table.shape), 0.0)
    for counts in map_in_order(one_block, _blocks_of(len(codes), n), n_jobs):
        total = Counts(np.add(total.arcs, counts.arcs, out=total.arcs), total.log_sum + counts.log_sum)
    return total


class Statistics(NamedTuple):
    """Expected counts and sums of rows of a mixed model: additive too.

    Attributes
    ----------
    sums
        (6, S + 1, S): for each arc the sums over rows of c, cx, cxx, cy, cxy, cyy: c the arc's marginal, x the parent's number, y
        the child's, or the gradient of its logits (see `ldfm.kernels.mixed_arcs`).
    log_sum
        Sum over rows of weight times log forest sum, stop weights included.
    """

    sums: Floats
    log_sum: float

    @property
    def arcs(self) -> Floats:
        """(S + 1, S): expected arc counts."""
        counts: Floats = self.sums[0]
        return counts


def expected_statistics(
    weights: MixedWeights, cells: Floats, row_weights: Floats, n_jobs: int | None = 1
) -> Statistics:
    """Give the expected statistics of complete rows; O(1.5 n^3) a row. Rows of weight 0 count nothing."""
    n = cells.shape[1]

    def one_block(rows: slice) -> Statistics:
        work = make_workspace(n)
        total = np.zeros((6, *weights.table.shape))
        size = rows.stop - rows.start
        sums = np.empty(size)
        matrices = np.empty((min(_batch_rows(n), size), n + 1, n))
        marginals = np.empty(matrices.shape)
        for batch in blocks(size, len(matrices)):
            part = cells[rows][batch]
            used, found = matrices[: len(part)], marginals[: len(part)]
            weights.fill_marginals(part, used, work, sums[batch], found)
            weights.add_statistics(found, part, row_weights[rows][batch], total)
        weights.add_stops(cells[rows], sums)
        counted = row_weights[rows] > 0
        return Statistics(total, float(row_weights[rows][counted] @ sums[counted]))

    found = Statistics(np.zeros((6, *weights.table.shape)), 0.0)
    for part in map_in_order(one_block, _blocks_of(len(cells), n), n_jobs):
        found = Statistics(np.add(found.sums, part.sums, out=found.sums), found.log_sum + part.log_sum)
    return found


def marginals_of_arcs(weights: Weights, codes: Rows, n_jobs: int | None = 1) -> Floats:
    """Give (rows, n + 1, n): the probability of each arc in the forest of each complete row, 0 for a row without any forest."""
    n = codes.shape[1]
    marginals = np.empty((len(codes), n + 1, n))

    def one_block(rows: slice) -> None:
        work = make_workspace(n)
        matrices = np.empty((rows.stop - rows.start, n + 1, n))
        weights.fill_marginals(codes[rows], matrices, work, np.empty(len(matrices)), marginals[rows])

    list(map_in_order(one_block, blocks(len(codes), _batch_rows(n)), n_jobs))
    return marginals


def mean_marginals_of_arcs(weights: Weights, codes: Rows, n_jobs: int | None = 1) -> Floats:
    """Give (n + 1, n): the mean of `marginals_of_arcs` over the complete rows that have a forest."""
    total, counted = np.zeros((codes.shape[1] + 1, codes.shape[1])), 0
    for rows in blocks(len(codes), BLOCK_ROWS):
        found = marginals_of_arcs(weights, codes[rows], n_jobs)
        total += found.sum(axis=0)
        counted += int(found.any(axis=(1, 2)).sum())
    return total / max(counted, 1)


def best_forests(weights: Weights, codes: Rows, n_jobs: int | None = 1) -> Integers:
    """Give (rows, n): parents in the forest of greatest weight, root = -1; -2 throughout for a row without any forest."""
    n = codes.shape[1]
    parents = np.empty((len(codes), n), dtype=np.int64)

    def one_block(rows: slice) -> None:
        matrices = np.empty((rows.stop - rows.start, n + 1, n))
        weights.fill_best(codes[rows], matrices, parents[rows])

    list(map_in_order(one_block, blocks(len(codes), _batch_rows(n)), n_jobs))
    return parents


def draws_of_forests(
    weights: Weights, codes: Rows, draws: int, seed: np.random.SeedSequence, n_jobs: int | None = 1
) -> Integers:
    """Give (rows, draws, n): forests drawn with probability proportional to their weight, root = -1, -2 as in `best_forests`."""
    n = codes.shape[1]
    parents = np.empty((len(codes), draws, n), dtype=np.int64)
    cuts = blocks(len(codes), _batch_rows(n))

    def one_block(job: tuple[slice, np.random.SeedSequence]) -> None:
        rows, own_seed = job
        work = make_workspace(n)
        generator = np.random.default_rng(own_seed)
        matrices = np.empty((rows.stop - rows.start, n + 1, n))
        weights.fill_draws(codes[rows], matrices, work, WALK_STEPS_A_VARIABLE * n, generator, parents[rows])

    list(map_in_order(one_block, zip(cuts, seed.spawn(len(cuts)), strict=True), n_jobs))
    return parents
