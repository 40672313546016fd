"""Dependency network: a probability tree for each variable given all others (Heckerman et al., 2000); answers by ordered Gibbs."""

from math import log
from typing import Any, NamedTuple

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from ldfm.inference.answers import QueryResult
from ldfm.parallel import map_in_order
from ldfm.peers import gibbs
from ldfm.peers.base import LearningPeer, TrainingRows
from ldfm.peers.kernels.clamping import Effort
from ldfm.peers.kernels.conditionals import ProbabilityTrees, log_conditionals
from ldfm.tables import Kinds, MergedRows, TableError, merge_rows
from ldfm.types import Booleans, Codes, Floats, Integers

LEAF_COSTS = (1.0, 2.0, 4.0, 8.0, 16.0)
STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


class Choice(NamedTuple):
    """Hyper-parameters of each variable's tree, and the mean over held-out rows of its log conditional."""

    leaf_cost: Floats
    strength: Floats
    held_out: Floats


class DependencyNetwork(LearningPeer):
    """Dependency network of probability trees.

    The trees need not agree on a joint distribution: answers are what ordered Gibbs sampling, variables in column order, tends to.
    They carry standard errors. Where trees are near-deterministic that limit is far away for any chain, and answers say what chains
    find that start from training rows.

    Parameters
    ----------
    leaf_cost
        Nats of training likelihood that a leaf must gain for each of its free probabilities, or it is pruned; None: chosen on
        held-out rows, for each variable.
    strength
        Weight, in rows, of a node's distribution in those of its children; None: chosen on held-out rows, for each variable.
    chains, burn_in, first_sweeps, sweeps
        Effort a row: chains, and sweeps of each before averaging, averaged at first, and averaged after each clamp. Half of the
        chains are drawn again at each clamp, the others stay alone.
    validation_fraction, kinds, n_jobs, random_state
        See `LearningPeer`.

    Attributes
    ----------
    trees_
        The trees, laid out in arrays.
    choice_
        Hyper-parameters and their held-out log-likelihood, by variable.
    """

    trees_: ProbabilityTrees
    choice_: Choice

    def __init__(
        self,
        leaf_cost: float | None = None,
        strength: float | None = None,
        chains: int = 200,
        burn_in: int = 50,
        first_sweeps: int = 20,
        sweeps: int = 4,
        validation_fraction: float = 0.2,
        kinds: Kinds = None,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.leaf_cost = leaf_cost
        self.strength = strength
        self.chains = chains
        self.burn_in = burn_in
        self.first_sweeps = first_sweeps
        self.sweeps = sweeps
        self.validation_fraction = validation_fraction
        self.kinds = kinds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def pseudo_log_likelihood(self, X: Any) -> Floats:
        """Give (rows,): the sum over the cells of complete rows of log p(cell | the other cells)."""
        codes = self._encoded(X).codes
        if (codes < 0).any():
            raise TableError("pseudo_log_likelihood needs complete rows")
        merged = merge_rows(codes)
        logs = np.empty(merged.codes.shape)
        log_conditionals(self.trees_, merged.codes, logs)
        sums: Floats = logs.sum(axis=1)[merged.places]
        return sums

    def _learn(self, rows: TrainingRows) -> None:
        def one_variable(child: int) -> tuple[tuple[float, float, float], _Tree]:
            choice = self._choose(rows, child)
            return choice, _learn_tree(rows.whole, rows.cardinalities, child, choice[0]).smoothed(choice[1])

        found = list(map_in_order(one_variable, range(len(rows.cardinalities)), self.n_jobs))
        self.choice_ = Choice(*np.array([choice for choice, _ in found]).T)
        self.trees_ = _to_arrays([tree for _, tree in found], rows.cardinalities)
        self._starts = gibbs.Starts.of(rows.whole, np.random.default_rng(self._seed()))

    def _choose(self, rows: TrainingRows, child: int) -> tuple[float, float, float]:
        """Compare leaf costs and strengths by how well held-out cells of one variable are predicted."""
        found = []
        held_out = rows.held_out
        for leaf_cost in LEAF_COSTS if self.leaf_cost is None else (self.leaf_cost,):
            tree = _learn_tree(rows.train, rows.cardinalities, child, leaf_cost)
            leaves = tree.leaves_of(held_out.codes)
            for strength in STRENGTHS if self.strength is None else (self.strength,):
                chances = tree.smoothed(strength).chances[leaves, held_out.codes[:, child]]
                score = float(held_out.weights @ np.log(chances) / held_out.weights.sum())
                found.append((leaf_cost, strength, score))
        return max(found, key=lambda choice: choice[2])

    def _answer(self, rows: MergedRows, asked: Booleans) -> QueryResult:
        effort = Effort(self.burn_in, self.first_sweeps, self.sweeps)
        sampling = gibbs.conditional_sampling(self.trees_, self.chains, effort, "ordered gibbs")
        return gibbs.query(sampling, self._starts, rows, asked, self._seed(), self.n_jobs)


class _Tree(NamedTuple):
    """One tree; a node's parent comes before it. `variables` is -1 for leaves, `chances` (nodes, values) counts at first."""

    variables: Integers
    codes: Integers
    otherwise: Integers
    equal: Integers
    chances: Floats

    def leaves_of(self, rows: Codes) -> Integers:
        """Give the leaf that each row falls into."""
        places = np.zeros(len(rows), dtype=np.int64)
        while True:
            looked_at = self.variables[places]
            inner = looked_at >= 0
            if not inner.any():
                return places
            same = rows[np.arange(len(rows)), looked_at] == self.codes[places]
            places = np.where(inner, np.where(same, self.equal[places], self.otherwise[places]), places)

    def smoothed(self, strength: float) -> "_Tree":
        """Turn counts into probabilities, each node's drawn toward its parent's, the root's toward uniform."""
        chances = self.chances.copy()
        values = chances.shape[1]
        chances[0] = (chances[0] + strength / values) / (chances[0].sum() + strength)
        for node in range(len(chances)):
            if self.variables[node] >= 0:
                for child in (self.otherwise[node], self.equal[node]):
                    counts = self.chances[child]
                    chances[child] = (counts + strength * chances[node]) / (counts.sum() + strength)
        return self._replace(chances=chances)


def _learn_tree(rows: MergedRows, cardinalities: tuple[int, ...], child: int, leaf_cost: float) -> _Tree:
    """Grow a tree on questions "has variable j value v?" and prune leaves that gain less likelihood than they cost."""
    kept = rows.weights > 0
    codes, weights = rows.codes[kept], rows.weights[kept]
    # the one question about a binary variable is whether it has its second value
    questions = [
        (j, v) for j, k in enumerate(cardinalities) if j != child for v in range(1 if k == 2 else 0, k if k > 1 else 0)
    ]
    if not questions:
        alone = np.bincount(codes[:, child], weights=weights, minlength=cardinalities[child])
        nothing = np.full(1, -1)
        return _Tree(nothing, nothing, nothing, nothing, alone[None].astype(np.float64))
    asked, wanted = np.array(questions).T
    cells = (codes[:, asked] == wanted).astype(np.float32)
    # the pruning cost is in bits a row
    cost = leaf_cost * max(1, cardinalities[child] - 1) / (weights.sum() * log(2.0))
    learner = DecisionTreeClassifier(criterion="entropy", ccp_alpha=cost, min_samples_split=4, random_state=0)
    learner.fit(cells, codes[:, child], sample_weight=weights)
    grown = learner.tree_
    counts = np.zeros((grown.node_count, cardinalities[child]))
    counts[:, learner.classes_] = grown.value[:, 0, :] * grown.weighted_n_node_samples[:, None]
    inner = grown.children_left >= 0
    question = np.where(inner, grown.feature, 0)
    return _Tree(
        np.where(inner, asked[question], -1),
        np.where(inner, wanted[question], -1),
        grown.children_left.astype(np.int64),
        grown.children_right.astype(np.int64),
        counts,
    )


def _to_arrays(trees: list[_Tree], cardinalities: tuple[int, ...]) -> ProbabilityTrees:
    """Put trees one after another; every node has a row of probabilities, those of inner nodes are never looked at."""
    roots = np.cumsum([0] + [len(tree.variables) for tree in trees])
    probabilities = np.zeros((roots[-1], max(cardinalities)))
    for root, tree in zip(roots[:-1], trees, strict=True):
        probabilities[root : root + len(tree.chances), : tree.chances.shape[1]] = tree.chances
    shifted = [
        (tree.otherwise + root, np.where(tree.variables >= 0, tree.equal, np.arange(len(tree.equal))) + root)
        for root, tree in zip(roots[:-1], trees, strict=True)
    ]
    return ProbabilityTrees(
        roots[:-1].astype(np.int64),
        np.concatenate([tree.variables for tree in trees]).astype(np.int64),
        np.concatenate([tree.codes for tree in trees]).astype(np.int64),
        np.concatenate([otherwise for otherwise, _ in shifted]).astype(np.int64),
        np.concatenate([equal for _, equal in shifted]).astype(np.int64),
        probabilities,
        np.array(cardinalities, dtype=np.int64),
        np.arange(len(cardinalities)),
    )
