"""What the page asks a model, answered as documents of texts, numbers and lists."""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np

from ldfm.inference import Budget, Diagnostics, ImpossibleEvidenceError, Marginals
from ldfm.inference.exact import MAX_STATES, count_states
from ldfm.model import ForestModel
from ldfm.tables import Column
from ldfm.tables.evidence import unknown_column, value_of_text
from ldfm.tables.writing import columns_of, text_of

EFFORTS = {
    "quick": Budget(max_sweeps=1),  # the first round of the chains
    "usual": Budget(),
    "thorough": Budget(target_se=0.005, max_sweeps=80_000),
}
_LOG_SECONDS = 1.0  # for the log probability of the evidence
_LEAST_ARC = 0.001  # arcs less probable than this are not told
_GRID = 81  # points of a density
Document = dict[str, Any]
Evidence = Mapping[str, Any]


class Answers:
    """Answers questions about one model.

    Parameters
    ----------
    model
        A fitted model.
    title
        What to call it.
    """

    def __init__(self, model: ForestModel, title: str) -> None:
        self.model, self.title = model, title

    def description(self) -> Document:
        """Give the variables, their values, and from which others some are measured."""
        variables: list[Document] = [
            {"name": column.name, "kind": column.kind, "ends": column.units.numbers(np.array([-3.5, 3.5])).tolist()}
            if column.is_continuous
            else {"name": column.name, "kind": column.kind, "values": list(map(text_of, column.values))}
            for column in self.model.schema_.columns
        ]
        relations = getattr(self.model.weights_, "relations", None)
        for related in [] if relations is None else relations.to_json(self.model.schema_.names):
            place = self.model.schema_.names.index(related["column"])
            variables[place]["measured_from"] = list(related["shares"])
        return {"title": self.title, "variant": self.model.weights_.variant, "variables": variables}

    def posteriors(self, evidence: Evidence, effort: str = "usual") -> Document:
        """Give the posteriors of all unknown variables, and how they were found."""
        if effort not in tuple(EFFORTS):  # which may be anything, a list too
            raise ValueError(f"effort must be one of {', '.join(map(repr, EFFORTS))}, not {effort!r}")
        row, began = self._row(evidence), perf_counter()
        found = self.model.marginals(row, budget=EFFORTS[effort])
        unknown = zip(self.model.schema_.columns, found.unknown[0], strict=True)
        posteriors = {column.name: _posterior(found, column) for column, is_unknown in unknown if is_unknown}
        return {"posteriors": posteriors, **_facts(found.diagnostics), "seconds": perf_counter() - began}

    def log_probability(self, evidence: Evidence) -> Document:
        """Give the log probability of the evidence, a log density where it has numbers."""
        row = self._row(evidence)
        found = self.model.query_log_likelihood(row, list(evidence), [], budget=_LOG_SECONDS)
        log, error = float(found.joint[0]), float(found.joint_se[0])
        return {"log_probability": log, "standard_error": error, "exact": bool(found.diagnostics.exact[0])}

    def most_probable(self, evidence: Evidence) -> Document:
        """Give the jointly most probable values of all unknown variables."""
        row = self._row(evidence)
        filled = columns_of(self.model.most_probable(row))
        values = {name: text_of(cells[0]) for name, cells in filled.items() if name not in evidence}
        unknown = np.array([name not in evidence for name in self.model.schema_.names])
        return {"values": values, "exact": count_states(self.model.weights_, unknown) <= MAX_STATES}

    def forest(self, evidence: Evidence) -> Document:
        """Give the arcs [parent, child, probability] under the evidence, by places of variables; the root is -1."""
        marginals = self.model.arc_marginals(self._row(evidence))[0]
        if not marginals.any():
            raise ImpossibleEvidenceError("row 0: its known cells have probability zero under this model")
        places = np.argwhere(marginals >= _LEAST_ARC).tolist()
        return {"arcs": [[parent - 1, child, float(marginals[parent, child])] for parent, child in places]}

    def _row(self, evidence: Evidence) -> dict[str, list[Any]]:
        """Give a table of one row that knows the evidence, whose values are texts, numbers or bools."""
        if not isinstance(evidence, Mapping):
            raise ValueError(f"evidence must be an object of columns and their values, not {evidence!r}")
        schema, row = self.model.schema_, {name: [None] for name in self.model.schema_.names}
        columns = dict(zip(schema.names, schema.columns, strict=True))
        for name, value in evidence.items():
            if name not in columns:
                raise ValueError(unknown_column("evidence", name, schema))
            if not isinstance(value, (str, int, float)):
                raise ValueError(f"evidence: column {name!r} needs one text or number, not {value!r}")
            row[name] = [value_of_text("evidence", text_of(value), columns[name])]
        return row


def _posterior(found: Marginals, column: Column) -> Document:
    """Give the posterior of one variable."""
    if not column.is_continuous:
        return {
            "probabilities": found.probabilities[column.name][0].tolist(),
            "standard_errors": found.standard_errors[column.name][0].tolist(),
        }
    numbers = found.numbers[column.name]
    first, low, high, last = numbers.quantiles([0.001, 0.05, 0.95, 0.999])[0].tolist()
    grid = numbers.units.even(first, last, _GRID)
    return {
        "mean": float(numbers.means[0]),
        "standard_error": float(numbers.mean_errors[0]),
        "deviation": float(numbers.deviations[0]),
        "low": low,
        "high": high,
        "grid": grid.tolist(),
        "density": numbers.density(0, grid).tolist(),
    }


def _facts(diagnostics: Diagnostics) -> Document:
    """Say how sure an answer is."""
    return {
        "exact": bool(diagnostics.exact[0]),
        "met_target": bool(diagnostics.met[0]),
        "sweeps": int(diagnostics.sweeps[0]),
        "r_hat": float(diagnostics.r_hat[0]),
    }
