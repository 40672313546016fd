"""Models of the two networks that can be enumerated, fitted once a process."""

from functools import cache

import numpy as np

from ldfm import LDFM, ModifiedDirichlet
from ldfm.networks import load
from ldfm.tables import MergedRows, unmerged

STEPS = {"asia": 60, "sachs": 60}


@cache
def fitted(name: str, objective: str) -> LDFM:
    """Fit on the likelihood, or by EM with a floor; few steps, so that the weights are smooth."""
    settings = (
        {"max_iter": 15, "prior": ModifiedDirichlet(1.0, 1e-3)}
        if objective == "generation"
        else {"max_iter": STEPS[name]}
    )
    model = LDFM(objective=objective, random_state=0, n_jobs=1, **settings)
    return model.fit(load(name).sample(1000, seed=0))


def questions(name: str, rows: int, seed: int) -> tuple[MergedRows, np.ndarray]:
    """Give rows of a network with two fifths of the cells asked for and a third given, the rest missing; and which are asked."""
    codes = load(name).sample_codes(rows, seed + 1)
    n = codes.shape[1]
    places = np.random.default_rng(seed).permuted(np.tile(np.arange(n), (rows, 1)), axis=1)
    asked, given = places < 2 * n // 5, places >= n - n // 3
    return unmerged(np.where(asked | given, codes, -1)), asked
