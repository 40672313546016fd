"""Log-likelihoods of query cells given evidence cells, by enumeration or by clamping."""

from collections.abc import Callable

import numpy as np

from ldfm.draws import fold
from ldfm.inference import exact
from ldfm.inference.answers import Diagnostics, Method, QueryResult
from ldfm.inference.budget import Budget
from ldfm.inference.chains import Starts
from ldfm.inference.clamping import SampledQuery, extra_of, sample_query
from ldfm.parallel import map_in_order
from ldfm.progress import progress
from ldfm.tables import MISSING, MergedRows
from ldfm.types import Booleans


def find_queries(
    tables: exact.ExactTables,
    rows: MergedRows,
    asked: Booleans,
    method: Method,
    budget: Budget,
    seed: np.random.SeedSequence,
    starts: Callable[[], Starts],
    verbose: int = 0,
) -> QueryResult:
    """Give the answers for each distinct row; cells that are not missing are query where `asked`, else evidence.

    "auto" enumerates the rows that can be and samples the others. Every row has random numbers of its own, spawned from `seed`.
    """
    count = len(rows.codes)
    evidence = np.where(asked, MISSING, rows.codes)
    states = np.array([float(exact.count_states(tables.weights, row)) for row in evidence == MISSING])
    sampled = states > exact.MAX_STATES if method == "auto" else np.full(count, method != "exact")
    enumerated, others = np.flatnonzero(~sampled), np.flatnonzero(sampled)
    joint, marginal = np.zeros(count), np.zeros(count)
    joint[enumerated], marginal[enumerated], _ = exact.query(tables, rows.only(enumerated), asked[enumerated])
    diagnostics = Diagnostics.of_exact(states, method=method if len(others) else "exact")
    errors = np.zeros(count), np.zeros(count)
    if len(others):
        model, seeds, states_to_start = fold(tables.weights), seed.spawn(count), starts()
        extra = extra_of(method, sum(tables.weights.cardinalities))

        def one(place: int) -> SampledQuery:
            cells = np.flatnonzero(asked[place])
            return sample_query(
                model,
                evidence[place],
                cells,
                rows.codes[place],
                extra,
                budget,
                seeds[place],
                int(rows.first_rows[place]),
                states_to_start,
            )

        with progress("queries", len(others), verbose) as advance:
            for place, answer in zip(others.tolist(), map_in_order(one, others.tolist(), tables.n_jobs), strict=True):
                joint[place], errors[0][place] = answer.joint, answer.joint_se
                marginal[place], errors[1][place] = answer.marginal, answer.marginal_se
                diagnostics.note(place, answer.effective, answer.r_hat, answer.sweeps, met=answer.met)
                advance()
    return QueryResult(joint, marginal, *errors, asked.sum(axis=1).astype(np.int64), diagnostics)
