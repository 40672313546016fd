"""Missing cells while learning: hidden variables, drawn again and again from their posterior.

Where the missing cells of a row have few joint states they are drawn exactly, given the known ones. Else a chain of the row's own
moves on with the weights, and follows them more slowly.
"""

import numpy as np

from ldfm.draws import fold, move
from ldfm.forests import log_sums
from ldfm.parallel import blocks
from ldfm.tables import MISSING, MergedRows
from ldfm.types import Codes, Floats, Integers
from ldfm.weights import ArcWeights

COPIES = 4  # completions of a row with missing cells; each counts as a part of the row
FEW_STATES = 64  # joint states of missing cells up to which they are drawn exactly
_BLOCK = 1024


class CompletedRows:
    """Rows whose missing cells hold draws.

    Parameters
    ----------
    rows
        Merged rows, with missing cells or without.
    cardinalities
        Number of values of each variable.
    key
        Seeds the draws.

    Attributes
    ----------
    codes, weights
        Complete rows and what each counts; rows with missing cells come several times, with parts of their weight.
    open_rows
        Which of them hold draws.
    """

    def __init__(self, rows: MergedRows, cardinalities: tuple[int, ...], key: tuple[int, ...]) -> None:
        gaps = (rows.codes == MISSING).any(axis=1)
        copies = np.where(gaps, COPIES, 1)
        self.known: Codes = np.repeat(rows.codes, copies, axis=0)
        self.weights: Floats = np.repeat(rows.weights / copies, copies)
        self.open_rows: Integers = np.flatnonzero(np.repeat(gaps, copies))
        self.codes: Codes = self.known.copy()
        self._key, self._cardinalities = key, cardinalities
        # in floating point: there may be more states than an integer can count
        self._states = np.where(self.known == MISSING, np.array(cardinalities, dtype=np.float64), 1.0).prod(axis=1)
        generator = np.random.default_rng([*key, 0])
        for i, k in enumerate(cardinalities):
            missing = np.flatnonzero(self.known[:, i] == MISSING)
            seen = self.known[:, i] != MISSING
            shares = np.bincount(self.known[seen, i], weights=self.weights[seen], minlength=k) + 1e-3
            self.codes[missing, i] = generator.choice(k, size=len(missing), p=shares / shares.sum())

    def redraw(
        self, weights: ArcWeights, step: int, sweeps: int, n_jobs: int | None, among: Integers | None = None
    ) -> None:
        """Move the draws of all rows, or of some, on by some sweeps under a model."""
        places = self.open_rows if among is None else among[np.isin(among, self.open_rows)]
        few = self._states[places] <= FEW_STATES
        for block, rows in enumerate(blocks(int(few.sum()), _BLOCK)):
            chosen = places[few][rows]
            generator = np.random.default_rng([*self._key, 2, step, block])
            self.codes[chosen] = self._draw_exactly(weights, chosen, generator, n_jobs)
        places = places[~few]
        if len(places):
            codes = self.codes[places].astype(np.int64)
            known = self.known[places].astype(np.int64)
            move(fold(weights), known, codes, np.full(codes.shape, -1), sweeps, (*self._key, 1, step), n_jobs)
            self.codes[places] = codes

    def _draw_exactly(
        self, weights: ArcWeights, places: Integers, generator: np.random.Generator, n_jobs: int | None
    ) -> Codes:
        """Give a completion of each of some rows, drawn among all it has: the largest of log probabilities plus Gumbel noise."""
        counts = self._states[places].astype(np.int64)
        firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        codes = np.repeat(self.known[places], counts, axis=0)
        rest = np.arange(len(codes)) - np.repeat(firsts, counts)
        for i, k in enumerate(self._cardinalities):
            missing = codes[:, i] == MISSING
            codes[missing, i] = rest[missing] % k
            rest[missing] //= k
        heights = log_sums(weights, codes, n_jobs) + generator.gumbel(size=len(codes))
        tops = np.repeat(np.maximum.reduceat(heights, firsts), counts)
        best = np.flatnonzero(heights == tops)
        # ties, as between completions that are all impossible: the first
        chosen: Codes = codes[best[np.searchsorted(best, firsts)]]
        return chosen
