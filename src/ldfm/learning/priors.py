"""Priors over the rows of the weight table, and the modes they give the M-step.

A row is the distribution of what one parent generates: the arc weights to all values it can reach and, in an LDFM-S, its stop
weight. A prior is symmetric over these outcomes.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.special import xlogy

from ldfm.types import Booleans, Floats


@runtime_checkable
class Prior(Protocol):
    """What the M-step asks of a prior."""

    def modes(self, counts: Floats, allowed: Booleans) -> Floats:
        """Give for each row of expected counts (rows, outcomes) the most probable distribution over its allowed outcomes.

        NaN throughout a row where all distributions are equally good.
        """

    def log_density(self, rows: Floats, allowed: Booleans) -> float:
        """Give the log prior density of all rows, up to a constant."""


def _shares(counts: Floats, allowed: Booleans) -> Floats:
    """Divide each row by its sum; a row without any count becomes NaN: its distribution is open."""
    kept = np.where(allowed, counts, 0.0)
    totals = kept.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(kept, totals, out=np.full(counts.shape, np.nan), where=totals > 0)
    return shares


@dataclass(frozen=True)
class NoPrior:
    """Maximum likelihood."""

    def modes(self, counts: Floats, allowed: Booleans) -> Floats:
        """Normalise each row."""
        return _shares(counts, allowed)

    def log_density(self, rows: Floats, allowed: Booleans) -> float:
        """Give 0."""
        del rows, allowed
        return 0.0


@dataclass(frozen=True)
class Dirichlet:
    """Symmetric Dirichlet prior: `alpha - 1` is added to every count.

    Parameters
    ----------
    alpha
        At least 1; 1 is maximum likelihood. Below 1 the mode is not unique: see `ModifiedDirichlet`.
    """

    alpha: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.alpha) and self.alpha >= 1):
            raise ValueError(
                f"alpha of a Dirichlet prior must be a number >= 1, not {self.alpha}; see ModifiedDirichlet"
            )

    def modes(self, counts: Floats, allowed: Booleans) -> Floats:
        """Add alpha - 1 and normalise each row."""
        return _shares(counts + (self.alpha - 1.0), allowed)

    def log_density(self, rows: Floats, allowed: Booleans) -> float:
        """Sum (alpha - 1) log p over all outcomes."""
        return float(xlogy(self.alpha - 1.0, rows[allowed]).sum())


@dataclass(frozen=True)
class ModifiedDirichlet:
    """Dirichlet density restricted to probabilities of at least `floor` (Tu, EMNLP 2016): a strong push to few large weights.

    Parameters
    ----------
    alpha
        Any real number; the lower, the sparser.
    floor
        Smallest probability, > 0. All outcomes at the floor must leave room: floor * outcomes < 1.
    """

    alpha: float = 0.0
    floor: float = 1e-6

    def __post_init__(self) -> None:
        if not np.isfinite(self.alpha):
            raise ValueError(f"alpha of a modified Dirichlet prior must be a finite number, not {self.alpha}")
        if not 0 < self.floor < 1:
            raise ValueError(f"floor of a modified Dirichlet prior must be between 0 and 1, not {self.floor}")

    def modes(self, counts: Floats, allowed: Booleans) -> Floats:
        """Give the mode of each row; O(k log k) a row of k outcomes."""
        rows = np.zeros(counts.shape)
        for row in range(len(counts)):
            places = allowed[row]
            pseudo_counts = counts[row, places] + (self.alpha - 1.0)
            if not pseudo_counts.any():
                rows[row] = np.nan
            else:
                rows[row, places] = floored_mode(pseudo_counts, self.floor)
        return rows

    def log_density(self, rows: Floats, allowed: Booleans) -> float:
        """Sum (alpha - 1) log p over all outcomes, -inf where some lies under the floor."""
        values = rows[allowed]
        if (values < self.floor * (1 - 1e-9)).any():
            return -np.inf
        return float((self.alpha - 1.0) * np.log(values).sum())


def floored_mode(pseudo_counts: Floats, floor: float) -> Floats:
    """Maximise  sum_t a_t log p_t  over p_t >= floor, sum p = 1, for any real a.

    Outcomes with a_t <= 0 sit on the floor: moving mass from one of them to one with a_t > 0 never loses. Those with a_t > 0 share
    what is left in proportion to a_t, except that shares under the floor are raised to it. With no a_t > 0 the sum is convex, so
    its maximum is at a corner: the outcome that loses least takes all that the floor leaves.
    """
    size = len(pseudo_counts)
    if floor * size >= 1:
        raise ValueError(f"floor {floor} is too high for {size} outcomes: it must be below 1 / {size}")
    order = np.argsort(-pseudo_counts, kind="stable")
    sorted_counts = pseudo_counts[order]
    positive = int((sorted_counts > 0).sum())
    mode = np.full(size, floor)
    if positive <= 1:
        mode[order[0]] = 1.0 - floor * (size - 1)
        return mode
    # keep the m largest above the floor: right for the largest m whose smallest share is still at least the floor
    sums = np.cumsum(sorted_counts[:positive])
    room = 1.0 - floor * (size - np.arange(1, positive + 1))
    fits = np.flatnonzero(sorted_counts[:positive] * room >= floor * sums)
    kept = int(fits[-1]) + 1
    mode[order[:kept]] = sorted_counts[:kept] / sums[kept - 1] * room[kept - 1]
    return mode
