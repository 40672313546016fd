"""Sampled answers against enumeration, in units of their standard errors, on fixed seeds."""

import numpy as np
import pytest

from ldfm import networks
from ldfm.inference import TooManyStatesError
from ldfm.networks import Network
from ldfm.peers import BayesianNetwork, DependencyNetwork, MixtureOfAllTrees, gibbs
from ldfm.peers import mixture_of_all_trees as all_trees
from ldfm.peers.bayesian_network import to_network_tables
from ldfm.peers.dependency_network import _Tree
from ldfm.peers.kernels.clamping import Effort, Question, answer_row
from ldfm.tables import merge_questions
from peers.peer_checks import all_rows, enumerated, frame_of, random_roles, small_network

LARGEST = 5.0  # standard errors: with normal errors one answer in a million and a half is farther off


def agree(found: np.ndarray, errors: np.ndarray, expected: np.ndarray) -> bool:
    """Say whether answers are within their standard errors of what is expected: each one, and their mean (a bias adds up)."""
    scaled = (found - expected) / (errors + 1e-6)
    return bool(np.abs(scaled).max() < LARGEST and np.abs(scaled.mean()) * np.sqrt(len(scaled)) < LARGEST)


def questions(network, rows=60):
    codes = network.sample_codes(rows, 2)
    asked, given = random_roles(rows, len(network.variables), 3)
    return codes, frame_of(network, codes), asked, given


@pytest.fixture(scope="module")
def small():
    network = small_network()
    return network, frame_of(network, network.sample_codes(600, 1))


def test_gibbs_answers_of_a_bayesian_network(small):
    network, train = small
    effort = {"chains": 200, "burn_in": 20, "first_sweeps": 30, "sweeps": 20}
    # a pseudo-count this large keeps away states so rare that no chain sees them, of which standard errors know nothing
    model = BayesianNetwork(answers="gibbs", pseudo_count=3.0, **effort, random_state=0, n_jobs=1).fit(train)
    joint = np.exp(model.score_samples(all_rows(network))).reshape(network.cardinalities)
    codes, rows, asked, given = questions(network)
    found = model.query_log_likelihood(rows, asked, given)
    expected = enumerated(joint, codes, asked, given)
    assert agree(found.joint, found.joint_se, expected[0])
    assert agree(found.marginal, found.marginal_se, expected[1])
    assert found.joint_se.max() < 0.1
    assert found.diagnostics.method == "gibbs"
    assert (found.diagnostics.r_hat < 1.2).all()
    # a check that cannot fail checks nothing
    assert not agree(found.joint + 0.05 * asked.any(axis=1), found.joint_se, expected[0])


def tied_network() -> Network:
    """Give a network of a variable, two copies of it that differ once in ten thousand rows, and a noisy child of each."""
    copy, noisy = np.array([[0.9999, 0.0001], [0.0001, 0.9999]]), np.array([[0.8, 0.2], [0.3, 0.7]])
    names, parents = ("a", "b", "c", "d", "e"), ((), (0,), (0,), (1,), (2,))
    return Network("tied", names, (("no", "yes"),) * 5, parents, (np.array([0.7, 0.3]), copy, copy, noisy, noisy))


def test_chains_follow_evidence_that_no_single_site_can():
    network = tied_network()
    every = np.array(list(np.ndindex(*network.cardinalities)))
    joint = np.exp(network.log_probability(every)).reshape(network.cardinalities)
    codes, (asked, given) = network.sample_codes(60, 2), random_roles(60, 5, 3)
    expected = enumerated(joint, codes, asked, given)[0]
    merged, distinct = merge_questions(codes, asked, given)
    starts, effort = gibbs.Starts(network.sample_codes(500, 1)), Effort(2, 5, 1)
    model = to_network_tables(network)

    def worst(sampling):
        """Give the largest error of a joint answer over 20 seeds, in standard errors between seeds and 0.001 nats."""
        seeds = np.random.SeedSequence(0).spawn(20)
        found = np.array(
            [gibbs.query(sampling, starts, merged, distinct, seed, 1).joint[merged.places] for seed in seeds]
        )
        return float((np.abs(found.mean(axis=0) - expected) / (found.std(axis=0, ddof=1) / np.sqrt(20) + 1e-3)).max())

    # the mean of 20 answers is farther off than 5 of its own standard errors once in 13,000 times: one run in 200 of 60 questions
    assert worst(gibbs.conditional_sampling(model, 500, effort)) < LARGEST

    def stuck(states, codes, asked, generator, out):
        answer_row(model, states, Question(codes, asked, (codes >= 0) & ~asked), len(states), effort, generator, out)

    # evidence in place from the start and no chain drawn again: the copies stay what they were in the row that a chain began with
    assert worst(gibbs.Sampling(stuck, network.cardinalities, 500, effort)) > 4 * LARGEST


