"""Every sampler must leave the posterior as it is, whatever the weights: no mixing is needed to see that it does not.

Many independent chains start from exact draws (of the joint by enumeration, then of the forest) and run a few sweeps. If the
sampler is right, their values are again exact draws: the number of chains with a value, or with a pair of values, is binomial,
and the average of [0, 1] numbers of mean p passes q with probability at most exp(-chains KL(q, p)) (Hoeffding). So the false-alarm
rate is no approximation, for rare values neither. Deviations are given in units of the standard error of a normal variable.
"""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from scipy.special import rel_entr
from scipy.stats import binom, norm

from ldfm import LDFM
from ldfm.draws import fold
from ldfm.forests import draws_of_forests
from ldfm.inference.chains import Chains, Kernel
from ldfm.learning.priors import ModifiedDirichlet
from ldfm.networks import load as load_network
from ldfm.weights import ArcWeights
from models import random_weights
from printed_sampler import printed_tree_sweep

FALSE_ALARM = 1e-4  # chance that a right sampler fails any of the numbers of any of the tests below
KERNELS: tuple[Kernel, ...] = ("blocked", "tree", "gibbs")
RANDOM_MODELS = 20
FITTED = ("asia", "sachs")
CASES = [*(f"random {seed}" for seed in range(RANDOM_MODELS)), *(f"{name} {e}" for name in FITTED for e in range(2))]
DECADES = 8.0
CHAINS, SWEEPS = 5000, 3
ORACLE = 1e-7  # rounding errors of its determinants


