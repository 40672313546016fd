"""Continuous columns through the estimator, the model file and the command line."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm

from ldfm import LDFM, ModelFileError, TableError, load
from ldfm.inference import Budget
from ldfm.mixed_weights import MixedWeights
from ldfm.tables import Schema, learn_table, read_source
from ldfm.tables.encoding import KindWarning

QUICK = {"objective": "generation", "max_iter": 15, "random_state": 0, "n_jobs": 1}


def frame(rows: int = 120, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    size = rng.normal(50.0, 10.0, rows)
    return pd.DataFrame(
        {
            "size": size,
            "weight": 2.0 * size + rng.normal(0.0, 5.0, rows),
            "colour": np.where(size + rng.normal(0, 5, rows) > 50, "red", "blue"),
            "age": pd.array(rng.integers(1, 90, rows), dtype="Int64"),
        }
    )


KINDS = {"age": "continuous"}


@pytest.fixture(scope="module")
def model() -> LDFM:
    return LDFM(kinds=KINDS, **QUICK).fit(frame())


# --- tables ----------------------------------------------------------------------------------------------------------


def test_kinds_are_found_and_can_be_told():
    rng = np.random.default_rng(0)
    many, few = rng.integers(0, 1000, 100), rng.integers(0, 15, 100)
    with pytest.warns(
        KindWarning, match="column 'many' has .* different whole numbers in 100 rows and is taken as cont"
    ):
        schema = learn_table(read_source({"many": many, "few": few, "x": rng.normal(size=100)})).schema
    assert schema.continuous == (True, False, True)
    assert [column.whole for column in schema.columns] == [True, False, False]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = learn_table(read_source({"many": many, "few": few}), {"many": "discrete", "few": "continuous"}).schema
    assert told.continuous == (False, True)
    often = np.repeat(np.arange(30), 40)  # many values, but forty rows to each
    assert learn_table(read_source({"a": often})).schema.continuous == (False,)


@pytest.mark.parametrize("kind", ["pandas", "csv", "array"])
def test_few_whole_numbers_among_missing_cells_are_asked_about(kind, tmp_path):
    table = pd.DataFrame({"smoker": [0, 1, None, 1, 0] * 30, "b": ["x", "y", "y", None, "x"] * 30})
    if kind == "csv":
        table.to_csv(tmp_path / "t.csv", index=False)
    source = {
        "pandas": table,
        "csv": tmp_path / "t.csv",
        "array": {"smoker": table["smoker"].to_numpy(), "b": table["b"].tolist()},
    }
    message = (
        "column 'smoker' has only 2 different numbers, all whole, and .*{'smoker': 'discrete'} takes its numbers as"
    )
    with pytest.warns(KindWarning, match=message):
        assert learn_table(read_source(source[kind])).schema.continuous == (True, False)
    for told in ("discrete", "continuous"):
        schema = learn_table(read_source(source[kind]), {"smoker": told}).schema
        assert schema.columns[0].kind == told


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param([0.0, 1.0] * 60, id="none missing"),
        pytest.param([0.0, 0.5, None] * 40, id="not whole"),
        pytest.param([float(number) for number in range(21)] * 40 + [None], id="many"),
        pytest.param([0.0, 1.0, 2.0] * 19 + [None], id="few rows to a value"),
    ],
)
def test_floating_point_columns_that_nobody_is_asked_about(numbers):
    source = read_source({"a": np.array(numbers, dtype=np.float64), "b": ["x"] * len(numbers)})
    assert learn_table(source).schema.continuous == (True, False)


def test_units_are_standardised_and_come_back():
    table = learn_table(read_source({"a": [1e12, 3e12, 2e12, None], "b": ["x", "y", "x", "x"]}))
    known = table.codes[:3, 0]
    assert known.mean() == pytest.approx(0.0, abs=1e-12)
    assert known.std() == pytest.approx(1.0)
    assert np.isnan(table.codes[3, 0])
    np.testing.assert_allclose(table.schema.columns[0].decode(known), [1e12, 3e12, 2e12], rtol=1e-12)
    assert Schema.from_json(table.schema.to_json()) == table.schema


def test_a_few_outliers_do_not_make_a_column_wide():
    numbers = np.random.default_rng(0).standard_cauchy(500) * 3.0 + 10.0
    column = learn_table(read_source({"a": numbers})).schema.columns[0]
    assert column.units.centre == pytest.approx(10.0, abs=1.0)
    assert 2.0 < column.units.scale < 8.0 < numbers.std()


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([1.0, np.inf], "column 'size' row 1: value inf is not finite"),
        ([1.0, "big"], "column 'size' row 1: value 'big' is no number"),
        ([1.0, True], "column 'size' mixes types"),
        ([1.0, 1e308], "column 'size' row 1: value 1e\\+308 is not finite, or beyond what can be computed with"),
    ],
)
def test_what_is_no_number_is_refused(model, cells, message):
    with pytest.raises(TableError, match=message):
        model.score_samples({"size": cells, "weight": [90.0, 90.0], "colour": ["red", "red"], "age": [30, 30]})


# --- answers in the table's units ------------------------------------------------------------------------------------


def test_densities_are_in_the_tables_units():
    rows = frame()[["size", "weight"]]
    model = LDFM(**QUICK).fit(rows)
    assert model.log_partition().exact
    points = np.linspace(-10, 110, 241)
    grid = pd.DataFrame(
        {"size": np.repeat(points, len(points)), "weight": np.tile(np.linspace(-60, 260, 241), len(points))}
    )
    area = (points[1] - points[0]) * (320 / 240)
    assert np.exp(model.score_samples(grid)).sum() * area == pytest.approx(1.0, abs=1e-3)
    larger = LDFM(**QUICK).fit(rows * 1000.0)
    np.testing.assert_allclose(
        larger.score_samples(rows * 1000.0), model.score_samples(rows) - 2 * np.log(1000.0), rtol=1e-9
    )
    np.testing.assert_allclose(
        model.log_forest_sum(rows) - model.log_partition().value, model.score_samples(rows), rtol=1e-12
    )


def test_a_single_number_is_a_normal_distribution():
    numbers = np.random.default_rng(0).normal(7.0, 3.0, 400)
    model = LDFM(objective="likelihood", max_iter=5, random_state=0, n_jobs=1).fit({"a": numbers})
    expected = norm.logpdf(numbers, numbers.mean(), numbers.std())
    np.testing.assert_allclose(model.score_samples({"a": numbers}), expected, atol=0.01)


def test_filled_cells_are_posterior_means_and_modes(model):
    holes = frame().astype({"colour": object})
    holes.loc[0, "size"] = np.nan
    holes.loc[1, "colour"] = None
    holes.loc[2, "age"] = pd.NA
    rows = holes.head(4)
    answer = model.marginals(rows)
    filled = model.impute(rows)
    assert filled["size"][0] == pytest.approx(answer.numbers["size"].means[0])
    assert filled["colour"][1] == ["blue", "red"][int(answer.probabilities["colour"][1].argmax())]
    assert filled["age"][2] == round(answer.numbers["age"].means[2])
    assert filled.dtypes.tolist() == rows.dtypes.tolist()
    pd.testing.assert_frame_equal(filled.iloc[[3]], rows.iloc[[3]])
    low, high = answer.numbers["size"].quantiles([0.05, 0.95])[0]
    assert low < answer.numbers["size"].means[0] < high
    table = answer.number_table
    assert list(table["variable"]) == ["size", "age"]
    assert set(answer.table["variable"]) == {"colour"}
    for how in ("draw", "joint"):
        other = model.impute(rows, how=how)
        assert not other.isna().any().any()
        assert other.dtypes.tolist() == rows.dtypes.tolist()


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64])
def test_frames_keep_their_precision(model, dtype):
    rows = pl.from_pandas(frame().head(3)).with_columns(pl.Series("size", [None, 50.0, 60.0], dtype=dtype))
    filled = model.impute(rows)
    assert filled.schema == rows.schema
    assert filled["size"].null_count() == 0


def test_draws_have_the_tables_units_and_kinds(model):
    drawn = model.sample(300)
    assert drawn["size"].mean() == pytest.approx(50.0, abs=4.0)
    assert np.corrcoef(drawn["size"], drawn["weight"])[0, 1] > 0.6
    assert set(drawn["colour"]) == {"red", "blue"}
    assert drawn.dtypes.tolist() == frame().dtypes.tolist()
    held = model.sample(50, evidence={"size": 70.0})
    assert (held["size"] == 70.0).all()
    assert held["weight"].mean() > 120


def test_queries_of_numbers_are_densities_in_the_tables_units(model):
    rows = frame().head(2)
    found = model.query_log_likelihood(rows, ["weight"], ["size"], budget=Budget(max_sweeps=2000))
    complete = model.query_log_likelihood(rows, ["colour"], ["size", "weight", "age"])
    assert complete.diagnostics.exact.all()
    # about normal around 2 size with deviation 5
    expected = norm.logpdf(rows["weight"].to_numpy(), 2.0 * rows["size"].to_numpy(), 5.0)
    np.testing.assert_allclose(found.joint, expected, atol=1.0)


def test_answers_do_not_depend_on_threads(model):
    rows = frame().head(6).assign(size=np.nan)
    one = model.marginals(rows).numbers["size"].means
    model.n_jobs = 2
    two = model.marginals(rows).numbers["size"].means
    model.n_jobs = 1
    assert np.array_equal(one, two)


def test_pictures_of_numbers(model):
    row = frame().head(1).assign(size=np.nan, colour=None)
    assert len(model.plot_marginals(row).figure.axes) >= 1
    assert model.plot_forest(frame().head(1)).figure is not None


# --- odd tables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["generation", "likelihood"])
@pytest.mark.parametrize(
    "name", ["constant", "two values", "scales", "copies", "heavy tails", "more columns than rows", "one row"]
)
def test_odd_tables_have_finite_answers(name, objective):
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    table = pd.DataFrame(
        {
            "constant": lambda: {"a": x, "b": np.full(40, 5.0)},
            "two values": lambda: {"a": x, "b": np.where(x > 0, 1.0, 0.0)},
            "scales": lambda: {"a": x * 1e-12, "b": 1e12 * (x + rng.normal(size=40))},
            "copies": lambda: {"a": x, "b": x, "c": 3.0 * x + 1.0},
            "heavy tails": lambda: {"a": rng.standard_cauchy(40) * 100.0, "b": rng.standard_cauchy(40)},
            "more columns than rows": lambda: {f"x{i}": rng.normal(size=4) for i in range(8)},
            "one row": lambda: {"a": [1.0], "b": [2.0]},
        }[name]()
    )
    model = LDFM(objective=objective, max_iter=8, random_state=0, n_jobs=1).fit(table)
    assert np.isfinite(model.score_samples(table)).all()
    holes = table.head(2).copy()
    holes.iloc[0, 0] = np.nan
    assert np.isfinite(model.impute(holes).to_numpy()).all()
    assert np.isfinite(model.impute(holes, how="draw").to_numpy()).all()
    far = pd.DataFrame({column: [1e6] for column in table})
    if name != "scales":
        assert np.isfinite(model.score_samples(far)).all()


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_model_file_gives_the_same_model(model, tmp_path):
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    rows = frame().head(10)
    assert np.array_equal(loaded.score_samples(rows), model.score_samples(rows))
    assert loaded.kinds == {"age": "continuous"}
    holes = rows.assign(size=np.nan)
    assert np.array_equal(loaded.impute(holes)["size"], model.impute(holes)["size"])


def test_discrete_files_keep_their_version(tmp_path):
    LDFM(**QUICK).fit({"a": ["x", "y"], "b": ["u", "v"]}).save(tmp_path / "m")
    assert b'\\"format_version\\": 1' in (tmp_path / "m").read_bytes()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'\\"scale\\": ', b'\\"scale\\":-'),
        (b'\\"centre\\"', b'\\"cantre\\"'),
        (b'\\"format_version\\": 2', b'\\"format_version\\": 1'),
        (b'"slopes"', b'"slopez"'),
        (b'\\"kind\\": \\"continuous\\"', b'\\"kind\\": \\"continuus\\" '),
    ],
)
def test_spoilt_files_are_refused(model, tmp_path, old, new):
    model.save(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    assert old in content
    (tmp_path / "m").write_bytes(content.replace(old, new))
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_spoilt_numbers_are_refused(model):
    weights = model.weights_
    arrays = weights.table, weights.intercepts, weights.slopes, weights.deviations
    kinds = weights.cardinalities, weights.continuous
    with pytest.raises(ValueError, match="deviations must be positive"):
        MixedWeights(*arrays[:3], np.zeros(weights.table.shape), *kinds)
    with pytest.raises(ValueError, match="slopes must be finite"):
        MixedWeights(*arrays[:2], np.full(weights.table.shape, np.nan), arrays[3], *kinds)
    with pytest.raises(ValueError, match="one state each"):
        MixedWeights(*arrays, kinds[0], (True,) * 4)
