"""Learning a mixed model on the normalised likelihood: EM for the densities, gradients for the mixing weights.

With w the weight of an arc and mu its marginal, the gradient of the mean of log p(row) is E_rows[mu d log w] - E_model[mu d log w].

- Mixing weights: the expected arc counts of rows minus those of the model, as for discrete models, with a pull towards the start.
- Normal densities and logits: the fit that EM makes, which leaves the model's part out. Where all variables are continuous that is
  0, for densities integrate to 1 whatever their parameters are. Else it is not, but small: it is there only as far as the values
  below a number have different chances to go on.

The model's counts come from chains that move on with the weights. Where all variables are continuous they are known: the arc
marginals of the mixing weights. Then every step is exact, and nothing is drawn but missing cells.
"""

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from scipy.special import logsumexp

from ldfm.forests import expected_statistics, log_sums, marginals_of_arcs
from ldfm.learning.history import History, Step
from ldfm.learning.mixed_completion import MixedRows
from ldfm.learning.mixed_em import fit_numbers, with_numbers
from ldfm.mixed_draws import anneal, draw_numbers, log_partition_of_numbers, mixing_alone, move
from ldfm.mixed_weights import MixedWeights
from ldfm.progress import progress
from ldfm.tables import MergedRows
from ldfm.types import Floats, Integers

CHAINS = 512  # half of them give the model's counts, the other half follow the partition
SWEEPS = 2
PULL = 0.02  # towards the start, in rows: what a squared distance of 1 in the log of a mixing weight costs twice
RATE = 0.7  # of steps of the mixing weights
MORE = 5  # such steps, where they cost no pass over the rows
SMALL = 1e-4  # arcs rarer than this in a row move less
AVERAGED = 0.3  # share of the steps, the last ones, whose mixing weights are averaged where chains make them noisy
PATIENCE = 40  # steps without a better score of held-out rows


@dataclass(frozen=True)
class MixedLikelihoodSettings:
    """Largest number of steps, threads and progress."""

    max_iter: int = 200
    n_jobs: int | None = None
    verbose: int = 0


