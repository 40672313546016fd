"""What queries give back: values with their errors."""

from dataclasses import dataclass, field
from typing import Any, Literal

import narwhals as nw
import numpy as np

from ldfm.tables import Schema
from ldfm.types import Booleans, Floats, Integers

Method = Literal["auto", "exact", "gibbs", "tree", "blocked"]


@dataclass(frozen=True)
class Estimate:
    """A number and how sure it is.

    Attributes
    ----------
    value
        The number.
    standard_error
        0 where it is exact.
    exact
        Whether it was computed by enumeration.
    """

    value: float
    standard_error: float
    exact: bool


@dataclass(frozen=True)
class Diagnostics:
    """How answers were found; arrays have an entry a row.

    Attributes
    ----------
    method
        The method: "exact" where every row was enumerated.
    exact
        Whether the row's numbers are exact but for rounding.
    states
        Joint states of the row's unknown cells.
    effective_draws
        Fewest effective draws behind any of the row's numbers; inf where they are exact.
    r_hat
        Largest split R-hat of any of the row's numbers: near 1 where chains agree.
    sweeps
        Sweeps of all chains of the row.
    met
        Whether the target standard error was met by chains that agree. If not, more `budget` may help.
    """

    method: str
    exact: Booleans
    states: Floats
    effective_draws: Floats
    r_hat: Floats
    sweeps: Integers
    met: Booleans

    @classmethod
    def of_exact(cls, states: Floats, method: str = "exact") -> "Diagnostics":
        """Give the diagnostics of enumerated rows."""
        rows = len(states)
        return cls(
            method,
            np.ones(rows, dtype=np.bool_),
            states,
            np.full(rows, np.inf),
            np.ones(rows),
            np.zeros(rows, dtype=np.int64),
            np.ones(rows, dtype=np.bool_),
        )

    def note(self, place: int, effective: float, r_hat: float, sweeps: int, *, met: bool) -> None:
        """Write down how the answer of a row came from chains."""
        self.exact[place] = False
        self.effective_draws[place] = effective
        self.r_hat[place] = r_hat
        self.sweeps[place] = sweeps
        self.met[place] = met

    def of_rows(self, places: Integers) -> "Diagnostics":
        """Give the diagnostics of rows that are copies of these, at `places`."""
        return Diagnostics(
            self.method,
            self.exact[places],
            self.states[places],
            self.effective_draws[places],
            self.r_hat[places],
            self.sweeps[places],
            self.met[places],
        )


@dataclass(frozen=True)
class QueryResult:
    """Log-likelihoods of query cells given evidence cells, one entry a row, in nats.

    Attributes
    ----------
    joint
        log p(query | evidence) (CLL).
    marginal
        Sum over query cells of log p(cell | evidence) (CMLL).
    joint_se, marginal_se
        Standard errors.
    n_query
        Number of query cells.
    diagnostics
        How it was found.
    """

    joint: Floats
    marginal: Floats
    joint_se: Floats
    marginal_se: Floats
    n_query: Integers
    diagnostics: Diagnostics

    def of_rows(self, places: Integers) -> "QueryResult":
        """Give the answers of rows that are copies of these, at `places`."""
        return QueryResult(
            self.joint[places],
            self.marginal[places],
            self.joint_se[places],
            self.marginal_se[places],
            self.n_query[places],
            self.diagnostics.of_rows(places),
        )


@dataclass(frozen=True)
class Marginals:
    """Posterior of every unknown cell given the known cells of its row.

    Attributes
    ----------
    probabilities
        For each column (rows, values): the posterior of an unknown cell, 0 and 1 for a known one.
    standard_errors
        The same shape.
    unknown
        (rows, n): which cells were unknown.
    diagnostics
        How it was found.
    """

    probabilities: dict[str, Floats]
    standard_errors: dict[str, Floats]
    unknown: Booleans
    diagnostics: Diagnostics
    _schema: Schema = field(repr=False)
    _backend: Any = field(repr=False, default=None)

    @property
    def table(self) -> Any:
        """Long table (row, variable, value, probability, standard_error) of the unknown cells.

        A frame of the library the question came in, else a mapping of columns. Values are text where columns differ in type.
        """
        one_type = len({column.type_name for column in self._schema.columns}) == 1
        parts: dict[str, list[Any]] = {k: [] for k in ("row", "variable", "value", "probability", "standard_error")}
        rows, places = np.nonzero(self.unknown)
        for row, place in zip(rows.tolist(), places.tolist(), strict=True):
            column = self._schema.columns[place]
            parts["row"] += [row] * len(column.values)
            parts["variable"] += [column.name] * len(column.values)
            parts["value"] += list(column.values) if one_type else [str(value) for value in column.values]
            parts["probability"] += self.probabilities[column.name][row].tolist()
            parts["standard_error"] += self.standard_errors[column.name][row].tolist()
        if self._backend is None:
            return {name: np.array(cells) for name, cells in parts.items()}
        return nw.from_dict(parts, backend=self._backend).to_native()
