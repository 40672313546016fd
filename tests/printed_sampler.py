"""The tree-augmented sampler as the paper prints it, which is not valid: tests of samplers must reject it."""

import numpy as np

from ldfm.inference.chains import Chains


def printed_tree_sweep(chains: Chains, chain: int, rng: np.random.Generator) -> None:
    """Run one sweep: value and parent in proportion to the arc weight, children left out."""
    table, offsets = chains.model.table, chains.model.offsets
    codes, parents = chains.codes[chain], chains.parents[chain]
    n = len(codes)
    for i in range(n):
        above = []
        for p in range(n):
            q = p
            while q not in (-1, i):
                q = parents[q]
            if q != i:
                above.append(p)
        rows = [0, *(1 + offsets[p] + codes[p] for p in above)]
        span = range(offsets[i], offsets[i + 1]) if chains.clamped[i] < 0 else [offsets[i] + codes[i]]
        weights = np.array([[table[r, t] for r in rows] for t in span])
        choice = rng.choice(weights.size, p=weights.ravel() / weights.sum())
        codes[i] = span[choice // len(rows)] - offsets[i]
        parents[i] = -1 if choice % len(rows) == 0 else above[choice % len(rows) - 1]
