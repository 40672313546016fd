"""EM for LDFM and LDFM-S in plain NumPy, one row at a time, with inverses of Laplacians as in the paper."""

import numpy as np


def uniform(cardinalities: tuple[int, ...], stops: bool) -> tuple[np.ndarray, np.ndarray | None]:
    variable = np.repeat(np.arange(len(cardinalities)), cardinalities)
    allowed = np.vstack([np.ones((1, len(variable))), variable[:, None] != variable[None, :]])
    outcomes = allowed.sum(axis=1) + stops
    return allowed / outcomes[:, None], 1 / outcomes if stops else None


def log_row_probability(table: np.ndarray, stop: np.ndarray | None, values: np.ndarray) -> float:
    laplacian, _, _ = _laplacian(table, values)
    logs = np.linalg.slogdet(laplacian)[1]
    return logs if stop is None else logs + np.log(stop[0]) + np.log(stop[1 + values]).sum()


def _laplacian(table: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    arcs, root = table[1 + values][:, values], table[0, values]
    return np.diag(root + arcs.sum(axis=0)) - arcs, arcs, root


def fit(
    rows: np.ndarray, cardinalities: tuple[int, ...], stops: bool, iterations: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Give weights (root first) and stop weights after so many iterations of maximum likelihood from the uniform start."""
    table, stop = uniform(cardinalities, stops)
    offsets = np.concatenate([[0], np.cumsum(cardinalities)[:-1]])
    for _ in range(iterations):
        counts = np.zeros(table.shape)
        stop_counts = np.zeros(len(table))
        for row in rows:
            values = offsets + row
            laplacian, arcs, root = _laplacian(table, values)
            inverse = np.linalg.inv(laplacian)
            own = np.diag(inverse)
            counts[np.ix_(1 + values, values)] += arcs * (own[None, :] - inverse.T)
            counts[0, values] += root * own
            stop_counts[0] += 1
            stop_counts[1 + values] += 1
        if stop is None:
            totals = counts.sum(axis=1)
        else:
            totals = counts.sum(axis=1) + stop_counts
            stop = np.where(totals > 0, stop_counts / np.where(totals > 0, totals, 1), stop)
        table = np.where(totals[:, None] > 0, counts / np.where(totals > 0, totals, 1)[:, None], table)
    return table, stop
