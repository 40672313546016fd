"""Marginals of one row from chains, with standard errors and with whether they met their target."""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from ldfm.inference.budget import Budget, Meter
from ldfm.inference.chains import Chains, Kernel, Starts, start_states
from ldfm.inference.diagnostics import effective_draws, r_hat, standard_error
from ldfm.kernels.sweeps import Folded
from ldfm.tables import MISSING
from ldfm.types import Codes, Floats

CHAINS = 16
RECORDS = 40  # records a chain and round: what standard errors are computed from
FIRST_ROUND = 40  # sweeps a chain; every round is twice as long as the one before and forgets it
TARGET = 0.01  # standard error of a probability
FEWEST_DRAWS = 100.0  # effective draws below which a standard error is not believed
LARGEST_R_HAT = 1.05
_TWO_SIGMA = 0.97725  # of a normal distribution is below 2
KERNEL_OF: dict[str, Kernel] = {"auto": "gibbs", "blocked": "blocked", "tree": "tree", "gibbs": "gibbs"}


class SampledMarginals(NamedTuple):
    """Marginals of one row.

    Attributes
    ----------
    means, errors
        (n, most values): estimates and standard errors; only those of missing cells count.
    effective, r_hat
        Fewest effective draws and largest R-hat of any of them.
    sweeps
        Sweeps of all chains.
    met
        Whether the target was met, with enough effective draws and chains that agree.
    """

    means: Floats
    errors: Floats
    effective: float
    r_hat: float
    sweeps: int
    met: bool


def sample_marginals(
    model: Folded,
    known: Codes,
    kernel: Kernel,
    budget: Budget,
    seed: np.random.SeedSequence,
    row: int,
    starts: Starts,
) -> SampledMarginals:
    """Run chains until all marginals of the missing cells meet the target, or the budget is used up.

    Chains run in rounds, each twice as long as the one before. Only the last round counts: all before it is warm-up.
    """
    meter = Meter(budget)
    target = TARGET if budget.target_se is None else budget.target_se
    generator = np.random.default_rng(seed)
    chains = Chains(model, known, *start_states(model, known, CHAINS, generator, row, starts), generator)
    chains.move(kernel, FIRST_ROUND)
    sweeps = FIRST_ROUND
    while True:
        records = chains.move(kernel, sweeps, RECORDS)
        meter.sweeps = chains.sweeps
        errors = _errors(records)
        moving = (known == MISSING)[:, None] & (errors > 1e-9)
        fewest, worst, largest = float(CHAINS * RECORDS), 1.0, 0.0
        if moving.any():
            fewest, worst = float(effective_draws(records)[moving].min()), float(r_hat(records)[moving].max())
            largest = float(errors[moving].max())
        met = largest <= target and worst <= LARGEST_R_HAT and fewest >= FEWEST_DRAWS
        if met or meter.is_used_up():
            return SampledMarginals(records.mean(axis=(0, 1)), errors, fewest, worst, chains.sweeps, met)
        sweeps *= 2


def _errors(records: Floats) -> Floats:
    """Give standard errors: from all draws, or from the spread of the chains alone where that is larger.

    Chains that sit in different modes look, each for itself, as if they moved well.
    """
    chains = len(records)
    spread = records.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(chains)
    errors: Floats = np.maximum(standard_error(records), spread * (stdtrit(chains - 1, _TWO_SIGMA) / 2.0))
    return errors
