"""A Bayesian network over discrete variables: its tables, forward sampling and the exact probability of a row."""

import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldfm.networks.graph import describe_cycle, find_cycle, topological_order
from ldfm.types import Codes, Floats, Integers

Names = np.ndarray[Any, np.dtype[np.object_]]

# Rounding of a sum of probabilities, far below any rounding in a file: the reader renormalises what it reads.
SUM_TOLERANCE = 1e-9
# Rows are drawn in blocks of this many, so that the uniform numbers of all rows are never held at once.
BLOCK_ROWS = 1 << 15


@dataclass(frozen=True)
class NetworkStatistics:
    """Size and density of a network; a degree counts arcs in and out."""

    dimension: int
    average_cardinality: float
    max_cardinality: int
    average_degree: float
    max_in_degree: int


@dataclass(frozen=True, eq=False)
class Network:
    """A Bayesian network over n discrete variables.

    Parameters
    ----------
    name
        What the network is called.
    variables
        The n names of the variables, all different.
    values
        For each variable, the names of its values; a code is an index into them.
    parents
        For each variable, the indices of its parents.
    tables
        For each variable, the probabilities of its values given its parents, of shape (k_parent1, ..., k_child). Kept
        as read-only copies.

    Raises
    ------
    ValueError
        If the parts disagree, a table is not made of probabilities, or the arcs hold a cycle.
    """

    name: str
    variables: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    parents: tuple[tuple[int, ...], ...]
    tables: tuple[Floats, ...]

    def __post_init__(self) -> None:
        n = len(self.variables)
        for part, things in (("values", self.values), ("parents", self.parents), ("tables", self.tables)):
            if len(things) != n:
                raise ValueError(f"{part} has {len(things)} entries for {n} variables")
        if len(set(self.variables)) < n:
            raise ValueError(f"two variables share a name in {self.variables}")
        for variable in range(n):
            self._check_values(variable)
            self._check_parents(variable)
        if cycle := find_cycle(self.parents):
            raise ValueError(describe_cycle([self.variables[variable] for variable in cycle]))
        object.__setattr__(self, "tables", tuple(_read_only(table) for table in self.tables))
        for variable in range(n):
            self._check_table(variable)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        return self._structure() == other._structure() and all(map(np.array_equal, self.tables, other.tables))

    def __hash__(self) -> int:
        return hash(self._structure())

    @cached_property
    def cardinalities(self) -> tuple[int, ...]:
        """How many values each variable has."""
        return tuple(map(len, self.values))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Variables with every parent before its children, the smallest index first among those that are ready."""
        return topological_order(self.parents)

    def sample_codes(self, rows: int, seed: int | np.random.Generator) -> Integers:
        """Draw rows by forward sampling: each variable given its parents, in topological order.

        O(n k) vector operations for every block of rows. With an integer seed, fewer rows are the first of more.

        Parameters
        ----------
        rows
            How many rows to draw.
        seed
            A seed, or the generator to draw from.

        Returns
        -------
        codes
            Codes of the drawn values, (rows, n).
        """
        rows = operator.index(rows)
        if rows < 0:
            raise ValueError(f"rows must be at least 0, got {rows}")
        generator = np.random.default_rng(seed)
        cumulatives = [_cumulative(table) for table in self.tables]
        codes = np.empty((rows, len(self.variables)), dtype=np.int64)
        for start in range(0, rows, BLOCK_ROWS):
            block = codes[start : start + BLOCK_ROWS]
            uniforms = generator.random(block.shape)
            for variable in self.order:
                given = self._parent_index(block, variable)
                block[:, variable] = _invert(cumulatives[variable], given, uniforms[:, variable])
        return codes

    def sample(self, rows: int, seed: int | np.random.Generator) -> dict[str, Names]:
        """Draw rows as a table of value names; the same draws as `sample_codes`.

        Parameters
        ----------
        rows
            How many rows to draw.
        seed
            A seed, or the generator to draw from.

        Returns
        -------
        columns
            For each variable, the names of the drawn values, (rows,).
        """
        codes = self.sample_codes(rows, seed)
        return {
            name: np.array(values, dtype=object)[codes[:, variable]]
            for variable, (name, values) in enumerate(zip(self.variables, self.values, strict=True))
        }

    def log_probability(self, codes: Codes) -> Floats:
        """Exact log probability of complete rows; -inf where a row is impossible.

        O(n + arcs) vector operations.

        Parameters
        ----------
        codes
            A code for every variable, (rows, n).

        Returns
        -------
        log_probability
            Natural logarithm of the joint probability of each row, (rows,).

        Raises
        ------
        ValueError
            If the codes are not integers, have another shape, or hold a code that a variable does not have.
        """
        codes = np.asarray(codes)
        self._check_codes(codes)
        total = np.zeros(len(codes))
        for variable, table in enumerate(self.tables):
            with np.errstate(divide="ignore"):
                logs = np.log(table.reshape(-1, table.shape[-1]))
            total += logs[self._parent_index(codes, variable), codes[:, variable]]
        return total

    def statistics(self) -> NetworkStatistics:
        """Size and density of the network, which must have a variable."""
        n = len(self.variables)
        if n == 0:
            raise ValueError("a network without variables has no statistics")
        in_degrees = [len(of_child) for of_child in self.parents]
        return NetworkStatistics(
            dimension=n,
            average_cardinality=sum(self.cardinalities) / n,
            max_cardinality=max(self.cardinalities),
            average_degree=2 * sum(in_degrees) / n,
            max_in_degree=max(in_degrees),
        )

    def _structure(self) -> tuple[object, ...]:
        return (self.name, self.variables, self.values, self.parents)

    def _parent_index(self, codes: Codes, variable: int) -> Integers:
        """Row of the variable's table, with its parents' axes made one, that each row of codes picks; (rows,)."""
        index = np.zeros(len(codes), dtype=np.int64)
        for parent in self.parents[variable]:
            index *= self.cardinalities[parent]
            index += codes[:, parent].astype(np.int64, copy=False)
        return index

    def _check_values(self, variable: int) -> None:
        name, values = self.variables[variable], self.values[variable]
        if not values:
            raise ValueError(f"variable {name!r} has no values")
        if len(set(values)) < len(values):
            raise ValueError(f"two values of variable {name!r} share a name in {values}")

    def _check_parents(self, variable: int) -> None:
        name, parents = self.variables[variable], self.parents[variable]
        if any(not 0 <= parent < len(self.variables) for parent in parents) or len(set(parents)) < len(parents):
            n = len(self.variables)
            raise ValueError(f"parents of variable {name!r} must be different indices below {n}, got {parents}")

    def _check_table(self, variable: int) -> None:
        name, table = self.variables[variable], self.tables[variable]
        shape = tuple(self.cardinalities[i] for i in (*self.parents[variable], variable))
        if table.shape != shape:
            raise ValueError(f"table of variable {name!r} must have shape {shape}, got {table.shape}")
        if not np.all(table >= 0):
            raise ValueError(f"table of variable {name!r} holds a negative number or NaN")
        sums = table.sum(axis=-1)
        if not np.allclose(sums, 1, rtol=0, atol=SUM_TOLERANCE):
            worst = sums.flat[np.abs(sums - 1).argmax()]
            raise ValueError(f"a row in the table of variable {name!r} sums to {worst}, not 1")

    def _check_codes(self, codes: Codes) -> None:
        n = len(self.variables)
        if codes.ndim != 2 or codes.shape[1] != n:
            raise ValueError(f"codes must have shape (rows, {n}), got {codes.shape}")
        if not np.issubdtype(codes.dtype, np.integer):
            raise ValueError(f"codes must be integers, got {codes.dtype}")
        wrong = np.argwhere((codes < 0) | (codes >= np.array(self.cardinalities)))
        if len(wrong):
            row, variable = wrong[0]
            count, code = self.cardinalities[variable], codes[row, variable]
            raise ValueError(f"row {row}: variable {self.variables[variable]!r} has codes 0 to {count - 1}, got {code}")


def _read_only(table: Floats) -> Floats:
    copy = np.array(table, dtype=np.float64, order="C")
    copy.flags.writeable = False
    return copy


def _cumulative(table: Floats) -> Floats:
    """Upper ends of the part of [0, 1) that belongs to each value but the last; (k - 1, rows of the table)."""
    sums = np.cumsum(table.reshape(-1, table.shape[-1]), axis=1)
    # Divided by its own end, a sum that rounded to just below 1 leaves nothing for trailing values of probability 0.
    return np.ascontiguousarray((sums / sums[:, -1:])[:, :-1].T)


def _invert(cumulative: Floats, given: Integers, uniforms: Floats) -> Integers:
    """Code that each uniform number falls on, in the row of the table picked by `given`; (rows,)."""
    codes = np.zeros(len(given), dtype=np.int64)
    for ends in cumulative:
        codes += uniforms >= ends[given]
    return codes
