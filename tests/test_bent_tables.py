"""Bent columns through the estimator: everything that comes out is in the table's units, checked by sums over grids."""

from copy import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from ldfm import LDFM, ModelFileError, load
from ldfm.inference import Budget
from ldfm.tables import Units

QUICK = {"objective": "generation", "max_iter": 15, "random_state": 0, "n_jobs": 1}
POINTS = np.concatenate([np.linspace(-40, -1, 120)[:-1], np.linspace(-1, 12, 700)[:-1], np.linspace(12, 400, 500)])


def frame(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    income = np.exp(rng.normal(0.0, 0.8, rows))
    return pd.DataFrame(
        {
            "income": income,
            "rent": 0.3 * income * np.exp(rng.normal(0.0, 0.3, rows)),
            "owner": np.where(income > np.exp(rng.normal(0.0, 0.5, rows)), "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def model() -> LDFM:
    found = LDFM(**QUICK).fit(frame())
    assert [column.units.bend is not None for column in found.schema_.columns] == [True, True, False]
    return found


def widths(points: np.ndarray) -> np.ndarray:
    """Give how much each point of a grid stands for (trapezoidal rule)."""
    steps = np.diff(points)
    return (np.r_[steps, 0.0] + np.r_[0.0, steps]) / 2.0


def grid_of(model: LDFM, **known: object) -> tuple[np.ndarray, np.ndarray]:
    """Give the log density of one unknown cell on `POINTS`, and how much each point stands for."""
    unknown = next(name for name in ("income", "rent") if name not in known)
    rows = {name: [value] * len(POINTS) for name, value in known.items()} | {unknown: POINTS}
    return model.score_samples(pd.DataFrame(rows)[list(model.schema_.names)]), widths(POINTS)


def test_densities_add_up_to_one(model):
    total = 0.0
    coarse = POINTS[::4]
    rows = {"income": np.repeat(coarse, len(coarse)), "rent": np.tile(coarse, len(coarse))}
    area = np.outer(widths(coarse), widths(coarse)).ravel()
    for owner in ("yes", "no"):
        table = pd.DataFrame(rows | {"owner": owner})
        total += float(np.exp(model.score_samples(table)) @ area)
    assert total == pytest.approx(1.0, abs=0.02)
    rows = frame().head(5)
    np.testing.assert_allclose(
        model.log_forest_sum(rows) - model.log_partition().value, model.score_samples(rows), rtol=1e-12
    )


def test_posteriors_are_those_of_the_density(model):
    question = pd.DataFrame({"income": [np.nan], "rent": [1.4], "owner": ["yes"]})
    logs, steps = grid_of(model, rent=1.4, owner="yes")
    chances = np.exp(logs - logs.max()) * steps
    chances /= chances.sum()
    mean = chances @ POINTS
    deviation = np.sqrt(chances @ (POINTS - mean) ** 2)
    found = model.marginals(question, budget=Budget(target_se=0.002, max_sweeps=40_000)).numbers["income"]
    assert abs(found.means[0] - mean) < 4.5 * found.mean_errors[0] + 1e-3
    assert found.mean_errors[0] < 0.1 * deviation
    assert found.deviations[0] == pytest.approx(deviation, rel=0.1)
    levels = [0.1, 0.5, 0.9]
    exact = np.interp(levels, chances.cumsum() - chances / 2, POINTS)
    np.testing.assert_allclose(found.quantiles(levels)[0], exact, rtol=0.08)
    assert found.below(exact[[1]])[0] == pytest.approx(0.5, abs=0.04)
    inner = (exact[0] < POINTS) & (exact[2] > POINTS)
    np.testing.assert_allclose(found.density(0, POINTS[inner]), (chances / steps)[inner], rtol=0.2)
    assert found.density(0, POINTS) @ steps == pytest.approx(1.0, abs=0.01)
    labels, shares = found.bins(0)
    assert len(labels) == 8
    assert shares.sum() == pytest.approx(0.99, abs=1e-6)


def test_a_mean_on_the_cells_scale_would_be_seen(model):
    """The mean of the cells, put back into units, is a median: the test above must not take it for the mean."""
    logs, steps = grid_of(model, rent=1.4, owner="yes")
    chances = np.exp(logs - logs.max()) * steps
    chances /= chances.sum()
    units: Units = model.schema_.columns[0].units
    wrong = float(units.numbers(np.array([chances @ units.cells(POINTS)]))[0])
    question = pd.DataFrame({"income": [np.nan], "rent": [1.4], "owner": ["yes"]})
    found = model.marginals(question, budget=Budget(target_se=0.002, max_sweeps=40_000)).numbers["income"]
    assert abs(wrong - chances @ POINTS) > 5 * found.mean_errors[0]


def test_queries_are_ratios_of_densities(model):
    rows = frame().head(3)
    found = model.query_log_likelihood(rows, ["income"], ["rent", "owner"], budget=Budget(max_sweeps=20_000))
    for row in range(3):
        logs, steps = grid_of(model, rent=rows["rent"][row], owner=rows["owner"][row])
        expected = model.score_samples(rows.iloc[[row]])[0] - np.log(np.exp(logs) @ steps)
        assert abs(found.joint[row] - expected) < 4.5 * found.joint_se[row] + 0.02
        assert found.marginal[row] == pytest.approx(found.joint[row], abs=4.5 * found.joint_se[row] + 0.02)


def test_filled_cells_are_means_and_draws_follow_the_table(model):
    holes = frame().head(3).assign(income=np.nan)
    filled = model.impute(holes)["income"].to_numpy()
    np.testing.assert_allclose(filled, model.marginals(holes).numbers["income"].means, rtol=1e-9)
    drawn = model.sample(2000)
    for level in (0.1, 0.5, 0.9):
        assert drawn["income"].quantile(level) == pytest.approx(frame()["income"].quantile(level), rel=0.25)
    assert np.isfinite(model.impute(holes, how="joint")["income"]).all()
    known = model.marginals(frame().head(3)).numbers["income"]
    np.testing.assert_allclose(known.means, frame()["income"].head(3), rtol=1e-12)
    assert (known.deviations == 0).all()
    assert (known.mean_errors == 0).all()


def test_bends_gain_where_they_are_and_can_be_left_out():
    straight = LDFM(bend=False, **QUICK).fit(frame())
    assert all(column.units.bend is None for column in straight.schema_.columns)
    bent = LDFM(**QUICK).fit(frame())
    assert bent.score(frame()) > straight.score(frame()) + 0.3
    with pytest.raises(ValueError, match="bend must be True or False, not 'no'"):
        LDFM(bend="no", **QUICK).fit(frame())


def test_files_keep_bends(model, tmp_path):
    model.save(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    assert b'\\"format_version\\": 3' in content
    loaded = load(tmp_path / "m")
    assert loaded.schema_ == model.schema_
    assert loaded.bend
    np.testing.assert_array_equal(loaded.score_samples(frame().head(9)), model.score_samples(frame().head(9)))
    for old, new in ((b'\\"format_version\\": 3', b'\\"format_version\\": 2'), (b'\\"width\\": ', b'\\"width\\":-')):
        assert old in content
        (tmp_path / "spoilt").write_bytes(content.replace(old, new))
        with pytest.raises(ModelFileError):
            load(tmp_path / "spoilt")
    LDFM(bend=False, **QUICK).fit(frame()).save(tmp_path / "straight")
    assert not load(tmp_path / "straight").bend
    LDFM(**QUICK).fit(frame()[["owner"]]).save(tmp_path / "discrete")
    assert load(tmp_path / "discrete").bend


def test_more_rows_keep_the_scale(model):
    more = LDFM(**QUICK).fit(frame()).partial_fit(frame(100))
    assert more.schema_ == model.schema_


def test_other_weights_of_rows_keep_the_scale_of_a_warm_start():
    model = LDFM(warm_start=True, **QUICK).fit(frame())
    before = model.schema_
    reached = model.history_.steps[-1].objective
    model.fit(frame(), sample_weight=np.where(frame()["income"] > 1.0, 2.0, 1.0))
    assert model.schema_ == before
    assert model.history_.steps[0].objective > reached - 1.0


def test_sentinel_codes_do_not_spoil_means():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = x + 0.3 * rng.normal(size=300)
    y[::50] = 999.0
    for bend in (True, False):
        model = LDFM(bend=bend, **QUICK).fit({"x": x, "y": y})
        filled = np.asarray(model.impute({"x": x[1:9], "y": np.full(8, np.nan)})["y"])
        assert np.median(np.abs(filled)) < 100.0


def test_whole_numbers_on_a_bent_scale_stay_whole_numbers():
    rng = np.random.default_rng(0)
    counts = np.rint(1e15 * np.exp(2.0 * rng.normal(size=200))).astype(np.int64)
    model = LDFM(kinds={"counts": "continuous"}, **QUICK).fit({"counts": counts, "kind": ["a", "b"] * 100})
    assert model.schema_.columns[0].units.bend is not None
    assert np.asarray(model.sample(500)["counts"]).dtype == np.int64


def test_draws_of_a_copy_are_its_own():
    model = LDFM(**QUICK).fit(frame(60))
    other = copy(model)
    other.draws_ = model.draws_[:5]
    assert len(model.draws_) > 5
    with pytest.raises(NotFittedError):
        _ = LDFM().draws_
