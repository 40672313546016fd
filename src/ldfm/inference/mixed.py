"""Answers from a mixed model: by enumeration where all unknown cells are discrete and few, else from chains.

Functions have the shapes of those for discrete models: see `marginals`, `queries` and `completion`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from ldfm.draws import resample
from ldfm.forests import log_sums, marginals_of_arcs
from ldfm.inference import exact
from ldfm.inference.answers import Diagnostics, Method, Numbers, QueryResult
from ldfm.inference.budget import Budget, Meter
from ldfm.inference.diagnostics import effective_draws, r_hat, standard_error
from ldfm.kernels.elimination import schedule_of
from ldfm.kernels.forest_draws import NO_FOREST
from ldfm.kernels.mixed_states import clamp_cells_of, climb_cells, fill_conditionals
from ldfm.kernels.mixed_sweeps import BLOCKED, BOTH, GIBBS, TREE, draw_forests_of, mixed_sweeps, sweep_rows
from ldfm.mixed_weights import MixedWeights
from ldfm.parallel import map_in_order, stop_if_unwanted
from ldfm.progress import progress
from ldfm.tables import Bend, MergedRows, merge_rows, missing_cells, only_cells
from ldfm.types import Booleans, Floats, Integers

KERNEL_OF = {"auto": BOTH, "blocked": BLOCKED, "tree": TREE, "gibbs": GIBBS}
CHAINS, RECORDS, FIRST_ROUND = 16, 20, 40
KEPT = 16  # normal densities kept a chain, of the conditional distributions met on the way
TARGET = 0.01  # standard error of a probability; of a mean, in units of the posterior's own deviation, five times that
MEAN_TARGET = 5.0
FEWEST_DRAWS, LARGEST_R_HAT = 100.0, 1.05
GROUPS, STATES, PARENTS_OF_STATES = 8, 32, 4  # populations of clamping, their states, and the chains these come from
WARM_UP, APART, SWEEPS = 60, 4, 2  # sweeps of those chains, between two states of one, and after each clamp
JOINT_TARGET = 0.1  # nats
AVERAGED, CLIMBS = 200, 16
_TWO_SIGMA = 0.97725


class MixedStarts:
    """States to start chains from: draws of the model, those first that agree best with what is known of a row.

    Parameters
    ----------
    draws
        (draws, n) cells.
    continuous
        Which variables are.
    """

    def __init__(self, draws: Floats, continuous: tuple[bool, ...]) -> None:
        self.draws = draws
        self._continuous = np.array(continuous)

    def choose(self, known: Floats, count: int, generator: np.random.Generator) -> Floats:
        """Give (count, n): draws near the known cells, with the known cells put in."""
        order = generator.permutation(len(self.draws))
        given = np.flatnonzero(~np.isnan(known))
        apart = np.abs(self.draws[order][:, given] - known[given])
        distance = np.where(self._continuous[given], np.minimum(apart, 3.0), 2.0 * (apart > 0)).sum(axis=1)
        best = order[np.argsort(distance, kind="stable")[:count]]
        cells = self.draws[np.resize(generator.permutation(best), count)].copy()
        cells[:, given] = known[given]
        return cells


StartsOf = Callable[[], MixedStarts]
Bends = tuple[Bend | None, ...]


class MixedModelOfRows(NamedTuple):
    """What answers are found with.

    Attributes
    ----------
    weights
        The model.
    tables
        Enumerates unknown values.
    starts
        Gives states to start chains from.
    n_jobs
        Threads.
    bends
        How the scales of variables are bent, for posterior means.
    """

    weights: MixedWeights
    tables: exact.ExactTables
    starts: StartsOf
    n_jobs: int | None
    bends: Bends


def _is_enumerable(weights: MixedWeights, rows: MergedRows, method: Method) -> Booleans:
    """Say which rows are answered by enumeration."""
    states = np.array([float(exact.count_states(weights, row)) for row in missing_cells(rows.codes)])
    return states <= exact.MAX_STATES if method == "auto" else np.full(len(states), method == "exact")


def start_states(
    weights: MixedWeights, known: Floats, count: int, generator: np.random.Generator, row: int, starts: MixedStarts
) -> tuple[Floats, Integers]:
    """Give cells and forests (count, n) of positive probability that have the known cells."""
    cells = starts.choose(known, count, generator)
    parents = np.empty(cells.shape, dtype=np.int64)
    draw_forests_of(weights.model, cells, schedule_of(len(known), 1), generator, parents)
    lost = parents[:, 0] == NO_FOREST
    if lost.all():
        raise exact.ImpossibleEvidenceError(
            f"row {row}: no completion of its known cells with positive probability was found"
        )
    kept = np.resize(np.flatnonzero(~lost), int(lost.sum()))
    cells[lost], parents[lost] = cells[kept], parents[kept]
    return cells, parents


class _Sampled(NamedTuple):
    """Marginals of one row from chains."""

    shares: Floats  # (n, most values)
    share_errors: Floats
    means: Floats  # (n,), as are errors and deviations; of shares, not of cells, where scales are bent
    mean_errors: Floats
    deviations: Floats
    normals: Floats  # (kept, n, 2)
    effective: float
    r_hat: float
    largest: float  # standard error, that of means in units in which the target is the same as for probabilities
    sweeps: int = 0
    met: bool = False


def sample_marginals(
    model: MixedModelOfRows, known: Floats, kernel: int, budget: Budget, seed: np.random.SeedSequence, row: int
) -> _Sampled:
    """Run chains until the marginals of all missing cells meet the target, or the budget is used up; rounds as for values."""
    meter, weights = Meter(budget), model.weights
    target = TARGET if budget.target_se is None else budget.target_se
    generator, schedule = np.random.default_rng(seed), schedule_of(len(known), 1)
    cells, parents = start_states(weights, known, CHAINS, generator, row, model.starts())
    tiled = np.tile(known, (CHAINS, 1))
    sweep_rows(weights.model, tiled, cells, parents, kernel, FIRST_ROUND, schedule, generator)
    sweeps, meter.sweeps = FIRST_ROUND, CHAINS * FIRST_ROUND
    while True:
        shares = np.zeros((CHAINS, RECORDS, len(known), weights.model.most))
        normals = np.zeros((CHAINS, sweeps, len(known), 2))
        for chain in range(CHAINS):
            stop_if_unwanted()
            state, records = (cells[chain], parents[chain]), (shares[chain], normals[chain])
            mixed_sweeps(weights.model, known, *state, kernel, sweeps, schedule, generator, *records)
        meter.sweeps += CHAINS * sweeps
        found = _summary(np.isnan(known), shares * (RECORDS / sweeps), normals, model.bends)
        met = found.largest <= target and found.r_hat <= LARGEST_R_HAT and found.effective >= FEWEST_DRAWS
        if met or meter.is_used_up():
            return found._replace(sweeps=meter.sweeps, met=met)
        sweeps *= 2


def _moments(missing: Booleans, normals: Floats, bends: Bends) -> tuple[Floats, Floats]:
    """Give means and mean squares of shares (chains, sweeps, n) by the normal densities of their cells."""
    first, second = normals[..., 0].copy(), (normals**2).sum(axis=-1)
    for i, bend in enumerate(bends):
        if bend is not None and missing[i]:
            first[..., i], second[..., i] = bend.moments(normals[..., i, 0], normals[..., i, 1])
    return first, second


def _summary(missing: Booleans, shares: Floats, normals: Floats, bends: Bends) -> _Sampled:
    """Give marginals and errors from what chains recorded: shares (chains, records, n, values), normals (chains, sweeps, n, 2)."""
    sweeps, n = normals.shape[1:3]
    first, second = _moments(missing, normals, bends)
    records = first.reshape(CHAINS, RECORDS, -1, n).mean(axis=2)
    means, squares = first.mean(axis=(0, 1)), second.mean(axis=(0, 1))
    deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
    errors, mean_errors = _errors(shares), _errors(records)
    relative = mean_errors / np.where(deviations > 0, deviations, 1.0) / MEAN_TARGET
    every_error = np.concatenate([errors, relative[:, None]], axis=1)
    every = np.concatenate([shares, records[..., None]], axis=-1)
    moving = missing[:, None] & (every_error > 1e-9)
    fewest, worst, largest = float(CHAINS * RECORDS), 1.0, 0.0
    if moving.any():
        fewest, worst = float(effective_draws(every)[moving].min()), float(r_hat(every)[moving].max())
        largest = float(every_error[moving].max())
    kept = normals[:, np.linspace(0, sweeps - 1, KEPT).astype(np.int64)].reshape(-1, n, 2)
    return _Sampled(shares.mean(axis=(0, 1)), errors, means, mean_errors, deviations, kept, fewest, worst, largest)


def _errors(records: Floats) -> Floats:
    """Give standard errors: from all draws, or from the spread of the chains alone where that is larger."""
    chains = len(records)
    spread = records.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(chains)
    errors: Floats = np.maximum(standard_error(records), spread * (stdtrit(chains - 1, _TWO_SIGMA) / 2.0))
    return errors


def find_marginals(
    model: MixedModelOfRows,
    rows: MergedRows,
    method: Method,
    budget: Budget,
    seed: np.random.SeedSequence,
    verbose: int = 0,
) -> tuple[list[Floats], list[Floats], dict[int, Numbers], Diagnostics]:
    """Give for each variable (distinct rows, values) posteriors and errors, those of continuous variables, and how they were found.

    A continuous variable has a single column of ones among the posteriors; its numbers are shares, their normal densities of cells.
    """
    weights, count = model.weights, len(rows.codes)
    missing = missing_cells(rows.codes)
    enumerable = _is_enumerable(weights, rows, method)
    enumerated, others = np.flatnonzero(enumerable), np.flatnonzero(~enumerable)
    means = [np.zeros((count, k)) for k in weights.cardinalities]
    errors = [np.zeros((count, k)) for k in weights.cardinalities]
    for variable, found in enumerate(exact.marginals(model.tables, rows.only(enumerated))):
        means[variable][enumerated] = found
    numbers = {
        i: Numbers.known(rows.codes[:, i], CHAINS * KEPT, model.bends[i])
        for i, is_one in enumerate(weights.continuous)
        if is_one
    }
    states = np.array([float(exact.count_states(weights, row)) for row in missing])
    diagnostics = Diagnostics.of_exact(states, method="exact" if not len(others) else method)
    seeds = seed.spawn(count)

    def one(place: int) -> _Sampled:
        row, known = int(rows.first_rows[place]), rows.codes[place]
        return sample_marginals(model, known, KERNEL_OF[method], budget, seeds[place], row)

    with progress("rows", len(others), verbose) as advance:
        for place, answer in zip(others.tolist(), map_in_order(one, others.tolist(), model.n_jobs), strict=True):
            _put(answer, place, rows.codes[place], means, errors, numbers)
            diagnostics.note(place, answer.effective, answer.r_hat, answer.sweeps, met=answer.met)
            advance()
    return means, errors, numbers, diagnostics


def _put(
    answer: _Sampled,
    place: int,
    cells: Floats,
    means: list[Floats],
    errors: list[Floats],
    numbers: dict[int, Numbers],
) -> None:
    """Put the answer of one row where it belongs."""
    for i, cell in enumerate(cells):
        k = means[i].shape[1]
        if i in numbers:
            means[i][place, 0] = 1.0
            if np.isnan(cell):
                numbers[i].means[place], numbers[i].mean_errors[place] = answer.means[i], answer.mean_errors[i]
                numbers[i].deviations[place] = answer.deviations[i]
                numbers[i].normals[place] = answer.normals[:, i]
        elif np.isnan(cell):
            means[i][place], errors[i][place] = answer.shares[i, :k], answer.share_errors[i, :k]
        else:
            means[i][place, int(cell)] = 1.0


def find_queries(
    model: MixedModelOfRows,
    rows: MergedRows,
    asked: Booleans,
    method: Method,
    budget: Budget,
    seed: np.random.SeedSequence,
    verbose: int = 0,
) -> QueryResult:
    """Give the log probabilities or densities, in standardised units, of query cells given evidence cells."""
    count = len(rows.codes)
    evidence = rows._replace(codes=only_cells(rows.codes, ~asked))
    enumerable = _is_enumerable(model.weights, evidence, method)
    enumerated, others = np.flatnonzero(enumerable), np.flatnonzero(~enumerable)
    joint, marginal = np.zeros(count), np.zeros(count)
    joint_se, marginal_se = np.zeros(count), np.zeros(count)
    joint[enumerated], marginal[enumerated], _ = exact.query(model.tables, rows.only(enumerated), asked[enumerated])
    states = np.array([float(exact.count_states(model.weights, row)) for row in missing_cells(evidence.codes)])
    diagnostics = Diagnostics.of_exact(states, method="exact" if not len(others) else method)
    seeds, target = seed.spawn(count), JOINT_TARGET if budget.target_se is None else budget.target_se

    def one(place: int) -> tuple[Floats, Floats, int]:
        cells = np.flatnonzero(asked[place])
        row = int(rows.first_rows[place])
        known, kernel = evidence.codes[place], KERNEL_OF[method]
        return _clamped(model, known, cells, rows.codes[place], kernel, budget, seeds[place], row)

    with progress("queries", len(others), verbose) as advance:
        for place, (logs, singles, sweeps) in zip(
            others.tolist(), map_in_order(one, others.tolist(), model.n_jobs), strict=True
        ):
            joint[place], joint_se[place] = _log_of_mean(logs)
            found = [_log_of_mean(single) for single in singles.T]
            marginal[place] = sum(value for value, _ in found)
            marginal_se[place] = float(np.sqrt(sum(error**2 for _, error in found)))
            diagnostics.note(place, _effective(logs), 1.0, sweeps, met=bool(joint_se[place] <= target))
            advance()
    return QueryResult(joint, marginal, joint_se, marginal_se, asked.sum(axis=1).astype(np.int64), diagnostics)


def _clamped(
    model: MixedModelOfRows,
    known: Floats,
    asked: Integers,
    values: Floats,
    kernel: int,
    budget: Budget,
    seed: np.random.SeedSequence,
    row: int,
) -> tuple[Floats, Floats, int]:
    """Give from independent populations the logs of the joint (groups,) and of each cell's own (groups, cells), and the sweeps."""
    meter, generator = Meter(budget), np.random.default_rng(seed)
    target = JOINT_TARGET if budget.target_se is None else budget.target_se
    logs: list[float] = []
    singles: list[Floats] = []
    while True:
        for _ in range(max(GROUPS, len(logs))):  # as many again as there are
            stop_if_unwanted()
            cells, parents = _population(model, known, kernel, generator, row)
            own = np.empty((len(cells), len(asked)))
            fill_conditionals(model.weights.model, known, cells, parents, asked, values, own)
            singles.append(_logs_of_means(own))
            order = generator.permutation(asked)
            logs.append(clamp_cells(model.weights, known, cells, parents, order, values, generator, kernel))
            meter.sweeps += PARENTS_OF_STATES * WARM_UP + STATES * (APART + SWEEPS * len(asked))
        spent = meter.sweeps
        meter.sweeps = 2 * spent - 1  # after another round
        if _log_of_mean(np.array(logs))[1] <= target or meter.is_used_up():
            return np.array(logs), np.array(singles).reshape(len(logs), len(asked)), spent
        meter.sweeps = spent


