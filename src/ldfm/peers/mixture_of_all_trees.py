"""Mixture of all spanning trees with shared pair tables (MoAT: Selvam, Zhang and Van den Broeck, AISTATS 2023).

p(x) = sum over trees T of P(T) Pr_T(x), with P(T) proportional to the product of the tree's edge weights w and Pr_T the
tree-structured distribution whose pair tables p_ij all trees share. By the matrix-tree theorem, with det a principal minor of a
Laplacian,

    p(x) = prod_i p_i(x_i) * det L(w_ij p_ij(x_i, x_j) / (p_i(x_i) p_j(x_j))) / det L(w_ij).

Complete rows are exact and normalised. Hidden cells are summed out by enumeration where they have few joint states; else trees are
drawn, given which everything is a message on a tree, and answers carry standard errors.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from ldfm.inference.answers import Diagnostics, QueryResult
from ldfm.inference.exact import TooManyStatesError
from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.forest_sums import arc_marginals, log_forest_sums
from ldfm.parallel import blocks, map_in_order
from ldfm.peers import gibbs
from ldfm.peers.base import DensityPeer, LearningPeer, TrainingRows, count_states, mean_log
from ldfm.peers.chow_liu import mutual_information, one_hot, pair_counts, smoothed, uniform_pairs
from ldfm.peers.kernels.all_trees import AllTrees, add_edge_marginals, answer_row, fill_edge_matrices
from ldfm.peers.kernels.clamping import Effort
from ldfm.tables import MISSING, Kinds, MergedRows
from ldfm.types import Booleans, Codes, Floats, Integers

STRENGTHS = (0.3, 1.0, 3.0, 10.0)
_BLOCK_ROWS = 256
MAX_STATES = 1 << 12  # of the unknown cells of a row that are enumerated


class Choice(NamedTuple):
    """Hyper-parameters, and what the held-out rows say of them."""

    strength: float
    held_out: float


class MixtureOfAllTrees(DensityPeer, LearningPeer):
    """Mixture of all spanning trees.

    Parameters
    ----------
    strength
        Rows of independent, uniform values added to the pair tables; None: chosen on held-out rows.
    penalty
        Pull of the log edge weights toward their start: this many nats for a squared distance of 2.
    max_iter
        Most iterations of L-BFGS on the edge weights.
    chains, burn_in, first_sweeps, sweeps
        Effort a row where unknown cells have too many joint states to enumerate: chains, and sweeps of each before averaging,
        averaged at first, and averaged after each clamp.
    validation_fraction, kinds, n_jobs, random_state
        See `LearningPeer`.

    Attributes
    ----------
    log_weights_
        (n, n): log edge weights.
    pairs_
        (S, S): pair tables; single values on the diagonal.
    choice_
        Hyper-parameters and their held-out mean log-likelihood.
    """

    log_weights_: Floats
    pairs_: Floats
    choice_: Choice

    def __init__(
        self,
        strength: float | None = None,
        penalty: float = 1.0,
        max_iter: int = 40,
        chains: int = 40,
        burn_in: int = 15,
        first_sweeps: int = 10,
        sweeps: int = 2,
        validation_fraction: float = 0.2,
        kinds: Kinds = None,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.strength = strength
        self.penalty = penalty
        self.max_iter = max_iter
        self.chains = chains
        self.burn_in = burn_in
        self.first_sweeps = first_sweeps
        self.sweeps = sweeps
        self.validation_fraction = validation_fraction
        self.kinds = kinds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, rows: TrainingRows) -> None:
        offsets = np.concatenate([[0], np.cumsum(rows.cardinalities)]).astype(np.int64)
        self.choice_ = self._choose(rows, offsets)
        self.pairs_ = _pair_table(rows.whole, offsets, self.choice_.strength)
        self.log_weights_ = self._climb(rows.whole, offsets, self.pairs_, self.max_iter)
        self._model = _to_model(self.log_weights_, self.pairs_, offsets)
        self._starts = gibbs.Starts.of(rows.whole, np.random.default_rng(self._seed()))

    def _choose(self, rows: TrainingRows, offsets: Integers) -> Choice:
        """Compare strengths after a few iterations."""
        found = []
        for strength in STRENGTHS if self.strength is None else (self.strength,):
            pairs = _pair_table(rows.train, offsets, strength)
            log_weights = self._climb(rows.train, offsets, pairs, min(8, self.max_iter))
            logs = _log_rows(_to_model(log_weights, pairs, offsets), log_weights, rows.held_out.codes, self.n_jobs)
            found.append(Choice(strength, mean_log(logs, rows.held_out)))
        return max(found, key=lambda choice: choice.held_out)

    def _climb(self, rows: MergedRows, offsets: Integers, pairs: Floats, max_iter: int) -> Floats:
        """Learn log edge weights (n, n) by L-BFGS on the normalised likelihood; the start follows the mutual information."""
        n = len(offsets) - 1
        above = np.triu_indices(n, 1)
        start = np.log(np.maximum(mutual_information(pairs, offsets), 1e-5))[above]
        if n < 3:  # one tree
            return _symmetric(start, n)
        total = rows.weights.sum()

        def loss(logs: Floats) -> tuple[float, Floats]:
            model = _to_model(_symmetric(logs, n), pairs, offsets)
            of_rows, met = _edge_counts(model.edges, offsets, rows.codes, rows.weights, self.n_jobs)
            of_all, expected = _edge_counts(
                np.exp(_symmetric(logs, n)), np.arange(n + 1), np.zeros((1, n), dtype=np.int64), np.ones(1), 1
            )
            away = logs - start
            value = of_rows - total * of_all - 0.5 * self.penalty * away @ away
            slope = met[above] - total * expected[above] - self.penalty * away
            return -value / total, -slope / total

        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
        return _symmetric(found.x, n)

    def _log_probabilities(self, rows: MergedRows) -> Floats:
        states = count_states(rows, np.zeros(rows.codes.shape, dtype=np.bool_), self.schema_.cardinalities)
        large = np.flatnonzero(states > MAX_STATES)
        if large.size:
            where = f"row {rows.first_rows[large[0]]}"
            raise TooManyStatesError(
                f"{where}: its missing cells have {states[large[0]]:.0f} joint states, over {MAX_STATES}"
            )
        return np.array([float(logsumexp(table)) for table in self._tables(rows.codes)])

    def _answer(self, rows: MergedRows, asked: Booleans) -> QueryResult:
        small = count_states(rows, asked, self.schema_.cardinalities) <= MAX_STATES
        exact, sampled = np.flatnonzero(small), np.flatnonzero(~small)
        found = self._sampled(rows.only(sampled), asked[sampled])
        joint, marginal = np.zeros(len(asked)), np.zeros(len(asked))
        joint[exact], marginal[exact] = self._enumerated(rows.codes[exact], asked[exact])
        joint[sampled], marginal[sampled] = found.joint, found.marginal
        joint_se, marginal_se = np.zeros(len(asked)), np.zeros(len(asked))
        joint_se[sampled], marginal_se[sampled] = found.joint_se, found.marginal_se
        n_query = asked.sum(axis=1).astype(np.int64)
        diagnostics = Diagnostics.of_exact(
            count_states(rows, asked, self.schema_.cardinalities), "trees" if sampled.size else "exact"
        )
        for name in ("exact", "effective_draws", "r_hat", "sweeps", "met"):
            getattr(diagnostics, name)[sampled] = getattr(found.diagnostics, name)
        return QueryResult(joint, marginal, joint_se, marginal_se, n_query, diagnostics)

    def _sampled(self, rows: MergedRows, asked: Booleans) -> QueryResult:
        effort = Effort(self.burn_in, self.first_sweeps, self.sweeps)

        def answer(
            states: Integers, codes: Integers, asked: Booleans, generator: np.random.Generator, out: Floats
        ) -> None:
            work = make_workspace(len(codes) - 1)
            answer_row(self._model, states, (codes, asked), effort, work, generator, out)

        sampling = gibbs.Sampling(answer, self.schema_.cardinalities, self.chains, effort, "trees")
        return gibbs.query(sampling, self._starts, rows, asked, self._seed(), self.n_jobs)

    def _enumerated(self, codes: Codes, asked: Booleans) -> tuple[Floats, Floats]:
        """Give joint and marginal answers from tables of all states of the query and hidden cells."""
        joint, marginal = np.zeros(len(codes)), np.zeros(len(codes))
        for row, table in enumerate(self._tables(np.where(asked, MISSING, codes))):
            free = np.flatnonzero(asked[row] | (codes[row] == MISSING))
            places = [int(codes[row, i]) if asked[row, i] else slice(None) for i in free]
            total = float(logsumexp(table))
            joint[row] = float(logsumexp(table[tuple(places)])) - total
            for axis, i in enumerate(free):
                if asked[row, i]:
                    one = [place if at == axis else slice(None) for at, place in enumerate(places)]
                    marginal[row] += float(logsumexp(table[tuple(one)])) - total
        return joint, marginal

    def _tables(self, codes: Codes) -> Iterator[Floats]:
        """Give for each row the log probabilities of all completions, one axis an unknown cell."""
        cardinalities = np.array(self.schema_.cardinalities)
        for row in codes:
            unknown = np.flatnonzero(row == MISSING)
            shape = tuple(cardinalities[unknown].tolist())
            states = np.tile(row.astype(np.int64), (int(np.prod(shape)), 1))
            states[:, unknown] = np.stack(np.unravel_index(np.arange(len(states)), shape), axis=1) if shape else 0
            yield _log_rows(self._model, self.log_weights_, states, self.n_jobs).reshape(shape)


def _pair_table(rows: MergedRows, offsets: Integers, strength: float) -> Floats:
    counts = pair_counts(one_hot(rows.codes, offsets), rows.weights)
    return smoothed(counts, uniform_pairs(offsets), strength)


def _symmetric(upper: Floats, n: int) -> Floats:
    square = np.zeros((n, n))
    square[np.triu_indices(n, 1)] = upper
    return square + square.T


def _to_model(log_weights: Floats, pairs: Floats, offsets: Integers) -> AllTrees:
    single = pairs.diagonal()
    sizes = np.diff(offsets)
    weights = np.exp(log_weights).repeat(sizes, axis=0).repeat(sizes, axis=1)
    table = np.vstack([single, pairs / single[:, None]])
    return AllTrees(weights * pairs / np.outer(single, single), table, offsets)


def _log_rows(model: AllTrees, log_weights: Floats, codes: Codes, n_jobs: int | None) -> Floats:
    """Give log p of complete rows."""
    n = codes.shape[1]
    singles = np.log(model.table[0])[model.offsets[:-1] + codes].sum(axis=1)
    if n == 1:
        return np.asarray(singles)
    logs = _log_sums(model.edges, model.offsets, codes, n_jobs)
    none = np.zeros((1, n), dtype=np.int64)
    return np.asarray(singles + logs - _log_sums(np.exp(log_weights), np.arange(n + 1), none, 1))


def _log_sums(edges: Floats, offsets: Integers, codes: Codes, n_jobs: int | None) -> Floats:
    n = codes.shape[1]

    def one_block(rows: slice) -> Floats:
        matrices = np.empty((rows.stop - rows.start, n, n - 1))
        fill_edge_matrices(edges, offsets, codes[rows], matrices)
        sums = np.empty(len(matrices))
        log_forest_sums(matrices, make_workspace(n - 1), sums)
        return sums

    return np.concatenate(list(map_in_order(one_block, blocks(len(codes), _BLOCK_ROWS), n_jobs)))


def _edge_counts(
    edges: Floats, offsets: Integers, codes: Codes, row_weights: Floats, n_jobs: int | None
) -> tuple[float, Floats]:
    """Give the weighted sum of the log tree sums of rows, and (n, n) the expected number of their trees that have each edge."""
    n = codes.shape[1]

    def one_block(rows: slice) -> tuple[float, Floats]:
        matrices = np.empty((rows.stop - rows.start, n, n - 1))
        fill_edge_matrices(edges, offsets, codes[rows], matrices)
        sums, marginals, met = np.empty(len(matrices)), np.empty_like(matrices), np.zeros((n, n))
        arc_marginals(matrices, make_workspace(n - 1), sums, marginals)
        add_edge_marginals(marginals, row_weights[rows], met)
        return float(row_weights[rows] @ sums), met

    parts = list(map_in_order(one_block, blocks(len(codes), _BLOCK_ROWS), n_jobs))
    return sum(part[0] for part in parts), np.sum([part[1] for part in parts], axis=0)
