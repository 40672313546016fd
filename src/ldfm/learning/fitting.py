"""One way to learn from merged rows, whatever the objective, with checkpoints."""

from dataclasses import dataclass, replace
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ldfm import mixed_draws
from ldfm.draws import anneal, prolong
from ldfm.forests import Weights, log_sums
from ldfm.learning.checkpoint import Arrays, read_checkpoint, write_checkpoint
from ldfm.learning.em import AnyWeights, EMSettings, EMState, fit_generation
from ldfm.learning.history import History
from ldfm.learning.likelihood import FINER, STAGES, LikelihoodFit, LikelihoodSettings
from ldfm.learning.mixed_em import first_weights
from ldfm.learning.mixed_likelihood import MixedLikelihoodFit, MixedLikelihoodSettings
from ldfm.learning.pairwise import pairwise_weights
from ldfm.learning.priors import Prior
from ldfm.mixed_weights import MixedWeights
from ldfm.relations import Relations
from ldfm.tables import MergedRows, Schema, merge_rows, missing_cells
from ldfm.types import Floats, Integers, Rows
from ldfm.weights import ArcWeights, Variant

Objective = Literal["generation", "likelihood"]
KEPT_DRAWS = 4096  # draws of the model kept with it, to start chains from
_ENUMERATED = 1 << 14  # states up to which draws are made from the table of all
_ARRAYS = ("table", "stop", "intercepts", "slopes", "deviations")
_ANNEALED = 512  # chains that are annealed for draws
_START = EMSettings(max_iter=20, tol=0.0)


@dataclass(frozen=True)
class FitSettings:
    """How to learn.

    Attributes
    ----------
    objective
        "generation" or "likelihood".
    prior
        Of the weights; learning on the likelihood starts from EM with it, or from what pairs of columns give where it is None.
    max_iter, tol
        As in the estimator; `max_iter` None: 200 iterations of EM, 3,200 steps, or 800 where all states are enumerated; a quarter
        less without held-out rows.
    seed
        Whole number from which everything random is made.
    checkpoint
        File to keep the state of the fit in, and to go on from. That of another fit is refused, or replaced where the fit goes on
        from the weights of an earlier one.
    n_jobs, verbose
        Threads and progress.
    """

    objective: Objective = "likelihood"
    prior: Prior | None = None
    max_iter: int | None = None
    tol: float = 1e-5
    seed: int = 0
    checkpoint: Path | None = None
    n_jobs: int | None = None
    verbose: int = 0


class Fitted(NamedTuple):
    """What learning gives: weights, a record, and draws of the model (draws, n) to start chains from; EM makes none."""

    weights: Any  # ArcWeights or MixedWeights, as what learning started from
    history: History
    draws: Rows | None


