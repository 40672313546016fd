"""Do predicted probabilities come true? Cells predicted from the other cells of their row."""

from typing import NamedTuple

import numpy as np

from ldfm.inference import Budget, log_conditionals
from ldfm.model import ForestModel
from ldfm.report.rows import table_of
from ldfm.tables import missing_cells, only_cells
from ldfm.types import Floats, Integers, Rows

BINS = 10
_HIDDEN_ROWS = 60  # incomplete rows of which a cell is hidden
_SECONDS_A_ROW = 0.1


class Predictions(NamedTuple):
    """Predictions of one variable's cells.

    Attributes
    ----------
    rows
        (cells,): their rows.
    codes
        (cells,): what is in them.
    shares
        (cells, values): what was predicted from the rest of the row.
    """

    rows: Integers
    codes: Integers
    shares: Floats

    @property
    def log_score(self) -> float:
        """Mean log probability of what is in the cells, nats."""
        with np.errstate(divide="ignore"):
            return float(np.log(self.shares[np.arange(len(self.codes)), self.codes]).mean())

    @property
    def hits(self) -> float:
        """Share of the cells whose most probable value is right."""
        return float((self.shares.argmax(axis=1) == self.codes).mean())


class Bins(NamedTuple):
    """Predicted probabilities and how often they came true, a bin an entry.

    Attributes
    ----------
    predicted, observed
        Mean prediction, and share of them that came true.
    errors
        Standard errors of `observed`; rows are independent, cells of one row are not.
    counts
        Predictions.
    """

    predicted: Floats
    observed: Floats
    errors: Floats
    counts: Integers

    @property
    def gap(self) -> float:
        """Mean distance of predicted and observed, each prediction counted once."""
        return float(np.abs(self.predicted - self.observed) @ self.counts / self.counts.sum())


def predict_cells(model: ForestModel, codes: Rows, seed: int) -> dict[int, Predictions]:
    """Predict discrete cells from the rest of their rows; give the variables of which some were.

    Of complete rows every cell, exactly. Where fewer than a tenth are complete: of some rows one known cell each.
    """
    discrete = np.flatnonzero(~np.array(model.schema_.continuous))
    complete = np.flatnonzero(~missing_cells(codes).any(axis=1))
    if 10 * len(complete) < len(codes):
        found = _predict_hidden(model, codes, discrete, np.random.default_rng(seed))
    else:
        logs = log_conditionals(model.weights_, codes[complete], model.n_jobs)
        possible = {place: np.isfinite(logs[place]).any(axis=1) for place in discrete.tolist()}
        found = {
            place: Predictions(complete[kept], codes[complete[kept], place].astype(np.int64), np.exp(logs[place][kept]))
            for place, kept in possible.items()
        }
    return {place: part for place, part in found.items() if len(part.codes)}


def _predict_hidden(
    model: ForestModel, codes: Rows, discrete: Integers, generator: np.random.Generator
) -> dict[int, Predictions]:
    known = ~missing_cells(codes)
    rows = np.flatnonzero(known[:, discrete].any(axis=1))
    rows = np.sort(generator.permutation(rows)[:_HIDDEN_ROWS])
    cells = np.array([generator.choice(discrete[known[row, discrete]]) for row in rows], dtype=np.int64)
    kept = np.ones((len(rows), codes.shape[1]), dtype=np.bool_)
    kept[np.arange(len(rows)), cells] = False
    asked = table_of(model.schema_, only_cells(codes[rows], kept))
    answer = model.marginals(asked, budget=Budget(seconds=_SECONDS_A_ROW))
    found = {}
    for place in discrete.tolist():
        here = np.flatnonzero(cells == place)
        shares = answer.probabilities[model.schema_.names[place]][here]
        found[place] = Predictions(rows[here], codes[rows[here], place].astype(np.int64), shares)
    return found


def bin_predictions(predictions: list[Predictions]) -> Bins:
    """Compare every probability that was predicted, of every value of every cell, with what was in the cell."""
    shares = np.concatenate([part.shares.ravel() for part in predictions])
    rows = np.concatenate([np.repeat(part.rows, part.shares.shape[1]) for part in predictions])
    truths = np.concatenate([np.eye(part.shares.shape[1])[part.codes].ravel() for part in predictions])
    bins = np.minimum((shares * BINS).astype(np.int64), BINS - 1)
    kept = [number for number in range(BINS) if (bins == number).any()]
    numbers = []
    for number in kept:
        inside = bins == number
        observed, count = truths[inside].mean(), int(inside.sum())
        of_rows = np.bincount(rows[inside], weights=truths[inside] - observed)
        numbers.append((shares[inside].mean(), observed, np.sqrt((of_rows**2).sum()) / count, count))
    predicted, shown, errors, counts = zip(*numbers, strict=True)
    return Bins(np.array(predicted), np.array(shown), np.array(errors), np.array(counts))
