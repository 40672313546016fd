"""Mixture of Chow-Liu trees, learned by EM (Meila and Jordan, 2000); answers are exact."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from ldfm.inference.answers import QueryResult
from ldfm.peers import circuit
from ldfm.peers.base import DensityPeer, TrainingRows, mean_log
from ldfm.peers.chow_liu import Tree, learn_tree, log_probabilities, one_hot, pair_counts, smoothed, uniform_pairs
from ldfm.peers.kernels.circuits import Circuit
from ldfm.tables import MergedRows
from ldfm.types import Booleans, Floats, Integers

COMPONENTS = (1, 2, 3, 5, 8, 12, 18, 27, 40)
STRENGTHS = (3.0, 10.0, 30.0, 100.0)


class Mixture(NamedTuple):
    """Weights (components,) and trees."""

    weights: Floats
    trees: tuple[Tree, ...]

    def joint_logs(self, rows: MergedRows) -> Floats:
        """Give (rows, components): log of weight times probability of each row under each component."""
        logs = np.stack([log_probabilities(tree, rows.codes) for tree in self.trees], axis=1)
        joint: Floats = logs + np.log(self.weights)
        return joint


class Choice(NamedTuple):
    """Hyper-parameters, and what the held-out rows say of them."""

    components: int
    strength: float
    iterations: int
    held_out: float


class MixtureOfTrees(DensityPeer):
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
        See `Peer`.

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
        kinds: Mapping[str, str] | None = None,
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
        offsets = np.concatenate([[0], np.cumsum(rows.cardinalities)])
        seed = int(self._seed().generate_state(1)[0])
        self.choice_ = self._choose(rows, offsets, seed)
        learner = _Learner(rows.whole, offsets, self.choice_.strength)
        mixture = learner.start(self.choice_.components, np.random.default_rng(seed))
        for _ in range(self.choice_.iterations):
            mixture = learner.step(mixture)
        self.mixture_ = mixture
        self._circuit = _to_circuit(mixture, rows.cardinalities)

    def _choose(self, rows: TrainingRows, offsets: Integers, seed: int) -> Choice:
        """Try more and more components under each prior, until held-out rows like it less twice."""
        best: Choice | None = None
        for strength in STRENGTHS if self.strength is None else (self.strength,):
            learner = _Learner(rows.train, offsets, strength)
            worse, top = 0, -np.inf
            for components in COMPONENTS if self.components is None else (self.components,):
                iterations, score = self._held_out(learner, components, rows.held_out, seed)
                worse = 0 if score > top else worse + 1
                top = max(top, score)
                if best is None or score > best.held_out:
                    best = Choice(components, strength, iterations, score)
                if worse == 2:
                    break
        assert best is not None
        return best

    def _held_out(self, learner: "_Learner", components: int, held_out: MergedRows, seed: int) -> tuple[int, float]:
        """Give the number of iterations that held-out rows like best, and their mean log-likelihood."""
        mixture = learner.start(components, np.random.default_rng(seed))
        best, chosen, stale = -np.inf, 0, 0
        for iteration in range(1, self.max_iter + 1):
            mixture = learner.step(mixture)
            score = mean_log(logsumexp(mixture.joint_logs(held_out), axis=1), held_out)
            stale = 0 if score > best + 1e-4 else stale + 1
            if score > best:
                best, chosen = score, iteration
            if stale == 4 or components == 1:
                break
        return chosen, best

    def _log_probabilities(self, rows: MergedRows) -> Floats:
        return circuit.log_probabilities(self._circuit, rows.codes, self.n_jobs)

    def _answer(self, rows: MergedRows, asked: Booleans) -> QueryResult:
        return circuit.query(self._circuit, rows, asked, self.n_jobs)


class _Learner:
    """EM on one set of rows."""

    def __init__(self, rows: MergedRows, offsets: Integers, strength: float) -> None:
        self.rows, self.offsets, self.strength = rows, offsets, strength
        self.scope = np.arange(len(offsets) - 1)
        self.cells = one_hot(rows.codes, offsets)
        self.whole = smoothed(pair_counts(self.cells, rows.weights), uniform_pairs(offsets), 1.0)

    def start(self, components: int, rng: np.random.Generator) -> Mixture:
        """Give each row at random mostly to one component."""
        shares = np.full((len(self.cells), components), 0.3 / components)
        shares[np.arange(len(shares)), rng.integers(0, components, len(shares))] += 0.7
        return self._maximise(shares)

    def step(self, mixture: Mixture) -> Mixture:
        """Do one iteration of EM."""
        logs = mixture.joint_logs(self.rows)
        return self._maximise(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)))

    def _maximise(self, shares: Floats) -> Mixture:
        counts = shares * self.rows.weights[:, None]
        weights = counts.sum(axis=0) + 1.0
        trees = []
        for part in counts.T:
            pairs = smoothed(pair_counts(self.cells, part), self.whole, self.strength)
            trees.append(learn_tree(pairs, self.offsets, self.scope))
        return Mixture(weights / weights.sum(), tuple(trees))


def _to_circuit(mixture: Mixture, cardinalities: tuple[int, ...]) -> Circuit:
    return circuit.to_circuit(circuit.Sum(mixture.weights, mixture.trees), cardinalities)
