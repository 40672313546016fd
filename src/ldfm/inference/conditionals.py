"""Every cell of a row given all its other cells."""

import numpy as np
from scipy.special import logsumexp

from ldfm.forests import Weights, log_sums
from ldfm.types import Floats, Rows


def log_conditionals(weights: Weights, codes: Rows, n_jobs: int | None = 1) -> list[Floats]:
    """Give for each variable (rows, values): log p(value | the other cells of the complete row); needs no partition.

    NaN where no value is possible; a continuous variable has 0 alone. O(S n^3 / 3) a row, S values in all.
    """
    rows = len(codes)
    found = []
    for i, k in enumerate(weights.cardinalities):
        logs = np.zeros((rows, k))
        if k > 1:
            variants = np.repeat(codes, k, axis=0)
            variants[:, i] = np.tile(np.arange(k), rows)
            sums = log_sums(weights, variants, n_jobs).reshape(rows, k)
            with np.errstate(invalid="ignore"):
                logs = sums - logsumexp(sums, axis=1, keepdims=True)
        found.append(logs)
    return found
