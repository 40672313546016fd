from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldfm import LDFM
from ldfm.inference import ExactTables, ImpossibleEvidenceError, TooManyStatesError, exact
from ldfm.tables import MISSING, unmerged
from ldfm.weights import ArcWeights, arc_mask
from models import random_weights, values_of
from oracles.joint import joint_table, unnormalised_sum

models = st.tuples(
    st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple), st.integers(0, 2**32 - 1), st.booleans()
)


def drawn_rows(cardinalities: tuple[int, ...], rng: np.random.Generator, rows: int = 6) -> np.ndarray:
    codes = np.stack([rng.integers(0, k, rows) for k in cardinalities], axis=1)
    codes[rng.random(codes.shape) < 0.5] = MISSING
    return codes


@settings(max_examples=60, deadline=None)
@given(models)
def test_partition_and_evidence_equal_plain_enumeration(model):
    cardinalities, seed, stops = model
    weights = random_weights(cardinalities, seed, stops=stops)
    tables = ExactTables(weights)
    assert tables.log_partition() == pytest.approx(np.log(unnormalised_sum(weights.table, weights.stop, cardinalities)))
    joint = joint_table(weights.table, weights.stop, cardinalities)
    codes = drawn_rows(cardinalities, np.random.default_rng(seed))
    for row, logs in zip(codes, exact.log_evidence(tables, unmerged(codes)), strict=True):
        index = tuple(slice(None) if c == MISSING else int(c) for c in row)
        assert np.exp(logs - tables.log_partition()) == pytest.approx(joint[index].sum(), rel=1e-10)


@settings(max_examples=60, deadline=None)
@given(models)
def test_marginals_equal_plain_enumeration(model):
    cardinalities, seed, stops = model
    weights = random_weights(cardinalities, seed, stops=stops)
    joint = joint_table(weights.table, weights.stop, cardinalities)
    codes = drawn_rows(cardinalities, np.random.default_rng(seed))
    found = exact.marginals(ExactTables(weights), unmerged(codes))
    for row, known in enumerate(codes):
        possible = joint[tuple(slice(None) if c == MISSING else slice(int(c), int(c) + 1) for c in known)]
        for variable, k in enumerate(cardinalities):
            others = tuple(a for a in range(len(cardinalities)) if a != variable)
            expected = np.zeros(k)
            seen = slice(None) if known[variable] == MISSING else slice(int(known[variable]), int(known[variable]) + 1)
            expected[seen] = possible.sum(axis=others) / possible.sum()
            np.testing.assert_allclose(found[variable][row], expected, rtol=1e-10, atol=1e-14)


@settings(max_examples=60, deadline=None)
@given(models, st.integers(0, 2**32 - 1))
def test_queries_equal_plain_enumeration(model, roles_seed):
    cardinalities, seed, stops = model
    weights = random_weights(cardinalities, seed, stops=stops)
    joint = joint_table(weights.table, weights.stop, cardinalities)
    rng = np.random.default_rng(roles_seed)
    codes = np.stack([rng.integers(0, k, 5) for k in cardinalities], axis=1)
    roles = rng.integers(0, 3, codes.shape)
    asked, given_ = roles == 0, roles == 1
    known = unmerged(np.where(asked | given_, codes, MISSING))
    found, marginal, _ = exact.query(ExactTables(weights), known, asked)

    def probability(row: int, fixed: np.ndarray) -> float:
        return joint[tuple(int(c) if f else slice(None) for c, f in zip(codes[row], fixed, strict=True))].sum()

    for row in range(5):
        evidence = probability(row, given_[row])
        expected = np.log(probability(row, given_[row] | asked[row]) / evidence)
        assert found[row] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        each = sum(
            np.log(probability(row, given_[row] | (np.arange(codes.shape[1]) == i)) / evidence)
            for i in np.flatnonzero(asked[row])
        )
        assert marginal[row] == pytest.approx(each, rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(models)
def test_the_most_probable_completion_is(model):
    cardinalities, seed, stops = model
    weights = random_weights(cardinalities, seed, stops=stops)
    joint = joint_table(weights.table, weights.stop, cardinalities)
    codes = drawn_rows(cardinalities, np.random.default_rng(seed))
    for known, filled in zip(codes, exact.most_probable(ExactTables(weights), unmerged(codes)), strict=True):
        assert (filled[known != MISSING] == known[known != MISSING]).all()
        possible = joint[tuple(slice(None) if c == MISSING else slice(int(c), int(c) + 1) for c in known)]
        assert joint[tuple(filled)] == pytest.approx(possible.max(), rel=1e-9)


def test_slices_of_the_joint_table_equal_separate_enumeration():
    weights = random_weights((3, 2, 4), 3)
    rng = np.random.default_rng(0)
    many = drawn_rows((3, 2, 4), rng, rows=80)
    sliced = ExactTables(weights)
    together = [table for _, table in sliced.tables(unmerged(many))]
    assert sliced._joint is not None
    for row, table in zip(many, together, strict=True):
        np.testing.assert_allclose(table, next(iter(ExactTables(weights).tables(unmerged(row[None]))))[1], rtol=1e-12)


def test_too_many_states_are_refused_with_their_number():
    cardinalities = (4,) * 12
    tables = ExactTables(random_weights(cardinalities, 0))
    codes = np.full((2, 12), MISSING)
    codes[0, :8] = 0
    with pytest.raises(
        TooManyStatesError, match=f"row 1: its 12 unknown cells have {prod(cardinalities)} joint states"
    ):
        exact.marginals(tables, unmerged(codes))
    with pytest.raises(TooManyStatesError, match="the partition has"):
        tables.log_partition()


def test_evidence_of_probability_zero_is_named():
    table = np.where(arc_mask((2, 2)), 0.5, 0.0)
    table[:, 1] = 0.0  # x0 = v1 cannot be generated
    model = LDFM.from_weights(table[0], table[1:], values=values_of((2, 2)))
    rows = {"x0": ["v0", "v0", "v1"], "x1": [None, None, None]}
    with pytest.raises(ImpossibleEvidenceError, match="row 2: its known cells have probability zero"):
        model.marginals(rows)
    assert model.score_samples(rows)[2] == -np.inf
    with pytest.raises(ValueError, match="row 1 has probability zero under this model, so it has no forest"):
        model.best_forest({"x0": ["v0", "v1"], "x1": ["v0", "v0"]})
    assert ArcWeights(table, (2, 2)).variant == "ldfm"


def test_edge_cases():
    weights = random_weights((2, 3), 5)
    model = LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values_of((2, 3)))
    rows = {"x0": ["v0"], "x1": ["v2"]}
    everything_known = model.query_log_likelihood(rows, [], ["x0", "x1"])
    assert everything_known.joint[0] == 0.0
    nothing_known = model.query_log_likelihood(rows, ["x0", "x1"], [])
    assert nothing_known.joint[0] == pytest.approx(model.score_samples(rows)[0])
    assert nothing_known.n_query[0] == 2
    all_missing = {"x0": [None], "x1": [None]}
    assert model.score_samples(all_missing)[0] == pytest.approx(0.0, abs=1e-14)
    # exact answers to complete rows: the row itself
    assert model.most_probable(rows)["x1"][0] == "v2"
