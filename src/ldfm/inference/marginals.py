"""Posteriors of missing cells, by enumeration or from chains."""

from collections.abc import Callable

import numpy as np

from ldfm.draws import fold
from ldfm.inference import exact
from ldfm.inference.answers import Diagnostics, Method
from ldfm.inference.budget import Budget
from ldfm.inference.chains import Starts
from ldfm.inference.sampling import KERNEL_OF, SampledMarginals, sample_marginals
from ldfm.parallel import map_in_order
from ldfm.progress import progress
from ldfm.tables import MISSING, MergedRows
from ldfm.types import Floats, Integers


def find_marginals(
    tables: exact.ExactTables,
    rows: MergedRows,
    method: Method,
    budget: Budget,
    seed: np.random.SeedSequence,
    starts: Callable[[], Starts],
    verbose: int = 0,
) -> tuple[list[Floats], list[Floats], Diagnostics]:
    """Give for each variable (distinct rows, values) posteriors and standard errors, and how they were found.

    "auto" enumerates the rows that can be and samples the others. Every row has random numbers of its own, spawned from `seed`.
    `starts` is asked for states to start from where some row is sampled.
    """
    cardinalities, count = tables.weights.cardinalities, len(rows.codes)
    states = np.array([float(exact.count_states(tables.weights, row)) for row in rows.codes == MISSING])
    sampled = states > exact.MAX_STATES if method == "auto" else np.full(count, method != "exact")
    enumerated, others = np.flatnonzero(~sampled), np.flatnonzero(sampled)
    means = [np.zeros((count, k)) for k in cardinalities]
    errors = [np.zeros((count, k)) for k in cardinalities]
    for variable, found in enumerate(exact.marginals(tables, rows.only(enumerated))):
        means[variable][enumerated] = found
    diagnostics = Diagnostics.of_exact(states, method=method if len(others) else "exact")
    if len(others):
        answers = _sample(tables, rows, others, method, budget, seed, starts(), verbose)
        for place, answer in zip(others.tolist(), answers, strict=True):
            for variable, code in enumerate(rows.codes[place]):
                if code == MISSING:
                    means[variable][place] = answer.means[variable, : cardinalities[variable]]
                    errors[variable][place] = answer.errors[variable, : cardinalities[variable]]
                else:
                    means[variable][place, code] = 1.0
            diagnostics.note(place, answer.effective, answer.r_hat, answer.sweeps, met=answer.met)
    return means, errors, diagnostics


def _sample(
    tables: exact.ExactTables,
    rows: MergedRows,
    places: Integers,
    method: Method,
    budget: Budget,
    seed: np.random.SeedSequence,
    starts: Starts,
    verbose: int,
) -> list[SampledMarginals]:
    """Sample some rows, in threads."""
    model = fold(tables.weights)
    seeds = seed.spawn(len(rows.codes))

    def one(place: int) -> SampledMarginals:
        return sample_marginals(
            model, rows.codes[place], KERNEL_OF[method], budget, seeds[place], int(rows.first_rows[place]), starts
        )

    answers = []
    with progress("rows", len(places), verbose) as advance:
        for answer in map_in_order(one, places.tolist(), tables.n_jobs):
            answers.append(answer)
            advance()
    return answers
