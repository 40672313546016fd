"""Missing cells while learning: hidden variables, drawn again and again from their posterior by a chain for each row."""

import numpy as np

from ldfm.draws import fold, move
from ldfm.tables import MISSING, MergedRows
from ldfm.types import Codes, Floats, Integers
from ldfm.weights import ArcWeights

COPIES = 4  # chains of a row with missing cells; each counts as a part of the row


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
        self._key = key
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
        if not len(places):
            return
        codes = self.codes[places].astype(np.int64)
        known = self.known[places].astype(np.int64)
        move(fold(weights), known, codes, np.full(codes.shape, -1), sweeps, (*self._key, 1, step), n_jobs)
        self.codes[places] = codes
