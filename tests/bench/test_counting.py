"""Draws that are counted, as the paper does it: right where queries are probable, at a floor where they are not."""

import numpy as np
import pytest

from ldfm import LDFM
from ldfm.bench.counting import counted_sampling
from ldfm.peers import gibbs
from ldfm.peers.kernels.clamping import Effort
from ldfm.tables import merge_questions, merge_rows

EFFORT = Effort(50, 400, 0)
CHAINS = 16


def small_model(rare=1.0, seed=3):
    rng = np.random.default_rng(seed)
    sizes = (2, 3, 2, 2)
    variable = np.repeat(np.arange(4), sizes)
    arcs = rng.gamma(0.5, size=(9, 9)) * (variable[:, None] != variable)
    root = rng.gamma(0.5, size=9) + 0.1
    arcs[:, -1] *= rare
    root[-1] *= rare
    return LDFM.from_weights(root, arcs, values={f"x{i}": list(range(k)) for i, k in enumerate(sizes)})


def ask(model, codes, asked, effort=EFFORT):
    merged, distinct = merge_questions(codes, asked, ~asked)
    starts = gibbs.Starts.of(merge_rows(codes), np.random.default_rng(0))
    sampling = counted_sampling(model.weights_, CHAINS, effort)
    return gibbs.query(sampling, starts, merged, distinct, np.random.SeedSequence(1), 1).of_rows(merged.places)


def test_counts_agree_with_enumeration_in_units_of_their_errors():
    model, codes = small_model(), np.array([[0, 1, 0, 0], [1, 2, 1, 0], [1, 0, 0, 1]])
    asked = np.array([[True, True, False, False]] * 3)
    exact = model.query_log_likelihood(codes, asked, ~asked, method="exact")
    found = ask(model, codes, asked)
    assert np.abs((found.joint - exact.joint) / found.joint_se).max() < 4.0  # six numbers: a false alarm in 2,500 seeds
    assert np.abs((found.marginal - exact.marginal) / found.marginal_se).max() < 4.0
    other = ask(small_model(seed=4), codes, asked)  # draws of another model fail this test
    assert np.abs((other.joint - exact.joint) / other.joint_se).max() > 4.0


def test_a_query_that_no_draw_shows_is_half_a_draw():
    model, codes = small_model(rare=1e-12), np.array([[0, 1, 0, 1]])
    asked = np.array([[False, False, True, True]])
    found = ask(model, codes, asked)
    draws = CHAINS * EFFORT.first
    assert found.joint[0] == pytest.approx(np.log(0.5 / (draws + 1)), rel=1e-12)
    assert model.query_log_likelihood(codes, asked, ~asked, method="exact").joint[0] < found.joint[0] - 5.0
