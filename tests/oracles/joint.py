"""Joint probabilities of small models by plain enumeration: every completion, every forest sum a determinant."""

from itertools import product

import numpy as np

from oracles.em import log_row_probability


def joint_table(table: np.ndarray, stop: np.ndarray | None, cardinalities: tuple[int, ...]) -> np.ndarray:
    """Give p(row) for all rows, one axis a variable, summing to 1."""
    offsets = np.concatenate([[0], np.cumsum(cardinalities)[:-1]])
    weights = np.zeros(cardinalities)
    for codes in product(*map(range, cardinalities)):
        weights[codes] = np.exp(log_row_probability(table, stop, offsets + np.array(codes)))
    return weights / weights.sum()


def unnormalised_sum(table: np.ndarray, stop: np.ndarray | None, cardinalities: tuple[int, ...]) -> float:
    """Give the partition."""
    offsets = np.concatenate([[0], np.cumsum(cardinalities)[:-1]])
    return sum(
        np.exp(log_row_probability(table, stop, offsets + np.array(codes)))
        for codes in product(*map(range, cardinalities))
    )
