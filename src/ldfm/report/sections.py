"""The sections of a report."""

from dataclasses import dataclass
from math import prod
from typing import Any, Self

import numpy as np

from ldfm.estimator import LDFM
from ldfm.forests import marginals_of_arcs
from ldfm.inference.exact import MAX_STATES
from ldfm.plots import plot_calibration, plot_contrast, plot_overview
from ldfm.report.calibration import Predictions, bin_predictions, predict_cells
from ldfm.report.changes import Change, find_changes
from ldfm.report.html import paragraph, picture, section, table
from ldfm.report.rows import table_of
from ldfm.tables import MISSING
from ldfm.types import Codes, Floats

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
    codes: Codes
    some: Codes
    filled: Codes
    marginals: Floats

    @classmethod
    def of(cls, model: LDFM, codes: Codes, most: int) -> Self:
        """Choose rows at random and find their forests."""
        order = np.random.default_rng(_seed(model)).permutation(len(codes))
        some = codes[np.sort(order[:most])]
        filled = some
        if (some == MISSING).any():
            drawn = model.impute(table_of(model.schema_, some), how="draw")
            places = [{value: code for code, value in enumerate(c.values)} for c in model.schema_.columns]
            columns = zip(model.schema_.names, places, strict=True)
            filled = np.stack([[code[value] for value in drawn[name]] for name, code in columns], axis=1)
        return cls(model, codes, some, filled, marginals_of_arcs(model.weights_, filled, model.n_jobs))

    def name(self, variable: int) -> str:
        """Give the name of a variable, -1 for the root."""
        return "(root)" if variable < 0 else self.model.schema_.names[variable]

    def value(self, variable: int, code: int) -> Any:
        """Give a value by its code."""
        return self.model.schema_.columns[variable].values[code]


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
    for place, column in enumerate(subject.model.schema_.columns):
        counts = np.bincount(codes[codes[:, place] != MISSING, place], minlength=len(column.values))
        order = np.argsort(-counts, kind="stable")[:_VALUES]
        shares = [f"{column.values[v]} {_percent(counts[v] / max(counts.sum(), 1))}" for v in order]
        more = f", and {len(column.values) - _VALUES} more" if len(column.values) > _VALUES else ""
        missing = float((codes[:, place] == MISSING).mean())
        lines.append((column.name, column.type_name, len(column.values), ", ".join(shares) + more, _percent(missing)))
    complete = float((codes != MISSING).all(axis=1).mean())
    text = f"{len(codes)} rows, {codes.shape[1]} columns; {_percent(complete)} of the rows are complete."
    header = ("column", "type", "values", "most frequent", "missing")
    return section("The table", paragraph(text), table(header, lines))


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
    lines = [(subject.name(a), subject.name(b), f"{mean[1 + a, b]:.3f}") for a, b in arcs]
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
    found = find_changes(subject.filled, subject.marginals, subject.model.schema_.cardinalities)
    title = "How dependencies change with the values"
    if not found:
        return section(title, paragraph("No arc surely changes with the value of any variable in these rows."))
    lines = [
        (
            f"{subject.name(c.parent)} \u2192 {subject.name(c.child)}",
            f"{subject.name(c.context)} = {subject.value(c.context, c.high)}",
            f"{c.high_share:.3f}",
            f"{subject.name(c.context)} = {subject.value(c.context, c.low)}",
            f"{c.low_share:.3f}",
        )
        for c in found[:_ARCS]
    ]
    text = (
        "For each arc the variable whose values change its mean probability most, if by more than four standard errors and a "
        "hundredth. The picture shows all arcs that the first of them changes."
    )
    header = ("arc", "most probable where", "probability", "least probable where", "probability")
    return section(title, paragraph(text), table(header, lines), _contrast(subject, found[0]))


