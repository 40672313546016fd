"""Gibbs sampling asked as the paper asks it: the probability of a query is the share of the draws that show it.

Kept here alone, to show what the printed g-LDFM was: a query that no draw shows cannot be told from an impossible one, and most
queries of dozens of variables are rarer than one draw in as many as anyone waits for. Every count has half a draw added, so that
its log is finite.
"""

import numpy as np

from ldfm.draws import fold
from ldfm.inference.chains import Chains
from ldfm.peers import gibbs
from ldfm.peers.kernels.clamping import Effort, r_hat
from ldfm.types import Booleans, Floats, Integers
from ldfm.weights import ArcWeights

CHAINS = 16
EFFORT = Effort(100, 625, 0)  # 10,000 draws
METHOD = "gibbs, draws counted"


def counted_sampling(weights: ArcWeights, chains: int = CHAINS, effort: Effort = EFFORT) -> gibbs.Sampling:
    """Give collapsed Gibbs sampling whose draws are counted, as `peers.gibbs.query` takes it."""
    model = fold(weights)

    def answer(states: Integers, codes: Integers, asked: Booleans, generator: np.random.Generator, out: Floats) -> None:
        clamped, cells = np.where(asked, -1, codes), np.flatnonzero(asked)
        running = Chains(model, clamped, states, np.full(states.shape, -1, dtype=np.int64), generator)
        running.move("gibbs", effort.burn_in)
        hits = np.zeros((chains, len(cells) + 1))  # of each query cell, and of all together
        for _ in range(effort.first):
            running.move("gibbs", 1)
            shown = running.codes[:, cells] == codes[cells]
            hits[:, :-1] += shown
            hits[:, -1] += shown.all(axis=1)
        draws = chains * effort.first
        shares = (hits.sum(axis=0) + 0.5) / (draws + 1.0)
        variances = (hits / effort.first).var(axis=0, ddof=1) / chains / shares**2
        out[0], out[1] = np.log(shares[-1]), variances[-1]
        out[2], out[3] = np.log(shares[:-1]).sum(), variances[:-1].sum()
        out[4] = draws
        # a hit is 1, so that sums of squares are sums
        out[5] = max((r_hat(column, column, effort.first) for column in hits[:, :-1].T), default=1.0)

    return gibbs.Sampling(answer, weights.cardinalities, chains, effort, METHOD)