def test_trees_drawn_for_mixtures_of_all_trees(small, monkeypatch):
    network, train = small
    model = MixtureOfAllTrees(chains=100, burn_in=10, first_sweeps=20, sweeps=10, random_state=0, n_jobs=1).fit(train)
    joint = np.exp(model.score_samples(all_rows(network))).reshape(network.cardinalities)
    codes, rows, asked, given = questions(network)
    monkeypatch.setattr(all_trees, "MAX_STATES", 1)
    found = model.query_log_likelihood(rows, asked, given)
    expected = enumerated(joint, codes, asked, given)
    assert agree(found.joint, found.joint_se, expected[0])
    assert agree(found.marginal, found.marginal_se, expected[1])
    assert found.joint_se.max() < 0.1
    assert not found.diagnostics.exact[asked.sum(axis=1) > 0].any()
    rows["a"] = None
    with pytest.raises(TooManyStatesError, match="row 0: its missing cells have 2 joint states, over 1"):
        model.score_samples(rows)


def stationary(model: DependencyNetwork, cardinalities: tuple[int, ...], evidence: np.ndarray) -> np.ndarray:
    """Give the stationary distribution of ordered Gibbs given evidence (-1: none), just after the last variable was drawn."""
    states = np.array(list(np.ndindex(*cardinalities)))
    numbers = np.arange(len(states)).reshape(cardinalities)
    step = np.eye(len(states))
    trees = model.trees_
    for i, k in enumerate(cardinalities):
        if evidence[i] >= 0:
            continue
        one = np.zeros((len(states), len(states)))
        for number, state in enumerate(states):
            node = trees.roots[i]
            while trees.variables[node] >= 0:
                same = state[trees.variables[node]] == trees.codes[node]
                node = trees.equal[node] if same else trees.otherwise[node]
            for v in range(k):
                target = state.copy()
                target[i] = v
                one[number, numbers[tuple(target)]] = trees.probabilities[trees.equal[node], v]
        step = step @ one
    allowed = (states == np.where(evidence >= 0, evidence, states)).all(axis=1)
    distribution = allowed / allowed.sum()
    for _ in range(200):
        distribution = distribution @ step
    return distribution.reshape(cardinalities)


def test_dependency_networks_answer_by_ordered_gibbs(small):
    network, train = small
    model = DependencyNetwork(chains=300, burn_in=30, first_sweeps=60, sweeps=10, random_state=0, n_jobs=1).fit(train)
    codes, rows, _, _ = questions(network, 30)
    given = np.zeros(codes.shape, dtype=bool)
    given[:, 1] = True
    asked = np.zeros(codes.shape, dtype=bool)
    asked[:, 3] = True
    found = model.query_log_likelihood(rows, asked, given)
    for place, row in enumerate(codes):
        ends = stationary(model, network.cardinalities, np.where(given[place], row, -1))
        expected = np.log(ends.sum(axis=(0, 1, 2))[row[3]])
        assert found.marginal[place] == pytest.approx(expected, abs=LARGEST * found.marginal_se[place] + 1e-6)
    assert found.diagnostics.method == "ordered gibbs"


def test_dependency_networks_are_near_a_network_on_rows_it_made():
    network = networks.load("asia")
    train, test = (frame_of(network, network.sample_codes(rows, seed)) for rows, seed in ((3000, 1), (100, 2)))
    asked, given = random_roles(100, 8, 3)
    model = DependencyNetwork(chains=60, random_state=0, n_jobs=1).fit(train)
    exact = BayesianNetwork(random_state=0, n_jobs=1).fit(train)
    found, reference = (m.query_log_likelihood(test, asked, given).joint.mean() for m in (model, exact))
    assert found > reference - 0.15
    np.testing.assert_array_less(model.pseudo_log_likelihood(test), 0.0)


def test_smoothing_pulls_a_leaf_toward_its_parent():
    tree = _Tree(
        np.array([0, -1, -1]),
        np.array([1, -1, -1]),
        np.array([1, -1, -1]),
        np.array([2, -1, -1]),
        np.array([[6.0, 2.0], [6.0, 0.0], [0.0, 2.0]]),
    )
    chances = tree.smoothed(2.0).chances
    np.testing.assert_allclose(chances[0], [0.7, 0.3])
    np.testing.assert_allclose(chances[1], [(6 + 1.4) / 8, 0.6 / 8])
    np.testing.assert_allclose(chances[2], [1.4 / 4, 2.6 / 4])
    assert tree.leaves_of(np.array([[0], [1], [0]])).tolist() == [1, 2, 1]
