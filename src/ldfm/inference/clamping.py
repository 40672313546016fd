"""The joint probability of query cells of one row, by clamping them in turn, and their marginals on the way."""

from typing import NamedTuple

import numpy as np

from ldfm.inference.budget import Budget, Meter
from ldfm.inference.chains import Starts, start_states
from ldfm.inference.diagnostics import effective_draws, r_hat
from ldfm.kernels.clamping import GIBBS, NO_EXTRA, TREE, clamp_in_turn, run_chains
from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.sweeps import Folded
from ldfm.types import Codes, Floats, Integers

GROUPS = 16  # independent populations: what standard errors are computed from
CHAINS = 8  # chains of a population
SWEEPS = 16  # sweeps of a chain after each clamp; all forests on the way are the next population
WARM_UP = 24
TARGET = 0.05  # nats, standard error of the log of a joint probability
EXTRA_OF = {"auto": TREE, "blocked": NO_EXTRA, "tree": TREE, "gibbs": GIBBS}


class SampledQuery(NamedTuple):
    """Log-likelihoods of the query cells of one row.

    Attributes
    ----------
    joint, joint_se, marginal, marginal_se
        log p(query | evidence), the sum over cells of log p(cell | evidence), and their standard errors.
    effective, r_hat
        Fewest effective draws and largest R-hat behind any marginal of a query cell.
    sweeps
        Sweeps of all chains.
    met
        Whether the joint met its target.
    """

    joint: float
    joint_se: float
    marginal: float
    marginal_se: float
    effective: float
    r_hat: float
    sweeps: int
    met: bool


class _Group(NamedTuple):
    joint: float
    marginals: Floats  # (records, query cells): p(cell's value | evidence), averaged over parts of the chains
    sweeps: int


def sample_query(
    model: Folded,
    evidence: Codes,
    cells: Integers,
    values: Codes,
    extra: int,
    budget: Budget,
    seed: np.random.SeedSequence,
    row: int,
    starts: Starts,
) -> SampledQuery:
    """Estimate log p(values of `cells` | evidence), with populations added until the target or the budget is reached.

    Parameters
    ----------
    evidence
        (n,): codes of evidence cells, -1 elsewhere.
    cells, values
        Query variables, and (n,) the codes asked for.
    extra
        Sweeps that chains make besides blocked ones.
    """
    meter = Meter(budget)
    target = TARGET if budget.target_se is None else budget.target_se
    generator = np.random.default_rng(seed)
    groups: list[_Group] = []
    while True:
        count = max(GROUPS, len(groups))  # as many again as there are
        forests = start_states(model, evidence, count * CHAINS, generator, row, starts)[1]
        parts = forests.reshape(count, CHAINS, -1)
        groups += [_run_group(model, evidence, cells, values, extra, first, generator) for first in parts]
        spent = sum(group.sweeps for group in groups)
        joint, joint_se = _log_mean(np.array([group.joint for group in groups]))
        met = joint_se <= target
        meter.sweeps = 2 * spent - 1  # after another round
        if met or meter.is_used_up():
            break
    records = np.stack([group.marginals for group in groups])
    marginal, marginal_se = _sum_of_logs(records.mean(axis=1))
    effective, worst = float(records.shape[0] * records.shape[1]), 1.0
    moving = records.std(axis=(0, 1)) > 1e-9
    if moving.any():
        effective, worst = float(effective_draws(records)[moving].min()), float(r_hat(records)[moving].max())
    return SampledQuery(joint, joint_se, marginal, marginal_se, effective, worst, spent, bool(met))


def _run_group(
    model: Folded,
    evidence: Codes,
    cells: Integers,
    values: Codes,
    extra: int,
    first: Integers,
    generator: np.random.Generator,
) -> _Group:
    """Run one population: warm up, average marginals, clamp the query cells in an order of its own."""
    n = len(evidence)
    known, work = evidence.astype(np.int64), make_workspace(n)
    nothing = np.empty((0, n, model.most))
    ancestors = first.copy()
    warm = np.empty((CHAINS * WARM_UP, n), dtype=np.int64)
    run_chains(model, known, ancestors, extra, work, generator, warm, nothing)
    ancestors[:] = warm[WARM_UP - 1 :: WARM_UP]
    forests = np.empty((CHAINS * SWEEPS, n), dtype=np.int64)
    visits = np.zeros((CHAINS, n, model.most))
    run_chains(model, known, ancestors, extra, work, generator, forests, visits)
    marginals = visits[:, cells, values[cells]] / SWEEPS
    order, start = generator.permutation(cells), forests.copy()
    asked = values.astype(np.int64)
    joint, runs = clamp_in_turn(model, known, order, asked, start, forests, ancestors, extra, work, generator)
    return _Group(joint, marginals, CHAINS * (WARM_UP + SWEEPS * (1 + runs)))


def _log_mean(logs: Floats) -> tuple[float, float]:
    """Give the log of the mean of estimates given by their logs, and its standard error."""
    top = float(logs.max())
    if top == -np.inf:
        return -np.inf, np.inf
    shares = np.exp(logs - top)
    mean = float(shares.mean())
    return top + float(np.log(mean)), float(shares.std(ddof=1) / np.sqrt(len(shares)) / mean)


def _sum_of_logs(means: Floats) -> tuple[float, float]:
    """Give the sum of logs of the means over groups of (groups, cells), and its standard error."""
    whole = means.mean(axis=0)
    if (whole <= 0).any():
        return -np.inf, np.inf
    parts = (means / whole - 1.0).sum(axis=1)
    return float(np.log(whole).sum()), float(parts.std(ddof=1) / np.sqrt(len(parts)))