def _contrast(subject: Subject, change: Change) -> str:
    """Draw what the values of one variable change, averaged over the rows that have them."""
    of_context = subject.filled[:, change.context]
    groups = tuple(subject.marginals[of_context == code].mean(axis=0) for code in (change.high, change.low))
    names = subject.model.schema_.names
    contexts = tuple(f"{names[change.context]} = {subject.value(change.context, v)}" for v in (change.high, change.low))
    nothing = [None] * len(names)
    ax = plot_contrast(names, (nothing, nothing), groups, contexts=contexts)  # type: ignore[arg-type]
    return picture(ax, f"arcs more probable where {contexts[0]}, and where {contexts[1]}")


def _calibration(subject: Subject) -> str:
    predictions = predict_cells(subject.model, subject.some, _seed(subject.model))
    asked = [(place, part) for place, part in enumerate(predictions) if len(part.codes)]
    title = "Calibration"
    if not asked:
        return section(title, paragraph("There is no cell to predict: every row has probability zero under the model."))
    bins = bin_predictions([part for _, part in asked])
    cells = sum(len(part.codes) for _, part in asked)
    text = (
        f"{cells} cells, each predicted from the other cells of its row. Predicted probabilities are off by {bins.gap:.4f} on "
        f"average, over {len(bins.counts)} groups of like probability."
    )
    lines = [_prediction_line(subject, place, part) for place, part in asked]
    header = ("variable", "cells", "log score, nats", "column alone", "right", "most frequent value")
    note = (
        "Log score: mean log probability of what is in the cell. Column alone: the same if it were predicted by the frequencies of "
        "its own column in these very rows. Right: how often the most probable value is in the cell."
    )
    return section(
        title,
        paragraph(text),
        picture(
            plot_calibration(bins.predicted, bins.observed, bins.errors),
            "predicted probability and how often it came true",
        ),
        table(header, lines),
        paragraph(note, note=True),
    )


def _prediction_line(subject: Subject, place: int, part: Predictions) -> tuple[Any, ...]:
    shares = np.bincount(part.codes, minlength=part.shares.shape[1]) / len(part.codes)
    alone = float((shares[shares > 0] * np.log(shares[shares > 0])).sum())
    numbers = (f"{part.log_score:.3f}", f"{alone + 0.0:.3f}", _percent(part.hits), _percent(float(shares.max())))
    return (subject.name(place), len(part.codes), *numbers)


def _scores(subject: Subject) -> str:
    model, some = subject.model, subject.some
    sizes = np.array(model.schema_.cardinalities, dtype=np.float64)
    quick = np.where(some == MISSING, sizes, 1.0).prod(axis=1) <= MAX_STATES
    scored = some[quick] if quick.any() else some[:_SLOW_ROWS]
    scores = model.score_samples(table_of(model.schema_, scored))
    partition = model.log_partition()
    possible = scores[np.isfinite(scores)]
    lines: list[tuple[Any, ...]] = [("rows scored", len(scores)), ("of probability zero", len(scores) - len(possible))]
    if len(possible):
        error = possible.std(ddof=1) / np.sqrt(len(possible)) if len(possible) > 1 else 0.0
        alone = _independent_scores(subject.codes, scored)[np.isfinite(scores)]
        lines += [
            ("mean log p(row), nats", f"{possible.mean():.4f} \u00b1 {error:.4f}"),
            ("columns as if independent", f"{alone.mean():.4f}"),
            ("log partition", f"{partition.value:.4f} \u00b1 {partition.standard_error:.4f}"),
        ]
    how = "exact" if partition.exact else f"estimated: {prod(model.schema_.cardinalities):.2g} rows are possible"
    note = (
        "These are held-out scores if the model was not fitted to these rows, which the model cannot know. Independent columns "
        f"have the frequencies of this table itself, an advantage. The partition is {how}."
    )
    return section("Scores", table(("", "value"), lines), paragraph(note, note=True))


def _independent_scores(codes: Codes, scored: Codes) -> Floats:
    """Give the log probability of rows if columns were independent, with the frequencies of the table."""
    total = np.zeros(len(scored))
    for place in range(codes.shape[1]):
        column = codes[codes[:, place] != MISSING, place]
        shares = np.bincount(column) / max(len(column), 1)
        known = scored[:, place] != MISSING
        total[known] += np.log(shares[scored[known, place]])
    return total


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"