def hold_out(
    codes: Rows, row_weights: Floats | None, fraction: float | None, objective: Objective, seed: int
) -> tuple[MergedRows, MergedRows | None]:
    """Give rows to learn from, and others held out to stop by.

    Those are complete rows, but for the likelihood of discrete tables any with two known cells: one can be asked given the other.
    `fraction` is a share of all rows, at most all that can be held out; None: none for EM, for the likelihood a tenth of those
    that can, up to 1,000, but none of mixed tables, whose priors have been enough.
    """
    by_cells = objective == "likelihood" and codes.dtype.kind != "f"
    if fraction is None and not by_cells:
        return merge_rows(codes, row_weights), None
    rows = len(codes)
    usable = (~missing_cells(codes)).sum(axis=1) >= (min(2, codes.shape[1]) if by_cells else codes.shape[1])
    candidates = np.flatnonzero(usable if row_weights is None else usable & (row_weights > 0))
    if fraction is None:
        held = min(len(candidates) // 10, 1000) if len(candidates) >= 100 else 0
    else:
        held = max(1, round(rows * fraction))
        if held >= rows:
            raise ValueError(f"validation_fraction {fraction} of {rows} rows leaves none to learn from")
        if not len(candidates):
            kind = "rows of positive weight with two known cells" if by_cells else "complete rows of positive weight"
            raise ValueError(f"validation_fraction holds out {kind}, and the table has none")
    if held == 0:
        return merge_rows(codes, row_weights), None
    rest = np.random.default_rng([seed, 9]).permutation(candidates)[:held]
    train = np.ones(rows, dtype=bool)
    train[rest] = False
    if row_weights is None:
        return merge_rows(codes[train]), merge_rows(codes[rest])
    return merge_rows(codes[train], row_weights[train]), merge_rows(codes[rest], row_weights[rest])


def uniform_weights(schema: Schema, variant: Variant, relations: Relations | None = None) -> Weights:
    """Give the weights that learning starts from."""
    if schema.is_mixed:
        return replace(MixedWeights.uniform(schema.cardinalities, schema.continuous, variant), relations=relations)
    return ArcWeights.uniform(schema.cardinalities, variant)


def learn(
    rows: MergedRows,
    start: Weights | None,
    uniform: Weights,
    settings: FitSettings,
    validation: MergedRows | None,
) -> Fitted:
    """Learn weights.

    Parameters
    ----------
    rows, validation
        Rows to learn from, which may have missing cells, and held-out ones as `hold_out` gives them.
    start
        Weights of an earlier fit to start from, or None.
    uniform
        Weights to start from else; its variant is the one that is learned.
    """
    if isinstance(uniform, MixedWeights):
        return _learn_mixed(rows, start, uniform, settings, validation)
    if isinstance(start, MixedWeights):
        raise TypeError("weights of a mixed model cannot start a discrete one")
    if settings.objective == "generation":
        return Fitted(*_learn_generation(rows, start, uniform, settings, validation), None)
    weights, history, chains = _learn_likelihood(rows, start, uniform, settings, validation)
    return Fitted(weights, history, draw_from(weights, settings.seed, settings.n_jobs, chains))


def _learn_mixed(
    rows: MergedRows, start: Weights | None, uniform: MixedWeights, settings: FitSettings, validation: MergedRows | None
) -> Fitted:
    going_on = start if isinstance(start, MixedWeights) else None
    first = first_weights(rows, uniform) if going_on is None else uniform
    if settings.objective == "generation":
        return Fitted(*_learn_generation(rows, going_on, first, settings, validation), None)
    steps = MixedLikelihoodSettings(n_jobs=settings.n_jobs, verbose=settings.verbose)
    if settings.max_iter is not None:
        steps = replace(steps, max_iter=settings.max_iter)
    fit = MixedLikelihoodFit(rows, going_on or first, steps, settings.seed, validation)
    return Fitted(*_run(fit, rows, going_on or first, settings, validation, going_on=going_on is not None))


def _learn_generation(
    rows: MergedRows,
    start: AnyWeights | None,
    uniform: AnyWeights,
    settings: FitSettings,
    validation: MergedRows | None,
) -> tuple[AnyWeights, History]:
    em = EMSettings(
        200 if settings.max_iter is None else settings.max_iter,
        settings.tol,
        n_jobs=settings.n_jobs,
        verbose=settings.verbose,
    )
    first, path = start or uniform, settings.checkpoint
    if path is None:
        return fit_generation(rows, first, settings.prior, em, validation, seed=settings.seed)
    fingerprint = _fingerprint(rows, first, settings, validation)
    found = read_checkpoint(path, fingerprint, going_on=start is not None)
    resumed = _em_state(*found, first) if found else None

    def keep(state: EMState[AnyWeights]) -> None:
        write_checkpoint(path, fingerprint, _em_arrays(state), state.history.to_json())

    return fit_generation(rows, first, settings.prior, em, validation, keep, resumed, settings.seed)


def _arrays_of(weights: Weights) -> Arrays:
    """Give all arrays of weights by their names."""
    return {name: value for name, value in vars(weights).items() if isinstance(value, np.ndarray) and name in _ARRAYS}


def _em_arrays(state: EMState[AnyWeights]) -> Arrays:
    """Give a state of EM as arrays, but for its record."""
    arrays: Arrays = {"completed": state.codes}
    for kind, weights in (("last", state.weights), ("best", state.best)):
        arrays |= {f"{kind}_{name}": array for name, array in _arrays_of(weights).items()}
    return arrays


def _em_state(arrays: Arrays, record: dict[str, Any], like: AnyWeights) -> EMState[AnyWeights]:
    """Give the state that `_em_arrays` and a record were made of."""
    names = _arrays_of(like)
    kept: list[dict[str, Any]] = [{name: arrays[f"{kind}_{name}"] for name in names} for kind in ("last", "best")]
    last, best = replace(like, **kept[0]), replace(like, **kept[1])
    return EMState(last, best, arrays["completed"].copy(), History.from_json(record))


def _learn_likelihood(
    rows: MergedRows,
    start: ArcWeights | None,
    uniform: ArcWeights,
    settings: FitSettings,
    validation: MergedRows | None,
) -> tuple[ArcWeights, History, Integers]:
    if start is not None:
        first = _positive(start)
    elif settings.prior is not None:
        em = replace(_START, n_jobs=settings.n_jobs)
        first = _positive(fit_generation(rows, uniform, settings.prior, em, seed=settings.seed)[0])
    else:
        first = pairwise_weights(rows, uniform.cardinalities)
    steps = LikelihoodSettings(settings.max_iter, n_jobs=settings.n_jobs, verbose=settings.verbose)
    fit = LikelihoodFit(rows, first, steps, settings.seed, validation)
    found: tuple[ArcWeights, History, Integers] = _run(
        fit, rows, first, settings, validation, going_on=start is not None
    )
    return found


def _run(
    fit: LikelihoodFit | MixedLikelihoodFit,
    rows: MergedRows,
    first: Weights,
    settings: FitSettings,
    validation: MergedRows | None,
    *,
    going_on: bool,
) -> Any:
    """Run a fit on the likelihood, from its checkpoint where there is one."""
    path = settings.checkpoint
    if path is None:
        return fit.run()
    fingerprint = _fingerprint(rows, first, settings, validation)
    found = read_checkpoint(path, fingerprint, going_on=going_on)
    if found:
        fit.resume(found[0], History.from_json(found[1]))

    def keep() -> None:
        write_checkpoint(path, fingerprint, fit.arrays(), fit.history.to_json())

    return fit.run(keep)


def _positive(weights: ArcWeights) -> ArcWeights:
    """Raise weights of 0, from which no gradient leads away, to a small part of the least positive one of their child."""
    if (weights.table[weights.mask] > 0).all():
        return weights
    least = np.min(np.where(weights.table > 0, weights.table, np.inf), axis=0)
    least = np.where(np.isfinite(least), least, 1.0)
    table = np.where(weights.mask & (weights.table <= 0), 1e-3 * least, weights.table)
    return ArcWeights(table, weights.cardinalities, weights.stop)


def _fingerprint(rows: MergedRows, start: Weights, settings: FitSettings, validation: MergedRows | None) -> str:
    """Tell fits apart by their rows, start and settings."""
    digest = sha256()
    arrays = list(_arrays_of(start).values())
    if isinstance(start, MixedWeights) and start.relations is not None:
        arrays += start.relations.arrays().values()
    for part in (rows, *([] if validation is None else [validation])):
        arrays += [part.codes if part.codes.dtype.kind == "f" else part.codes.astype(np.int64), part.weights]
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(repr((settings.objective, settings.prior, settings.max_iter, settings.tol, settings.seed)).encode())
    digest.update(repr((STAGES, FINER)).encode())  # a fit by another schedule is another fit
    return digest.hexdigest()


def draw_from(weights: Weights, seed: int, n_jobs: int | None = 1, chains: Integers | None = None) -> Rows:
    """Give draws of a model: from the table of all rows where that is small, else from chains.

    `chains` are draws that there are already; without any, annealing makes them.
    """
    if isinstance(weights, MixedWeights):
        count = KEPT_DRAWS if all(weights.continuous) else _ANNEALED
        return mixed_draws.draw_from(weights, count, (seed, 8), n_jobs)
    cardinalities = weights.cardinalities
    if prod(cardinalities) <= _ENUMERATED:
        codes = np.stack(np.unravel_index(np.arange(prod(cardinalities)), cardinalities), axis=1).astype(np.int64)
        logs = log_sums(weights, codes, n_jobs)
        if logs.max() == -np.inf:
            return codes[:1]
        shares = np.exp(logs - logs.max())
        generator = np.random.default_rng([seed, 8])
        drawn: Integers = codes[generator.choice(len(codes), size=KEPT_DRAWS, p=shares / shares.sum())]
        return drawn
    if chains is None or not len(chains):
        chains = anneal(weights, _ANNEALED, (seed, 8), n_jobs, spread=0.7).codes
    return prolong(weights, chains, KEPT_DRAWS, (seed, 10), n_jobs)
