"""Independent draws of a mixed model, and its partition, by way of a model that can be summed.

Densities integrate to 1 whatever the parents' numbers are. So where no value hangs on a number, the integral over all numbers of
the forest sum of a row is the forest sum of the mixing weights alone, and the partition is the sum of these over the values of
discrete variables. Draws are as easy: values from that table, a forest of mixing weights given the values, numbers down the forest.

Where values hang on numbers, each logit is replaced by the mean share that a value has. Draws of this *plain* model have weights,
the ratio of the forest sums of the two models; they average to the ratio of the partitions.
"""

from dataclasses import replace
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import logsumexp

from ldfm.forests import expected_statistics, log_sums
from ldfm.kernels.elimination import make_workspace
from ldfm.mixed_weights import MixedWeights
from ldfm.types import Floats, Integers

MAX_STATES = 1 << 10  # of the discrete variables, up to which they are enumerated, six times a step of learning
_WALKS = 50  # steps of a walk a variable
_EVEN = 0.1  # part of the plain model's shares that is the same for all values: no weight is larger than its inverse


def is_summable(weights: MixedWeights) -> bool:
    """Say whether the values of discrete variables can be enumerated."""
    return prod(weights.cardinalities) <= MAX_STATES


class Drawn(NamedTuple):
    """Draws with weights.

    Attributes
    ----------
    cells
        (draws, n)
    log_weights
        (draws,): their mean is the ratio of the partitions of the model and of the plain one.
    """

    cells: Floats
    log_weights: Floats

    @property
    def shares(self) -> Floats:
        """(draws,): the weights, adding up to 1."""
        found: Floats = np.exp(self.log_weights - logsumexp(self.log_weights))
        return found

    @property
    def log_ratio(self) -> float:
        """Log of the mean weight."""
        return float(logsumexp(self.log_weights) - np.log(len(self.log_weights)))

    @property
    def standard_error(self) -> float:
        """Of `log_ratio`."""
        return float(len(self.shares) * self.shares.std() / np.sqrt(len(self.shares)))

    @property
    def effective(self) -> float:
        """Part of the draws that unweighted ones would have to be to say as much."""
        return float(1.0 / (len(self.shares) * (self.shares**2).sum()))


class PlainModel:
    """A mixed model with a constant in place of each logit, whose partition and draws are exact.

    Parameters
    ----------
    weights
        Of the model; its discrete variables must have few joint states.
    """

    def __init__(self, weights: MixedWeights) -> None:
        self.given = weights
        shares = _mean_shares(weights) if weights.logits.any() else np.ones(weights.table.shape)
        self.weights = replace(
            weights,
            intercepts=np.where(weights.logits, np.log(shares), weights.intercepts),
            slopes=np.where(weights.logits, 0.0, weights.slopes),
        )
        numeric = weights.numeric
        self._flat = replace(
            self.weights,
            intercepts=np.where(numeric, 0.0, self.weights.intercepts),
            slopes=np.where(numeric, 0.0, self.weights.slopes),
            deviations=np.ones(shares.shape),
            relations=None,
        )
        states = np.unravel_index(np.arange(prod(weights.cardinalities)), weights.cardinalities)
        self._codes = np.stack(states, axis=1).astype(np.float64)
        peaks = 0.5 * sum(weights.continuous) * np.log(2.0 * np.pi)
        self._logs = log_sums(self._flat, self._codes) + peaks

    @cached_property
    def log_partition(self) -> float:
        """Of the plain model."""
        return float(logsumexp(self._logs))

    def counts(self) -> Floats:
        """Give (S + 1, S): the expected arc counts of a row of the plain model."""
        return expected_statistics(self._flat, self._codes, np.exp(self._logs - self.log_partition)).arcs

    def draw(self, count: int, generator: np.random.Generator) -> Floats:
        """Give (count, n) draws of the plain model: independent, but that values come in their due shares."""
        n = self._codes.shape[1]
        points = (np.arange(count) + generator.random()) / count
        cumulative = np.cumsum(np.exp(self._logs - self.log_partition))
        states = np.minimum(np.searchsorted(cumulative, points), len(cumulative) - 1)
        cells, parents = self._codes[states], np.empty((count, n), dtype=np.int64)
        for state in np.unique(states):
            here = np.flatnonzero(states == state)
            drawn, matrices = np.empty((1, len(here), n), dtype=np.int64), np.empty((1, n + 1, n))
            row = self._codes[state : state + 1]
            self._flat.fill_draws(row, matrices, make_workspace(n), _WALKS * n, generator, drawn)
            parents[here] = drawn[0]
        self._fill_numbers(cells, parents, generator)
        return self.given.cells(cells)

    def _fill_numbers(self, cells: Floats, parents: Integers, generator: np.random.Generator) -> None:
        """Draw numbers down the forests."""
        weights, count = self.weights, len(cells)
        numbers = np.flatnonzero(weights.continuous)
        noise = generator.standard_normal((count, len(numbers)))
        cells[:, numbers] = np.nan
        while np.isnan(cells).any():  # every round fills the children of what is filled
            for place, j in enumerate(numbers):
                parent, t = parents[:, j], weights.offsets[j]
                x = np.where(parent < 0, 0.0, cells[np.arange(count), parent])
                ready = np.isnan(cells[:, j]) & ~np.isnan(x)
                above = parent[ready]
                from_number = np.array(weights.continuous)[above] & (above >= 0)
                row = np.where(
                    above < 0, 0, 1 + weights.offsets[above] + np.where(from_number, 0, x[ready]).astype(np.int64)
                )
                means = weights.intercepts[row, t] + weights.slopes[row, t] * np.where(from_number, x[ready], 0.0)
                cells[ready, j] = means + weights.deviations[row, t] * noise[ready, place]

    def draw_weighted(self, count: int, generator: np.random.Generator, n_jobs: int | None = 1) -> Drawn:
        """Give draws of the plain model with the weights that make them draws of the model."""
        cells = self.draw(count, generator)
        if not self.given.logits.any():
            return Drawn(cells, np.zeros(count))
        return Drawn(cells, log_sums(self.given, cells, n_jobs) - log_sums(self.weights, cells, n_jobs))


def _mean_shares(weights: MixedWeights) -> Floats:
    """Give (S + 1, S): the mean of every softmax over a standard normal number, some of it spread evenly."""
    points, masses = hermegauss(15)
    first, kinds = weights.offsets[:-1], weights.cardinalities
    mean = np.zeros(weights.table.shape)
    for x, mass in zip(points, masses / masses.sum(), strict=True):
        logits = weights.intercepts + weights.slopes * x
        logits = logits - np.repeat(np.maximum.reduceat(logits, first, axis=1), kinds, axis=1)
        powers = np.exp(logits)
        mean += mass * powers / np.repeat(np.add.reduceat(powers, first, axis=1), kinds, axis=1)
    found: Floats = (1.0 - _EVEN) * mean + _EVEN / np.repeat(kinds, kinds)
    return found
