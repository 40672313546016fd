"""Do predicted probabilities come true? Cells predicted from the other cells of their row."""

from typing import NamedTuple

import numpy as np

from ldfm.inference import Budget, Marginals, log_conditionals
from ldfm.model import ForestModel
from ldfm.report.rows import table_of
from ldfm.tables import missing_cells, only_cells
from ldfm.types import Floats, Integers, Rows

BINS = 10
_HIDDEN_ROWS = 60  # incomplete rows of which a cell is hidden
_HIDDEN_NUMBERS = 120
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


class NumberPredictions(NamedTuple):
    """Predictions of cells of continuous columns, in the table's units.

    Attributes
    ----------
    variables
        (cells,): their columns.
    numbers, means
        (cells,): what is in them, and the means of what was predicted from the rest of the row.
    below
        (cells,): predicted probability of less than what is in them; even between 0 and 1 if predictions are right.
    """

    variables: Integers
    numbers: Floats
    means: Floats
    below: Floats

    def of_variable(self, place: int) -> "NumberPredictions":
        """Give those of one column."""
        here = self.variables == place
        return NumberPredictions(self.variables[here], self.numbers[here], self.means[here], self.below[here])

    @property
    def covered(self) -> float:
        """Share of the cells inside the middle nine tenths of their predictions."""
        return float((np.abs(self.below - 0.5) < 0.45).mean())

    @property
    def error(self) -> float:
        """Root mean square distance of means from what is in the cells."""
        return float(np.sqrt(((self.means - self.numbers) ** 2).mean()))

    def levels(self) -> tuple[Floats, Floats, Floats]:
        """Give nine levels, the share of the cells below their predicted quantiles of these levels, and its standard errors.

        Cells are of different rows, so they are independent.
        """
        levels = np.arange(1, 10) / 10
        observed = (self.below[:, None] < levels).mean(axis=0)
        return levels, observed, np.sqrt(levels * (1.0 - levels) / len(self.below))


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


def is_mostly_incomplete(codes: Rows) -> bool:
    """Say whether fewer than a tenth of the rows are complete."""
    return bool(10 * (~missing_cells(codes).any(axis=1)).sum() < len(codes))


def predict_cells(model: ForestModel, codes: Rows, seed: int) -> dict[int, Predictions]:
    """Predict discrete cells from the rest of their rows; give the variables of which some were.

    Of complete rows every cell, exactly. Where fewer than a tenth are complete: of some rows one known cell each.
    """
    discrete = np.flatnonzero(~np.array(model.schema_.continuous))
    complete = np.flatnonzero(~missing_cells(codes).any(axis=1))
    if is_mostly_incomplete(codes):
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
    rows, cells, answer = _hide(model, codes, discrete, _HIDDEN_ROWS, generator)
    found = {}
    for place in discrete.tolist():
        here = np.flatnonzero(cells == place)
        shares = answer.probabilities[model.schema_.names[place]][here]
        found[place] = Predictions(rows[here], codes[rows[here], place].astype(np.int64), shares)
    return found


def predict_numbers(model: ForestModel, codes: Rows, seed: int) -> NumberPredictions | None:
    """Predict one known number each of some rows from the rest of the row; None where there is none."""
    continuous = np.flatnonzero(model.schema_.continuous)
    if not (~missing_cells(codes[:, continuous])).any():
        return None
    rows, cells, answer = _hide(model, codes, continuous, _HIDDEN_NUMBERS, np.random.default_rng(seed))
    numbers, means, below = np.empty(len(rows)), np.empty(len(rows)), np.empty(len(rows))
    for place in continuous.tolist():
        here, column = np.flatnonzero(cells == place), model.schema_.columns[place]
        predicted = answer.numbers[column.name].only(here)
        numbers[here] = column.units.numbers(codes[rows[here], place])
        means[here], below[here] = predicted.means, predicted.below(numbers[here])
    return NumberPredictions(cells, numbers, means, below)


def _hide(
    model: ForestModel, codes: Rows, variables: Integers, most: int, generator: np.random.Generator
) -> tuple[Integers, Integers, Marginals]:
    """Hide one known cell of some variables in each of at most so many rows; give rows, variables and what is said of the cells."""
    known = ~missing_cells(codes)
    rows = np.flatnonzero(known[:, variables].any(axis=1))
    rows = np.sort(generator.permutation(rows)[:most])
    cells = np.array([generator.choice(variables[known[row, variables]]) for row in rows], dtype=np.int64)
    kept = np.ones((len(rows), codes.shape[1]), dtype=np.bool_)
    kept[np.arange(len(rows)), cells] = False
    asked = table_of(model.schema_, only_cells(codes[rows], kept))
    return rows, cells, model.marginals(asked, budget=Budget(seconds=_SECONDS_A_ROW))


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