def clamp_cells(
    weights: MixedWeights,
    known: Floats,
    cells: Floats,
    parents: Integers,
    order: Integers,
    values: Floats,
    generator: np.random.Generator,
    kernel: int = BOTH,
) -> float:
    """Estimate log p(`values` of the cells of `order` | known cells) from a population of states given these, clamping in turn.

    A state gives the next cell the probability, or density, that it has given other cells and the forest, its own parent summed
    out, and other free numbers integrated out of that of a number. The mean over the population estimates that of the cell given
    those clamped; states are drawn in proportion, the cell is clamped, what was summed out is drawn, and each state moves on. The
    product of the means is unbiased, if the first population was right.
    """
    schedule, clamped, total = schedule_of(len(known), 1), np.tile(known, (len(cells), 1)), 0.0
    found = np.empty((len(cells), 1))
    for i in order:
        fill_conditionals(weights.model, clamped[0], cells, parents, np.array([i]), values, found)
        log_mean = float(_logs_of_means(found)[0])
        if log_mean == -np.inf:
            return -np.inf
        total += log_mean
        chosen = resample(found[:, 0], generator)
        cells, parents = cells[chosen], parents[chosen]
        clamped[:, i] = values[i]
        clamp_cells_of(weights.model, clamped[0], cells, parents, i, values[i], generator)
        sweep_rows(weights.model, clamped, cells, parents, kernel, SWEEPS, schedule, generator)
    return total


