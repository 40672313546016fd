"""Chains of one row: where they start and how they move."""

from typing import Literal

import numpy as np

from ldfm.inference.exact import ImpossibleEvidenceError
from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.gibbs import gibbs_sweeps
from ldfm.kernels.starts import grow_forest
from ldfm.kernels.sweeps import Folded, blocked_sweeps, tree_sweeps
from ldfm.types import Codes, Floats, Integers
from ldfm.weights import ArcWeights

Kernel = Literal["blocked", "tree", "gibbs"]
_GROWTHS = 20  # tries to grow a forest that fits the known cells


def fold(weights: ArcWeights) -> Folded:
    """Give a model as samplers see it."""
    stops = 1.0 if weights.stop is None else weights.stop[1:]
    table = np.ascontiguousarray(weights.table * stops)
    return Folded(table, np.ascontiguousarray(table.T), weights.offsets, max(weights.cardinalities))


class Chains:
    """Some chains of one row, run one after the other.

    Parameters
    ----------
    model
        The model.
    known
        (n,): code of a known cell, -1 of a free one.
    codes, parents
        (chains, n): values and forests to start from.
    generator
        The row's own random numbers.
    """

    def __init__(
        self, model: Folded, known: Codes, codes: Integers, parents: Integers, generator: np.random.Generator
    ) -> None:
        self.model = model
        self.clamped = known.astype(np.int64)
        self.codes, self.parents = codes, parents
        self.generator = generator
        self.sweeps = 0
        self._work = make_workspace(codes.shape[1])

    def move(self, kernel: Kernel, sweeps: int, records: int = 0) -> Floats:
        """Run every chain for some sweeps; give (chains, records, n, most values) averages of conditionals.

        With records, `sweeps` must be a multiple of them.
        """
        visits = np.zeros((len(self.codes), records, self.codes.shape[1], self.model.most))
        for chain in range(len(self.codes)):
            self._sweep(kernel, chain, sweeps, visits[chain])
        self.sweeps += len(self.codes) * sweeps
        return visits * (records / sweeps)

    def _sweep(self, kernel: Kernel, chain: int, sweeps: int, visits: Floats) -> None:
        model, clamped, codes, parents = self.model, self.clamped, self.codes[chain], self.parents[chain]
        if kernel == "blocked":
            blocked_sweeps(model, clamped, codes, parents, sweeps, self._work, self.generator, visits)
        elif kernel == "tree":
            tree_sweeps(model, clamped, codes, parents, sweeps, self.generator, visits)
        else:
            gibbs_sweeps(model, clamped, codes, sweeps, self._work, self.generator, visits)


def start_chains(model: Folded, known: Codes, chains: int, generator: np.random.Generator, row: int) -> Chains:
    """Start chains at states of positive probability that have the known cells, each grown by itself.

    A row for which none can be grown is an `ImpossibleEvidenceError`.
    """
    codes = np.zeros((chains, len(known)), dtype=np.int64)
    parents = np.full(codes.shape, -1, dtype=np.int64)
    clamped = known.astype(np.int64)
    for chain in range(chains):
        if not any(grow_forest(model, clamped, generator, codes[chain], parents[chain]) for _ in range(_GROWTHS)):
            raise ImpossibleEvidenceError(
                f"row {row}: no completion of its known cells with positive probability was found"
            )
    return Chains(model, known, codes, parents, generator)
