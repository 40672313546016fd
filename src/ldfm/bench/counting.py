# mypy: disable-error-code="no-untyped-def"
"""Gibbs sampling asked as the paper asks it: the probability of a query is the share of the draws that show it.

Kept here alone, to show what the printed g-LDFM was: a query that no draw shows cannot be told from an impossible one, and most
queries of dozens of variables are rarer than one draw in as many as anyone waits for. Every count has half a draw added, so that
its log is finite.
"""

import numpy as np
from numba import njit

from ldfm.draws import fold
from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.gibbs import gibbs_sweeps
from ldfm.parallel import stop_if_unwanted
from ldfm.peers import gibbs
from ldfm.peers.kernels.clamping import Effort, r_hat
from ldfm.types import Booleans, Floats, Integers
from ldfm.weights import ArcWeights

CHAINS = 16
EFFORT = Effort(100, 625, 0)  # 10,000 draws
METHOD = "gibbs, draws counted"


@njit(nogil=True, cache=True, error_model="numpy")
def _count(model, clamped, state, wanted, effort, work, generator, hits):
    """Run one chain; `hits` (n + 1,) counts the draws that show the wanted code of each cell, and of all together last."""
    n = state.shape[0]
    nothing = np.zeros((0, n, model.most))
    gibbs_sweeps(model, clamped, state, effort.burn_in, work, generator, nothing)
    for _ in range(effort.first):
        gibbs_sweeps(model, clamped, state, 1, work, generator, nothing)
        whole = True
        for i in range(n):
            if wanted[i] >= 0:
                shown = state[i] == wanted[i]
                whole = whole and shown
                hits[i] += shown
        hits[n] += whole


def counted_sampling(weights: ArcWeights, chains: int = CHAINS, effort: Effort = EFFORT) -> gibbs.Sampling:
    """Give collapsed Gibbs sampling whose draws are counted, as `peers.gibbs.query` takes it."""
    model = fold(weights)

    def answer(states: Integers, codes: Integers, asked: Booleans, generator: np.random.Generator, out: Floats) -> None:
        clamped, wanted = np.where(asked, -1, codes), np.where(asked, codes, -1)
        hits, work = np.zeros((chains, len(codes) + 1)), make_workspace(len(codes))
        for chain in range(chains):
            stop_if_unwanted()
            _count(model, clamped, states[chain], wanted, effort, work, generator, hits[chain])
        cells, draws = np.flatnonzero(asked), chains * effort.first
        shares = (hits.sum(axis=0) + 0.5) / (draws + 1.0)
        variances = (hits / effort.first).var(axis=0, ddof=1) / chains / shares**2
        out[0], out[1] = np.log(shares[-1]), variances[-1]
        out[2], out[3] = np.log(shares[cells]).sum(), variances[cells].sum()
        out[4] = draws
        # a hit is 1, so that sums of squares are sums
        out[5] = max((r_hat(hits[:, i].copy(), hits[:, i].copy(), effort.first) for i in cells), default=1.0)

    return gibbs.Sampling(answer, weights.cardinalities, chains, effort, METHOD)