def _population(
    model: MixedModelOfRows, known: Floats, kernel: int, generator: np.random.Generator, row: int
) -> tuple[Floats, Integers]:
    """Give STATES draws given the known cells: some of each of a few chains."""
    weights, schedule = model.weights, schedule_of(len(known), 1)
    cells, parents = start_states(weights, known, PARENTS_OF_STATES, generator, row, model.starts())
    tiled = np.tile(known, (PARENTS_OF_STATES, 1))
    sweep_rows(weights.model, tiled, cells, parents, kernel, WARM_UP, schedule, generator)
    found_cells, found_parents = [], []
    for _ in range(STATES // PARENTS_OF_STATES):
        sweep_rows(weights.model, tiled, cells, parents, kernel, APART, schedule, generator)
        found_cells.append(cells.copy())
        found_parents.append(parents.copy())
    return np.concatenate(found_cells), np.concatenate(found_parents)


def _logs_of_means(logs: Floats) -> Floats:
    """Give the logs of the means over axis 0 of numbers given by their logs."""
    top = logs.max(axis=0, initial=-np.inf)
    finite = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        found: Floats = finite + np.log(np.exp(logs - finite).mean(axis=0))
    return found


def _log_of_mean(logs: Floats) -> tuple[float, float]:
    """Give the log of the mean of estimates given by their logs, and its standard error."""
    top = logs.max()
    if top == -np.inf:
        return -np.inf, np.inf
    values = np.exp(logs - top)
    mean, groups = values.mean(), len(values)
    error = values.std(ddof=1) / mean / np.sqrt(groups) * stdtrit(groups - 1, _TWO_SIGMA) / 2.0
    return float(top + np.log(mean)), float(error)


def _effective(logs: Floats) -> float:
    """Give how many states the estimates of populations are worth."""
    shares = np.exp(logs - logs.max()) if logs.max() > -np.inf else np.ones(len(logs))
    return float(STATES * shares.sum() ** 2 / (shares @ shares))


def draw_completions(model: MixedModelOfRows, rows: Floats, seed: np.random.SeedSequence) -> Floats:
    """Give each row with its missing cells filled by a draw from their posterior, the last state of a chain of its own."""
    merged = merge_rows(rows)
    places = np.argsort(merged.places, kind="stable")
    groups = np.split(places, np.cumsum(np.bincount(merged.places, minlength=len(merged.codes)))[:-1])
    seeds, filled = seed.spawn(len(merged.codes)), rows.copy()

    def one(place: int) -> Floats:
        known, generator = merged.codes[place], np.random.default_rng(seeds[place])
        if not np.isnan(known).any():
            return np.tile(known, (len(groups[place]), 1))
        return _draw_states(model, known, len(groups[place]), generator, int(merged.first_rows[place]))

    for place, drawn in enumerate(map_in_order(one, range(len(groups)), model.n_jobs)):
        filled[groups[place]] = drawn
    return filled


def _draw_states(
    model: MixedModelOfRows, known: Floats, count: int, generator: np.random.Generator, row: int, kernel: int = BOTH
) -> Floats:
    cells, parents = start_states(model.weights, known, count, generator, row, model.starts())
    tiled = np.tile(known, (count, 1))
    sweep_rows(model.weights.model, tiled, cells, parents, kernel, WARM_UP, schedule_of(len(known), 1), generator)
    return cells


def most_probable(model: MixedModelOfRows, rows: MergedRows, method: Method, seed: np.random.SeedSequence) -> Floats:
    """Give each distinct row with its missing cells filled by the most probable completion, by enumeration or by climbing.

    Climbing starts from states of chains; the method says which.
    """
    enumerable = _is_enumerable(model.weights, rows, method)
    enumerated, others = np.flatnonzero(enumerable), np.flatnonzero(~enumerable)
    seeds, filled = seed.spawn(len(rows.codes)), np.asarray(rows.codes, dtype=np.float64).copy()
    filled[enumerated] = exact.most_probable(model.tables, rows.only(enumerated))
    n = rows.codes.shape[1]

    def one(place: int) -> Floats:
        known, generator = rows.codes[place], np.random.default_rng(seeds[place])
        row, kernel = int(rows.first_rows[place]), KERNEL_OF[method]
        states = _draw_states(model, known, CLIMBS, generator, row, kernel)
        scratch = np.empty((2, n + 1, n))
        heights = [climb_cells(model.weights.model, known, state, scratch) for state in states]
        best: Floats = states[int(np.argmax(heights))]
        return best

    for place, best in zip(others.tolist(), map_in_order(one, others.tolist(), model.n_jobs), strict=True):
        filled[place] = best
    return filled


def log_evidence(
    model: MixedModelOfRows, rows: MergedRows, budget: Budget, seed: np.random.SeedSequence, verbose: int = 0
) -> Floats:
    """Give the log density, up to the partition, of the known cells of each distinct row."""
    missing = missing_cells(rows.codes)
    found = np.empty(len(rows.codes))
    complete, rest = np.flatnonzero(~missing.any(axis=1)), np.flatnonzero(missing.any(axis=1))
    found[complete] = log_sums(model.weights, rows.codes[complete], model.n_jobs)
    if len(rest):
        filled = draw_completions(model, rows.codes[rest], seed.spawn(1)[0])
        questions = rows.only(rest)._replace(codes=filled)
        answers = find_queries(model, questions, missing[rest], "auto", budget, seed, verbose)
        found[rest] = log_sums(model.weights, filled, model.n_jobs) - answers.joint
    return found


def average_arc_marginals(model: MixedModelOfRows, rows: MergedRows, seed: np.random.SeedSequence) -> Floats:
    """Give (distinct rows, n + 1, n): arc marginals averaged over draws of the missing cells."""
    n, seeds = rows.codes.shape[1], seed.spawn(len(rows.codes))
    found = np.empty((len(rows.codes), n + 1, n))
    for place, known in enumerate(rows.codes):
        cells = known[None, :]
        if np.isnan(known).any():
            generator = np.random.default_rng(seeds[place])
            cells = _draw_states(model, known, AVERAGED, generator, int(rows.first_rows[place]))
        found[place] = marginals_of_arcs(model.weights, cells, model.n_jobs).mean(axis=0)
    return found
