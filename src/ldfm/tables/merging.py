"""Identical rows are one row with a weight."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ldfm.types import Floats, Integers, Rows

FEW = 1 << 15  # distinct rows that memory is taken for at first


class MergedRows(NamedTuple):
    """Distinct rows.

    Attributes
    ----------
    codes
        (distinct rows, n), in order of first occurrence; cells of a mixed table.
    weights
        (distinct rows,): sum of the weights of the rows it stands for.
    places
        (rows,): the distinct row that each row became.
    first_rows
        (distinct rows,): the first row that became it, by which messages name it.
    """

    codes: Rows
    weights: Floats
    places: Integers
    first_rows: Integers

    def only(self, chosen: Integers) -> "MergedRows":
        """Give some of the distinct rows, which then stand for themselves alone."""
        return MergedRows(self.codes[chosen], self.weights[chosen], np.arange(len(chosen)), self.first_rows[chosen])


@njit(nogil=True, cache=True)
def _find_places(codes, slots, places, most):  # type: ignore[no-untyped-def]
    """Number the distinct rows in order of first occurrence by open addressing; give for each its first row.

    If there are more than `most`, which `slots` must have room for, give none.
    """
    rows, n = codes.shape
    mask = np.uint64(slots.shape[0] - 1)
    first_rows = np.empty(min(rows, most), dtype=np.int64)
    count = 0
    for row in range(rows):
        mix = np.uint64(14695981039346656037)
        for column in range(n):
            mix = (mix ^ np.uint64(codes[row, column] + 1)) * np.uint64(1099511628211)
            mix ^= mix >> np.uint64(29)
        slot = mix & mask
        while True:
            known = slots[slot]
            if known < 0:
                if count == most:
                    return first_rows[:0].copy()
                slots[slot] = count
                first_rows[count] = row
                places[row] = count
                count += 1
                break
            other = first_rows[known]
            same = True
            for column in range(n):
                if codes[other, column] != codes[row, column]:
                    same = False
                    break
            if same:
                places[row] = known
                break
            slot = (slot + np.uint64(1)) & mask
    return first_rows[:count].copy()


def weights_of_rows(sample_weight: Any, rows: int) -> Floats:
    """Give (rows,) what each row counts, from what a user gave; None: 1 each."""
    if sample_weight is None:
        return np.ones(rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (rows,):
        raise ValueError(f"sample_weight must be ({rows},), one number a row, not {weights.shape}")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(f"sample_weight row {bad[0]} is {weights[bad[0]]}; weights must be finite and not negative")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if total <= 0:
        raise ValueError("sample_weight is zero for every row")
    if not 1e-290 < total < 1e290:
        raise ValueError(f"sample_weight adds up to {total}, which is beyond what can be computed with; scale it")
    return weights


def merge_rows(codes: Rows, row_weights: Floats | None = None) -> MergedRows:
    """Merge identical rows; O(rows * n). Rows of weight 0 are kept, as rows that count nothing."""
    if codes.dtype.kind == "f":  # by their bits: NaN is then the same as NaN, and adding 0 makes -0 the same as 0
        cells = np.ascontiguousarray(np.where(np.isnan(codes), np.nan, codes + 0.0))
        merged = merge_rows(cells.view(np.int64), row_weights)
        return merged._replace(codes=merged.codes.view(np.float64))
    rows = codes.shape[0]
    codes = np.ascontiguousarray(codes)
    places = np.empty(rows, dtype=np.int64)
    # memory for the distinct rows, not for all; starting again costs a seventh where all are distinct
    most = min(FEW, 1 << int(max(rows, 1) - 1).bit_length())
    while True:
        first_rows = _find_places(codes, np.full(2 * most, -1, dtype=np.int64), places, most)
        if len(first_rows) or rows == 0:
            break
        most *= 8
    weights = np.bincount(places, weights=row_weights, minlength=len(first_rows)).astype(np.float64)
    return MergedRows(np.ascontiguousarray(codes[first_rows]), weights, places, first_rows)


def unmerged(codes: Rows) -> MergedRows:
    """Give rows as they are, each of weight 1."""
    places = np.arange(len(codes))
    return MergedRows(codes, np.ones(len(codes)), places, places)
