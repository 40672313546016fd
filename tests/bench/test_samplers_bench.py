"""The comparison of samplers: its references, its measures, and the printed sampler's bias."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from ldfm.bench import samplers
from ldfm.bench.printed_sampler import make_scratch, printed_sampling, printed_sweep
from ldfm.bench.samplers import (
    KERNELS,
    Problem,
    Sampled,
    Settings,
    _reference,
    distance,
    draws_a_second,
    root_mean_square,
    sample_for,
)
from ldfm.cli.main import app
from ldfm.draws import fold
from ldfm.estimator import LDFM
from ldfm.inference import ExactTables, Starts, exact
from ldfm.peers import gibbs
from ldfm.peers.kernels.clamping import Effort
from ldfm.tables import unmerged
from ldfm.weights import ArcWeights
from models import random_weights, values_of


def problem_of(weights: ArcWeights, known: np.ndarray) -> Problem:
    draws = np.zeros((1, len(known)), dtype=np.int64)
    return Problem(
        fold(weights), known, np.flatnonzero(known < 0), np.maximum(known, 0), Starts(draws, weights.cardinalities)
    )


def test_all_kernels_come_near_the_exact_marginals():
    weights = random_weights((2, 3, 2, 2), seed=1, decades=1.0)
    known = np.array([-1, -1, 1, -1])
    wanted = np.zeros((4, 3))
    for i, shares in enumerate(exact.marginals(ExactTables(weights), unmerged(known[None, :]))):
        wanted[i, : shares.shape[1]] = shares[0]
    for kernel in (*KERNELS, "cycle"):
        sample_for(problem_of(weights, known), kernel, 1e-3, (0,))  # compiles
        found = sample_for(problem_of(weights, known), kernel, 0.2, (0,))
        assert distance(found.records.mean(axis=(0, 1)), wanted, known) < 0.02, kernel


def test_long_runs_come_near_the_sums_that_they_stand_for(monkeypatch):
    weights = random_weights((2, 3, 2, 2, 2), seed=2, decades=1.0)
    model = LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values_of(weights.cardinalities))
    problem = problem_of(weights, np.array([-1, -1, 1, -1, -1]))._replace(cells=np.array([0, 3]))
    marginals, joint, facts = _reference(model, problem, Settings())
    assert facts == {"exact": True}
    monkeypatch.setattr(exact, "MAX_STATES", 1)
    by_chains, by_clamping, facts = _reference(model, problem, Settings(reference_seconds=0.4))
    assert not facts["exact"]
    assert distance(by_chains, marginals, problem.known) < 0.02
    assert abs(by_clamping - joint) < 0.1


def test_draws_a_second_of_independent_draws_is_their_number():
    rng = np.random.default_rng(0)
    values = rng.random((8, 200, 1, 1)) < 0.3
    found = draws_a_second(Sampled(np.concatenate([values, ~values], axis=3).astype(float), 2.0, 0), np.array([-1]))
    assert found is not None
    assert 500 < found < 1300  # 1,600 in 2 s


def error_as_printed(weights: ArcWeights) -> tuple[float, float]:
    """Give the error of the printed sampler's answer to the first two cells, in nats and in standard errors."""
    codes, asked = np.zeros((1, len(weights.cardinalities)), dtype=np.int64), np.zeros((1, 4), dtype=bool)
    asked[0, :2] = True
    sampling = printed_sampling(weights, 100, Effort(50, 400, 200))
    starts = gibbs.Starts(codes)
    found = gibbs.query(sampling, starts, unmerged(codes), asked, np.random.SeedSequence(0), 1)
    right = exact.query(ExactTables(weights), unmerged(codes), asked)[0][0]
    error = abs(float(found.joint[0]) - right)
    return error, error / float(found.joint_se[0])


def test_the_printed_sampler_is_right_without_arcs_between_variables_only():
    cardinalities = (2, 2, 3, 2)
    table = random_weights(cardinalities, seed=3).table.copy()
    table[1:] = 0.0
    # all conditionals are the same then: nothing but rounding is left, of the standard error too
    assert error_as_printed(ArcWeights(table, cardinalities))[0] < 1e-12
    off = [error_as_printed(random_weights(cardinalities, seed, decades=2.0)) for seed in range(4)]
    assert min(in_errors for _, in_errors in off) > 10
    assert max(nats for nats, _ in off) > 0.2


def chance_as_printed(weights, codes, parents, i, code):
    """Give the chance of a value of variable i, over all arcs into it from variables that are not below it."""

    def is_below(p):
        while p not in (-1, i):
            p = parents[p]
        return p == i

    rows = [0, *(1 + weights.offsets[p] + codes[p] for p in range(len(codes)) if not is_below(p))]
    arcs = weights.folded[rows, weights.offsets[i] : weights.offsets[i + 1]].sum(axis=0)
    return arcs[code] / arcs.sum()


def test_sweeps_as_printed_give_the_chances_of_a_plain_loop():
    weights = random_weights((2, 3, 2, 4, 2, 2), seed=5)
    rng = np.random.default_rng(0)
    codes, parents, met = np.zeros(6, dtype=np.int64), np.full(6, -1), np.empty(6)
    clamped, wanted = np.array([-1, 2, -1, -1, -1, -1]), np.array([1, -1, 0, 3, 1, 0])
    codes[1] = 2
    scratch = make_scratch(6, 4)
    for _ in range(50):
        before, forest = codes.copy(), parents.copy()
        printed_sweep(fold(weights), clamped, codes, parents, rng, wanted, met, scratch)
        for i in range(6):  # the sweep again, with what it chose
            if clamped[i] < 0:
                assert met[i] == pytest.approx(chance_as_printed(weights, before, forest, i, wanted[i]), rel=1e-12)
            before[i], forest[i] = codes[i], parents[i]


def test_root_mean_square_has_the_spread_between_queries():
    errors = np.random.default_rng(0).normal(0, 0.1, (2000, 3))
    found = root_mean_square(errors)
    assert abs(found["root_mean_square_error"] - 0.1) < 4 * found["its_standard_error"]
    # the variance of a mean of three squares of normal numbers is 2/3 of the squared variance
    np.testing.assert_allclose(found["its_standard_error"], 0.1 * np.sqrt(2 / 3) / 2 / np.sqrt(2000), rtol=0.15)


def test_samplers_are_compared_and_stored(tmp_path, monkeypatch):
    options = "--networks asia --seconds 0.02 --questions 1 --rows 200 --em-iterations 3 --likelihood-steps 8"
    command = ["bench", "samplers", *options.split(), "--reference-seconds", "0.05", "-o", str(tmp_path)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    stored = json.loads((tmp_path / "asia-em.json").read_text())
    assert set(stored["marginals"]) == set(KERNELS)
    assert stored["reference"] == [{"exact": True}]
    assert "| asia, likelihood |" in done.stdout
    monkeypatch.setattr(samplers, "measure", None)  # not called again
    assert CliRunner().invoke(app, command).stdout == done.stdout


def test_settings_say_what_a_result_is_of():
    assert Settings(networks=("asia",)).to_json() == Settings(networks=("alarm",)).to_json()
    assert Settings(rows=1).to_json() != Settings(rows=2).to_json()
