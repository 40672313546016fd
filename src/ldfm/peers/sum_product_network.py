"""Sum-product network learned from rows and columns (LearnSPN) with trees as leaves (the idea of ID-SPN); answers are exact."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from ldfm.inference.answers import QueryResult
from ldfm.peers import circuit
from ldfm.peers.base import DensityPeer, LearningPeer, TrainingRows, mean_log
from ldfm.peers.chow_liu import Tree, TreeLearner, log_probabilities, mutual_information
from ldfm.peers.circuit import Node, Product, Sum
from ldfm.peers.kernels.circuits import node_shares
from ldfm.peers.mixture_of_trees import MixtureEM
from ldfm.tables import Kinds, MergedRows
from ldfm.types import Booleans, Floats, Integers

P_VALUES = (1e-2, 1e-4)
STRENGTHS = (10.0, 30.0, 100.0)


class Choice(NamedTuple):
    """Hyper-parameters, and what the held-out rows say of them."""

    p_value: float
    strength: float
    iterations: int
    held_out: float


class SumProductNetwork(DensityPeer, LearningPeer):
    """Sum-product network over Chow-Liu trees.

    A set of rows and variables becomes a product where a G-test finds groups of variables independent of one another, else a sum
    over two clusters of rows where held-out rows like that better than one tree, else a tree. Then EM adapts all weights and trees
    together, for as long as held-out rows like it.

    Parameters
    ----------
    p_value
        Variables are taken as independent unless a G-test gives less than this; None: chosen on held-out rows.
    strength
        Weight, in rows, of the table of all rows in the counts of each tree; None: chosen on held-out rows.
    min_rows
        Fewer rows are not clustered any more.
    max_iter
        Most iterations of EM.
    validation_fraction, kinds, n_jobs, random_state
        See `LearningPeer`.

    Attributes
    ----------
    root_
        The root of the network.
    choice_
        Hyper-parameters and their held-out mean log-likelihood.
    """

    root_: Node
    choice_: Choice

    def __init__(
        self,
        p_value: float | None = None,
        strength: float | None = None,
        min_rows: float = 40.0,
        max_iter: int = 30,
        validation_fraction: float = 0.2,
        kinds: Kinds = None,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.p_value = p_value
        self.strength = strength
        self.min_rows = min_rows
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.kinds = kinds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, rows: TrainingRows) -> None:
        found: list[tuple[Choice, Node]] = []
        for strength in STRENGTHS if self.strength is None else (self.strength,):
            learner = TreeLearner(rows.train.codes, rows.train.weights, rows.cardinalities, strength)
            for p_value in P_VALUES if self.p_value is None else (self.p_value,):
                rng = np.random.default_rng(self._seed())
                grown = _Grower(learner, rows, p_value, self.min_rows, rng).grow_all()
                iterations, score = self._held_out(learner, rows, grown)
                found.append((Choice(p_value, strength, iterations, score), grown))
        self.choice_, node = max(found, key=lambda pair: pair[0].held_out)
        learner = TreeLearner(rows.whole.codes, rows.whole.weights, rows.cardinalities, self.choice_.strength)
        for _ in range(self.choice_.iterations):
            node = _step(node, learner, rows.whole, rows.cardinalities)
        self.root_ = node
        self._circuit = circuit.to_circuit(node, rows.cardinalities)

    def _held_out(self, learner: TreeLearner, rows: TrainingRows, node: Node) -> tuple[int, float]:
        """Give the number of EM iterations that held-out rows like best, and their mean log-likelihood."""
        best, chosen, stale = -np.inf, 0, 0
        for iteration in range(self.max_iter + 1):
            if iteration:
                node = _step(node, learner, rows.train, rows.cardinalities)
            network = circuit.to_circuit(node, rows.cardinalities)
            score = mean_log(circuit.log_probabilities(network, rows.held_out.codes, self.n_jobs), rows.held_out)
            stale = 0 if score > best + 1e-4 else stale + 1
            if score > best:
                best, chosen = score, iteration
            if stale == 3:
                break
        return chosen, best

    def _log_probabilities(self, rows: MergedRows) -> Floats:
        return circuit.log_probabilities(self._circuit, rows.codes, self.n_jobs)

    def _answer(self, rows: MergedRows, asked: Booleans) -> QueryResult:
        return circuit.query(self._circuit, rows, asked, self.n_jobs)


class _Grower:
    """Cuts rows and variables apart, from the top down."""

    def __init__(
        self, learner: TreeLearner, rows: TrainingRows, p_value: float, min_rows: float, rng: np.random.Generator
    ) -> None:
        self.learner, self.rows, self.p_value, self.min_rows, self.rng = learner, rows, p_value, min_rows, rng

    def grow_all(self) -> Node:
        """Learn a network of all rows and variables."""
        train, held_out = self.rows.train, self.rows.held_out
        return self._grow(train.weights, held_out.weights, np.arange(train.codes.shape[1]))

    def _grow(self, weights: Floats, held_weights: Floats, scope: Integers) -> Node:
        """Learn a network of the variables `scope` in rows of these weights, 0 for rows of other clusters."""
        groups = self._groups(weights, scope)
        if len(groups) > 1:
            return Product(tuple(self._grow(weights, held_weights, group) for group in groups))
        tree = self.learner.tree(weights, scope)
        if len(scope) == 1 or weights.sum() < self.min_rows or not held_weights.any():
            return tree
        return self._cluster(weights, held_weights, scope, tree) or tree

    def _groups(self, weights: Floats, scope: Integers) -> list[Integers]:
        """Give groups of variables that a G-test of pairs does not connect."""
        counts, offsets, _ = self.learner.counts(weights, scope)
        information = mutual_information(counts / weights.sum(), offsets)
        values = np.diff(offsets) - 1
        freedom = np.maximum(np.outer(values, values), 1)
        linked = chi2.sf(2.0 * weights.sum() * np.maximum(information, 0.0), freedom) < self.p_value
        groups, left = [], set(range(len(scope)))
        while left:
            group, frontier = set(), {min(left)}
            while frontier:
                group |= frontier
                frontier = {int(j) for i in frontier for j in np.flatnonzero(linked[i])} - group
            groups.append(scope[sorted(group)])
            left -= group
        return groups

    def _cluster(self, weights: Floats, held_weights: Floats, scope: Integers, tree: Tree) -> Node | None:
        """Try two clusters of rows; None where held-out rows like the one tree as well."""
        train, held_out = _rows_of(self.rows.train, weights), _rows_of(self.rows.held_out, held_weights)
        own = _SubLearner(self.learner, weights > 0)
        mixture, _, score = MixtureEM(own, train, scope).run(2, held_out, 15, self.rng)
        if score < mean_log(log_probabilities(tree, held_out.codes), held_out) + 1e-3:
            return None
        parts = mixture.joint_logs(self.rows.train.codes).argmax(axis=1)
        held_parts = mixture.joint_logs(self.rows.held_out.codes).argmax(axis=1)
        shares = np.array([weights[parts == part].sum() for part in (0, 1)])
        if shares.min() <= 0:
            return None
        children = tuple(
            self._grow(weights * (parts == part), held_weights * (held_parts == part), scope) for part in (0, 1)
        )
        return Sum(shares / shares.sum(), children)


class _SubLearner(TreeLearner):
    """A learner of some of the rows of another, with its prior."""

    def __init__(self, learner: TreeLearner, kept: Booleans) -> None:
        self.offsets, self.strength, self.whole = learner.offsets, learner.strength, learner.whole
        self.cells = learner.cells[kept]


def _rows_of(rows: MergedRows, weights: Floats) -> MergedRows:
    return rows._replace(weights=weights).only(np.flatnonzero(weights > 0))


def _step(node: Node, learner: TreeLearner, rows: MergedRows, cardinalities: tuple[int, ...]) -> Node:
    """Do one iteration of EM on all weights and trees."""
    network = circuit.to_circuit(node, cardinalities)
    logs, shares = np.empty(len(rows.codes)), np.empty((len(rows.codes), len(network.kinds)))
    node_shares(network, rows.codes, logs, shares)
    return _rebuild(node, iter((shares * rows.weights[:, None]).T), learner)[0]


def _rebuild(node: Node, counts: Iterator[Floats], learner: TreeLearner) -> tuple[Node, float]:
    """Learn a network again from the expected counts (rows,) of its nodes, which come children first; give its weight too."""
    if isinstance(node, Tree):
        own = next(counts)
        return learner.tree(own, np.sort(node.variables)), float(own.sum())
    children = [_rebuild(child, counts, learner) for child in node.children]
    total = float(next(counts).sum())
    parts = tuple(child for child, _ in children)
    if isinstance(node, Product):
        return Product(parts), total
    weights = np.array([weight for _, weight in children]) + 1.0
    return Sum(weights / weights.sum(), parts), total
