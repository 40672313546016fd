"""Chains for tests, started anywhere."""

import numpy as np

from ldfm.draws import fold
from ldfm.inference.chains import Chains, Starts, start_states
from ldfm.weights import ArcWeights


def started(weights: ArcWeights, known: np.ndarray, count: int, generator: np.random.Generator) -> Chains:
    """Give chains of one row that start from values drawn uniformly, or grown where those are impossible."""
    codes = np.stack([generator.integers(0, k, count) for k in weights.cardinalities], axis=1)
    model = fold(weights)
    states = start_states(model, known, count, generator, 0, Starts(codes, weights.cardinalities))
    return Chains(model, known, *states, generator)
