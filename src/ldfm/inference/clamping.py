"""The joint probability of query cells of one row, by clamping cells in turn, and their marginals on the way.

A group of draws of the model has first the evidence cells clamped, then the query cells. Chains between clamps need not forget
where they began: a group counts in proportion to its estimate of the probability of the evidence, so that the answers are ratios
of unbiased estimates. Groups are independent of each other; their spread gives the standard errors.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from ldfm.inference.answers import Method
from ldfm.inference.budget import Budget, Meter
from ldfm.inference.chains import Starts, move_on, start_states
from ldfm.inference.diagnostics import effective_draws, r_hat
from ldfm.kernels.clamping import GIBBS, NO_EXTRA, TREE, clamp_in_turn
from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.sweeps import Folded
from ldfm.parallel import stop_if_unwanted
from ldfm.types import Codes, Floats, Integers

GROUPS = 10  # independent populations: what standard errors are computed from
MOST_FIRST = 360  # draws of the model that a population begins with, if there are so many for each
WARM_UP = 100  # sweeps from states made to have evidence that no draw has
FRESH = 4  # sweeps that move draws on where they have been used before
CHAINS = 36  # chains of a population: where chains are slow many short ones are worth more than few long ones
SWEEPS = 2  # sweeps of a chain after each clamp; all forests on the way are the next population
LEAST_EVEN = 0.3  # cells are clamped together while the weights are worth this share of the forests chains visit
FEWEST_GROUPS = 5.0  # effective groups below which a standard error is not believed
TARGET = 0.05  # nats, standard error of the log of a joint probability
_TWO_SIGMA = 0.97725  # of a normal distribution is below 2
_MOST = 500.0  # largest variance of logs that is computed with
_WITHOUT = 10.0  # nats below the least other group that a group counts as whose estimate is 0
GIBBS_VALUES = 200  # of all variables together: with more, Gibbs sweeps take too long, and "auto" makes tree sweeps
EXTRA_OF = {"blocked": NO_EXTRA, "tree": TREE, "gibbs": GIBBS}


def extra_of(method: Method, values: int) -> int:
    """Give the sweeps that chains make besides blocked ones; `values` is how many all variables have together."""
    if method == "auto":
        return GIBBS if values <= GIBBS_VALUES else TREE
    return EXTRA_OF[method]


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


class _Question(NamedTuple):
    """What is asked of every group: cells in the order they are clamped in, and how many at a time."""

    model: Folded
    known: Integers  # cells that are known from the start
    evidence: Integers
    values: Integers
    given: Integers
    given_stages: Integers
    asked: Integers
    asked_stages: Integers
    extra: int


class _Group(NamedTuple):
    log_evidence: float
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
    given = generator.permutation(np.flatnonzero(evidence >= 0))
    stages = np.zeros(len(given), dtype=np.int64), np.zeros(len(cells), dtype=np.int64)
    question = _Question(
        model,
        np.full(len(evidence), -1, dtype=np.int64),
        evidence.astype(np.int64),
        values.astype(np.int64),
        given,
        stages[0],
        generator.permutation(cells),
        stages[1],
        extra,
    )
    # the first group, a small one, only decides how many cells are clamped at a time
    deck = _Deck(model, starts, generator)
    pilot = _run_group(question, deck.deal(), CHAINS // 2, generator)
    if pilot.log_evidence == -np.inf:  # too rare for clamping: begin with states that have the evidence
        question = question._replace(known=question.evidence, given=given[:0], given_stages=given[:0])
        pilot = _run_group(question, _made_to_fit(question, 1, generator, row, starts)[0], CHAINS // 2, generator)
    spent = pilot.sweeps
    groups: list[_Group] = []
    while True:
        count = max(GROUPS, len(groups))  # as many again as there are
        rare = len(question.given) < len(given)
        firsts = _made_to_fit(question, count, generator, row, starts) if rare else (deck.deal() for _ in range(count))
        new = [_run_group(question, first, CHAINS, generator) for first in firsts]
        groups += new
        spent += sum(group.sweeps for group in new)
        shares = _shares(np.array([group.log_evidence for group in groups]))
        joint, joint_se = _log_mean(np.array([group.joint for group in groups]), shares)
        effective = 1.0 / float(shares @ shares)
        met = joint_se <= target and effective >= FEWEST_GROUPS
        meter.sweeps = 2 * spent - 1  # after another round
        if met or meter.is_used_up():
            break
    marginal, marginal_se, draws, worst = _marginals(groups, shares)
    return SampledQuery(joint, joint_se, marginal, marginal_se, draws, worst, spent, bool(met))


def _marginals(groups: list[_Group], shares: Floats) -> tuple[float, float, float, float]:
    """Give the sum over query cells of log p(cell | evidence), its standard error, fewest effective draws and largest R-hat."""
    records = np.stack([group.marginals for group in groups])
    worst, draws = 1.0, float(records.shape[0] * records.shape[1])
    moving = records.std(axis=(0, 1)) > 1e-9
    if moving.any():
        draws, worst = float(effective_draws(records)[moving].min()), float(r_hat(records)[moving].max())
    effective = 1.0 / float(shares @ shares)
    return *_sum_of_logs(records.mean(axis=1), shares), draws * effective / len(groups), worst


class _Deck:
    """Hands out draws of the model, as forests: each once as it is, then moved on by some sweeps each time."""

    def __init__(self, model: Folded, starts: Starts, generator: np.random.Generator) -> None:
        self._model, self._generator = model, generator
        order = generator.permutation(len(starts.draws))
        self._codes, self._forests = starts.draws[order].astype(np.int64), starts.forests(model)[order]
        self._size = max(CHAINS * SWEEPS, min(MOST_FIRST, len(order) // (GROUPS + 1)))
        self._dealt = 0

    def deal(self) -> Integers:
        """Give (size, n): as many forests for each population."""
        chosen = np.arange(self._dealt, self._dealt + self._size) % len(self._codes)
        self._dealt += self._size
        codes, forests = self._codes[chosen], self._forests[chosen]
        if self._dealt > len(self._codes):
            free = np.full(codes.shape[1], -1)
            move_on(self._model, free, codes, forests, FRESH, self._generator)
            self._codes[chosen], self._forests[chosen] = codes, forests
        return forests


def _made_to_fit(question: _Question, count: int, generator: np.random.Generator, row: int, starts: Starts) -> Integers:
    """Give (count, forests, n): forests of states made to have what is known, then moved on for long."""
    known, n = question.known, len(question.known)
    codes, parents = start_states(question.model, known, count * CHAINS * SWEEPS, generator, row, starts)
    move_on(question.model, known, codes, parents, WARM_UP, generator)
    return parents.reshape(count, CHAINS * SWEEPS, n)


def _run_group(question: _Question, first: Integers, chains: int, generator: np.random.Generator) -> _Group:
    """Run one population: clamp the evidence, average marginals, clamp the query cells."""
    stop_if_unwanted()
    model, extra, asked = question.model, question.extra, question.asked
    n, passes = first.shape[1], SWEEPS + (question.extra != NO_EXTRA)
    least = LEAST_EVEN * chains * SWEEPS
    known, work = question.known.copy(), make_workspace(n)
    forests = np.empty((SWEEPS, chains, n), dtype=np.int64)
    visits = np.zeros((chains, n, model.most))
    log_evidence, runs = clamp_in_turn(
        model,
        known,
        question.given,
        question.evidence,
        question.given_stages,
        least,
        first,
        forests,
        extra,
        work,
        generator,
        visits,
    )
    if log_evidence == -np.inf:
        return _Group(-np.inf, -np.inf, np.zeros((chains, len(asked))), chains * passes * runs)
    marginals = visits[:, asked, question.values[asked]] / SWEEPS
    population = forests.reshape(-1, n).copy()
    joint, more = clamp_in_turn(
        model,
        known,
        asked,
        question.values,
        question.asked_stages,
        least,
        population,
        forests,
        extra,
        work,
        generator,
        visits[:0],
    )
    return _Group(log_evidence, joint, marginals, chains * passes * (runs + more))


def _shares(logs: Floats) -> Floats:
    """Give what each group counts; all alike where none could have the evidence."""
    shares = np.exp(logs - logs.max()) if logs.max() > -np.inf else np.ones(len(logs))
    whole: Floats = shares / shares.sum()
    return whole


def _spread(parts: Floats, logs: Floats, shares: Floats) -> float:
    """Give the standard error of the log of a weighted mean over groups.

    Estimates of small probabilities have a long tail: most groups are too low, and agree. So besides the deviations `parts`
    (groups,), which have mean 0, count what the spread of the `logs` (groups, cells) of the estimates would mean if they were
    normal; the larger is taken, times what Student's distribution asks for so few groups.
    """
    seen = np.sqrt(len(parts) / (len(parts) - 1) * (parts @ parts))
    groups = max(1.0 / float(shares @ shares), 2.0)
    finite = np.where(logs > -np.inf, logs, np.inf)
    logs = np.maximum(logs, finite.min(axis=0) - _WITHOUT)
    variances = np.minimum(logs.var(axis=0, ddof=1), _MOST)
    if_normal = np.sqrt(np.log1p(np.expm1(variances) / groups).sum())
    return float(np.sqrt(seen * max(seen, if_normal)) * stdtrit(groups - 1.0, _TWO_SIGMA) / 2.0)


def _log_mean(logs: Floats, shares: Floats) -> tuple[float, float]:
    """Give the log of the weighted mean of estimates given by their logs, and its standard error."""
    top = float(logs.max())
    if top == -np.inf:
        return -np.inf, np.inf
    values = np.exp(logs - top)
    mean = float(shares @ values)
    if mean <= 0:
        return -np.inf, np.inf
    parts = shares * (values / mean - 1.0)
    return min(0.0, top + float(np.log(mean)) + _shortfall(parts)), _spread(parts, logs[:, None], shares)


def _shortfall(parts: Floats) -> float:
    """Give by how much the logs of means over groups are too low on average, half their variances, from deviations of mean 0."""
    return 0.5 * len(parts) / (len(parts) - 1) * float((parts * parts).sum())


def _sum_of_logs(means: Floats, shares: Floats) -> tuple[float, float]:
    """Give the sum of logs of the weighted means over groups of (groups, cells), and its standard error."""
    whole = shares @ means
    if (whole <= 0).any():
        return -np.inf, np.inf
    with np.errstate(divide="ignore"):
        logs = np.log(means)
    parts = shares[:, None] * (means / whole - 1.0)
    found = np.log(whole).sum() + _shortfall(parts)
    return min(0.0, float(found)), _spread(parts.sum(axis=1), logs, shares)
