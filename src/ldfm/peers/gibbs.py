"""Gibbs answers of many rows in threads."""

from typing import NamedTuple

import numpy as np

from ldfm.inference.answers import Diagnostics, QueryResult
from ldfm.parallel import map_in_order
from ldfm.peers.base import AGREED, TARGET_SE, count_states
from ldfm.peers.kernels.clamping import Effort, answer_row
from ldfm.peers.kernels.conditionals import NetworkTables, ProbabilityTrees
from ldfm.tables import MISSING, MergedRows
from ldfm.types import Booleans, Codes, Floats, Integers

MOST_STARTS = 1000
_CANDIDATES = 20  # rows looked at to start a chain from


class Starts(NamedTuple):
    """Rows that chains may start from."""

    codes: Integers

    @classmethod
    def of(cls, rows: MergedRows, rng: np.random.Generator) -> "Starts":
        """Keep some rows, as often as they occur."""
        chances = rows.weights / rows.weights.sum()
        size = int(min(MOST_STARTS, max(1.0, rows.weights.sum())))
        return cls(rows.codes[rng.choice(len(chances), size=size, p=chances)].astype(np.int64))

    def near(self, evidence: Codes, chains: int, rng: np.random.Generator) -> Integers:
        """Give (chains, n) rows with the evidence put in: for each chain that of a few which had most of it already."""
        known = evidence != MISSING
        tried = rng.integers(0, len(self.codes), (chains, _CANDIDATES))
        agreement = (self.codes[tried][:, :, known] == evidence[known]).sum(axis=2)
        chosen = tried[np.arange(chains), agreement.argmax(axis=1)]
        states: Integers = np.where(known, evidence, self.codes[chosen]).astype(np.int64)
        return states


def query(
    model: NetworkTables | ProbabilityTrees,
    starts: Starts,
    rows: MergedRows,
    asked: Booleans,
    effort: tuple[int, Effort],
    seed: np.random.SeedSequence,
    n_jobs: int | None,
) -> QueryResult:
    """Answer distinct questions by Gibbs sampling.

    Parameters
    ----------
    model
        What gives conditionals.
    starts
        Where chains start.
    rows, asked
        The questions.
    effort
        Number of chains a row, and their sweeps.
    seed
        Each row has its own stream.
    n_jobs
        Threads.
    """
    chains, sweeps = effort
    codes = rows.codes.astype(np.int64)

    def one_row(item: tuple[int, np.random.SeedSequence]) -> Floats:
        row, own = item
        rng = np.random.default_rng(own)
        states = starts.near(np.where(asked[row], MISSING, codes[row]), chains, rng)
        out = np.empty(6)
        answer_row(model, states, codes[row], asked[row], sweeps, rng, out)
        return out

    found = np.array(list(map_in_order(one_row, enumerate(seed.spawn(len(codes))), n_jobs))).reshape(-1, 6)
    joint, joint_variance, marginal, marginal_variance, effective, r_hat = found.T
    joint_se, n_query = np.sqrt(joint_variance), asked.sum(axis=1).astype(np.int64)
    diagnostics = Diagnostics(
        "gibbs",
        np.zeros(len(codes), dtype=np.bool_),
        count_states(rows, asked, tuple(model.cardinalities.tolist())),
        effective,
        r_hat,
        chains * (sweeps.burn_in + sweeps.first + sweeps.each * np.maximum(n_query - 1, 0)),
        (joint_se <= TARGET_SE) & (r_hat <= AGREED),
    )
    return QueryResult(joint, marginal, joint_se, np.sqrt(marginal_variance), n_query, diagnostics)
