"""Learning on the normalised likelihood: stochastic gradients with exact arc marginals for rows and for chains.

The gradient of the mean of log p(row) in the logs of the arc weights is the expected arc counts of the rows minus those of the
model. The first are exact for each row of a batch. The second come from chains that move on with the weights, each again with
its exact marginals, or from all rows there are where they can be enumerated. A pull towards the start, in stages weaker and weaker,
decides between smooth and sharp weights; held-out rows decide where to stop. Where they do, a stage of finer steps from the best
weights is tried, for the noise of steps may be the reason, as it is with very many rows; if it is clearly better, pulls go on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from ldfm.draws import anneal, fold, move
from ldfm.forests import expected_counts, log_sums
from ldfm.inference import Budget, ExactTables, Starts, find_queries, log_conditionals
from ldfm.inference.exact import MAX_STATES, log_evidence
from ldfm.learning.checkpoint import arrays_of_state, restore_state
from ldfm.learning.completion import CompletedRows
from ldfm.learning.history import History, Step
from ldfm.learning.pairwise import pair_means
from ldfm.progress import progress
from ldfm.tables import MISSING, MergedRows
from ldfm.types import Booleans, Codes, Floats, Integers
from ldfm.weights import ArcWeights

MAX_ENUMERATED = 1 << 12  # states up to which the model's counts are sums over all of them
STEPS, STEPS_ENUMERATED = 400, 100  # of a stage: counts that are sums have no noise, and fewer steps do
SCORED_ROWS = 300  # most rows whose conditional likelihood is computed for a record
SCORED_VALUES = 20_000  # most forest sums of a record: each value of each cell takes one
JUDGED_ROWS = 80  # held-out rows that decide between stages
_LAST_SWEEPS = 20  # under the weights that are kept
LONGEST = 0.1  # step of the log of an arc weight
_FORGET, _FORGET_SQUARES = 0.9, 0.99
_SMALL = 1e-4  # gradients below this make shorter steps


class Stage(NamedTuple):
    """A part of a fit.

    Attributes
    ----------
    pull
        Towards the start, in rows: what a squared distance of 1 in the log of an arc weight costs, twice. How strong the
        dependency of two variables is, the mean over their arcs, costs less by `FREE`.
    rate
        Length of steps, as a share of the longest.
    collapsed
        Steps after which each chain has made a sweep of collapsed Gibbs too, besides a blocked one a step; 0: never. Chains of
        sharper weights need it, and it is dear.
    """

    pull: float
    rate: float
    collapsed: int = 0


STAGES = (
    Stage(2.0, 1.0),
    Stage(0.6, 0.7, 4),
    Stage(0.2, 0.5, 4),
    Stage(0.06, 0.35, 4),
    Stage(0.02, 0.25, 4),
    Stage(0.005, 0.15, 4),
)
FINER = 0.03, 0.015  # rates of the first stage of finer steps and of all later ones
MORE_STAGES = 2  # than pulls, where held-out rows judge them
FREE = 0.02  # part of the pull that strengths feel


@dataclass(frozen=True)
class LikelihoodSettings:
    """How to learn.

    Attributes
    ----------
    max_iter
        Largest number of steps, all stages together. None: 3,200, or 800 where all states are enumerated; a quarter less without
        held-out rows, which alone can tell whether finer steps are better.
    batch
        Rows a step, and chains. None: 1,024 for up to 16 variables, 512 for more.
    check_every
        Steps between records of the history.
    n_jobs, verbose
        Threads (None: all cores) and progress (0: silent).
    """

    max_iter: int | None = None
    batch: int | None = None
    check_every: int = 50
    n_jobs: int | None = None
    verbose: int = 0


@dataclass
class FitState:
    """All that a fit needs to go on from where it is, but for the record and the draws of missing cells; no generators."""

    step: int
    log_table: Floats
    momentum: Floats
    squares: Floats
    sum_of_logs: Floats
    summed: int
    chains: Integers
    best_table: Floats
    best_scores: Floats
    best_draws: Integers
    seconds: float
    best_place: int = 0  # of the best stage among all
    coarse: int = len(STAGES)  # stages before steps became finer
    first_pull: int = 0  # of finer steps, by its place


class LikelihoodFit:
    """A fit, step by step.

    Parameters
    ----------
    rows, validation
        Merged rows to learn from, and held-out ones to choose by; both may have missing cells.
    start
        Weights to start from and to be pulled towards, all positive where an arc exists.
    settings
        How to learn.
    seed
        Whole number from which everything random is made.
    """

    def __init__(
        self,
        rows: MergedRows,
        start: ArcWeights,
        settings: LikelihoodSettings,
        seed: int,
        validation: MergedRows | None = None,
    ) -> None:
        self.settings, self.seed, self.validation = settings, seed, validation
        self.batch = settings.batch or (1024 if len(start.cardinalities) <= 16 else 512)
        self.cardinalities, self.mask = start.cardinalities, start.mask
        self.rows = CompletedRows(rows, start.cardinalities, (seed, 1))
        self.total = float(rows.weights.sum())
        held_out = rows.only(np.arange(0)) if validation is None else validation
        self.complete = held_out.only(np.flatnonzero((held_out.codes != MISSING).all(axis=1)))
        self.start = _logs_of(start)
        states = float(np.prod([float(k) for k in start.cardinalities]))
        self.all_codes = _all_codes(start.cardinalities) if states <= MAX_ENUMERATED else None
        self.most_stages = len(STAGES) + (0 if validation is None else MORE_STAGES)
        usual = self.most_stages * (STEPS if self.all_codes is None else STEPS_ENUMERATED)
        self.max_iter = usual if settings.max_iter is None else settings.max_iter
        self.history = History(reason=f"reached max_iter={self.max_iter}")
        zeros = np.zeros(self.start.shape)
        chains = np.zeros((0, len(start.cardinalities)), dtype=np.int64)
        self.state = FitState(
            0, self.start, zeros, zeros, zeros, 0, chains, self._table(self.start), np.empty(0), chains, 0.0
        )
        self._began = perf_counter()

    def arrays(self) -> dict[str, Any]:
        """Give what `resume` needs, as arrays."""
        return {**arrays_of_state(self.state), "completed": self.rows.codes}

    def resume(self, arrays: dict[str, Any], history: History) -> None:
        """Go on from where another run of the same fit was."""
        restore_state(self.state, arrays)
        self.rows.codes = arrays["completed"].copy()
        self.history = history

    def run(self, checkpoint: Callable[[], None] | None = None) -> tuple[ArcWeights, History, Integers]:
        """Learn; give weights in normalised form, the record, and draws of the model: the last states of the chains."""
        settings, state = self.settings, self.state
        self._began = perf_counter() - state.seconds
        if state.step == 0:
            self._find_chains()
        with progress("likelihood", self.max_iter, settings.verbose) as advance:
            advance(steps=state.step)
            while state.step < self.max_iter:
                self._step()
                state.step += 1
                note = ""
                if state.step % settings.check_every == 0 or state.step == self.max_iter:
                    note = f"{self._record():.4f} nats a row"
                if self._stage_ends() and not self._end_stage():
                    if not note:
                        self._record()
                    break
                state.seconds = perf_counter() - self._began
                if checkpoint and state.step % settings.check_every == 0:
                    checkpoint()
                advance(note)
        best = ArcWeights(state.best_table, self.cardinalities)
        return best.normalised(), self.history, state.best_draws

    def _find_chains(self) -> None:
        if self.all_codes is None:
            start = ArcWeights(self._table(self.start), self.cardinalities)
            found = anneal(start, self.batch, (self.seed, 2), self.settings.n_jobs, spread=0.5)
            self.state.chains = found.codes

    def _table(self, logs: Floats) -> Floats:
        return np.where(self.mask, np.exp(logs), 0.0)

    def _stage_length(self) -> int:
        return -(-self.max_iter // self.most_stages)

    def _stage(self, step: int) -> Stage:
        """Give the stage that a step belongs to."""
        place = step // self._stage_length()
        finer = place - self.state.coarse
        if finer < 0:
            return STAGES[place]
        return STAGES[min(self.state.first_pull + finer, len(STAGES) - 1)]._replace(rate=FINER[min(finer, 1)])

    def _stage_ends(self) -> bool:
        return self.state.step >= self.max_iter or self.state.step % self._stage_length() == 0

    def _step(self) -> None:
        state = self.state
        stage, length = self._stage(state.step), self._stage_length()
        steps = state.step % length
        weights = ArcWeights(self._table(state.log_table), self.cardinalities)
        data, model = self._data_counts(weights), self._model_counts(weights)
        gradient = data - model - self._pull_of(state.log_table, stage.pull / self.total)
        state.momentum = _FORGET * state.momentum + (1 - _FORGET) * gradient
        state.squares = _FORGET_SQUARES * state.squares + (1 - _FORGET_SQUARES) * gradient**2
        mean = state.momentum / (1 - _FORGET ** (state.step + 1))
        scale = np.sqrt(state.squares / (1 - _FORGET_SQUARES ** (state.step + 1))) + _SMALL
        rate = LONGEST * stage.rate * min(1.0, 2.0 * (1.0 - steps / length))
        state.log_table = np.where(self.mask, state.log_table + rate * mean / scale, 0.0)
        if steps >= length // 2:
            state.sum_of_logs = state.sum_of_logs + state.log_table
            state.summed += 1

    def _pull_of(self, logs: Floats, pull: float) -> Floats:
        """Give the gradient of what it costs to be away from the start."""
        away = logs - self.start
        return pull * (away - (1.0 - FREE) * pair_means(away, self.cardinalities))

    def _data_counts(self, weights: ArcWeights) -> Floats:
        """Give the mean expected arc counts of a batch of rows, drawn in proportion to their weights."""
        rows, size, n_jobs = self.rows, self.batch, self.settings.n_jobs
        if len(rows.codes) <= size:
            rows.redraw(weights, self.state.step, 1, n_jobs)
            return expected_counts(weights, rows.codes, rows.weights / self.total, n_jobs).arcs
        generator = np.random.default_rng([self.seed, 3, self.state.step])
        order = generator.permutation(len(rows.codes))
        reached = np.cumsum(rows.weights[order])
        points = (np.arange(size) + generator.random()) * (reached[-1] / size)
        chosen = order[np.minimum(np.searchsorted(reached, points, side="right"), len(order) - 1)]
        rows.redraw(weights, self.state.step, 1, n_jobs, np.unique(chosen))
        return expected_counts(weights, rows.codes[chosen], np.full(size, 1.0 / size), n_jobs).arcs

    def _model_counts(self, weights: ArcWeights) -> Floats:
        """Give the mean expected arc counts of the model, over all rows there are or over the chains, moved on by a sweep."""
        state, n_jobs = self.state, self.settings.n_jobs
        if self.all_codes is not None:
            logs = log_sums(weights, self.all_codes, n_jobs)
            return expected_counts(weights, self.all_codes, np.exp(logs - logsumexp(logs)), n_jobs).arcs
        self._move(weights, self._stage(state.step).collapsed)
        return expected_counts(weights, state.chains, np.full(len(state.chains), 1.0 / len(state.chains)), n_jobs).arcs

    def _move(self, weights: ArcWeights, collapsed: int = 0) -> None:
        """Move the chains on by a blocked sweep, and some of them by a collapsed one."""
        codes, step = self.state.chains, self.state.step
        free = np.full(codes.shape, -1, dtype=np.int64)
        some = range(step % collapsed, len(codes), collapsed) if collapsed else ()
        move(fold(weights), free, codes, free.copy(), 1, (self.seed, 4, step), self.settings.n_jobs, some)

    def _record(self) -> float:
        """Note where the fit is; give the objective: the mean conditional log-likelihood of training rows."""
        state = self.state
        weights = ArcWeights(self._table(state.log_table), self.cardinalities)
        before = state.chains.copy()
        if self.all_codes is None:
            self._move(weights)
        moved = float((before != state.chains).mean()) if len(before) else None
        objective, score = self._score(weights, self.rows.codes, self.rows.weights), None
        if len(self.complete.codes):
            score = self._score(weights, self.complete.codes, self.complete.weights)
        self.history.steps.append(Step(state.step, objective, score, perf_counter() - self._began, moved))
        return objective

    def _score(self, weights: ArcWeights, codes: Codes, row_weights: Floats) -> float:
        """Give the mean conditional log-likelihood of at most so many rows, always the same."""
        most = min(SCORED_ROWS, SCORED_VALUES // sum(self.cardinalities) + 1)
        chosen = np.random.default_rng([self.seed, 5]).permutation(len(codes))[:most]
        logs = conditional_logs(weights, codes[chosen], self.settings.n_jobs)
        return float(row_weights[chosen] @ logs / row_weights[chosen].sum())

    def _end_stage(self) -> bool:
        """Judge the average weights of the last half of a stage; give whether another one is worth trying."""
        state = self.state
        # a last pull cut short by max_iter may not have come to its second half
        table = self._table(state.sum_of_logs / state.summed if state.summed else state.log_table)
        weights = ArcWeights(table, self.cardinalities)
        draws = state.chains.copy()
        free = np.full(draws.shape, -1, dtype=np.int64)
        move(fold(weights), free, draws, free.copy(), _LAST_SWEEPS, (self.seed, 6, state.step), self.settings.n_jobs)
        scores = np.full(1, float(state.step))  # without held-out rows the last is taken
        if self.validation is not None:
            scores = self._held_out_scores(weights, draws, self.validation)
        gains = scores - state.best_scores if len(state.best_scores) else np.ones(1)
        if gains.mean() > 0:
            state.best_table, state.best_scores, state.best_draws = table, scores, draws
            state.best_place = self._place()
        go_on = self._goes_on(float(gains.mean()), float(gains.std() / np.sqrt(len(gains))))
        state.sum_of_logs, state.summed = np.zeros(table.shape), 0
        return go_on

    def _goes_on(self, gain: float, noise: float) -> bool:
        """Decide whether a stage follows one that made held-out rows more probable than all before by `gain`."""
        state = self.state
        place, stage = self._place(), self._stage(state.step - 1)
        less = not gain > -2.0 * noise  # the best is kept: to go on costs time only
        if place < state.coarse:
            if less or (place + 1 == len(STAGES) and self.validation is not None):
                state.coarse, state.first_pull = place + 1, state.best_place
                self._return_to_best()
            return True
        reason = None
        if place == state.coarse and gain <= 2.0 * noise:
            reason = "finer steps made held-out rows not clearly more probable"
        elif less:
            reason = f"a pull of {stage.pull} rows made held-out rows less probable"
        if reason:
            self.history.converged, self.history.reason = True, reason
        return reason is None

    def _place(self) -> int:
        """Give the place among all of the stage that the last step belonged to."""
        return (self.state.step - 1) // self._stage_length()

    def _return_to_best(self) -> None:
        state = self.state
        state.log_table = np.log(np.where(self.mask, state.best_table, 1.0))
        state.momentum = np.zeros(state.log_table.shape)
        state.chains = state.best_draws.copy()

    def _held_out_scores(self, weights: ArcWeights, draws: Integers, held_out: MergedRows) -> Floats:
        """Give log p of held-out rows; where it has no exact value, that of two fifths of the known cells of some given a third.

        The same rows, cells and random numbers are asked of every stage, so that scores can be compared. Rows count as often as
        their weight says.
        """
        n_jobs = self.settings.n_jobs
        tables = ExactTables(weights, n_jobs)
        if np.prod([float(k) for k in self.cardinalities]) <= MAX_STATES:
            partition = tables.log_partition()  # first: the rows are then looked up in its table
            scores = log_evidence(tables, held_out) - partition
            return np.asarray(scores * held_out.weights / held_out.weights.mean())
        generator = np.random.default_rng([self.seed, 7])
        n = held_out.codes.shape[1]
        chosen = generator.permutation(len(held_out.codes))[:JUDGED_ROWS]
        places = generator.permuted(np.tile(np.arange(n), (len(chosen), 1)), axis=1)
        asked, given = divide_known(held_out.codes[chosen] != MISSING, places)
        found = find_queries(
            tables,
            held_out.only(chosen)._replace(codes=np.where(asked | given, held_out.codes[chosen], MISSING)),
            asked,
            "tree",  # takes half as long as Gibbs sweeps, and is as noisy
            Budget(max_sweeps=1),
            np.random.SeedSequence([self.seed, 7]),
            lambda: Starts(draws, self.cardinalities),
        )
        return np.asarray(found.joint * held_out.weights[chosen] / held_out.weights[chosen].mean())


def _logs_of(weights: ArcWeights) -> Floats:
    """Give the logs of arc weights, stop weights in them, 0 where there is no arc."""
    table, _ = weights.balanced(weights.folded)
    logs: Floats = np.log(np.where(weights.mask, table, 1.0))
    return logs


def divide_known(known: Booleans, places: Integers) -> tuple[Booleans, Booleans]:
    """Give which known cells (rows, n) are asked, two fifths, and which are given, a third, by their order in `places`."""
    order = np.where(known, places, known.shape[1] + places).argsort(axis=1).argsort(axis=1)
    count = known.sum(axis=1, keepdims=True)
    return order < np.maximum(1, 2 * count // 5), (order >= count - count // 3) & known


def conditional_logs(weights: ArcWeights, codes: Codes, n_jobs: int | None = 1) -> Floats:
    """Give for each complete row the sum over its cells of log p(cell | all other cells of the row); needs no partition."""
    found = np.zeros(len(codes))
    for i, logs in enumerate(log_conditionals(weights, codes, n_jobs)):
        found += logs[np.arange(len(codes)), codes[:, i]]
    return found


def _all_codes(cardinalities: tuple[int, ...]) -> Integers:
    """Give all rows there are."""
    return np.stack(np.unravel_index(np.arange(int(np.prod(cardinalities))), cardinalities), axis=1).astype(np.int64)
