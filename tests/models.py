"""Random models for tests."""

import numpy as np

from ldfm.weights import ArcWeights, arc_mask


def random_weights(
    cardinalities: tuple[int, ...], seed: int, *, stops: bool = True, decades: float = 2.0, normalise: bool = True
) -> ArcWeights:
    """Give weights log-uniform over some orders of magnitude."""
    rng = np.random.default_rng(seed)
    mask = arc_mask(cardinalities)
    table = np.where(mask, 10.0 ** rng.uniform(-decades, 0, mask.shape), 0.0)
    stop = 10.0 ** rng.uniform(-1, 0, len(table)) if stops else None
    if normalise:
        totals = table.sum(axis=1) + (0 if stop is None else stop)
        totals = np.where(totals > 0, totals, 1.0)
        table = table / totals[:, None]
        stop = None if stop is None else stop / totals
    return ArcWeights(table, cardinalities, stop)


def values_of(cardinalities: tuple[int, ...]) -> dict[str, list[str]]:
    """Give names to the values of variables x0, x1, ..."""
    return {f"x{i}": [f"v{c}" for c in range(k)] for i, k in enumerate(cardinalities)}
