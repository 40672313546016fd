"""Completions of rows with missing cells: draws, and the most probable one."""

from collections.abc import Callable

import numpy as np

from ldfm.draws import fold
from ldfm.forests import log_sums, marginals_of_arcs
from ldfm.inference import exact
from ldfm.inference.answers import Method
from ldfm.inference.budget import Budget
from ldfm.inference.chains import Starts, move_on, start_states
from ldfm.inference.queries import find_queries
from ldfm.kernels.climbing import climb
from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.sweeps import Folded
from ldfm.parallel import map_in_order
from ldfm.tables import MISSING, MergedRows, merge_rows
from ldfm.types import Codes, Floats, Integers
from ldfm.weights import ArcWeights

CLIMBS = 32  # starts of a search for the most probable completion
WARM_UP = 100  # sweeps of a chain before its state counts as a draw
_FEW_STATES = 1 << 10  # completions that are listed one by one
_AVERAGED = 200  # draws of missing cells that arc marginals are averaged over
StartsOf = Callable[[], Starts]


def draw_completions(tables: exact.ExactTables, rows: Codes, seed: np.random.SeedSequence, starts: StartsOf) -> Codes:
    """Give each row with its missing cells filled by a draw from their posterior.

    Rows with the same known cells are drawn together: from the table of all completions where that is small, else each as the
    last state of a chain of its own.
    """
    merged = merge_rows(rows)
    places = np.argsort(merged.places, kind="stable")
    groups = np.split(places, np.cumsum(np.bincount(merged.places, minlength=len(merged.codes)))[:-1])
    states = np.array([float(exact.count_states(tables.weights, row)) for row in merged.codes == MISSING])
    small = states <= _FEW_STATES
    model, filled = fold(tables.weights), rows.copy()
    start = starts() if not small.all() else None
    seeds = seed.spawn(len(merged.codes))

    def one(place: int) -> Integers:
        known, count = merged.codes[place], len(groups[place])
        generator, row = np.random.default_rng(seeds[place]), int(merged.first_rows[place])
        if start is None or small[place]:
            codes, shares = _all_completions(tables.weights, known, row)
            drawn: Integers = codes[generator.choice(len(codes), size=count, p=shares)]
            return drawn
        return draw_states(model, known, count, generator, row, start)

    for place, drawn in enumerate(map_in_order(one, range(len(groups)), tables.n_jobs)):
        filled[groups[place]] = drawn
    return filled


def draw_states(
    model: Folded, known: Codes, count: int, generator: np.random.Generator, row: int, starts: Starts
) -> Integers:
    """Give (count, n): draws of all cells given the known ones, from chains of their own."""
    codes, parents = start_states(model, known, count, generator, row, starts)
    move_on(model, known, codes, parents, WARM_UP, generator)
    return codes


def _all_completions(weights: ArcWeights, known: Codes, row: int) -> tuple[Integers, Floats]:
    """Give all completions of a row and their posterior."""
    free = np.flatnonzero(known == MISSING)
    shape = tuple(weights.cardinalities[i] for i in free)
    codes = np.repeat(known.astype(np.int64)[None, :], int(np.prod(shape)), axis=0)
    if shape:
        codes[:, free] = np.stack(np.unravel_index(np.arange(len(codes)), shape), axis=1)
    logs = log_sums(weights, codes)
    if logs.max() == -np.inf:
        raise exact.ImpossibleEvidenceError(f"row {row}: its known cells have probability zero under this model")
    shares = np.exp(logs - logs.max())
    return codes, shares / shares.sum()


def most_probable(
    tables: exact.ExactTables, rows: MergedRows, method: Method, seed: np.random.SeedSequence, starts: StartsOf
) -> Codes:
    """Give each distinct row with its missing cells filled by the jointly most probable values, by enumeration or by climbing."""
    states = np.array([float(exact.count_states(tables.weights, row)) for row in rows.codes == MISSING])
    climbed = states > exact.MAX_STATES if method == "auto" else np.full(len(states), method != "exact")
    filled = rows.codes.copy()
    enumerated, others = np.flatnonzero(~climbed), np.flatnonzero(climbed)
    filled[enumerated] = exact.most_probable(tables, rows.only(enumerated))
    if len(others):
        model, seeds, start = fold(tables.weights), seed.spawn(len(states)), starts()

        def one(place: int) -> Integers:
            known, generator = rows.codes[place].astype(np.int64), np.random.default_rng(seeds[place])
            row = int(rows.first_rows[place])
            near = start_states(model, known, CLIMBS // 2, generator, row, start)[0]
            states = np.concatenate([near, draw_states(model, known, CLIMBS // 2, generator, row, start)])
            work = make_workspace(len(known))
            heights = [climb(model, known, state, work) for state in states]
            best: Integers = states[int(np.argmax(heights))]
            return best

        for place, best in zip(others.tolist(), map_in_order(one, others.tolist(), tables.n_jobs), strict=True):
            filled[place] = best
    return filled


def log_evidence(
    tables: exact.ExactTables,
    rows: MergedRows,
    budget: Budget,
    seed: np.random.SeedSequence,
    starts: StartsOf,
    verbose: int = 0,
) -> Floats:
    """Give the log probability, up to the partition, of the known cells of each distinct row.

    Complete rows are forest sums; missing cells are summed out by enumeration, or else as log p(row, c) - log p(c | row) for a
    completion c that is drawn.
    """
    missing = rows.codes == MISSING
    states = np.array([float(exact.count_states(tables.weights, row)) for row in missing])
    found = np.empty(len(states))
    complete, others = np.flatnonzero(~missing.any(axis=1)), np.flatnonzero(states > exact.MAX_STATES)
    rest = np.flatnonzero(missing.any(axis=1) & (states <= exact.MAX_STATES))
    found[complete] = log_sums(tables.weights, rows.codes[complete], tables.n_jobs)
    found[rest] = exact.log_evidence(tables, rows.only(rest))
    if len(others):
        filled = draw_completions(tables, rows.codes[others], seed.spawn(1)[0], starts)
        questions = rows.only(others)._replace(codes=filled)
        answers = find_queries(tables, questions, missing[others], "auto", budget, seed, starts, verbose)
        found[others] = log_sums(tables.weights, filled, tables.n_jobs) - answers.joint
    return found


def average_arc_marginals(
    tables: exact.ExactTables, rows: MergedRows, seed: np.random.SeedSequence, starts: StartsOf
) -> Floats:
    """Give (distinct rows, n + 1, n): arc marginals averaged over the missing cells, one by one where they have few states."""
    weights, seeds = tables.weights, seed.spawn(len(rows.codes))
    n = len(weights.cardinalities)
    found = np.empty((len(rows.codes), n + 1, n))
    for place, known in enumerate(rows.codes):
        row = int(rows.first_rows[place])
        if exact.count_states(weights, known == MISSING) <= _FEW_STATES:
            codes, shares = _all_completions(weights, known, row)
        else:
            generator = np.random.default_rng(seeds[place])
            codes = draw_states(fold(weights), known, _AVERAGED, generator, row, starts())
            shares = np.full(_AVERAGED, 1.0 / _AVERAGED)
        found[place] = np.tensordot(shares, marginals_of_arcs(weights, codes, tables.n_jobs), axes=1)
    return found
