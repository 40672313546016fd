"""Draws and most probable completions against enumeration; frames stay what they are."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fitted_models import fitted
from ldfm import LDFM, Budget
from ldfm.inference import completion, exact
from ldfm.networks import load
from ldfm.tables import encode, merge_rows, read_source, unmerged
from models import random_weights, values_of
from oracles.joint import joint_table
from statistics_checks import FALSE_ALARM, p_value


@pytest.mark.parametrize(
    ("name", "objective"), [("asia", "likelihood"), ("asia", "generation"), ("sachs", "likelihood")]
)
def test_climbing_finds_the_most_probable_completion(name, objective):
    model = fitted(name, objective)
    codes = load(name).sample_codes(40, 3)
    codes = np.where(np.random.default_rng(0).random(codes.shape) < 0.6, -1, codes)
    rows, seed = unmerged(codes), np.random.SeedSequence(0)
    best = exact.most_probable(model._answers.tables, rows)
    found = completion.most_probable(model._answers.tables, rows, "blocked", seed, model._answers.starts)
    assert (found[codes >= 0] == codes[codes >= 0]).all()
    heights = [model._answers.tables.joint()[tuple(row.T)] for row in (found, best)]
    assert np.mean(heights[0] >= heights[1] - 1e-9) >= 0.95


@pytest.fixture(scope="module")
def small() -> LDFM:
    weights = random_weights((2, 3, 2, 2), 4, decades=1.5)
    model = LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values_of((2, 3, 2, 2)))
    return model.set_params(random_state=0, n_jobs=1)


@pytest.mark.parametrize("enumerated", [True, False])
@pytest.mark.parametrize("evidence", [None, {"x1": "v2"}])
def test_samples_have_the_distribution_of_the_model(small, evidence, enumerated, monkeypatch):
    if not enumerated:
        monkeypatch.setattr(completion, "_FEW_STATES", 0)
        monkeypatch.setattr(completion, "WARM_UP", 20)
    frame = small.sample(4000, evidence)
    joint = joint_table(small.weights_.table, small.weights_.stop, (2, 3, 2, 2))
    if evidence:
        assert set(frame["x1"]) == {"v2"}
        joint = np.where((np.arange(3) == 2)[None, :, None, None], joint, 0.0)
    joint = joint / joint.sum()
    expected = {tuple(f"v{c}" for c in codes): float(p) for codes, p in np.ndenumerate(joint)}
    drawn = list(zip(*(frame[name] for name in ("x0", "x1", "x2", "x3")), strict=True))
    assert p_value(drawn, expected) > FALSE_ALARM


def test_samples_are_refused_by_name(small):
    with pytest.raises(ValueError, match="evidence names column 'z', which the model does not have"):
        small.sample(1, {"z": "v0"})
    with pytest.raises(ValueError, match="column 'x0' row 0: value 'other'"):
        small.sample(1, {"x0": "other"})
    with pytest.raises(ValueError, match="n must be a whole number, 1 or more, not 0"):
        small.sample(0)


def test_filled_frames_are_of_the_same_kind():
    model = fitted("asia", "generation")
    table = {name: list(values[:6]) for name, values in load("asia").sample(6, seed=2).items()}
    table["lung"][2] = table["dysp"][2] = table["xray"][5] = None
    categories = pd.DataFrame(table).astype({"lung": "category"})
    for frame in (categories, pl.DataFrame(table)):
        for how in ("marginal", "joint", "draw"):
            filled = model.impute(frame, how=how)
            assert type(filled) is type(frame)
            assert list(filled.columns) == list(frame.columns)
            assert [str(d) for d in filled.dtypes] == [str(d) for d in frame.dtypes]
            known = np.array([[cell is not None for cell in column] for column in table.values()])
            values = [list(filled[name]) for name in table]
            assert (np.array(values)[known] == np.array(list(table.values()), dtype=object)[known]).all()
            assert not any(cell is None or cell != cell for column in values for cell in column)
    assert model.transform(categories).equals(model.impute(categories))
    with pytest.raises(ValueError, match="how must be 'marginal', 'joint' or 'draw', not 'mean'"):
        model.impute(categories, how="mean")


def test_draws_fill_as_the_posterior_says(small):
    rows = {"x0": ["v0"] * 3000, "x1": [None] * 3000, "x2": ["v1"] * 3000, "x3": [None] * 3000}
    filled = small.impute(rows, how="draw")
    joint = joint_table(small.weights_.table, small.weights_.stop, (2, 3, 2, 2))[0, :, 1, :]
    expected = {(f"v{a}", f"v{b}"): float(p) for (a, b), p in np.ndenumerate(joint / joint.sum())}
    assert p_value(list(zip(filled["x1"], filled["x3"], strict=True)), expected) > FALSE_ALARM


def test_arc_marginals_are_averaged_over_missing_cells(small, monkeypatch):
    rows = {"x0": ["v0"], "x1": [None], "x2": ["v1"], "x3": [None]}
    exact_ones = small.arc_marginals(rows)[0]
    np.testing.assert_allclose(exact_ones.sum(axis=0), 1.0)
    posterior = joint_table(small.weights_.table, small.weights_.stop, (2, 3, 2, 2))[0, :, 1, :]
    expected = sum(
        p / posterior.sum() * small.arc_marginals({"x0": ["v0"], "x1": [f"v{a}"], "x2": ["v1"], "x3": [f"v{b}"]})[0]
        for (a, b), p in np.ndenumerate(posterior)
    )
    np.testing.assert_allclose(exact_ones, expected, rtol=1e-9)
    monkeypatch.setattr(completion, "_FEW_STATES", 0)
    np.testing.assert_allclose(small.arc_marginals(rows)[0], expected, atol=4 * 0.5 / np.sqrt(200))


def test_scores_beyond_enumeration_sum_missing_cells_out(monkeypatch):
    model = fitted("asia", "generation")
    table = {name: list(values[:8]) for name, values in load("asia").sample(8, seed=4).items()}
    for place, name in enumerate(table):
        table[name][place] = table[name][(place + 3) % 8] = None
    expected = model.score_samples(table)
    monkeypatch.setattr(exact, "MAX_STATES", 2)
    tables = exact.ExactTables(model.weights_, 1)
    merged = merge_rows(encode(read_source(table), model.schema_).codes)
    found = completion.log_evidence(tables, merged, Budget(), np.random.SeedSequence(0), model._answers.starts)
    np.testing.assert_allclose(found[merged.places] - model.log_partition().value, expected, atol=0.25)
