"""Missing cells of mixed rows while learning: hidden variables, held by chains that move on with the weights."""

import numpy as np

from ldfm.mixed_draws import move
from ldfm.mixed_weights import MixedWeights
from ldfm.tables import MergedRows
from ldfm.types import Floats, Integers

COPIES = 4  # completions of a row with missing cells; each counts as a part of the row
_BOTH_START = 5  # more sweeps at the first step: the start ignores all dependencies


class MixedRows:
    """Rows of cells whose missing ones (NaN) hold draws; attributes as in `ldfm.learning.completion.CompletedRows`.

    Parameters
    ----------
    rows
        Merged rows, with missing cells or without.
    key
        Seeds the draws.
    """

    def __init__(self, rows: MergedRows, key: tuple[int, ...]) -> None:
        gaps = np.isnan(rows.codes).any(axis=1)
        copies = np.where(gaps, COPIES, 1)
        self.known: Floats = np.repeat(rows.codes, copies, axis=0).astype(np.float64)
        self.weights: Floats = np.repeat(rows.weights / copies, copies)
        self.open_rows: Integers = np.flatnonzero(np.repeat(gaps, copies))
        self.codes: Floats = self.known.copy()
        self._key = key
        generator = np.random.default_rng([*key, 0])
        for i in range(self.known.shape[1]):
            missing = np.isnan(self.known[:, i])
            seen = np.flatnonzero(~missing & (self.weights > 0))
            if missing.any() and len(seen):
                shares = self.weights[seen] / self.weights[seen].sum()
                self.codes[missing, i] = self.known[generator.choice(seen, size=int(missing.sum()), p=shares), i]
            elif missing.any():
                self.codes[missing, i] = 0.0

    def redraw(
        self, weights: MixedWeights, step: int, sweeps: int, n_jobs: int | None, among: Integers | None = None
    ) -> None:
        """Move the draws of all rows, or of some, on by some sweeps under a model."""
        places = self.open_rows if among is None else among[np.isin(among, self.open_rows)]
        if len(places):
            cells = self.codes[places]
            parents = np.full(cells.shape, -1, dtype=np.int64)
            count = sweeps + (_BOTH_START if step == 0 else 0)
            move(weights.model, self.known[places], cells, parents, count, (*self._key, 1, step), n_jobs)
            self.codes[places] = cells
