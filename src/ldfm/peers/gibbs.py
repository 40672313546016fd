"""Answers of many rows by chains, in threads."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ldfm.inference.answers import Diagnostics, QueryResult
from ldfm.parallel import map_in_order
from ldfm.peers.base import AGREED, TARGET_SE, count_states
from ldfm.peers.kernels.clamping import Effort, Question, answer_row, sweeps_of_evidence
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


class Sampling(NamedTuple):
    """How questions are answered by chains.

    Attributes
    ----------
    answer
        Called with chains' starts (chains, n), codes (n,), asked (n,), a generator, and (6,) to fill as kernels say.
    cardinalities
        Numbers of values.
    chains
        Number of chains a row.
    sweeps
        Sweeps of each.
    method
        What diagnostics call it.
    clamps_evidence
        Whether chains start anywhere and evidence is clamped on the way; else they start near it, with all of it in place.
    """

    answer: Callable[[Integers, Integers, Booleans, np.random.Generator, Floats], None]
    cardinalities: tuple[int, ...]
    chains: int
    sweeps: Effort
    method: str = "gibbs"
    clamps_evidence: bool = False


def conditional_sampling(
    model: NetworkTables | ProbabilityTrees, chains: int, sweeps: Effort, method: str = "gibbs"
) -> Sampling:
    """Give Gibbs sampling from the conditionals of a model.

    Those of a Bayesian network belong to one joint distribution: its forward draws, drawn again at every clamp, stay draws of it.
    Those of a dependency network need not; there evidence is put in at once and half of the chains are left alone.
    """
    agree = isinstance(model, NetworkTables)
    alone = 0 if agree else chains // 2

    def answer(states: Integers, codes: Integers, asked: Booleans, generator: np.random.Generator, out: Floats) -> None:
        known = (codes >= 0) & ~asked & (not agree)
        answer_row(model, states, Question(codes, asked, known), alone, sweeps, generator, out)

    return Sampling(answer, tuple(model.cardinalities.tolist()), chains, sweeps, method, clamps_evidence=agree)


def query(
    sampling: Sampling,
    starts: Starts,
    rows: MergedRows,
    asked: Booleans,
    seed: np.random.SeedSequence,
    n_jobs: int | None,
) -> QueryResult:
    """Answer distinct questions by chains; each row has its own random stream."""
    codes = rows.codes.astype(np.int64)

    def one_row(item: tuple[int, np.random.SeedSequence]) -> Floats:
        row, own = item
        rng = np.random.default_rng(own)
        in_place = ~asked[row] & (not sampling.clamps_evidence)
        states = starts.near(np.where(in_place, codes[row], MISSING), sampling.chains, rng)
        out = np.empty(6)
        sampling.answer(states, codes[row], asked[row], rng, out)
        return out

    found = np.array(list(map_in_order(one_row, enumerate(seed.spawn(len(codes))), n_jobs))).reshape(-1, 6)
    joint, joint_variance, marginal, marginal_variance, effective, r_hat = found.T
    joint_se, n_query = np.sqrt(joint_variance), asked.sum(axis=1).astype(np.int64)
    burn_in, first, each = sampling.sweeps
    sweeps = burn_in + first + each * np.maximum(n_query - 1, 0)
    if sampling.clamps_evidence:
        sweeps += sweeps_of_evidence(sampling.sweeps) * ((codes >= 0) & ~asked).sum(axis=1)
    diagnostics = Diagnostics(
        sampling.method,
        np.zeros(len(codes), dtype=np.bool_),
        count_states(rows, asked, sampling.cardinalities),
        effective,
        r_hat,
        sampling.chains * sweeps,
        (joint_se <= TARGET_SE) & (r_hat <= AGREED),
    )
    return QueryResult(joint, marginal, joint_se, np.sqrt(marginal_variance), n_query, diagnostics)
