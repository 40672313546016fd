"""Learning a mixed model on the normalised likelihood: EM for the densities, gradients for the mixing weights.

With w the weight of an arc and mu its marginal, the gradient of the mean of log p(row) is E_rows[mu d log w] - E_model[mu d log w].

- Mixing weights: the expected arc counts of rows minus those of the model, as for discrete models, with a pull towards the start.
- Normal densities and logits: the fit that EM makes, to statistics that the model's part of the gradient is taken from. That part
  is 0 where all variables are continuous, for densities integrate to 1 whatever their parameters are. Rows that both columns of an
  arc are in count a little for its normal density, whatever forests they have: else arcs of few rows fit those alone.

Where discrete variables have few joint states the model's part comes from independent draws of the plain model (see
`ldfm.independent_draws`): what is known of that model exactly, plus what weights change in the draws. So there is little noise, and
the partition is known at every step. Elsewhere chains move on with the weights; what they say of densities is too noisy to be used.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.special import logsumexp

from ldfm.forests import expected_statistics, log_sums
from ldfm.independent_draws import Drawn, PlainModel, is_summable
from ldfm.learning.checkpoint import arrays_of_state, restore_state
from ldfm.learning.history import History, Step
from ldfm.learning.mixed_completion import MixedRows
from ldfm.learning.mixed_em import fit_numbers, log_prior_of_numbers, pair_statistics, squared_residuals, with_numbers
from ldfm.mixed_draws import FEWEST, anneal, draw_from, move
from ldfm.mixed_weights import MixedWeights
from ldfm.progress import progress
from ldfm.tables import MergedRows
from ldfm.types import Floats, Integers

CHAINS = 512  # half of them give the model's counts, the other half follow the partition
DRAWS = 1024  # independent ones, a step
SWEEPS = 2
PAIR_ROWS = 5.0  # that the fit of a pair of columns counts for, beside the rows that an arc explains
PULL = 0.02  # towards the start, in rows: what a squared distance of 1 in the log of a mixing weight costs twice
RATE = 0.7  # of steps of the mixing weights by chains
CLIMB = 6  # steps of the mixing weights between passes over the rows, where the partition is known
FARTHEST = 1.0  # that the log of a mixing weight moves in a step
LEAST_PACE = 1 / 64  # part of a step that is tried before it is given up
SMALL = 1e-4  # arcs rarer than this in a row move less
AVERAGED = 0.3  # share of the steps, the last ones, whose weights are averaged where draws make them noisy
PATIENCE = 40  # steps without a better score of held-out rows
KEPT_EVERY = 10  # steps from one checkpoint to the next


@dataclass(frozen=True)
class MixedLikelihoodSettings:
    """Largest number of steps, threads and progress."""

    max_iter: int = 200
    n_jobs: int | None = None
    verbose: int = 0


@dataclass
class MixedState:
    """All that a fit needs to go on from where it is, but for the record and the draws of missing cells; no generators."""

    step: int
    parameters: Floats  # (4, S + 1, S): logs of mixing weights, intercepts, slopes, logs of deviations
    sum_of_parameters: Floats
    summed: int
    log_partition: float
    chains: Floats
    parents: Integers
    best: Floats
    best_score: float
    best_draws: Floats
    since: int
    pace: float  # part of a step that is tried first
    seconds: float


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
        self.noisy = not self.exact or len(self.rows.open_rows) > 0
        first = _parameters(self.weights)
        none = np.empty((0, len(start.cardinalities)))
        self.state = MixedState(
            0, first, np.zeros(first.shape), 0, 0.0, none, none.astype(np.int64), first, -np.inf, none, 0, 1.0, 0.0
        )
        pairs = pair_statistics(rows, self.weights)
        self.pairs: Floats = np.where(start.mask & start.numeric, PAIR_ROWS * pairs / np.maximum(pairs[0], 1.0), 0.0)
        self._sums = self._model = np.zeros((6, *start.table.shape))
        self._counts = self._correction = np.zeros(start.table.shape)
        # numbers have one weight for all values of a discrete child
        self._shares: Floats = np.where(
            np.concatenate([[False], start.numeric])[:, None],
            1.0 / np.repeat(start.cardinalities, start.cardinalities),
            1.0,
        )

    def arrays(self) -> dict[str, Any]:
        """Give what `resume` needs, as arrays."""
        return {**arrays_of_state(self.state), "completed": self.rows.codes}

    def resume(self, arrays: dict[str, Any], history: History) -> None:
        """Go on from where another run of the same fit was."""
        restore_state(self.state, arrays)
        self.rows.codes = arrays["completed"].copy()
        self.weights, self.history = self._weights_of(self.state.parameters), history

    def run(self, checkpoint: Callable[[], None] | None = None) -> tuple[MixedWeights, History, Floats]:
        """Learn; give weights, the record, and draws of the model."""
        settings, state = self.settings, self.state
        began = perf_counter() - state.seconds
        if state.step == 0 and not is_summable(self.weights):
            self._find_chains()
        with progress("likelihood", settings.max_iter, settings.verbose) as advance:
            advance(steps=state.step)
            while True:
                self.rows.redraw(self.weights, state.step, 1, settings.n_jobs)
                objective = self._expect()
                self._record(objective, perf_counter() - began)
                if state.since >= PATIENCE:
                    self.history.converged = True
                    self.history.reason = f"no better held-out score in {PATIENCE} steps"
                    break
                if state.step >= settings.max_iter:
                    break
                self._step()
                state.step += 1
                state.seconds = perf_counter() - began
                advance(f"{objective:.4f} nats a row")
                if checkpoint and state.step % KEPT_EVERY == 0:
                    checkpoint()
        best = self._weights_of(state.best)
        if not len(state.best_draws):
            state.best_draws = draw_from(best, CHAINS, (self.seed, 3), settings.n_jobs)
        return best, self.history, state.best_draws

    def _record(self, objective: float, seconds: float) -> None:
        """Note where the fit is, and whether it is the best there was."""
        state, score = self.state, self._score()
        self.history.steps.append(Step(state.step, objective, score, seconds))
        if score is None or score > state.best_score:
            state.best, state.best_draws, state.since = state.parameters, state.chains.copy(), 0
            state.best_score = -np.inf if score is None else score
        else:
            state.since += 1

    def _expect(self) -> float:
        """Find the statistics of rows and those of the model; give the objective."""
        data = expected_statistics(self.weights, self.rows.codes, self.rows.weights / self.total, self.settings.n_jobs)
        self._sums = data.sums
        if not len(self.state.chains):
            self._expect_independent()
        if len(self.state.chains):
            self._expect_chains()
        return data.log_sum - self.state.log_partition

    def _expect_independent(self) -> None:
        """Find counts, statistics and partition of the model from independent draws; begin chains if these are too uneven."""
        weights, state, n_jobs = self.weights, self.state, self.settings.n_jobs
        plain = PlainModel(weights)
        self._model, self._correction = np.zeros(self._sums.shape), np.zeros(weights.table.shape)
        state.log_partition = plain.log_partition
        if not self.exact:
            drawn = self._draw(plain)
            if drawn.effective < FEWEST:
                self._find_chains()
                return
            state.log_partition += drawn.log_ratio
            ours = expected_statistics(weights, drawn.cells, drawn.shares, n_jobs).sums
            theirs = expected_statistics(plain.weights, drawn.cells, np.full(DRAWS, 1.0 / DRAWS), n_jobs).sums
            # normal densities have the same parameters in both, and scores of mean 0 in the plain one
            self._correction = ours[0] - theirs[0]
            self._model = np.where(weights.logits, ours, ours - theirs)

    def _draw(self, plain: PlainModel) -> Drawn:
        """Give weighted draws; all models of a step draw with the same random numbers."""
        return plain.draw_weighted(DRAWS, np.random.default_rng([self.seed, 4, self.state.step]), self.settings.n_jobs)

    def _find_chains(self) -> None:
        """Begin chains with draws of the present weights, and with their partition."""
        found = anneal(self.weights, CHAINS, (self.seed, 2), self.settings.n_jobs, spread=0.5)
        self.state.chains, self.state.parents = np.asarray(found.codes, dtype=np.float64), found.parents
        self.state.log_partition = found.value

    def _expect_chains(self) -> None:
        """Move the chains on; count their arcs."""
        state, n_jobs = self.state, self.settings.n_jobs
        free = np.full(state.chains.shape, np.nan)
        move(self.weights.model, free, state.chains, state.parents, SWEEPS, (self.seed, 4, state.step), n_jobs)
        counting = state.chains[: CHAINS // 2]
        even = np.full(len(counting), 1.0 / len(counting))
        self._counts = expected_statistics(self.weights, counting, even, n_jobs).arcs
        self._model = np.zeros(self._sums.shape)

    def _step(self) -> None:
        """Move the weights by what the statistics say."""
        before, state, last = self.weights, self.state, self.settings.max_iter
        logs = self._by_chains() if len(state.chains) else self._climb()
        sums = self.total * _less_model(before, self._sums, self._model) + self.pairs
        moved = with_numbers(before, *fit_numbers(before, sums))
        target = _parameters(replace(moved, table=_table(before, logs)))
        if len(state.chains):
            state.parameters, self.weights = target, self._weights_of(target)
            self._follow(before)
        else:
            self._go_towards(target)
        if self.noisy and state.step >= (1.0 - AVERAGED) * last:
            state.sum_of_parameters, state.summed = state.sum_of_parameters + state.parameters, state.summed + 1
        if state.summed and state.step == last - 1:
            state.parameters = state.sum_of_parameters / state.summed
            self.weights = self._weights_of(state.parameters)

    def _go_towards(self, target: Floats) -> None:
        """Go a part of the way that makes the same rows more probable, or stay."""
        state, old = self.state, self.state.parameters
        before = self._penalised(self.weights)
        while state.pace >= LEAST_PACE:
            state.parameters = old + state.pace * (target - old)
            self.weights = self._weights_of(state.parameters)
            if self._penalised(self.weights) >= before:
                state.pace = min(1.0, 1.5 * state.pace)
                return
            state.pace *= 0.5
        state.parameters, state.pace = old, 2.0 * LEAST_PACE
        self.weights = self._weights_of(old)

    def _penalised(self, weights: MixedWeights) -> float:
        """Give the mean log-likelihood of the rows as they are completed now, less pull and priors."""
        rows, plain = self.rows, PlainModel(weights)
        partition = plain.log_partition + (0.0 if self.exact else self._draw(plain).log_ratio)
        sums = log_sums(weights, rows.codes, self.settings.n_jobs)
        away = 0.5 * PULL * (self._shares * (_logs(weights.table) - self.start) ** 2).sum()
        prior = log_prior_of_numbers(weights) + self._log_prior_of_pairs(weights)
        return float(rows.weights @ sums - away + prior) / self.total - partition

    def _log_prior_of_pairs(self, weights: MixedWeights) -> float:
        variances = weights.deviations**2
        squares = squared_residuals(self.pairs, weights.intercepts, weights.slopes)
        return -0.5 * float((self.pairs[0] * np.log(variances) + squares / variances).sum())

    def _climb(self) -> Floats:
        """Give logs of mixing weights that fit the expected counts of the rows better, by the partition of the plain model."""
        weights, pull, mask = self.weights, PULL / self.total, self.weights.mask
        first, data, shares = _logs(weights.table), self._sums[0] - self._correction, self._shares
        scale = np.sqrt(shares * (_tied(weights, self._sums[0]) + 2.0 * pull + SMALL))[mask]

        def moved(step: Floats) -> Floats:
            logs = first.copy()
            logs[mask] += step / scale
            return logs

        def loss(step: Floats) -> tuple[float, Floats]:
            logs = moved(step)
            plain, away = PlainModel(replace(weights, table=_table(weights, logs))), logs - self.start
            value = (data * logs).sum() - plain.log_partition - 0.5 * pull * (shares * away**2).sum()
            gradient = shares * (_tied(weights, data - plain.counts()) - pull * away)
            return -float(value), -gradient[mask] / scale

        bounds = Bounds(-FARTHEST * scale, FARTHEST * scale)
        found = minimize(
            loss, np.zeros(len(scale)), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": CLIMB}
        )
        return moved(found.x)

    def _by_chains(self) -> Floats:
        """Give the logs of the mixing weights after a step along the gradient, divided by the counts it is made of."""
        weights, data, model, pull = self.weights, self._sums[0], self._counts, PULL / self.total
        logs = _logs(weights.table)
        rate = RATE * min(1.0, 2.0 * (1.0 - self.state.step / self.settings.max_iter))
        gradient = _tied(weights, data - model) - pull * (logs - self.start)
        size = _tied(weights, data + model) + 2.0 * pull + SMALL
        found: Floats = logs + np.clip(rate * gradient / size, -FARTHEST, FARTHEST)
        return found

    def _weights_of(self, parameters: Floats) -> MixedWeights:
        logs, intercepts, slopes, deviations = parameters
        return with_numbers(
            replace(self.weights, table=_table(self.weights, logs)), intercepts, slopes, np.exp(deviations)
        )

    def _follow(self, before: MixedWeights) -> None:
        """Note the partition of the new weights: by the chains, from that of those before."""
        n_jobs = self.settings.n_jobs
        # not by those that the step was made from: their noise is in it
        others = self.state.chains[CHAINS // 2 :]
        gains = log_sums(self.weights, others, n_jobs) - log_sums(before, others, n_jobs)
        self.state.log_partition += float(logsumexp(gains) - np.log(len(gains)))

    def _score(self) -> float | None:
        """Give the mean log probability of held-out rows."""
        if self.validation is None:
            return None
        held_out = self.validation
        sums = log_sums(self.weights, held_out.codes, self.settings.n_jobs) - self.state.log_partition
        return float(held_out.weights @ sums / held_out.weights.sum())


def _less_model(weights: MixedWeights, data: Floats, model: Floats) -> Floats:
    """Give statistics of rows whose fit is where the gradient of rows and that of the model are the same.

    The gradient that the model has now is taken as constant. For a normal density with residuals r = y - a - b x and variance v it
    is made of the sums of r, of r x and of r^2 - v; for logits it is what the statistics hold already. The counts stay as they are.
    """
    c, cx, cxx, cy, cxy, _ = model
    a, b, v = weights.intercepts, weights.slopes, weights.deviations**2
    normal = weights.mask & weights.numeric
    of_r, of_rx = cy - a * c - b * cx, cxy - a * cx - b * cxx
    squares = squared_residuals(model, a, b)
    found = data.copy()
    found[3] -= np.where(normal, of_r, cy)
    found[4] -= np.where(normal, of_rx, cxy)
    found[5] -= np.where(normal, squares - v * c + 2.0 * (a * of_r + b * of_rx), 0.0)
    return found


def _parameters(weights: MixedWeights) -> Floats:
    """Give (4, S + 1, S): logs of mixing weights, intercepts, slopes, logs of deviations."""
    return np.stack([_logs(weights.table), weights.intercepts, weights.slopes, np.log(weights.deviations)])


def _table(weights: MixedWeights, logs: Floats) -> Floats:
    """Give the mixing weights with these logs."""
    return np.where(weights.mask, np.exp(logs), 0.0)


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
