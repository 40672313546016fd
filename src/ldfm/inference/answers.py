"""What queries give back: values with their errors."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import narwhals as nw
import numpy as np
from scipy.special import ndtr

from ldfm.tables import PLAIN, Bend, Schema, Units
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
    """Log-likelihoods of query cells given evidence cells, one entry a row, in nats; log densities where cells are continuous.

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

    def of_rows(self, places: Integers, log_slopes: Floats | float = 0.0) -> "QueryResult":
        """Give the answers of rows that are copies of these, at `places`, in units with these slopes."""
        return QueryResult(
            (self.joint - log_slopes)[places],
            (self.marginal - log_slopes)[places],
            self.joint_se[places],
            self.marginal_se[places],
            self.n_query[places],
            self.diagnostics.of_rows(places),
        )


@dataclass(frozen=True)
class Numbers:
    """Posteriors of the cells of a continuous column, an entry a row; a known cell has its number and no spread.

    Attributes
    ----------
    means, mean_errors
        (rows,): posterior means, and their standard errors.
    deviations
        (rows,): posterior standard deviations.
    normals
        (rows, kept, 2): mean and deviation of normal densities of cells, whose average is the posterior density.
    units
        What cells are of the numbers.
    """

    means: Floats
    mean_errors: Floats
    deviations: Floats
    normals: Floats
    units: Units = PLAIN

    @classmethod
    def known(cls, cells: Floats, kept: int, bend: Bend | None = None) -> "Numbers":
        """Give those of known cells, as shares."""
        zeros = np.zeros(len(cells))
        normals = np.zeros((len(cells), kept, 2))
        normals[:, :, 0] = cells[:, None]
        shares = np.array(cells, dtype=np.float64) if bend is None else bend.shares(cells)
        return cls(shares, zeros, zeros.copy(), normals)

    def only(self, rows: Integers) -> "Numbers":
        """Give those of some rows."""
        means, errors, deviations = self.means[rows], self.mean_errors[rows], self.deviations[rows]
        return Numbers(means, errors, deviations, self.normals[rows], self.units)

    def in_units(self, units: Units) -> "Numbers":
        """Give those of a column in its units; these are of shares, (number - centre) / scale."""
        errors, deviations = units.scale * self.mean_errors, units.scale * self.deviations
        return Numbers(units.centre + units.scale * self.means, errors, deviations, self.normals, units)

    def quantiles(self, levels: Sequence[float] | Floats) -> Floats:
        """Give (rows, levels): the numbers below which the posterior has these probabilities."""
        wanted = np.asarray(levels, dtype=np.float64)
        if not ((wanted > 0) & (wanted < 1)).all():
            raise ValueError(f"levels must be between 0 and 1, not {levels!r}")
        means, deviations = self.normals[..., 0], np.maximum(self.normals[..., 1], 1e-300)
        low = np.repeat((means - 10.0 * deviations).min(axis=1)[:, None], len(wanted), axis=1)
        high = np.repeat((means + 10.0 * deviations).max(axis=1)[:, None], len(wanted), axis=1)
        for _ in range(60):  # bisection: the distribution function rises
            middle = (low + high) / 2
            below = ndtr((middle[:, :, None] - means[:, None, :]) / deviations[:, None, :]).mean(axis=2) < wanted
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return self.units.numbers((low + high) / 2)

    def below(self, numbers: Floats) -> Floats:
        """Give (rows,): the posterior probability of less than these numbers, one a row."""
        deviations = np.maximum(self.normals[..., 1], 1e-300)
        cells = self.units.cells(numbers)
        found: Floats = ndtr((cells[:, None] - self.normals[..., 0]) / deviations).mean(axis=1)
        return found

    def bins(self, row: int, count: int = 8) -> tuple[list[str], Floats]:
        """Cut the middle of one row's posterior in equal bins; give their ends as text, and their probabilities."""
        low, high = self.only(np.array([row])).quantiles([0.005, 0.995])[0]
        edges = self.units.even(low, high, count + 1)
        means, deviations = self.normals[row, :, 0], np.maximum(self.normals[row, :, 1], 1e-300)
        below = ndtr((self.units.cells(edges)[:, None] - means) / deviations).mean(axis=1)
        return [f"{a:.4g} to {b:.4g}" for a, b in pairwise(edges)], np.diff(below)

    def density(self, row: int, grid: Sequence[float] | Floats) -> Floats:
        """Give the posterior density of one row's cell at the numbers of a grid."""
        means, deviations = self.normals[row, :, 0], self.normals[row, :, 1]
        if not (deviations > 0).all():
            raise ValueError(f"row {row}: the cell is known, so it has no density")
        cells = self.units.cells(np.asarray(grid, dtype=np.float64))
        z = (cells[:, None] - means) / deviations
        slopes = np.exp(self.units.log_slopes(cells))
        found: Floats = (np.exp(-0.5 * z * z) / deviations).mean(axis=1) / np.sqrt(2.0 * np.pi) / slopes
        return found


@dataclass(frozen=True)
class Marginals:
    """Posterior of every unknown cell given the known cells of its row.

    Attributes
    ----------
    probabilities
        For each discrete column (rows, values): the posterior of an unknown cell, 0 and 1 for a known one.
    standard_errors
        The same shape.
    numbers
        For each continuous column its `Numbers`, in the table's units.
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
    numbers: dict[str, Numbers] = field(default_factory=dict)

    @property
    def table(self) -> Any:
        """Long table (row, variable, value, probability, standard_error) of the unknown cells of discrete columns.

        A frame of the library the question came in, else a mapping of columns. Values are text where columns differ in type.
        """
        one_type = len({column.type_name for column in self._schema.columns if not column.is_continuous}) == 1
        parts: dict[str, list[Any]] = {k: [] for k in ("row", "variable", "value", "probability", "standard_error")}
        rows, places = np.nonzero(self.unknown)
        for row, place in zip(rows.tolist(), places.tolist(), strict=True):
            column = self._schema.columns[place]
            if column.is_continuous:
                continue
            parts["row"] += [row] * len(column.values)
            parts["variable"] += [column.name] * len(column.values)
            parts["value"] += list(column.values) if one_type else [str(value) for value in column.values]
            parts["probability"] += self.probabilities[column.name][row].tolist()
            parts["standard_error"] += self.standard_errors[column.name][row].tolist()
        return self._framed(parts)

    @property
    def number_table(self) -> Any:
        """Table (row, variable, mean, deviation, standard_error, low, high) of the unknown cells of continuous columns.

        Between `low` and `high` lie nine tenths of the posterior; `standard_error` is that of the mean. A frame or a mapping.
        """
        names = ("row", "variable", "mean", "deviation", "standard_error", "low", "high")
        parts: dict[str, list[Any]] = {name: [] for name in names}
        for place, column in enumerate(self._schema.columns):
            if column.name in self.numbers:
                rows, found = np.flatnonzero(self.unknown[:, place]), self.numbers[column.name]
                parts["row"] += rows.tolist()
                parts["variable"] += [column.name] * len(rows)
                parts["mean"] += found.means[rows].tolist()
                parts["deviation"] += found.deviations[rows].tolist()
                parts["standard_error"] += found.mean_errors[rows].tolist()
                ends = found.only(rows).quantiles([0.05, 0.95])
                parts["low"] += ends[:, 0].tolist()
                parts["high"] += ends[:, 1].tolist()
        return self._framed(parts)

    def _framed(self, parts: dict[str, list[Any]]) -> Any:
        if self._backend is None:
            return {name: np.array(cells) for name, cells in parts.items()}
        return nw.from_dict(parts, backend=self._backend).to_native()
