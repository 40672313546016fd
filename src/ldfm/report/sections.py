"""The sections of a report."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.stats import norm

from ldfm.forests import marginals_of_arcs
from ldfm.inference.exact import MAX_STATES
from ldfm.model import ForestModel
from ldfm.pictures import names_in_forests
from ldfm.plots import plot_calibration, plot_contrast, plot_overview
from ldfm.report.calibration import (
    NumberPredictions,
    Predictions,
    bin_predictions,
    is_mostly_incomplete,
    predict_cells,
    predict_numbers,
)
from ldfm.report.changes import Change, find_changes
from ldfm.report.parts import Facts, Listing, Note, Part, Picture, Section, Shown, percent, rounded, with_error
from ldfm.report.rows import Groups, frequencies, known_cells, table_of
from ldfm.tables import Column, Schema, encode, missing_cells, read_source
from ldfm.types import Floats, Rows

_ARCS = 15  # lines of the lists of dependencies
_VALUES = 6  # values of a column that are listed
_SLOW_ROWS = 20  # rows with too many missing cells to enumerate that are scored


@dataclass(frozen=True)
class Subject:
    """What a report is about.

    Attributes
    ----------
    model
        The model.
    codes
        (rows, n): the whole table.
    some
        (some rows, n): rows of it that are looked at more closely.
    filled
        The same, missing cells filled by draws of the model.
    marginals
        (some rows, n + 1, n): their arc marginals.
    """

    model: ForestModel
    codes: Rows
    some: Rows
    filled: Rows
    marginals: Floats

    @classmethod
    def of(cls, model: ForestModel, codes: Rows, most: int) -> Self:
        """Choose rows at random and find their forests."""
        order = np.random.default_rng(_seed(model)).permutation(len(codes))
        some = codes[np.sort(order[:most])]
        filled = some
        if missing_cells(some).any():
            drawn = model.impute(table_of(model.schema_, some), how="draw")
            filled = encode(read_source(drawn), model.schema_).codes
        return cls(model, codes, some, filled, marginals_of_arcs(model.weights_, filled, model.n_jobs))

    def name(self, variable: int) -> str:
        """Give the name of a variable, -1 for the root."""
        return "(root)" if variable < 0 else self.names[variable]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of variables in forests."""
        return names_in_forests(self.model)

    @cached_property
    def groups(self) -> list[Groups]:
        """Rows by the values of each variable."""
        columns = self.model.schema_.columns
        return [Groups(column, self.filled[:, place]) for place, column in enumerate(columns)]


def write_sections(subject: Subject) -> list[Section]:
    """Write all sections."""
    return [
        _data(subject),
        _fit(subject),
        _dependencies(subject),
        _changes(subject),
        _calibration(subject),
        _scores(subject),
    ]


def _seed(model: ForestModel) -> int:
    return int(model.random_state) if isinstance(model.random_state, (int, np.integer)) else 0


def _data(subject: Subject) -> Section:
    codes, lines = subject.codes, []
    missing = missing_cells(codes)
    for place, column in enumerate(subject.model.schema_.columns):
        share = percent(missing[:, place].mean())
        lines.append((column.name, column.type_name, _number_of_values(column), _contents(column, codes, place), share))
    complete = float((~missing).all(axis=1).mean())
    text = f"{len(codes)} rows, {codes.shape[1]} columns; {percent(complete).text} of the rows are complete."
    header = ("column", "type", "values", "most frequent, or range", "missing")
    return Section("table", "The table", [text, Listing("columns", header, lines)])


def _number_of_values(column: Column) -> Any:
    return Shown(None, "") if column.is_continuous else len(column.values)


def _contents(column: Column, codes: Rows, place: int) -> Shown:
    """Give the most frequent values of a column, or the range of its numbers."""
    if column.is_continuous:
        known = known_cells(codes, place)
        if not len(known):
            return Shown(None, "nothing known")
        numbers = np.quantile(known, [0, 0.5, 1])
        least, middle, most = (column.shown(part) for part in numbers)
        values = dict(zip(("least", "median", "most"), column.decode(numbers), strict=True))
        return Shown(values, f"{least} to {most}, median {middle}")
    shares = frequencies(codes, place, len(column.values))
    order = np.argsort(-shares, kind="stable")[:_VALUES]
    more = f", and {len(column.values) - _VALUES} more" if len(column.values) > _VALUES else ""
    text = ", ".join(f"{column.values[v]} {percent(shares[v]).text}" for v in order) + more
    return Shown([{"value": column.values[v], "share": float(shares[v])} for v in order], text)


def _fit(subject: Subject) -> Section:
    model = subject.model
    history, weights = model.history_, model.weights_
    facts = {
        "variant": weights.variant,
        "objective": model.objective,
        "variables": len(model.schema_.columns),
        "values": sum(model.schema_.cardinalities),
        "arcs of positive weight": int((weights.table > 0).sum()),
        "iterations": history.steps[-1].iteration if len(history) else 0,
        "stopped": history.reason or "not recorded",
    }
    parts: list[Facts | Picture] = [Facts("the model", facts)]
    if len(history):
        parts.append(Picture(model.plot_history, "the objective by iteration, of rows learned from and held-out rows"))
    return Section("fit", "The fit", parts)