class MixedLikelihoodFit:
    """A fit, step by step.

    Parameters
    ----------
    rows, validation
        Merged rows to learn from, which may have missing cells, and complete held-out ones to choose by.
    start
        Weights to start from and to be pulled towards.
    settings
        How to learn.
    seed
        Whole number from which everything random is made.
    """

    def __init__(
        self,
        rows: MergedRows,
        start: MixedWeights,
        settings: MixedLikelihoodSettings,
        seed: int,
        validation: MergedRows | None = None,
    ) -> None:
        self.settings, self.seed, self.validation = settings, seed, validation
        self.rows = MixedRows(rows, (seed, 1))
        self.total = float(rows.weights.sum())
        self.weights = _folded(start)
        self.start = _logs(self.weights.table)
        self.history = History(reason=f"reached max_iter={settings.max_iter}")
        self.exact = all(start.continuous)
        self._data = self._model = np.zeros(start.table.shape)
        self._sums = np.zeros((6, *start.table.shape))
        self._sum_of_logs, self._summed = np.zeros(start.table.shape), 0
        self._find_chains()

    def _find_chains(self) -> None:
        """Begin with draws of the start, and with its partition."""
        if self.exact:
            generator = np.random.default_rng([self.seed, 2])
            self.chains: Floats = draw_numbers(self.weights, CHAINS, generator)
            self.log_partition = log_partition_of_numbers(self.weights)
            return
        found = anneal(self.weights, CHAINS, (self.seed, 2), self.settings.n_jobs, spread=0.5)
        self.chains = np.asarray(found.codes, dtype=np.float64)
        self.parents: Integers = found.parents
        self.log_partition = found.value

    def run(self) -> tuple[MixedWeights, History, Floats]:
        """Learn; give weights, the record, and draws of the model."""
        settings, began = self.settings, perf_counter()
        best, best_score, best_draws, since = self.weights, -np.inf, self.chains, 0
        with progress("likelihood", settings.max_iter, settings.verbose) as advance:
            for step in range(settings.max_iter + 1):
                self.rows.redraw(self.weights, step, 1, settings.n_jobs)
                objective = self._expect(step)
                score = self._score()
                self.history.steps.append(Step(step, objective, score, perf_counter() - began))
                if score is None or score > best_score:
                    best, best_draws, since = self.weights, self.chains.copy(), 0
                    best_score = -np.inf if score is None else score
                else:
                    since += 1
                if since >= PATIENCE:
                    self.history.converged = True
                    self.history.reason = f"no better held-out score in {PATIENCE} steps"
                    break
                if step < settings.max_iter:
                    self._step(step)
                    advance(f"{objective:.4f} nats a row")
        if self.exact:
            best_draws = draw_numbers(best, CHAINS, np.random.default_rng([self.seed, 3]))
        return best, self.history, best_draws

    def _expect(self, step: int) -> float:
        """Find the statistics of rows and the counts of the model; give the objective."""
        n_jobs = self.settings.n_jobs
        data = expected_statistics(self.weights, self.rows.codes, self.rows.weights / self.total, n_jobs)
        self._sums = data.sums
        if self.exact:
            self._model = self._exact_counts(self.weights)
        else:
            free = np.full(self.chains.shape, np.nan)
            move(self.weights.model, free, self.chains, self.parents, SWEEPS, (self.seed, 4, step), n_jobs)
            counting = self.chains[: CHAINS // 2]
            even = np.full(len(counting), 1.0 / len(counting))
            self._model = expected_statistics(self.weights, counting, even, n_jobs).arcs
        return data.log_sum - self.log_partition

    def _step(self, step: int) -> None:
        """Move the weights by what the statistics say, and the partition with them."""
        before, last = self.weights, self.settings.max_iter
        logs = self._move(_logs(before.table), self._model, RATE * min(1.0, 2.0 * (1.0 - step / last)))
        for _ in range(MORE if self.exact else 0):  # the counts of the model are known for any weights: climb further
            model = self._exact_counts(replace(before, table=np.where(before.mask, np.exp(logs), 0.0)))
            logs = self._move(logs, model, RATE)
        if not self.exact and step >= (1.0 - AVERAGED) * last:
            self._sum_of_logs, self._summed = self._sum_of_logs + logs, self._summed + 1
        if self._summed and step == last - 1:
            logs = self._sum_of_logs / self._summed
        moved = replace(before, table=np.where(before.mask, np.exp(logs), 0.0))
        self.weights = with_numbers(moved, *fit_numbers(before, self.total * self._sums))
        self._follow(before)

    def _move(self, logs: Floats, model: Floats, rate: float) -> Floats:
        """Give the logs of the mixing weights after a step along the gradient, divided by the counts it is made of."""
        weights, data, pull = self.weights, self._sums[0], PULL / self.total
        gradient = _tied(weights, data - model) - pull * (logs - self.start)
        size = _tied(weights, data + model) + 2.0 * pull + SMALL
        moved: Floats = logs + np.clip(rate * gradient / size, -1.0, 1.0)
        return moved

    def _exact_counts(self, weights: MixedWeights) -> Floats:
        """Give the arc counts of a model whose variables are all continuous."""
        found: Floats = marginals_of_arcs(mixing_alone(weights), np.zeros((1, self.rows.codes.shape[1])))[0]
        return found

    def _follow(self, before: MixedWeights) -> None:
        """Note the partition of the new weights: by the chains, from that of those before."""
        if self.exact:
            self.log_partition = log_partition_of_numbers(self.weights)
            return
        n_jobs = self.settings.n_jobs
        # not by those that the step was made from: their noise is in it
        others = self.chains[CHAINS // 2 :]
        gains = log_sums(self.weights, others, n_jobs) - log_sums(before, others, n_jobs)
        self.log_partition += float(logsumexp(gains) - np.log(len(gains)))

    def _score(self) -> float | None:
        """Give the mean log probability of held-out rows."""
        if self.validation is None:
            return None
        held_out = self.validation
        sums = log_sums(self.weights, held_out.codes, self.settings.n_jobs) - self.log_partition
        return float(held_out.weights @ sums / held_out.weights.sum())


def _folded(weights: MixedWeights) -> MixedWeights:
    """Give weights whose stop weights are 1, the old ones in the arcs into their states, and no arc of weight 0."""
    table = weights.table if weights.stop is None else weights.table * weights.stop[1:]
    variable = weights.offsets[:-1]
    counts = np.add.reduceat(np.ones(table.shape), variable, axis=1)
    means = np.repeat(np.add.reduceat(table, variable, axis=1) / counts, weights.cardinalities, axis=1)
    numeric_rows = np.concatenate([[False], weights.numeric])[:, None]
    table = np.where(numeric_rows, means, table)
    largest = np.maximum.reduceat(table.max(axis=0), variable)
    table = table / np.repeat(np.where(largest > 0, largest, 1.0), weights.cardinalities)
    table = np.where(weights.mask, np.maximum(table, 1e-4), 0.0)
    return replace(weights, table=table, stop=np.ones(len(table)))


def _logs(table: Floats) -> Floats:
    return np.log(np.where(table > 0, table, 1.0))


def _tied(weights: MixedWeights, counts: Floats) -> Floats:
    """Sum over the values of a discrete child the counts that continuous parents have of them: one weight stands for all."""
    sums = np.repeat(np.add.reduceat(counts, weights.offsets[:-1], axis=1), weights.cardinalities, axis=1)
    tied: Floats = np.where(np.concatenate([[False], weights.numeric])[:, None], sums, counts)
    return tied
