"""Arc weights of mixed models, one arc at a time, and integrals over a grid."""

from itertools import product
from math import exp, pi, sqrt
from typing import Any

import numpy as np
from scipy.special import logsumexp


def arc_matrix(weights: Any, cells: np.ndarray) -> np.ndarray:
    """Give (n + 1, n) the arc weights of one row of what relations leave, stop weights of children folded in."""
    n = len(cells)
    arcs = np.zeros((n + 1, n))
    for parent, child in product(range(-1, n), range(n)):
        if parent != child:
            arcs[1 + parent, child] = _weight(weights, cells, parent, child)
    return arcs


def _state(weights: Any, cells: np.ndarray, i: int) -> int:
    return int(weights.offsets[i]) + (0 if weights.continuous[i] else int(cells[i]))


def _weight(weights: Any, cells: np.ndarray, parent: int, child: int) -> float:
    t = _state(weights, cells, child)
    row = 0 if parent < 0 else 1 + _state(weights, cells, parent)
    number = parent >= 0 and weights.continuous[parent]
    x = cells[parent] if number else 0.0
    weight = weights.table[row, t] * (1.0 if weights.stop is None else weights.stop[1 + t])
    if weights.continuous[child]:
        mean = weights.intercepts[row, t] + weights.slopes[row, t] * x
        return weight * _normal(cells[child], mean, weights.deviations[row, t])
    if number:
        columns = slice(weights.offsets[child], weights.offsets[child + 1])
        powers = np.exp(weights.intercepts[row, columns] + weights.slopes[row, columns] * x)
        return weight * powers[int(cells[child])] / powers.sum()
    return weight


def _normal(x: float, mean: float, deviation: float) -> float:
    return exp(-0.5 * ((x - mean) / deviation) ** 2) / (deviation * sqrt(2 * pi))


def rests_of(weights: Any, cells: np.ndarray) -> np.ndarray:
    """Give what relations leave of one row, one cell at a time."""
    rests = np.array(cells, dtype=float)
    if weights.relations is None:
        return rests
    shares, levels, scales = weights.relations.shares, weights.relations.levels, weights.relations.scales
    for j in range(len(cells)):
        if weights.continuous[j]:
            taken = sum(shares[j, k] * cells[k] for k in range(len(cells)) if shares[j, k] != 0)
            rests[j] = (cells[j] - levels[j] - taken) / scales[j]
    return rests


def log_row(weights: Any, cells: np.ndarray) -> float:
    """Give log Z of one row of cells from a determinant, stop weights and the scales of relations included."""
    arcs = arc_matrix(weights, rests_of(weights, cells))
    laplacian = np.diag(arcs.sum(axis=0)) - arcs[1:]
    lost = 0.0 if weights.relations is None else sum(np.log(scale) for scale in weights.relations.scales)
    return np.linalg.slogdet(laplacian)[1] - lost + (0.0 if weights.stop is None else np.log(weights.stop[0]))


class Grid:
    """All states of a model with few variables: values, and numbers on a grid wide enough to hold all but nothing of it."""

    def __init__(self, weights: Any, reach: float = 9.0, points: int = 41) -> None:
        numbers = np.linspace(-reach, reach, points)
        axes = [
            numbers if is_number else np.arange(float(k))
            for k, is_number in zip(weights.cardinalities, weights.continuous, strict=True)
        ]
        self.cells = np.array(list(product(*axes)))
        self.log_step = np.log(numbers[1] - numbers[0]) * sum(weights.continuous)
        self.logs = np.array([log_row(weights, cells) for cells in self.cells])
        self.log_partition = float(logsumexp(self.logs) + self.log_step)

    def shares(self, known: np.ndarray | None = None) -> np.ndarray:
        """Give the probabilities of the states, given known cells (NaN where unknown) that lie on the grid."""
        fits = np.ones(len(self.cells), dtype=bool)
        if known is not None:
            given = ~np.isnan(known)
            fits = (np.abs(self.cells[:, given] - known[given]) < 1e-9).all(axis=1)
        logs = np.where(fits, self.logs, -np.inf)
        return np.exp(logs - logsumexp(logs))
