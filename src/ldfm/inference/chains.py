"""Chains of one row: where they start and how they move."""

from typing import Literal

import numpy as np

from ldfm.draws import no_visits
from ldfm.inference.exact import ImpossibleEvidenceError
from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.forest_draws import NO_FOREST
from ldfm.kernels.gibbs import gibbs_sweeps
from ldfm.kernels.starts import grow_forest
from ldfm.kernels.sweeps import Folded, blocked_sweeps, draw_forests_of, tree_sweeps
from ldfm.parallel import blocks, stop_if_unwanted
from ldfm.types import Codes, Floats, Integers

Kernel = Literal["blocked", "tree", "gibbs"]
LONG_CALL = 100  # sweeps of some chains that one call of a kernel may make: Ctrl-C waits for it to end
SOME_CHAINS = 16  # that one call runs
_GROWTHS = 20  # tries to grow a forest that fits the known cells


class Chains:
    """Some chains of one row.

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
        parts = records if records and sweeps > LONG_CALL else 1
        for some in blocks(len(self.codes), SOME_CHAINS):
            for part in range(parts):
                seen = slice(part * records // parts, (part + 1) * records // parts)
                visits[some, seen] = self._sweep(kernel, some, sweeps // parts, records // parts)
        self.sweeps += len(self.codes) * sweeps
        return visits * (records / sweeps)

    def _sweep(self, kernel: Kernel, some: slice, sweeps: int, records: int) -> Floats:
        """Run some chains; give (chains, records, n, most values) sums of conditionals."""
        model, clamped, codes, parents = self.model, self.clamped, self.codes[some], self.parents[some]
        visits = np.zeros((len(codes), records, codes.shape[1], model.most))
        stop_if_unwanted()
        if kernel == "blocked":
            rows = np.tile(clamped, (len(codes), 1))
            blocked_sweeps(model, rows, codes, parents, sweeps, self._work, self.generator, visits)
            return visits
        for chain in range(len(codes)):
            stop_if_unwanted()
            if kernel == "tree":
                tree_sweeps(model, clamped, codes[chain], parents[chain], sweeps, self.generator, visits[chain])
            else:
                gibbs_sweeps(model, clamped, codes[chain], sweeps, self._work, self.generator, visits[chain])
        return visits


class Starts:
    """States to start chains from: draws of the model, those first that agree best with what is known of a row.

    Parameters
    ----------
    draws
        (draws, n) codes.
    cardinalities
        Number of values of each variable.
    """

    def __init__(self, draws: Codes, cardinalities: tuple[int, ...]) -> None:
        self.draws = draws
        self._forests: Integers | None = None
        # agreement on a rare value says more than on a frequent one
        self._surprise = [
            -np.log((np.bincount(draws[:, i], minlength=k) + 0.5) / (len(draws) + 0.5 * k))
            for i, k in enumerate(cardinalities)
        ]

    def forests(self, model: Folded) -> Integers:
        """Give a forest of each draw, (draws, n), drawn when first asked for and then always the same."""
        if self._forests is None:
            codes = self.draws.astype(np.int64)
            forests = np.empty_like(codes)
            generator = np.random.default_rng(0)  # threads that ask at the same time draw the same
            draw_forests_of(model, codes, make_workspace(codes.shape[1]), generator, forests)
            self._forests = forests
        return self._forests

    def choose(self, known: Codes, count: int, generator: np.random.Generator) -> Integers:
        """Give (count, n): draws that agree with the known cells as far as any do, with the known cells put in."""
        order = generator.permutation(len(self.draws))
        agreement = np.zeros(len(order))
        given = np.flatnonzero(known >= 0)
        for i in given:
            agreement += (self.draws[order, i] == known[i]) * self._surprise[i][known[i]]
        best = order[np.argsort(-agreement, kind="stable")[:count]]
        codes = self.draws[np.resize(generator.permutation(best), count)].astype(np.int64)
        codes[:, given] = known[given]
        return codes


def move_on(
    model: Folded, known: Codes, codes: Integers, parents: Integers, sweeps: int, generator: np.random.Generator
) -> None:
    """Run the blocked sampler on chains (chains, n) of one row, in place; some at a time, for Ctrl-C waits for them."""
    work, clamped = make_workspace(len(known)), known.astype(np.int64)
    for some in blocks(len(codes), SOME_CHAINS):
        stop_if_unwanted()
        rows = np.tile(clamped, (some.stop - some.start, 1))
        nothing = no_visits(model, codes[some])
        blocked_sweeps(model, rows, codes[some], parents[some], sweeps, work, generator, nothing)


def start_states(
    model: Folded, known: Codes, count: int, generator: np.random.Generator, row: int, starts: Starts
) -> tuple[Integers, Integers]:
    """Give values and forests (count, n) of positive probability that have the known cells.

    Where a draw of the model with the known cells put in is impossible, a forest is grown instead. A row for which none can be
    grown is an `ImpossibleEvidenceError`.
    """
    codes = starts.choose(known, count, generator)
    parents = np.empty(codes.shape, dtype=np.int64)
    draw_forests_of(model, codes, make_workspace(codes.shape[1]), generator, parents)
    clamped = known.astype(np.int64)
    for place in np.flatnonzero(parents[:, 0] == NO_FOREST):
        if not any(grow_forest(model, clamped, generator, codes[place], parents[place]) for _ in range(_GROWTHS)):
            raise ImpossibleEvidenceError(
                f"row {row}: no completion of its known cells with positive probability was found"
            )
    return codes, parents
