"""Counts of pairs of values in rows with missing cells."""

from numba import njit

from ldfm.types import Codes, Floats, Integers


@njit(nogil=True, cache=True, error_model="numpy")
def add_pairs(codes: Codes, row_weights: Floats, offsets: Integers, counts: Floats) -> None:
    """Add to counts (S + 1, S) how often each value comes, in row 0, and how often it comes with each value of other variables.

    A code below 0 is a missing cell. O(n^2) a row.
    """
    n = codes.shape[1]
    for row in range(len(codes)):
        for j in range(n):
            if codes[row, j] < 0:
                continue
            child = offsets[j] + codes[row, j]
            counts[0, child] += row_weights[row]
            for i in range(n):
                if i != j and codes[row, i] >= 0:
                    counts[1 + offsets[i] + codes[row, i], child] += row_weights[row]
