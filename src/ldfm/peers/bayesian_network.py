"""Bayesian network with a learned structure; answers by junction tree, or by Gibbs sampling for comparison."""

import tempfile
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ldfm.inference.answers import QueryResult
from ldfm.networks import Network
from ldfm.peers import gibbs, junction_tree
from ldfm.peers.base import DensityPeer, LearningPeer, TrainingRows, exact_result, mean_log
from ldfm.peers.junction_tree import import_pyagrum
from ldfm.peers.kernels.clamping import Effort
from ldfm.peers.kernels.conditionals import NetworkTables
from ldfm.tables import Kinds, MergedRows, Schema
from ldfm.types import Booleans, Floats, Integers

CRITERIA = ("BIC", "AIC", "K2", "BDeu", "BDeu10")
PSEUDO_COUNTS = (0.03, 0.1, 0.3, 1.0, 3.0)
Parents = tuple[tuple[int, ...], ...]


class Choice(NamedTuple):
    """Hyper-parameters, and what the held-out rows say of them."""

    criterion: str
    pseudo_count: float
    held_out: float


class BayesianNetwork(DensityPeer, LearningPeer):
    """Bayesian network; structure by greedy hill climbing (pyAgrum).

    Parameters
    ----------
    criterion
        What hill climbing climbs: "BIC", "AIC", "K2", "BDeu" or "BDeu10" (equivalent sample size 10); None: chosen on
        held-out rows.
    pseudo_count
        Added to each count of a table; None: chosen on held-out rows.
    max_parents
        Most parents of a variable.
    answers
        "exact": junction tree. "gibbs": Gibbs sampling, evidence and query clamped one variable after another.
    chains, burn_in, first_sweeps, sweeps
        Effort of "gibbs" a row: chains, and sweeps of each before evidence is clamped, averaged once all of it is, and averaged
        after each clamp of a query variable; half as many follow each clamp of evidence.
    validation_fraction, kinds, n_jobs, random_state
        See `LearningPeer`. Exact answers take one thread.

    Attributes
    ----------
    network_
        The network.
    choice_
        Hyper-parameters and their held-out mean log-likelihood.
    """

    network_: Network
    choice_: Choice

    def __init__(
        self,
        criterion: str | None = None,
        pseudo_count: float | None = None,
        max_parents: int = 6,
        answers: Literal["exact", "gibbs"] = "exact",
        chains: int = 800,
        burn_in: int = 2,
        first_sweeps: int = 5,
        sweeps: int = 1,
        validation_fraction: float = 0.2,
        kinds: Kinds = None,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.criterion = criterion
        self.pseudo_count = pseudo_count
        self.max_parents = max_parents
        self.answers = answers
        self.chains = chains
        self.burn_in = burn_in
        self.first_sweeps = first_sweeps
        self.sweeps = sweeps
        self.validation_fraction = validation_fraction
        self.kinds = kinds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.answers not in ("exact", "gibbs"):
            raise ValueError(f"answers must be 'exact' or 'gibbs', not {self.answers!r}")
        if self.criterion is not None and self.criterion not in CRITERIA:
            raise ValueError(f"criterion must be None or one of {', '.join(CRITERIA)}, not {self.criterion!r}")

    def _learn(self, rows: TrainingRows) -> None:
        self.choice_ = self._choose(rows)
        parents = learn_parents(rows.whole, rows.cardinalities, self.choice_.criterion, self.max_parents)
        tables = count_tables(rows.whole, rows.cardinalities, parents)
        self.network_ = _to_network(self.schema_, parents, tables, self.choice_.pseudo_count)
        self._starts = gibbs.Starts.of(rows.whole, np.random.default_rng(self._seed()))

    def _choose(self, rows: TrainingRows) -> Choice:
        """Learn a structure by each criterion, and compare them with each pseudo-count on the held-out rows."""
        found = []
        for criterion in CRITERIA if self.criterion is None else (self.criterion,):
            parents = learn_parents(rows.train, rows.cardinalities, criterion, self.max_parents)
            tables = count_tables(rows.train, rows.cardinalities, parents)
            for pseudo_count in PSEUDO_COUNTS if self.pseudo_count is None else (self.pseudo_count,):
                network = _to_network(self.schema_, parents, tables, pseudo_count)
                score = mean_log(network.log_probability(rows.held_out.codes), rows.held_out)
                found.append(Choice(criterion, pseudo_count, score))
        return max(found, key=lambda choice: choice.held_out)

    def _log_probabilities(self, rows: MergedRows) -> Floats:
        return junction_tree.log_probabilities(self.network_, rows)

    def _answer(self, rows: MergedRows, asked: Booleans) -> QueryResult:
        if self.answers == "exact":
            joint, marginal = junction_tree.query(self.network_, rows, asked)
            return exact_result(joint, marginal, rows, asked, self.network_.cardinalities)
        effort = Effort(self.burn_in, self.first_sweeps, self.sweeps)
        sampling = gibbs.conditional_sampling(to_network_tables(self.network_), self.chains, effort)
        return gibbs.query(sampling, self._starts, rows, asked, self._seed(), self.n_jobs)


def learn_parents(rows: MergedRows, cardinalities: tuple[int, ...], criterion: str, max_parents: int) -> Parents:
    """Find a structure by greedy hill climbing on a criterion; give the parents of each variable."""
    gum = import_pyagrum()
    domain = gum.BayesNet()
    for place, cardinality in enumerate(cardinalities):
        domain.add(gum.RangeVariable(str(place), "", 0, cardinality - 1))
    kept = rows.weights > 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        header = ",".join(str(place) for place in range(len(cardinalities)))
        np.savetxt(path, rows.codes[kept], fmt="%d", delimiter=",", header=header, comments="")
        learner = gum.BNLearner(str(path), domain)
    for row, weight in enumerate(rows.weights[kept].tolist()):
        if weight != 1.0:
            learner.setRecordWeight(row, weight)
    learner.setNumberOfThreads(1)
    learner.setMaxIndegree(max_parents)
    getattr(learner, f"useScore{criterion.removesuffix('10')}")()
    if criterion == "BDeu10":
        learner.useBDeuPrior(10.0)
    learner.useGreedyHillClimbing()
    graph = learner.learnDAG()
    return tuple(tuple(sorted(graph.parents(place))) for place in range(len(cardinalities)))


def count_tables(rows: MergedRows, cardinalities: tuple[int, ...], parents: Parents) -> list[Floats]:
    """Count the values of each variable given its parents, (k_parent1, ..., k_child) each."""
    tables = []
    for child, of_child in enumerate(parents):
        scope = (*of_child, child)
        shape = tuple(cardinalities[i] for i in scope)
        cells = np.ravel_multi_index(tuple(rows.codes[:, i] for i in scope), shape)
        counts: Floats = np.bincount(cells, weights=rows.weights, minlength=int(np.prod(shape)))  # type: ignore[assignment]
        tables.append(counts.reshape(shape))
    return tables


def to_network_tables(network: Network) -> NetworkTables:
    """Lay a network out for Gibbs sampling."""
    n = len(network.variables)
    scopes = [(*of_child, child) for child, of_child in enumerate(network.parents)]
    strides = [
        np.cumprod([1, *(network.cardinalities[i] for i in reversed(scope[1:]))])[::-1].tolist() for scope in scopes
    ]
    uses: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for table, (scope, steps) in enumerate(zip(scopes, strides, strict=True)):
        for variable, step in zip(scope, steps, strict=True):
            uses[variable].append((table, step))
    sizes = [table.size for table in network.tables]
    return NetworkTables(
        _starts([len(use) for use in uses]),
        np.array([table for use in uses for table, _ in use], dtype=np.int64),
        np.array([step for use in uses for _, step in use], dtype=np.int64),
        _starts([len(scope) for scope in scopes]),
        np.array([i for scope in scopes for i in scope], dtype=np.int64),
        np.array([step for steps in strides for step in steps], dtype=np.int64),
        _starts(sizes)[:-1],
        np.concatenate([table.ravel() for table in network.tables]),
        np.array(network.cardinalities, dtype=np.int64),
        np.array(network.order, dtype=np.int64),
    )


def _starts(sizes: list[int]) -> Integers:
    return np.cumsum([0, *sizes]).astype(np.int64)


def _to_network(schema: Schema, parents: Parents, counts: list[Floats], pseudo_count: float) -> Network:
    tables: list[Any] = []
    for table in counts:
        smooth = table + pseudo_count
        tables.append(smooth / smooth.sum(axis=-1, keepdims=True))
    values = tuple(tuple(str(value) for value in column.values) for column in schema.columns)
    return Network("learned", schema.names, values, parents, tuple(tables))
