"""Exact answers by summing over all states of the unknown cells: the reference for every sampler."""

from collections.abc import Iterator
from math import inf, prod
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ldfm.forests import Weights, log_sums
from ldfm.mixed_weights import MixedWeights
from ldfm.tables import MISSING, MergedRows, missing_cells, only_cells
from ldfm.types import Booleans, Floats, Integers, Rows

MAX_STATES = 1 << 18  # sachs, 3^11 states, is within
_STATES_AT_ONCE = 1 << 14


class TooManyStatesError(ValueError):
    """The unknown cells of a row have more joint states than can be enumerated."""


class ImpossibleEvidenceError(ValueError):
    """The known cells of a row have probability zero, so nothing can be said given them."""


def count_states(weights: Weights, unknown: Booleans) -> float:
    """Give the number of joint states of the unknown variables of a row; inf where one is continuous."""
    if isinstance(weights, MixedWeights) and (unknown & np.array(weights.continuous)).any():
        return inf
    return prod(k for k, free in zip(weights.cardinalities, unknown, strict=True) if free)


class ExactTables:
    """Log probabilities, up to the partition, of all completions of rows, as arrays with one axis an unknown variable.

    Where the whole joint table is small enough and rows ask for more than it holds, it is computed once and sliced.

    Parameters
    ----------
    weights
        Weights of the model.
    n_jobs
        Threads.
    """

    def __init__(self, weights: Weights, n_jobs: int | None = 1) -> None:
        self.weights: Any = weights  # whose kind is known to who made it
        self.n_jobs = n_jobs
        self._joint: Floats | None = None

    def joint(self) -> Floats:
        """Give the table of all complete rows, one axis a variable."""
        if self._joint is None:
            everything = np.full(len(self.weights.cardinalities), MISSING)
            self._joint = self._enumerate(everything, "the partition")
        return self._joint

    def tables(self, rows: MergedRows) -> Iterator[tuple[int, Floats]]:
        """Yield the place of each distinct row and the table of completions of its missing cells."""
        codes = rows.codes
        unknown = missing_cells(codes)
        states = [count_states(self.weights, row) for row in unknown]
        for row, count in enumerate(states):
            if count == inf:
                raise TooManyStatesError(
                    f"row {rows.first_rows[row]}: a cell of a continuous column is unknown; method 'exact' enumerates values"
                )
            if count > MAX_STATES:
                raise TooManyStatesError(
                    f"row {rows.first_rows[row]}: its {int(unknown[row].sum())} unknown cells have {count} joint states; "
                    f"method 'exact' enumerates up to {MAX_STATES}"
                )
        whole = prod(self.weights.cardinalities)
        mixed = isinstance(self.weights, MixedWeights)
        if not mixed and self._joint is None and whole <= MAX_STATES and sum(states) > whole:
            self.joint()
        for place, (row, known) in enumerate(zip(codes, ~unknown, strict=True)):
            if self._joint is not None:
                yield place, self._joint[tuple(int(c) if k else slice(None) for c, k in zip(row, known, strict=True))]
            else:
                yield place, self._enumerate(row, "a row")

    def log_partition(self) -> float:
        """Give log of the sum over all complete rows."""
        return float(logsumexp(self.joint()))

    def _enumerate(self, row: Rows, what: str) -> Floats:
        free = np.flatnonzero(missing_cells(row))
        shape = tuple(self.weights.cardinalities[i] for i in free)
        total = prod(shape)
        if total > MAX_STATES:
            raise TooManyStatesError(f"{what} has {total} joint states; up to {MAX_STATES} can be enumerated")
        logs = np.empty(total)
        for start in range(0, total, _STATES_AT_ONCE):
            states = np.arange(start, min(start + _STATES_AT_ONCE, total))
            codes = np.repeat((row if row.dtype.kind == "f" else row.astype(np.int64))[None, :], len(states), axis=0)
            if shape:
                codes[:, free] = np.stack(np.unravel_index(states, shape), axis=1)
            logs[states] = log_sums(self.weights, codes, self.n_jobs)
        return logs.reshape(shape)


def _total(table: Floats, rows: MergedRows, place: int) -> float:
    """Give the log of the sum of a row's table, which must not be 0."""
    total = float(logsumexp(table))
    if total == -np.inf:
        row = rows.first_rows[place]
        raise ImpossibleEvidenceError(f"row {row}: its known cells have probability zero under this model")
    return total


def log_evidence(tables: ExactTables, rows: MergedRows) -> Floats:
    """Give the log probability, up to the partition, of the known cells of each distinct row."""
    return np.array([float(logsumexp(table)) for _, table in tables.tables(rows)])


def marginals(tables: ExactTables, rows: MergedRows) -> list[Floats]:
    """Give for each variable (distinct rows, values) the posterior of an unknown cell, 0 and 1 for a known one."""
    found = [np.zeros((len(rows.codes), k)) for k in tables.weights.cardinalities]
    for place, table in tables.tables(rows):
        total = _total(table, rows, place)
        axis = 0
        for variable, missing in enumerate(missing_cells(rows.codes[place])):
            if missing:
                others = tuple(a for a in range(table.ndim) if a != axis)
                found[variable][place] = np.exp(logsumexp(table, axis=others) - total)
                axis += 1
            else:
                # a continuous variable has one state, whatever its number
                one = found[variable].shape[1] == 1
                found[variable][place, 0 if one else int(rows.codes[place, variable])] = 1.0
    return found


def query(tables: ExactTables, rows: MergedRows, asked: Booleans) -> tuple[Floats, Floats, Integers]:
    """Give log p(query | evidence), the sum of the cells' own log posteriors, and the states summed, of each distinct row.

    Cells that are not missing are query where `asked`, else evidence; missing cells are summed out.
    """
    codes = rows.codes
    joint, marginal = np.zeros(len(codes)), np.zeros(len(codes))
    states = np.ones(len(codes), dtype=np.int64)
    evidence = ~missing_cells(codes) & ~asked
    known = rows._replace(codes=only_cells(codes, evidence))
    for row, table in tables.tables(known):
        total = _total(table, known, row)
        states[row] = table.size
        free = np.flatnonzero(~evidence[row])
        chosen = tuple(int(codes[row, i]) if asked[row, i] else slice(None) for i in free)
        joint[row] = float(logsumexp(table[chosen])) - total
        for axis, i in enumerate(free):
            if asked[row, i]:
                one = tuple(int(codes[row, i]) if a == axis else slice(None) for a in range(table.ndim))
                marginal[row] += float(logsumexp(table[one])) - total
    return joint, marginal, states


def most_probable(tables: ExactTables, rows: MergedRows) -> Rows:
    """Give each distinct row with its unknown cells filled by the jointly most probable values; the first of equals."""
    filled = rows.codes.copy()
    for place, table in tables.tables(rows):
        _total(table, rows, place)
        best = np.unravel_index(int(np.argmax(table)), table.shape) if table.ndim else ()
        filled[place, missing_cells(rows.codes[place])] = best
    return filled
