"""One set of questions, asked of discrete and of mixed models."""

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from ldfm import mixed_draws
from ldfm.draws import anneal
from ldfm.inference import completion, exact, mixed
from ldfm.inference.answers import Diagnostics, Estimate, Marginals, Method, Numbers, QueryResult
from ldfm.inference.budget import Budget
from ldfm.inference.chains import Starts
from ldfm.inference.exact import ExactTables
from ldfm.inference.marginals import find_marginals
from ldfm.inference.queries import find_queries
from ldfm.mixed_weights import MixedWeights
from ldfm.tables import MergedRows, Table, missing_cells
from ldfm.types import Booleans, Floats, Integers, Rows
from ldfm.weights import ArcWeights

PARTITION_CHAINS = 2048  # chains that anneal to find the partition
Seed = np.random.SeedSequence


class Posteriors(NamedTuple):
    """Posteriors of unknown cells of distinct rows: for each variable (rows, values), their errors, and those of numbers."""

    means: list[Floats]
    errors: list[Floats]
    numbers: dict[int, Numbers]
    diagnostics: Diagnostics

    def of_table(self, table: Table, places: Integers) -> Marginals:
        """Give those of all rows of a table, which are copies of these at `places`, in the table's units."""
        columns = table.schema.columns
        discrete = [(place, column) for place, column in enumerate(columns) if not column.is_continuous]
        return Marginals(
            {column.name: self.means[place][places] for place, column in discrete},
            {column.name: self.errors[place][places] for place, column in discrete},
            missing_cells(table.codes),
            self.diagnostics.of_rows(places),
            table.schema,
            table.source.frame.implementation if table.source.frame is not None else None,
            {
                columns[place].name: numbers.in_units(columns[place].units).only(places)
                for place, numbers in self.numbers.items()
            },
        )


class DiscreteEngine:
    """Answers from a discrete model; rows are codes."""

    def __init__(self, weights: ArcWeights, draws: Callable[[], Rows], n_jobs: int | None = None) -> None:
        self.weights, self.n_jobs, self._draws = weights, n_jobs, draws
        self._tables = ExactTables(weights)

    @property
    def tables(self) -> ExactTables:
        """Enumerates completions."""
        self._tables.n_jobs = self.n_jobs
        return self._tables

    def starts(self) -> Starts:
        """Give states to start chains from."""
        return Starts(self._draws(), self.weights.cardinalities)

    def log_partition(self, seed: int) -> Estimate:
        """Give the log partition, by enumeration or else by annealing."""
        if prod(self.weights.cardinalities) <= exact.MAX_STATES:
            return Estimate(self.tables.log_partition(), 0.0, exact=True)
        found = anneal(self.weights, PARTITION_CHAINS, (seed, 1), self.n_jobs)
        return Estimate(found.value, found.standard_error, exact=False)

    def log_evidence(self, rows: MergedRows, seed: Seed, verbose: int) -> Floats:
        """Give log p of the known cells of rows, up to the partition."""
        return completion.log_evidence(self.tables, rows, Budget(), seed, self.starts, verbose)

    def marginals(self, rows: MergedRows, method: Method, budget: Budget, seed: Seed, verbose: int) -> Posteriors:
        """Give the posteriors of missing cells."""
        means, errors, found = find_marginals(self.tables, rows, method, budget, seed, self.starts, verbose)
        return Posteriors(means, errors, {}, found)

    def queries(
        self, rows: MergedRows, asked: Booleans, method: Method, budget: Budget, seed: Seed, verbose: int
    ) -> QueryResult:
        """Give log p(query | evidence) of rows."""
        return find_queries(self.tables, rows, asked, method, budget, seed, self.starts, verbose)

    def draw(self, rows: Rows, seed: Seed) -> Rows:
        """Fill missing cells by draws."""
        return completion.draw_completions(self.tables, rows, seed, self.starts)

    def most_probable(self, rows: MergedRows, method: Method, seed: Seed) -> Rows:
        """Fill missing cells by the most probable completion."""
        return completion.most_probable(self.tables, rows, method, seed, self.starts)

    def arc_marginals(self, rows: MergedRows, seed: Seed) -> Floats:
        """Give arc marginals averaged over missing cells."""
        return completion.average_arc_marginals(self.tables, rows, seed, self.starts)


class MixedEngine:
    """Answers from a mixed model; rows are cells. Methods as in `DiscreteEngine`."""

    def __init__(
        self, weights: MixedWeights, draws: Callable[[], Rows], bends: mixed.Bends, n_jobs: int | None = None
    ) -> None:
        self.weights, self.n_jobs, self._draws, self._bends = weights, n_jobs, draws, bends

    def _asked(self) -> mixed.MixedModelOfRows:
        starts = mixed.MixedStarts(self._draws(), self.weights.continuous)
        tables = ExactTables(self.weights, self.n_jobs)
        return mixed.MixedModelOfRows(self.weights, tables, lambda: starts, self.n_jobs, self._bends)

    def log_partition(self, seed: int) -> Estimate:
        """Give the log partition: exact where all variables are continuous, else by annealing."""
        value, error = mixed_draws.find_log_partition(self.weights, PARTITION_CHAINS // 2, (seed, 1), self.n_jobs)
        return Estimate(value, error, exact=error == 0.0)

    def log_evidence(self, rows: MergedRows, seed: Seed, verbose: int) -> Floats:
        """Give the log density of the known cells of rows, up to the partition, in standardised units."""
        return mixed.log_evidence(self._asked(), rows, Budget(), seed, verbose)

    def marginals(self, rows: MergedRows, method: Method, budget: Budget, seed: Seed, verbose: int) -> Posteriors:
        """Give the posteriors of missing cells."""
        return Posteriors(*mixed.find_marginals(self._asked(), rows, method, budget, seed, verbose))

    def queries(
        self, rows: MergedRows, asked: Booleans, method: Method, budget: Budget, seed: Seed, verbose: int
    ) -> QueryResult:
        """Give log p(query | evidence) of rows, densities in standardised units."""
        return mixed.find_queries(self._asked(), rows, asked, method, budget, seed, verbose)

    def draw(self, rows: Rows, seed: Seed) -> Rows:
        """Fill missing cells by draws."""
        return mixed.draw_completions(self._asked(), np.asarray(rows, dtype=np.float64), seed)

    def most_probable(self, rows: MergedRows, method: Method, seed: Seed) -> Rows:
        """Fill missing cells by the most probable completion, by enumeration or by climbing."""
        return mixed.most_probable(self._asked(), rows, method, seed)

    def arc_marginals(self, rows: MergedRows, seed: Seed) -> Floats:
        """Give arc marginals averaged over missing cells."""
        return mixed.average_arc_marginals(self._asked(), rows, seed)


Engine = DiscreteEngine | MixedEngine


def engine_of(
    weights: ArcWeights | MixedWeights, draws: Callable[[], Rows], bends: mixed.Bends | None = None
) -> Engine:
    """Give what answers questions about a model; `draws` gives draws of it, to start chains from, `bends` how scales are bent."""
    if not isinstance(weights, MixedWeights):
        return DiscreteEngine(weights, draws)
    return MixedEngine(weights, draws, bends or (None,) * len(weights.continuous))
