"""Random mixed models for tests."""

from dataclasses import replace

import numpy as np

from ldfm.mixed_weights import MixedWeights
from ldfm.relations import Relations
from ldfm.tables import MergedRows, unmerged


def random_mixed(kinds: tuple[int, ...], seed: int, *, stops: bool = True) -> MixedWeights:
    """Give weights of variables with so many values, 0 for a continuous one."""
    rng = np.random.default_rng(seed)
    continuous = tuple(kind == 0 for kind in kinds)
    uniform = MixedWeights.uniform(tuple(max(kind, 1) for kind in kinds), continuous, "ldfm-s" if stops else "ldfm")
    rows = np.where(uniform.outcomes, rng.dirichlet(np.ones(len(uniform.outcomes[0])), len(uniform.outcomes)), 0.0)
    totals = rows.sum(axis=1, keepdims=True)
    weights = uniform.with_rows(rows / np.where(totals > 0, totals, 1.0))
    shape, numeric_rows = weights.table.shape, np.concatenate([[False], weights.numeric])[:, None]
    return replace(
        weights,
        intercepts=np.where(weights.numeric | numeric_rows, rng.normal(size=shape), 0.0),
        slopes=np.where(numeric_rows, 0.7 * rng.normal(size=shape), 0.0),
        deviations=np.where(weights.numeric, rng.uniform(0.5, 1.2, shape), 1.0),
    )


def related(weights: MixedWeights, seed: int) -> MixedWeights:
    """Give the weights with every number but the first measured from all numbers before it."""
    rng = np.random.default_rng(seed)
    continuous = np.array(weights.continuous)
    shares = np.tril(rng.uniform(0.4, 0.8, (len(continuous), len(continuous))), -1) * continuous * continuous[:, None]
    later = shares.any(axis=1)
    levels, scales = rng.normal(size=len(later)) * 0.3, rng.uniform(0.5, 0.8, len(later))
    return replace(weights, relations=Relations(shares, np.where(later, levels, 0.0), np.where(later, scales, 1.0)))


def random_cells(weights: MixedWeights, rows: int, seed: int) -> np.ndarray:
    """Give rows of cells, not drawn from the model."""
    rng = np.random.default_rng(seed)
    columns = [
        rng.normal(size=rows) * 1.5 if is_number else rng.integers(k, size=rows).astype(float)
        for k, is_number in zip(weights.cardinalities, weights.continuous, strict=True)
    ]
    return np.stack(columns, axis=1)


def merged(cells: np.ndarray) -> MergedRows:
    """Give rows as they are."""
    return unmerged(np.asarray(cells, dtype=np.float64))
