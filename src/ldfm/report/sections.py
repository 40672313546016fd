"""The sections of a report."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.stats import norm

from ldfm.estimator import LDFM
from ldfm.forests import marginals_of_arcs
from ldfm.inference.exact import MAX_STATES
from ldfm.plots import plot_calibration, plot_contrast, plot_overview
from ldfm.report.calibration import NumberPredictions, Predictions, bin_predictions, predict_cells, predict_numbers
from ldfm.report.changes import Change, find_changes
from ldfm.report.html import paragraph, picture, section, table
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

    model: LDFM
    codes: Rows
    some: Rows
    filled: Rows
    marginals: Floats

    @classmethod
    def of(cls, model: LDFM, codes: Rows, most: int) -> Self:
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
        return "(root)" if variable < 0 else self.model.schema_.names[variable]

    @cached_property
    def groups(self) -> list[Groups]:
        """Rows by the values of each variable."""
        columns = self.model.schema_.columns
        return [Groups(column, self.filled[:, place]) for place, column in enumerate(columns)]


def write_sections(subject: Subject) -> list[str]:
    """Write all sections."""
    return [
        _data(subject),
        _fit(subject),
        _dependencies(subject),
        _changes(subject),
        _calibration(subject),
        _scores(subject),
    ]


def _seed(model: LDFM) -> int:
    return int(model.random_state) if isinstance(model.random_state, (int, np.integer)) else 0


def _data(subject: Subject) -> str:
    codes, lines = subject.codes, []
    missing = missing_cells(codes)
    for place, column in enumerate(subject.model.schema_.columns):
        share = _percent(float(missing[:, place].mean()))
        lines.append((column.name, column.type_name, _number_of_values(column), _contents(column, codes, place), share))
    complete = float((~missing).all(axis=1).mean())
    text = f"{len(codes)} rows, {codes.shape[1]} columns; {_percent(complete)} of the rows are complete."
    header = ("column", "type", "values", "most frequent, or range", "missing")
    return section("The table", paragraph(text), table(header, lines))


def _number_of_values(column: Column) -> str:
    return "" if column.is_continuous else str(len(column.values))


def _contents(column: Column, codes: Rows, place: int) -> str:
    """Give the most frequent values of a column, or the range of its numbers."""
    if column.is_continuous:
        known = known_cells(codes, place)
        least, middle, most = (column.shown(part) for part in np.quantile(known, [0, 0.5, 1])) if len(known) else "???"
        return f"{least} to {most}, median {middle}"
    shares = frequencies(codes, place, len(column.values))
    order = np.argsort(-shares, kind="stable")[:_VALUES]
    more = f", and {len(column.values) - _VALUES} more" if len(column.values) > _VALUES else ""
    return ", ".join(f"{column.values[v]} {_percent(shares[v])}" for v in order) + more


def _fit(subject: Subject) -> str:
    model = subject.model
    history, weights = model.history_, model.weights_
    facts = [
        ("variant", weights.variant),
        ("objective", model.objective),
        ("variables", len(model.schema_.columns)),
        ("values", sum(model.schema_.cardinalities)),
        ("arcs of positive weight", int((weights.table > 0).sum())),
        ("iterations", history.steps[-1].iteration if len(history) else 0),
        ("stopped", history.reason or "not recorded"),
    ]
    parts = [table(("", "the model"), facts)]
    if len(history):
        parts.append(
            picture(model.plot_history(), "the objective by iteration, of rows learned from and held-out rows")
        )
    return section("The fit", *parts)


def _dependencies(subject: Subject) -> str:
    mean = subject.marginals.mean(axis=0)
    order = np.argsort(-mean, axis=None, kind="stable")
    arcs = [(int(a) - 1, int(b)) for a, b in zip(*np.unravel_index(order, mean.shape), strict=True) if a > 0][:_ARCS]
    lines = [(subject.name(a), subject.name(b), f"{mean[1 + a, b]:.3f}") for a, b in arcs if mean[1 + a, b] >= 0.005]
    text = (
        "Every row has its own forest of dependencies: each variable has one parent, another variable or the root. These are the "
        f"mean probabilities of arcs over {len(subject.some)} rows. Arcs say which value brings which along, not causes."
    )
    return section(
        "Strongest dependencies",
        paragraph(text),
        picture(plot_overview(subject.model.schema_.names, mean), "mean probability of arcs, parents by children"),
        table(("parent", "child", "mean probability"), lines),
    )


def _changes(subject: Subject) -> str:
    codes = [group.codes for group in subject.groups]
    found = find_changes(codes, subject.marginals)
    title = "How dependencies change with the values"
    if not found:
        return section(title, paragraph("No arc surely changes with the value of any variable in these rows."))
    text = (
        "For each arc the variable whose values change its mean probability most, if by more than four standard errors and a "
        "hundredth. The picture shows all arcs that the first of them changes."
    )
    parts = [paragraph(text), _change_table(subject, found), _contrast(subject, found[0])]
    others = find_changes(codes, subject.marginals, outside=True)
    if others:
        parts += [
            paragraph("The same, by variables that are neither parent nor child:"),
            _change_table(subject, others),
        ]
    return section(title, *parts)


def _change_table(subject: Subject, found: list[Change]) -> str:
    lines = [
        (
            f"{subject.name(c.parent)} \u2192 {subject.name(c.child)}",
            subject.groups[c.context].labels[c.high],
            f"{c.high_share:.3f}",
            subject.groups[c.context].labels[c.low],
            f"{c.low_share:.3f}",
        )
        for c in found[:_ARCS]
    ]
    return table(("arc", "most probable where", "probability", "least probable where", "probability"), lines)


def _contrast(subject: Subject, change: Change) -> str:
    """Draw what the values of one variable change, averaged over the rows that have them."""
    group, names = subject.groups[change.context], subject.model.schema_.names
    first, second = (subject.marginals[group.codes == code].mean(axis=0) for code in (change.high, change.low))
    contexts = group.labels[change.high], group.labels[change.low]
    nothing = [None] * len(names)
    ax = plot_contrast(names, (nothing, nothing), (first, second), contexts=contexts)
    return picture(ax, f"arcs more probable where {contexts[0]}, and where {contexts[1]}")


def _calibration(subject: Subject) -> str:
    seed = _seed(subject.model)
    predictions, numbers = predict_cells(subject.model, subject.some, seed), None
    if any(subject.model.schema_.continuous):
        numbers = predict_numbers(subject.model, subject.some, seed)
    parts = (_calibrated_values(subject, predictions) if predictions else []) + (
        _calibrated_numbers(subject, numbers) if numbers else []
    )
    if not parts:
        parts = [paragraph("There is no cell to predict: every row has probability zero under the model.")]
    return section("Calibration", *parts)


def _calibrated_values(subject: Subject, predictions: dict[int, Predictions]) -> list[str]:
    bins = bin_predictions(list(predictions.values()))
    cells = sum(len(part.codes) for part in predictions.values())
    text = (
        f"{cells} cells, each predicted from the other cells of its row. Predicted probabilities are off by {bins.gap:.4f} on "
        f"average, over {len(bins.counts)} groups of like probability."
    )
    lines = [_prediction_line(subject, place, part) for place, part in predictions.items()]
    header = ("variable", "cells", "log score, nats", "column alone", "right", "most frequent value")
    note = (
        "Log score: mean log probability of what is in the cell. Column alone: the same if it were predicted by the frequencies of "
        "its own column in this very table. Right: how often the most probable value is in the cell."
    )
    return [
        paragraph(text),
        picture(
            plot_calibration(bins.predicted, bins.observed, bins.errors),
            "predicted probability and how often it came true",
        ),
        table(header, lines),
        paragraph(note, note=True),
    ]


def _calibrated_numbers(subject: Subject, numbers: NumberPredictions) -> list[str]:
    text = (
        f"{len(numbers.numbers)} numbers, one a row, each predicted from the other cells of its row. "
        f"{_percent(numbers.covered)} are inside the middle 90% of what was predicted. The picture shows the share of numbers "
        "below predicted quantiles."
    )
    lines = []
    for place in np.unique(numbers.variables).tolist():
        part, column = numbers.of_variable(place), subject.model.schema_.columns[place]
        alone = column.scale * known_cells(subject.codes, place).std()
        figures = (_percent(part.covered), f"{part.error:.4g}", f"{alone:.4g}")
        lines.append((subject.name(place), len(part.numbers), *figures))
    header = ("variable", "cells", "inside the middle 90%", "root mean square error", "column alone")
    note = "Column alone: the error if every cell were predicted by the mean of its column in this very table."
    return [
        paragraph(text),
        picture(
            plot_calibration(*numbers.levels()), "levels of predicted quantiles and the share of numbers below them"
        ),
        table(header, lines),
        paragraph(note, note=True),
    ]


def _prediction_line(subject: Subject, place: int, part: Predictions) -> tuple[Any, ...]:
    shares = frequencies(subject.codes, place, part.shares.shape[1])
    alone = float(np.log(shares[part.codes]).mean())
    frequent = float((part.codes == shares.argmax()).mean())
    numbers = (f"{part.log_score:.3f}", f"{alone:.3f}", _percent(part.hits), _percent(frequent))
    return (subject.name(place), len(part.codes), *numbers)


def _scores(subject: Subject) -> str:
    model, some = subject.model, subject.some
    missing = missing_cells(some)
    states = np.where(missing, np.array(model.schema_.cardinalities, dtype=np.float64), 1.0).prod(axis=1)
    quick = ~missing.any(axis=1) if model.schema_.is_mixed else states <= MAX_STATES
    scored = some[quick] if quick.any() else some[:_SLOW_ROWS]
    scores = model.score_samples(table_of(model.schema_, scored))
    partition = model.log_partition()
    possible = scores[np.isfinite(scores)]
    lines: list[tuple[Any, ...]] = [("rows scored", len(scores)), ("of probability zero", len(scores) - len(possible))]
    if len(possible):
        error = possible.std(ddof=1) / np.sqrt(len(possible)) if len(possible) > 1 else 0.0
        sure = "" if partition.exact else f" \u00b1 {partition.standard_error:.4f}"
        alone = _independent_scores(model.schema_, subject.codes, scored)[np.isfinite(scores)]
        lines += [
            ("mean log p(row), nats", f"{possible.mean():.4f} \u00b1 {error:.4f}"),
            ("columns as if independent", f"{alone.mean():.4f}"),
            ("log partition", f"{partition.value:.4f}{sure}"),
        ]
    how = "exact" if partition.exact else "an estimate"
    if model.schema_.is_mixed:
        how += "; with continuous columns, p is a density in their units, and as if independent they are normal"
    note = (
        "These are held-out scores if the model was not fitted to these rows, which the model cannot know. Independent columns "
        f"have the frequencies of this table itself, an advantage. The partition is {how}."
    )
    return section("Scores", table(("", "value"), lines), paragraph(note, note=True))


def _independent_scores(schema: Schema, codes: Rows, scored: Rows) -> Floats:
    """Give the log probability of rows if columns were independent, with the frequencies of the table; numbers normal."""
    total = np.zeros(len(scored))
    for place, column in enumerate(schema.columns):
        known = ~missing_cells(scored[:, place])
        cells = scored[known, place]
        if column.is_continuous:
            numbers = known_cells(codes, place)
            total[known] += norm.logpdf(cells, numbers.mean(), max(numbers.std(), 1e-9)) - np.log(column.scale)
        else:
            shares = frequencies(codes, place, len(column.values))
            total[known] += np.log(shares[cells.astype(np.int64)])
    return total


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"
