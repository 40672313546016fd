"""All forests of a small arc matrix, and exact forest sums of any arc matrix."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np


def all_forests(n: int) -> Iterator[tuple[int, ...]]:
    """Yield every forest of n variables as a tuple of parents, root = -1; there are (n + 1)^(n - 1)."""
    for parents in product(range(-1, n), repeat=n):
        if all(_reaches_root(parents, j) for j in range(n)):
            yield parents


def _reaches_root(parents: tuple[int, ...], j: int) -> bool:
    for _ in range(len(parents)):
        if parents[j] == -1:
            return True
        j = parents[j]
    return False


def forest_weights(arcs: np.ndarray) -> dict[tuple[int, ...], mpmath.mpf]:
    """Give the weight of every forest, at 60 digits and without underflow."""
    with mpmath.workdps(60):
        return {
            parents: mpmath.fprod(mpmath.mpf(float(arcs[1 + p, j])) for j, p in enumerate(parents))
            for parents in all_forests(arcs.shape[1])
        }


def enumerated_log_sum(arcs: np.ndarray) -> float:
    """Give log Z by adding up all forests."""
    with mpmath.workdps(60):
        return _log(mpmath.fsum(forest_weights(arcs).values()))


def enumerated_marginals(arcs: np.ndarray) -> np.ndarray:
    """Give the arc marginals by adding up all forests."""
    weights = forest_weights(arcs)
    with mpmath.workdps(60):
        total = mpmath.fsum(weights.values())
        sums = [[mpmath.mpf(0)] * arcs.shape[1] for _ in range(arcs.shape[0])]
        for parents, weight in weights.items():
            for j, p in enumerate(parents):
                sums[1 + p][j] += weight
        return np.array([[float(s / total) for s in row] for row in sums])


def exact_log_sum(arcs: np.ndarray) -> float:
    """Give log Z from the determinant in whole numbers (fraction-free elimination), so without any rounding before the log.

    Every double is a whole number times 2^-1100 or so: scale, eliminate as Bareiss does, take the log at 60 digits.
    """
    determinant, scale = _exact_determinant(arcs)
    with mpmath.workdps(60):
        return _log(mpmath.mpf(determinant)) - float(scale * mpmath.log(2)) if determinant else float("-inf")


def exact_marginal(arcs: np.ndarray, parent: int, child: int) -> float:
    """Give P(arc) = 1 - Z(without the arc) / Z, in whole numbers; row 0 is the root."""
    without = arcs.copy()
    without[parent, child] = 0.0
    whole, _ = _exact_determinant(arcs)
    rest, _ = _exact_determinant(without)
    return float(1 - Fraction(rest, whole))


def _exact_determinant(arcs: np.ndarray) -> tuple[int, int]:
    """Give (d, s) with Z = d * 2^-s."""
    n = arcs.shape[1]
    bits = 1100
    whole = [[int(Fraction(float(w)) * 2**bits) for w in row] for row in arcs]
    matrix = [[-whole[1 + i][j] if i != j else sum(row[j] for row in whole) for j in range(n)] for i in range(n)]
    previous = 1
    for k in range(n - 1):
        if matrix[k][k] == 0:  # a column-dominant M-matrix with a zero pivot is singular
            return 0, 0
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                matrix[i][j] = (matrix[i][j] * matrix[k][k] - matrix[i][k] * matrix[k][j]) // previous
        previous = matrix[k][k]
    return matrix[n - 1][n - 1], bits * n


def _log(number: mpmath.mpf) -> float:
    return float(mpmath.log(number)) if number else float("-inf")
