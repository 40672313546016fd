"""Mixture of Chow-Liu trees, learned by EM (Meila and Jordan, 2000); answers are exact."""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from ldfm.inference.answers import QueryResult
from ldfm.peers import circuit
from ldfm.peers.base import DensityPeer, LearningPeer, TrainingRows, mean_log
from ldfm.peers.chow_liu import Tree, TreeLearner, log_probabilities
from ldfm.tables import Kinds, MergedRows
from ldfm.types import Booleans, Codes, Floats, Integers

COMPONENTS = (1, 2, 3, 5, 8, 12, 18, 27, 40)
STRENGTHS = (3.0, 10.0, 30.0, 100.0)
LAST_ITERATIONS = 3  # on all rows, from what was learned without those held out


class Mixture(NamedTuple):
    """Weights (components,) and trees."""

    weights: Floats
    trees: tuple[Tree, ...]

    def joint_logs(self, codes: Codes) -> Floats:
        """Give (rows, components): log of weight times probability of each complete row under each component."""
        logs = np.stack([log_probabilities(tree, codes) for tree in self.trees], axis=1)
        joint: Floats = logs + np.log(self.weights)
        return joint


class Choice(NamedTuple):
    """Hyper-parameters, and what the held-out rows say of them."""

    components: int
    strength: float
    iterations: int
    held_out: float


class MixtureOfTrees(DensityPeer, LearningPeer):
    """Mixture of Chow-Liu trees.

    Each component's pair table is its expected counts plus `strength` rows like the table of all rows, so that components differ
    from the whole only as far as rows say so.

    Parameters
    ----------
    components
        Number of trees; None: chosen on held-out rows.
    strength
        Weight of the prior of a component, in rows; None: chosen on held-out rows.
    max_iter
        Most iterations of EM; held-out rows may stop it sooner.
    validation_fraction, kinds, n_jobs, random_state
        See `LearningPeer`.

    Attributes
    ----------
    mixture_
        The weights and trees.
    choice_
        Hyper-parameters and their held-out mean log-likelihood.
    """

    mixture_: Mixture
    choice_: Choice

    def __init__(
        self,
        components: int | None = None,
        strength: float | None = None,
        max_iter: int = 60,
        validation_fraction: float = 0.2,
        kinds: Kinds = None,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.components = components
        self.strength = strength
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.kinds = kinds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, rows: TrainingRows) -> None:
        self.choice_, mixture = self._choose(rows)
        if rows.whole is not rows.train:
            learner = TreeLearner(rows.whole.codes, rows.whole.weights, rows.cardinalities, self.choice_.strength)
            em = MixtureEM(learner, rows.whole)
            for _ in range(LAST_ITERATIONS):
                mixture = em.step(mixture)
        self.mixture_ = mixture
        self._circuit = circuit.to_circuit(circuit.Sum(mixture.weights, mixture.trees), rows.cardinalities)

    def _choose(self, rows: TrainingRows) -> tuple[Choice, Mixture]:
        """Try more and more components under each prior, until held-out rows like it less twice."""
        seed = int(self._seed().generate_state(1)[0])
        found: list[tuple[Choice, Mixture]] = []
        for strength in STRENGTHS if self.strength is None else (self.strength,):
            em = MixtureEM(TreeLearner(rows.train.codes, rows.train.weights, rows.cardinalities, strength), rows.train)
            worse, top = 0, -np.inf
            for components in COMPONENTS if self.components is None else (self.components,):
                mixture, iterations, score = em.run(
                    components, rows.held_out, self.max_iter, np.random.default_rng(seed)
                )
                found.append((Choice(components, strength, iterations, score), mixture))
                worse = 0 if score > top else worse + 1
                top = max(top, score)
                if worse == 2:
                    break
        return max(found, key=lambda pair: pair[0].held_out)

    def _log_probabilities(self, rows: MergedRows) -> Floats:
        return circuit.log_probabilities(self._circuit, rows.codes, self.n_jobs)

    def _answer(self, rows: MergedRows, asked: Booleans) -> QueryResult:
        return circuit.query(self._circuit, rows, asked, self.n_jobs)


class MixtureEM:
    """EM for mixtures of trees over some of the variables.

    Parameters
    ----------
    learner
        Learns trees from `rows`.
    rows
        The rows.
    scope
        The variables; None: all.
    """

    def __init__(self, learner: TreeLearner, rows: MergedRows, scope: Integers | None = None) -> None:
        self.learner, self.rows = learner, rows
        self.scope = np.arange(rows.codes.shape[1]) if scope is None else scope

    def start(self, components: int, rng: np.random.Generator) -> Mixture:
        """Give each row at random mostly to one component."""
        shares = np.full((len(self.rows.codes), components), 0.3 / components)
        shares[np.arange(len(shares)), rng.integers(0, components, len(shares))] += 0.7
        return self._maximise(shares)

    def step(self, mixture: Mixture) -> Mixture:
        """Do one iteration."""
        logs = mixture.joint_logs(self.rows.codes)
        return self._maximise(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)))

    def run(
        self, components: int, held_out: MergedRows, max_iter: int, rng: np.random.Generator
    ) -> tuple[Mixture, int, float]:
        """Give the mixture that held-out rows like best, after how many iterations, and their mean log-likelihood."""
        mixture = self.start(components, rng)
        best, chosen, top, stale = mixture, 0, -np.inf, 0
        for iteration in range(1, max_iter + 1):
            mixture = self.step(mixture)
            score = mean_log(logsumexp(mixture.joint_logs(held_out.codes), axis=1), held_out)
            stale = 0 if score > top + 1e-4 else stale + 1
            if score > top:
                best, chosen, top = mixture, iteration, score
            if stale == 4 or components == 1:
                break
        return best, chosen, top

    def _maximise(self, shares: Floats) -> Mixture:
        counts = shares * self.rows.weights[:, None]
        weights = counts.sum(axis=0) + 1.0
        trees = tuple(self.learner.tree(part, self.scope) for part in counts.T)
        return Mixture(weights / weights.sum(), trees)