def _dependencies(subject: Subject) -> Section:
    mean = subject.marginals.mean(axis=0)
    order = np.argsort(-mean, axis=None, kind="stable")
    arcs = [(int(a) - 1, int(b)) for a, b in zip(*np.unravel_index(order, mean.shape), strict=True) if a > 0][:_ARCS]
    lines = [(subject.name(a), subject.name(b), rounded(mean[1 + a, b], 3)) for a, b in arcs if mean[1 + a, b] >= 0.005]
    text = (
        "Every row has its own forest of dependencies: each variable has one parent, another variable or the root. These are the "
        f"mean probabilities of arcs over {len(subject.some)} rows. Arcs say which value brings which along, not causes."
    )
    parts: list[Part] = [
        text,
        Picture(lambda: plot_overview(subject.names, mean), "mean probability of arcs, parents by children"),
        Listing("arcs", ("parent", "child", "mean probability"), lines),
        *_relations(subject),
    ]
    return Section("dependencies", "Strongest dependencies", parts)


def _relations(subject: Subject) -> list[Part]:
    """Say which columns are measured from others."""
    relations, names = getattr(subject.model.weights_, "relations", None), subject.model.schema_.names
    if relations is None:
        return []
    lines = [tuple(line.split(" = ", 1)) for line in relations.described(names)]
    text = (
        "Some columns are measured from several others, in the same way in all rows: from a line in these, in standard units. "
        "Arcs to and from their rests say what is beyond that."
    )
    return [text, Listing("relations", ("column", "measured from"), lines)]


def _changes(subject: Subject) -> Section:
    codes = [group.codes for group in subject.groups]
    found = find_changes(codes, subject.marginals)
    name, title = "changes", "How dependencies change with the values"
    if not found:
        return Section(name, title, ["No arc surely changes with the value of any variable in these rows."])
    text = (
        "For each arc the variable whose values change its mean probability most, if by more than four standard errors and a "
        "hundredth. The picture shows all arcs that the first of them changes."
    )
    parts: list[str | Listing | Picture] = [
        text,
        _change_table("arcs", subject, found),
        _contrast(subject, found[0]),
    ]
    others = find_changes(codes, subject.marginals, outside=True)
    if others:
        parts += [
            "The same, by variables that are neither parent nor child:",
            _change_table("arcs by other variables", subject, others),
        ]
    return Section(name, title, parts)


def _change_table(name: str, subject: Subject, found: list[Change]) -> Listing:
    lines = [
        (
            f"{subject.name(c.parent)} \u2192 {subject.name(c.child)}",
            subject.groups[c.context].labels[c.high],
            rounded(c.high_share, 3),
            subject.groups[c.context].labels[c.low],
            rounded(c.low_share, 3),
        )
        for c in found[:_ARCS]
    ]
    header = ("arc", "most probable where", "highest probability", "least probable where", "lowest probability")
    return Listing(name, header, lines)


def _contrast(subject: Subject, change: Change) -> Picture:
    """Draw what the values of one variable change, averaged over the rows that have them."""
    group, names = subject.groups[change.context], subject.names
    first, second = (subject.marginals[group.codes == code].mean(axis=0) for code in (change.high, change.low))
    contexts = group.labels[change.high], group.labels[change.low]
    nothing = [None] * len(names)
    return Picture(
        lambda: plot_contrast(names, (nothing, nothing), (first, second), contexts=contexts),
        f"arcs more probable where {contexts[0]}, and where {contexts[1]}",
    )


def _calibration(subject: Subject) -> Section:
    seed = _seed(subject.model)
    predictions, numbers = predict_cells(subject.model, subject.some, seed), None
    if any(subject.model.schema_.continuous):
        numbers = predict_numbers(subject.model, subject.some, seed)
    parts = (_calibrated_values(subject, predictions) if predictions else []) + (
        _calibrated_numbers(subject, numbers) if numbers else []
    )
    if not parts:
        parts = ["There is no cell to predict: every row has probability zero under the model."]
    return Section("calibration", "Calibration", parts)


def _calibrated_values(subject: Subject, predictions: dict[int, Predictions]) -> list[Part]:
    bins = bin_predictions(list(predictions.values()))
    cells = sum(len(part.codes) for part in predictions.values())
    rows = len(np.unique(np.concatenate([part.rows for part in predictions.values()])))
    text = (
        f"{cells} cells of {rows} rows, each predicted from the other cells of its row. Predicted probabilities are off by "
        f"{bins.gap:.4f} on average, over {len(bins.counts)} groups of like probability. {_left_out(subject)}"
    )
    lines = [_prediction_line(subject, place, part) for place, part in predictions.items()]
    header = ("variable", "cells", "log score, nats", "column alone", "right", "most frequent value")
    note = (
        "Log score: mean log probability of what is in the cell. Column alone: the same if it were predicted by the frequencies of "
        "its own column in this very table. Right: how often the most probable value is in the cell."
    )
    groups = list(zip(*(part.tolist() for part in bins), strict=True))
    return [
        text,
        Picture(
            lambda: plot_calibration(bins.predicted, bins.observed, bins.errors),
            "predicted probability and how often it came true",
        ),
        Listing(
            "groups",
            ("predicted", "observed", "standard error", "predictions"),
            [(rounded(a, 4), rounded(b, 4), rounded(c, 4), d) for a, b, c, d in groups],
        ),
        Listing("variables", header, lines),
        Note(note),
    ]