def joint_of_all_rows(weights: ArcWeights) -> tuple[np.ndarray, np.ndarray]:
    """Give all complete rows and their probabilities, forest sums by plain determinants."""
    rows = np.indices(weights.cardinalities).reshape(len(weights.cardinalities), -1).T
    values = weights.offsets[:-1] + rows
    logs = []
    for part in np.array_split(values, 1 + len(values) // 5000):
        arcs = weights.table[1 + part[:, :, None], part[:, None, :]]
        laplacians = -arcs
        own = np.arange(rows.shape[1])
        laplacians[:, own, own] += weights.table[0, part] + arcs.sum(axis=1)
        logs.append(np.linalg.slogdet(laplacians)[1])
    log_joint = np.concatenate(logs)
    if weights.stop is not None:
        log_joint += np.log(weights.stop[1 + values]).sum(axis=1)
    joint = np.exp(log_joint - log_joint.max())
    return rows, joint / joint.sum()


@cache
def fitted(name: str) -> ArcWeights:
    prior = ModifiedDirichlet(alpha=0.0, floor=1e-4)
    return LDFM(objective="generation", prior=prior, max_iter=30).fit(load_network(name).sample(2000, seed=0)).weights_


@cache
def case(label: str) -> tuple[ArcWeights, np.ndarray, np.ndarray, np.ndarray]:
    """Give a model, known cells, and all rows that have them with their posterior probabilities."""
    name, number = label.split()
    rng = np.random.default_rng(int(number))
    if name == "random":
        seed = int(number)
        cardinalities = tuple(int(k) for k in rng.integers(2, 6, 3 + seed % 4))
        weights = random_weights(cardinalities, seed, stops=seed // 4 % 2 == 0, decades=DECADES)
        known_cells = (seed + seed // 8) % 2
    else:
        weights, known_cells = fitted(name), 2 * int(number)
    rows, joint = joint_of_all_rows(weights)
    known = np.full(rows.shape[1], -1)
    seen = rng.choice(rows.shape[1], known_cells, replace=False)
    known[seen] = rows[rng.choice(len(rows), p=joint), seen]
    possible = (rows[:, seen] == known[seen]).all(axis=1)
    return weights, known, rows[possible], joint[possible] / joint[possible].sum()


def exact_chains(label: str, chains: int) -> Chains:
    """Start chains at exact draws of values and forest."""
    weights, known, rows, posterior = case(label)
    generator = np.random.default_rng([7, *label.encode()])
    codes = rows[generator.choice(len(rows), chains, p=posterior)].astype(np.int64)
    parents = draws_of_forests(weights, codes, 1, np.random.SeedSequence([8, *label.encode()]))[:, 0]
    return Chains(fold(weights), known, codes, np.ascontiguousarray(parents), generator)


def count_tails(counts: np.ndarray, chains: int, probabilities: np.ndarray) -> np.ndarray:
    """Give the two-sided p-values of binomial counts."""
    low = binom.cdf(counts, chains, np.clip(probabilities - ORACLE, 0, 1))
    high = binom.sf(counts - 1, chains, np.clip(probabilities + ORACLE, 0, 1))
    return np.minimum(1.0, 2 * np.minimum(low, high))


def average_tails(averages: np.ndarray, chains: int, probabilities: np.ndarray) -> np.ndarray:
    """Bound the two-sided p-values of averages of numbers in [0, 1]."""
    q = np.clip(averages, 0, 1)
    near = np.clip(q, np.clip(probabilities - ORACLE, 0, 1), np.clip(probabilities + ORACLE, 0, 1))
    divergence = rel_entr(q, near) + rel_entr(1 - q, 1 - near)
    return np.minimum(1.0, 2 * np.exp(-chains * divergence))


def marginal_pairs(
    rows: np.ndarray, weights: np.ndarray, cells: list[tuple[int, ...]], cardinalities
) -> list[np.ndarray]:
    """Give for each tuple of variables the weight of each joint value."""
    tables = []
    for variables in cells:
        shape = tuple(cardinalities[j] for j in variables)
        places = np.ravel_multi_index([rows[:, j] for j in variables], shape)
        tables.append(np.bincount(places, weights, minlength=int(np.prod(shape))))
    return tables


def largest_deviation(label: str, codes: np.ndarray, records: np.ndarray | None) -> tuple[float, float]:
    """Give the largest deviation in standard errors, and the limit that a right sampler passes with a chance of FALSE_ALARM.

    Compared are all values and pairs of values of the free variables and, with records, the recorded averages.
    """
    weights, known, rows, posterior = case(label)
    free = np.flatnonzero(known < 0).tolist()
    cells = [(j,) for j in free] + list(combinations(free, 2))
    counts = marginal_pairs(codes, np.ones(len(codes)), cells, weights.cardinalities)
    exact = marginal_pairs(rows, posterior, cells, weights.cardinalities)
    tails = [count_tails(np.concatenate(counts), len(codes), np.concatenate(exact))]
    if records is not None:
        for j, probabilities in zip(free, exact, strict=False):
            averages = records[:, :, j, : len(probabilities)].mean(axis=(0, 1))
            tails.append(average_tails(averages, len(codes), probabilities))
    all_tails = np.concatenate(tails)
    tests = len(KERNELS) * len(CASES)
    return float(norm.isf(all_tails.min() / 2)), float(norm.isf(FALSE_ALARM / tests / len(all_tails) / 2))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("label", CASES)
def test_samplers_keep_the_posterior(kernel, label):
    chains = exact_chains(label, CHAINS)
    records = chains.move(kernel, SWEEPS, 1)
    known = case(label)[1]
    assert (chains.codes[:, known >= 0] == known[known >= 0]).all()
    deviation, limit = largest_deviation(label, chains.codes, records)
    assert deviation < limit


def test_exact_draws_alone_pass():
    for label in CASES:
        deviation, limit = largest_deviation(label, exact_chains(label, CHAINS).codes, None)
        assert deviation < limit


@pytest.mark.parametrize("label", ["random 0", "random 3", "asia 0"])
def test_the_printed_tree_sampler_fails(label):
    chains = exact_chains(label, 600)
    rng = np.random.default_rng(0)
    for chain in range(600):
        for _ in range(SWEEPS):
            printed_tree_sweep(chains, chain, rng)
    deviation, limit = largest_deviation(label, chains.codes, None)
    assert deviation > limit
