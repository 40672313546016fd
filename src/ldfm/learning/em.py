"""Expectation maximisation of the probability of generating the rows (the paper's learning)."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from scipy.special import xlogy

from ldfm.forests import Counts, Weights, expected_counts, log_sums
from ldfm.learning.completion import CompletedRows
from ldfm.learning.history import History, Step
from ldfm.learning.mixed_em import MixedSteps
from ldfm.learning.priors import NoPrior, Prior
from ldfm.mixed_weights import MixedWeights
from ldfm.progress import progress
from ldfm.tables import MergedRows
from ldfm.types import Booleans, Floats, Rows
from ldfm.weights import ArcWeights

AnyWeights = TypeVar("AnyWeights", ArcWeights, MixedWeights)
_SWEEPS = 2  # of the chains of missing cells before each iteration


@dataclass(frozen=True)
class EMSettings:
    """How long to run.

    Attributes
    ----------
    max_iter
        Largest number of M-steps.
    tol
        Stop when the objective, in nats a row, rises by less than this.
    patience
        With validation rows: stop after so many iterations without a better validation score, and go back to the best weights.
    n_jobs, verbose
        Threads (None: all cores) and progress (0: silent).
    """

    max_iter: int = 200
    tol: float = 1e-5
    patience: int = 5
    n_jobs: int | None = None
    verbose: int = 0


class EMState(NamedTuple, Generic[AnyWeights]):
    """All that EM needs to go on from an iteration.

    Attributes
    ----------
    weights, best
        The weights of the iteration, and those that held-out rows liked best up to it.
    codes
        Rows as the iteration has them, missing cells holding draws.
    history
        The record, with the iteration as its last step.
    """

    weights: AnyWeights
    best: AnyWeights
    codes: Rows
    history: History


def value_counts(rows: MergedRows | CompletedRows, weights: ArcWeights) -> Floats:
    """Give (S + 1,): how often the root and each value stop: once in every row they are in."""
    counts = np.empty(len(weights.root) + 1)
    counts[0] = rows.weights.sum()
    for i, (low, high) in enumerate(zip(weights.offsets[:-1], weights.offsets[1:], strict=True)):
        counts[1 + low : 1 + high] = np.bincount(rows.codes[:, i], weights=rows.weights, minlength=high - low)
    return counts


def _outcomes(weights: ArcWeights) -> Booleans:
    """Give which outcomes each row of the weight table has: its arcs and, in an LDFM-S, to stop (last column)."""
    stops = np.full((len(weights.mask), 1), weights.stop is not None)
    return np.hstack([weights.mask, stops])


def _as_rows(weights: ArcWeights) -> Floats:
    """Put arc and stop weights together, one distribution a row."""
    stop = np.zeros(len(weights.table)) if weights.stop is None else weights.stop
    return np.hstack([weights.table, stop[:, None]])


def maximise(weights: ArcWeights, arc_counts: Floats, stop_counts: Floats, prior: Prior) -> ArcWeights:
    """Give the weights that maximise the expected log probability plus log prior (M-step)."""
    counts = np.hstack([arc_counts, stop_counts[:, None]])
    modes = prior.modes(counts, _outcomes(weights))
    # where counts and prior leave a parent's distribution open it keeps the one it has
    rows = np.where(np.isnan(modes), _as_rows(weights), modes)
    return ArcWeights(rows[:, :-1], weights.cardinalities, None if weights.stop is None else rows[:, -1])


class DiscreteSteps:
    """EM on rows of codes."""

    def complete(self, rows: MergedRows, start: ArcWeights, key: tuple[int, ...]) -> CompletedRows:
        """Give the rows with draws in their missing cells."""
        return CompletedRows(rows, start.cardinalities, key)

    def expect(self, weights: ArcWeights, rows: CompletedRows, n_jobs: int | None) -> Counts:
        """Give the expected counts of completed rows."""
        return expected_counts(weights, rows.codes, rows.weights, n_jobs)

    def log_probability(self, weights: ArcWeights, found: Counts, rows: CompletedRows) -> float:
        """Give the log probability of generating all rows."""
        if weights.stop is None:
            return found.log_sum
        return found.log_sum + float(xlogy(value_counts(rows, weights), weights.stop).sum())

    def log_prior(self, weights: ArcWeights, prior: Prior) -> float:
        """Give the log prior of all weights, up to a constant."""
        return prior.log_density(_as_rows(weights), _outcomes(weights))

    def maximise(self, weights: ArcWeights, found: Counts, rows: CompletedRows, prior: Prior) -> ArcWeights:
        """Give the weights of the next iteration."""
        return maximise(weights, found.arcs, value_counts(rows, weights), prior)


def fit_generation(
    rows: MergedRows,
    start: AnyWeights,
    prior: Prior | None = None,
    settings: EMSettings | None = None,
    validation: MergedRows | None = None,
    observe: Callable[[EMState[AnyWeights]], None] | None = None,
    resumed: EMState[AnyWeights] | None = None,
    seed: int = 0,
) -> tuple[AnyWeights, History]:
    """Fit weights to rows by EM. The objective never falls where all rows are complete.

    Missing cells hold draws, redrawn before every iteration; the objective is then that of the completed rows.

    Parameters
    ----------
    rows, validation
        Merged rows to learn from, and held-out ones to stop by.
    start
        Where to start; its variant is the variant that is fitted.
    prior
        None for maximum likelihood.
    observe
        Called with the state of every iteration.
    resumed
        A state that the same fit was observed in, to go on from there.
    seed
        Of the draws of missing cells.

    Returns
    -------
    tuple[ArcWeights or MixedWeights, History]
        Weights, and a record whose objective is the mean of log p(row) plus the log prior divided by the number of rows.
    """
    prior = prior or NoPrior()
    settings = settings or EMSettings()
    total = rows.weights.sum()
    steps: Any = MixedSteps() if isinstance(start, MixedWeights) else DiscreteSteps()
    completed = steps.complete(rows, start, (seed, 1))
    history = History(reason=f"reached max_iter={settings.max_iter}")
    weights = best = start
    if resumed:
        weights, best, completed.codes = resumed.weights, resumed.best, resumed.codes
        history.steps = resumed.history.steps[:-1]  # the iteration is done again
    else:
        completed.redraw(weights, 0, _SWEEPS, settings.n_jobs)
    began = perf_counter() - (history.steps[-1].seconds if history.steps else 0.0)
    with progress("EM", settings.max_iter, settings.verbose) as advance:
        for iteration in range(len(history), settings.max_iter + 1):
            counts = steps.expect(weights, completed, settings.n_jobs)
            objective = steps.log_probability(weights, counts, completed)
            objective = (objective + steps.log_prior(weights, prior)) / total
            score = None if validation is None else _validation_score(weights, validation, settings.n_jobs)
            if score is not None and score > max(history.validation, default=-np.inf):
                best = weights
            history.steps.append(Step(iteration, float(objective), score, perf_counter() - began))
            if observe:
                observe(EMState(weights, best, completed.codes, history))
            if _has_stopped(history, settings, noisy=len(completed.open_rows) > 0):
                break
            if iteration < settings.max_iter:
                weights = steps.maximise(weights, counts, completed, prior)
                completed.redraw(weights, iteration + 1, _SWEEPS, settings.n_jobs)
                advance(f"{objective:.5f} nats a row")
    return (weights if validation is None else best), history


def _validation_score(weights: Weights, rows: MergedRows, n_jobs: int | None) -> float:
    """Give the mean log probability of generating a held-out row."""
    sums = log_sums(weights, rows.codes, n_jobs)
    counted = rows.weights > 0
    return float(rows.weights[counted] @ sums[counted] / rows.weights.sum())


def _has_stopped(history: History, settings: EMSettings, *, noisy: bool) -> bool:
    """Say whether the fit is done, and note why; an objective with draws in it goes up and down and does not tell."""
    objective, scores = history.objective, history.validation
    if not noisy and len(objective) > 1 and -np.inf < objective[-2] and objective[-1] - objective[-2] < settings.tol:
        history.converged, history.reason = True, f"objective rose by less than tol={settings.tol:g}"
    elif len(scores) - 1 - _last_best(scores) >= settings.patience:
        history.converged, history.reason = True, f"no better validation score in {settings.patience} iterations"
    return history.converged


def _last_best(scores: Floats) -> int:
    """Give the place of the best score; the last place where there are no scores."""
    if np.isnan(scores).all():
        return len(scores) - 1
    return int(np.nanargmax(scores))