def _left_out(subject: Subject) -> str:
    """Say which of the rows looked at have no cell that is predicted."""
    incomplete = int(missing_cells(subject.some).any(axis=1).sum())
    if not incomplete:
        return ""
    if is_mostly_incomplete(subject.some):
        return f"{incomplete} of {len(subject.some)} rows have missing cells: of some rows one known cell each is predicted."
    return f"Only complete rows count: {incomplete} of {len(subject.some)} have missing cells and are left out."


def _calibrated_numbers(subject: Subject, numbers: NumberPredictions) -> list[Part]:
    text = (
        f"{len(numbers.numbers)} numbers, one a row, each predicted from the other cells of its row. "
        f"{percent(numbers.covered).text} are inside the middle 90% of what was predicted. The picture shows the share of "
        "numbers below predicted quantiles."
    )
    lines = []
    for place in np.unique(numbers.variables).tolist():
        part, column = numbers.of_variable(place), subject.model.schema_.columns[place]
        alone = float(column.units.numbers(known_cells(subject.codes, place)).std())
        errors = (Shown(float(error), f"{error:.4g}") for error in (part.error, alone))
        lines.append((subject.name(place), len(part.numbers), percent(part.covered), *errors))
    header = ("variable", "cells", "inside the middle 90%", "root mean square error", "column alone")
    note = "Column alone: the error if every cell were predicted by the mean of its column in this very table."
    return [
        text,
        Picture(
            lambda: plot_calibration(*numbers.levels()),
            "levels of predicted quantiles and the share of numbers below them",
        ),
        Listing("numbers", header, lines),
        Note(note),
    ]


def _prediction_line(subject: Subject, place: int, part: Predictions) -> tuple[Any, ...]:
    shares = frequencies(subject.codes, place, part.shares.shape[1])
    alone = float(np.log(shares[part.codes]).mean())
    frequent = float((part.codes == shares.argmax()).mean())
    numbers = (rounded(part.log_score, 3), rounded(alone, 3), percent(part.hits), percent(frequent))
    return (subject.name(place), len(part.codes), *numbers)


def _scores(subject: Subject) -> Section:
    model, some = subject.model, subject.some
    missing = missing_cells(some)
    states = np.where(missing, np.array(model.schema_.cardinalities, dtype=np.float64), 1.0).prod(axis=1)
    quick = ~missing.any(axis=1) if model.schema_.is_mixed else states <= MAX_STATES
    scored = some[quick] if quick.any() else some[:_SLOW_ROWS]
    scores = model.score_samples(table_of(model.schema_, scored))
    partition = model.log_partition()
    possible = scores[np.isfinite(scores)]
    none = len(scores) - len(possible)
    facts: dict[str, Any] = {"rows scored": len(scores), "of probability zero": none}
    error = possible.std(ddof=1) / np.sqrt(len(possible)) if len(possible) > 1 else 0.0
    alone = _independent_scores(model.schema_, subject.codes, scored)
    mean = with_error(scores.mean(), error) if not none else Shown(None, "minus infinity: some have probability zero")
    facts["mean log p(row), nats"] = mean
    if none and len(possible):
        facts["of the rows that are possible"] = with_error(possible.mean(), error)
        facts["the same, columns as if independent"] = rounded(alone[np.isfinite(scores)].mean(), 4)
    facts |= {
        "columns as if independent": rounded(alone.mean(), 4),
        "log partition": with_error(partition.value, partition.standard_error),
    }
    how = "exact" if partition.exact else "an estimate"
    if model.schema_.is_mixed:
        how += (
            "; with continuous columns, p is a density in their units; as if independent they are normal on their scale"
        )
    note = (
        "These are held-out scores if the model was not fitted to these rows, which the model cannot know. Independent columns "
        f"have the frequencies of this table itself, an advantage. The partition is {how}."
    )
    return Section("scores", "Scores", [Facts("value", facts), Note(note)])


def _independent_scores(schema: Schema, codes: Rows, scored: Rows) -> Floats:
    """Give the log probability of rows if columns were independent, with the frequencies of the table; numbers normal."""
    total = np.zeros(len(scored))
    for place, column in enumerate(schema.columns):
        known = ~missing_cells(scored[:, place])
        cells = scored[known, place]
        if column.is_continuous:
            numbers = known_cells(codes, place)
            logs = norm.logpdf(cells, numbers.mean(), max(numbers.std(), 1e-9))
            total[known] += logs - column.units.log_slopes(cells)
        else:
            shares = frequencies(codes, place, len(column.values))
            total[known] += np.log(shares[cells.astype(np.int64)])
    return total
