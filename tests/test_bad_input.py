"""What users get wrong: everything either works or is refused with the column, row and value at fault."""

import gzip
import warnings
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array, csr_matrix

from ldfm import LDFM, Dirichlet, ModifiedDirichlet, TableError

WEATHER = {
    "sky": ["sun", "rain", "sun", "rain", "sun", "sun"],
    "road": ["dry", "wet", "dry", "wet", "wet", "dry"],
    "cars": [3, 1, 3, 2, 2, 1],
}


def fitted(table, **settings) -> LDFM:
    return LDFM(**{"objective": "generation", "max_iter": 5, "random_state": 0, "n_jobs": 1, **settings}).fit(table)


@pytest.fixture(scope="module")
def model() -> LDFM:
    return fitted(WEATHER, prior=ModifiedDirichlet(0.0, 1e-3))


def changed(**columns):
    return {**WEATHER, **columns}


# --- what works ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["ldfm", "ldfm-s"])
@pytest.mark.parametrize(
    ("table", "cardinalities"),
    [
        ({"a": ["x", "y", "x"]}, (2,)),
        ({"a": ["x"]}, (1,)),
        ({"a": ["x"], "b": [1], "c": [True]}, (1, 1, 1)),
        ({"a": ["x", "x", "x"], "b": ["p", "q", "q"]}, (1, 2)),
        ({"a": ["x", "x"], "b": [7, 7]}, (1, 1)),
        (np.array([[0, 1], [1, 1]]), (2, 1)),
        ([["x", 1], ["y", 2]], (2, 2)),
        (pd.DataFrame({"a": pd.Categorical(["x", "y"], ["z", "y", "x"]), "b": ["p", "q"]}), (3, 2)),
    ],
    ids=["one column", "one cell", "one row", "constant column", "constant table", "array", "rows", "unused category"],
)
def test_small_tables_can_be_learned(table, cardinalities, variant):
    model = fitted(table, variant=variant, prior=Dirichlet(2.0))
    assert model.schema_.cardinalities == cardinalities
    scores = model.score_samples(table)
    assert np.isfinite(scores).all()
    assert (scores <= 1e-12).all()
    if max(cardinalities) == 1:
        np.testing.assert_allclose(scores, 0.0, atol=1e-12)
    joint = model.query_log_likelihood(table, [model.schema_.names[0]], []).joint
    assert joint.shape == scores.shape


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table], ids=lambda make: make.__name__)
def test_columns_in_another_order_give_the_same_numbers(model, make):
    table = make(WEATHER)
    turned = make({name: WEATHER[name] for name in ("cars", "sky", "road")})
    for call in (
        model.log_forest_sum,
        model.score_samples,
        model.arc_marginals,
        model.best_forest,
        model.sample_forests,
    ):
        np.testing.assert_array_equal(call(turned), call(table))
    names = model.query_log_likelihood(table, ["road"], ["sky"])
    np.testing.assert_array_equal(model.query_log_likelihood(turned, ["road"], ["sky"]).joint, names.joint)
    # boolean arrays have the columns of the table they come with
    query, evidence = np.zeros((6, 3), dtype=bool), np.zeros((6, 3), dtype=bool)
    query[:, 2] = evidence[:, 1] = True
    np.testing.assert_array_equal(model.query_log_likelihood(turned, query, evidence).joint, names.joint)
    asked, again = dict(WEATHER, road=[None] * 6), {"cars": WEATHER["cars"], "road": [None] * 6, "sky": WEATHER["sky"]}
    np.testing.assert_array_equal(
        model.marginals(asked).probabilities["road"], model.marginals(again).probabilities["road"]
    )
    assert list(model.most_probable(again)) == ["cars", "road", "sky"]


def test_fitting_depends_on_the_order_of_columns_only_by_naming(model):
    turned = fitted({name: WEATHER[name] for name in ("cars", "sky", "road")}, prior=ModifiedDirichlet(0.0, 1e-3))
    np.testing.assert_allclose(turned.score_samples(WEATHER), model.score_samples(WEATHER), rtol=1e-9)


@pytest.mark.parametrize("objective", ["generation", "likelihood"])
def test_missing_cells_are_learned_from_in_any_frame(objective):
    tables = [
        changed(sky=["sun", None, "sun", "rain", None, "sun"]),
        pd.DataFrame(changed(cars=[1, 2, 3, None, 1, 1])).astype({"cars": "Int64"}),
        pl.DataFrame(changed(cars=[1, 2, 3, None, 1, 1])),
    ]
    models = [fitted(table, objective=objective) for table in tables]
    assert np.array_equal(models[1].weights_.table, models[2].weights_.table)
    for model in models:
        assert np.isfinite(model.score(WEATHER))


def test_missing_cells_are_asked_about_not_refused(model):
    assert model.score_samples(changed(sky=[None] * 6)).shape == (6,)
    everything = {name: [None] for name in WEATHER}
    assert model.score_samples(everything)[0] == pytest.approx(0.0, abs=1e-12)
    assert model.most_probable(everything)["sky"][0] in ("sun", "rain")
    assert model.marginals(pd.DataFrame(everything)).table.shape == (7, 5)


def test_a_hidden_cell_may_be_missing(model):
    known = model.query_log_likelihood(WEATHER, ["road"], ["sky"])
    hidden = model.query_log_likelihood(changed(cars=[None, 1, None, 2, 2, None]), ["road"], ["sky"])
    np.testing.assert_array_equal(known.joint, hidden.joint)


def test_tables_without_rows_have_no_answers(model):
    empty = pd.DataFrame(WEATHER).iloc[:0]
    assert model.log_forest_sum(empty).shape == (0,)
    assert model.score_samples(empty).shape == (0,)
    assert model.arc_marginals(empty).shape == (0, 4, 3)
    assert model.best_forest(empty).shape == (0, 3)
    assert model.sample_forests(empty, 2).shape == (0, 2, 3)
    assert model.marginals(empty).probabilities["cars"].shape == (0, 3)
    assert model.query_log_likelihood(empty, ["road"], ["sky"]).joint.shape == (0,)
    pd.testing.assert_frame_equal(model.most_probable(empty), empty)


def test_no_query_and_no_evidence(model):
    nothing = model.query_log_likelihood(WEATHER, [], [])
    assert nothing.joint.tolist() == [0.0] * 6
    assert nothing.n_query.tolist() == [0] * 6
    whole = model.query_log_likelihood(WEATHER, list(WEATHER), [])
    np.testing.assert_allclose(whole.joint, model.score_samples(WEATHER), rtol=1e-12)


def test_weights_of_rows_are_repetitions():
    weights = [2, 0, 1, 1, 0, 3]
    repeated = {name: np.repeat(cells, weights) for name, cells in WEATHER.items()}
    weighted = LDFM(objective="generation", max_iter=5).fit(WEATHER, sample_weight=weights)
    np.testing.assert_allclose(
        weighted.weights_.table, LDFM(objective="generation", max_iter=5).fit(repeated).weights_.table, rtol=1e-12
    )


# --- tables that cannot be learned -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "^the table has no columns$"),
        (pd.DataFrame(), "^the table has no columns$"),
        (pd.DataFrame(WEATHER)[[]], "^the table has no columns$"),
        (np.empty((5, 0), dtype=int), r"^the table has no columns: 0 feature\(s\) \(shape=\(5, 0\)\) while a minimum of 1 is"),
        ([], "^the table has no rows$"),
        (pd.DataFrame(WEATHER).iloc[:0], "^the table has no rows$"),
        (pl.DataFrame(WEATHER).clear(), "^the table has no rows$"),
        (np.empty((0, 2), dtype=int), "^the table has no rows$"),
        (np.array(["x", "y"]), r"^Reshape your data: expected a table with 2 dimensions, .* not an array of shape \(2,\)$"),
        (np.zeros((2, 2, 2), dtype=int), r"expected a table with 2 dimensions, .* not an array of shape \(2, 2, 2\)"),
        (np.array(1), r"not an array of shape \(\)"),
        (["x", "y"], "row 0 must be a list of cells, not 'x'"),
        ([["x", 1], ["y"]], "row 1 has 1 cells, row 0 has 2"),
        (changed(sky=["sun"]), r"columns have different numbers of rows: \{'sky': 1, 'road': 6, 'cars': 6\}"),
        (
            pd.DataFrame([["x", "y", "z"]], columns=["a", "b", "a"]),
            "^column name 'a' occurs more than once$",
        ),
        (pa.table([["x"], ["y"]], names=["a", "a"]), "^column name 'a' occurs more than once$"),
        (changed(sky=[None] * 6), "^column 'sky': all cells are missing$"),
        (changed(sky=np.full(6, np.nan)), "^column 'sky': all cells are missing$"),
        (changed(cars=[1.5, 2.0, 2.0, 3.0, 1.0, np.inf]), "^column 'cars' row 5: value inf is not finite$"),
        (pd.DataFrame(changed(cars=[1.5, -np.inf, 2.0, 3.0, 1.0, 1.0])), "^column 'cars' row 1: value -inf is not finite$"),
        (
            changed(cars=[3, 1, "many", 2, 2, 1]),
            r"^column 'cars' mixes types: 3 \(int\) row 0, 'many' \(str\) row 2$",
        ),
        (changed(cars=[3, 1, True, 2, 2, 1]), r"^column 'cars' mixes types: 3 \(int\) row 0, True \(bool\) row 2$"),
        (changed(sky=[[1], "x", "x", "x", "x", "x"]), "^column 'sky' row 0: a list cannot be a value$"),
        (
            {"id": [f"row {i:05}" for i in range(10_000)], "b": ["x", "y"] * 5000},
            r"^column 'id' has 10000 distinct values \(such as 'row 00000'\): a table may have 4096 values in all, for a model "
            r"has a weight for each pair; drop the column or group its values$",
        ),
        (np.array([[1j]]), r"^column 'x0': Complex data not supported \(dtype complex128\)$"),
        (
            {"a": np.array(["2020-01-01T00:00:00.000000001"], "M8[ns]")},
            "^column 'a' row 0: times are read to the microsecond, not as 2020-01-01T00:00:00.000000001$",
        ),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_learned(table, message):
    with pytest.raises(TableError, match=message):
        LDFM().fit(table)


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (None, "a table must be a pandas, polars or pyarrow frame, a 2-D array, .* not NoneType"),
        (7, "a table must be .* not int"),
        (object(), "a table must be .* not object"),
        (pd.Series(["x"]), "a table must be .* not Series"),
        (csr_array([[1, 0], [0, 1]]), r"a sparse matrix cannot be a table of values; give its toarray\(\)"),
        (csr_matrix([[1, 0], [0, 1]]), "a sparse matrix cannot be a table"),
    ],
)
def test_things_that_are_no_table(model, thing, message):
    for call in (LDFM().fit, model.score_samples, model.marginals):
        with pytest.raises(TypeError, match=message):
            call(thing)


def test_files_that_are_no_table(model, tmp_path):
    contents = {
        "notes.txt": b"sky,road,cars\n",
        "empty.csv": b"",
        "header.csv": b"sky,road,cars\n",
        "ragged.csv": b"sky,road,cars\nsun,dry,3\nsun,dry\n",
        "quote.csv": b'sky,road,cars\n"sun,dry,3\n',
        "binary.csv": bytes(range(256)) * 8,
        "zeros.csv": bytes(1000),
        "latin.csv": "sky,road,cars\nsöl,dry,3\n".encode("latin-1"),
        "cut.csv.gz": gzip.compress(b"sky,road,cars\nsun,dry,3\n" * 50)[:-9],
        "plain.csv.gz": b"sky,road,cars\nsun,dry,3\n",
        "broken.parquet": b"PAR1 this is not a Parquet file PAR1",
        "semicolons.csv": b"sky;road;cars\nsun;dry;3\n",
    }
    messages = {
        "notes.txt": r"notes.txt: tables are read from \.csv, \.csv\.gz and \.parquet files$",
        "empty.csv": "empty.csv: the file is empty$",
        "header.csv": "^the table has no rows$",
        "ragged.csv": "ragged.csv: data row 1 has 2 cells, the header has 3$",
        "quote.csv": "quote.csv: not a readable CSV file",
        "binary.csv": r"binary.csv: not a readable CSV file \('utf-8' codec can't decode byte",
        "zeros.csv": r"zeros.csv: not a readable CSV file \(its first line is not text\)",
        "latin.csv": r"latin.csv: not a readable CSV file \('utf-8' codec can't decode byte 0xf6",
        "cut.csv.gz": "cut.csv.gz: not a readable CSV file",
        "plain.csv.gz": r"plain.csv.gz: not a readable CSV file \(Not a gzipped file",
        "broken.parquet": "broken.parquet: not a readable Parquet file",
        "semicolons.csv": "cells must be separated by commas, but the header is the one cell 'sky;road;cars'",
    }
    for name, content in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(TableError, match=messages[name]):
            LDFM().fit(path)
        if name != "header.csv":  # a question may have no rows
            with pytest.raises(TableError, match=messages[name]):
                model.score_samples(str(path))
    with pytest.raises(FileNotFoundError, match=r"^no such file: .*nowhere.csv$") as caught:
        LDFM().fit(tmp_path / "nowhere.csv")
    assert isinstance(caught.value, ValueError)
    with pytest.raises(TableError, match=r"is a folder; a table is one \.csv, \.csv\.gz or \.parquet file$"):
        LDFM().fit(tmp_path)


# --- tables that do not fit the model --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            changed(sky=["sun", "rain", "snow", "sun", "hail", "sun"]),
            r"^column 'sky' row 2: value 'snow' \(str\) was not seen in training; the column's values are 'rain', 'sun' \(str\)$",
        ),
        (
            pd.DataFrame(changed(cars=[1, 2, 3, 4, 0, 1])),
            r"^column 'cars' row 3: value 4 \(int\) was not seen in training; the column's values are 1, 2, 3 \(int\)$",
        ),
        (changed(cars=["1"] * 6), r"^column 'cars' row 0: value '1' \(str\) was not seen .* are 1, 2, 3 \(int\)$"),
        (changed(cars=[True] * 6), r"^column 'cars' row 0: value True \(bool\) was not seen in training"),
        (changed(cars=[1.5] * 6), r"^column 'cars' row 0: value 1.5 \(float\) was not seen in training"),
        (changed(cars=np.full(6, np.inf)), "^column 'cars' row 0: value inf is not finite$"),
        (changed(cars=[np.inf] * 6), r"^column 'cars' row 0: value inf \(float\) was not seen in training"),
        (changed(cars=[datetime(2020, 1, 1)] * 6), r"value datetime.datetime\(2020, .*\) \(datetime\) was not seen"),
        (
            {"sky": ["sun"], "road": ["dry"]},
            "^the table lacks column 'cars'; it has 'sky', 'road', the model needs 'sky', 'road', 'cars'$",
        ),
        (changed(wind=["n"] * 6), "^the model does not know column 'wind'; it knows 'sky', 'road', 'cars'$"),
        (pl.DataFrame(WEATHER).rename({"sky": "Sky"}), "^the table lacks column 'sky'; it has 'Sky', 'road', 'cars'"),
        (np.array([["sun", "dry"]]), "^X has 2 features, but model is expecting 3 features as input$"),
        ([["sun", "dry", 1, 2]], "^X has 4 features, but model is expecting 3 features as input$"),
        ([["dry", "sun", 1]], r"^column 'x0' row 0: value 'dry' \(str\) was not seen in training"),
        ({}, "^the table has no columns$"),
        (pd.DataFrame([[1, 1]], columns=["sky", "sky"]), "^column name 'sky' occurs more than once$"),
    ],
)
def test_questions_that_do_not_fit_the_model(model, table, message):
    calls = (
        model.log_forest_sum,
        model.score_samples,
        model.score,
        model.marginals,
        model.most_probable,
        model.arc_marginals,
        model.best_forest,
        model.sample_forests,
        model.plot_forest,
        lambda X: model.query_log_likelihood(X, ["road"], ["sky"]),
    )
    for call in calls:
        with pytest.raises(TableError, match=message):
            call(table)


def test_forests_need_complete_rows(model):
    table = changed(road=["dry", "wet", None, "wet", "wet", None])
    for name in ("log_forest_sum", "best_forest", "sample_forests"):
        with pytest.raises(
            TableError, match=f"^column 'road' row 2 is missing \\(None, NaN or null\\); {name} needs complete rows$"
        ):
            getattr(model, name)(table)


# --- roles -----------------------------------------------------------------------------------------------------------

ROLES = np.zeros((6, 3), dtype=bool)


def with_cell(row: int, column: int) -> np.ndarray:
    roles = ROLES.copy()
    roles[row, column] = True
    return roles


@pytest.mark.parametrize(
    ("query", "evidence", "message"),
    [
        (["sky"], ["road", "sky"], "^column 'sky' row 0 is both query and evidence$"),
        (with_cell(4, 2), with_cell(4, 2), "^column 'cars' row 4 is both query and evidence$"),
        (["wind"], ["sky"], "^query names column 'wind', which the model does not have$"),
        (["sky"], ["road", "Cars"], "^evidence names column 'Cars', which the model does not have$"),
        ([0], ["sky"], "^query names column 0, which the model does not have$"),
        (np.zeros((6, 2), dtype=bool), ["sky"], r"^query: .* must have the table's shape \(6, 3\), not \(6, 2\)$"),
        (["sky"], np.zeros((5, 3), dtype=bool), r"^evidence: .* must have the table's shape \(6, 3\), not \(5, 3\)$"),
        (["sky"], np.zeros(3, dtype=bool), r"^evidence: .* must have the table's shape \(6, 3\), not \(3,\)$"),
        ([True, False, True], [], r"^query: .* must have the table's shape \(6, 3\), not \(3,\)$"),
    ],
)
def test_roles_that_do_not_fit(model, query, evidence, message):
    with pytest.raises(ValueError, match=message):
        model.query_log_likelihood(WEATHER, query, evidence)


def test_roles_of_missing_cells(model):
    table = changed(road=["dry", "wet", "dry", None, "wet", None])
    with pytest.raises(TableError, match=r"^column 'road' row 3 is a query cell but its value is missing$"):
        model.query_log_likelihood(table, ["road"], ["sky"])
    with pytest.raises(TableError, match=r"^column 'road' row 3 is an evidence cell but its value is missing$"):
        model.query_log_likelihood(table, ["sky"], ["road"])
    with pytest.raises(TableError, match=r"^column 'road' row 5 is a query cell but its value is missing$"):
        model.query_log_likelihood(table, with_cell(5, 1), with_cell(5, 0))


def test_one_name_is_no_list_of_names(model):
    with pytest.raises(TypeError, match=r"^query must be a list of column names or a boolean array, not 'sky'$"):
        model.query_log_likelihood(WEATHER, "sky", ["road"])
    with pytest.raises(TypeError, match=r"^evidence must be a list of column names or a boolean array, not 'sky'$"):
        model.query_log_likelihood(WEATHER, ["road"], "sky")


# --- weights of rows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"^sample_weight must be \(6,\), one number a row, not \(2,\)$"),
        (np.ones((6, 1)), r"^sample_weight must be \(6,\), one number a row, not \(6, 1\)$"),
        (3.0, r"^sample_weight must be \(6,\), one number a row, not \(\)$"),
        ([1, 1, -1, 1, 1, -2], "^sample_weight row 2 is -1.0; weights must be finite and not negative$"),
        ([1, 1, 1, np.nan, 1, 1], "^sample_weight row 3 is nan; weights must be finite and not negative$"),
        ([1, np.inf, 1, 1, 1, 1], "^sample_weight row 1 is inf; weights must be finite and not negative$"),
        (np.zeros(6), "^sample_weight is zero for every row$"),
        (["a"] * 6, "could not convert string to float"),
    ],
)
def test_bad_weights_of_rows(weights, message):
    with pytest.raises(ValueError, match=message):
        LDFM().fit(WEATHER, sample_weight=weights)


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"variant": "ldfm-x"}, "^variant must be 'ldfm' or 'ldfm-s', not 'ldfm-x'$"),
        ({"variant": None}, "^variant must be 'ldfm' or 'ldfm-s', not None$"),
        ({"objective": "speed"}, "^objective must be .*, not 'speed'"),
        ({"prior": "dirichlet"}, r"^prior must be None, Dirichlet\(\.\.\.\) or ModifiedDirichlet\(\.\.\.\), not 'dirichlet'$"),
        ({"prior": 1.0}, "^prior must be None, .*, not 1.0$"),
        ({"prior": Dirichlet}, "^prior must be None, .*, not <class"),
        ({"objective": "generation", "max_iter": -1}, "^max_iter must be None or a whole number, 0 or more, not -1$"),
        ({"max_iter": 2.5}, "^max_iter must be None or a whole number, 1 or more, not 2.5$"),
        ({"max_iter": 0}, "^max_iter must be None or a whole number, 1 or more, not 0$"),
        ({"variant": "ldfm"}, "^objective 'likelihood' learns an LDFM-S; set variant='ldfm-s', or objective='generation'$"),
        ({"tol": -1.0}, "^tol must be a number, 0 or more, not -1.0$"),
        ({"tol": np.nan}, "^tol must be a number, 0 or more, not nan$"),
        ({"tol": "small"}, "^tol must be a number, 0 or more, not 'small'$"),
        ({"random_state": "x"}, "^random_state must be None, a whole number, 0 or more, or a Generator, not 'x'$"),
        ({"validation_fraction": 0.0}, "^validation_fraction must be None or between 0 and 1, not 0.0$"),
        ({"validation_fraction": 1.5}, "^validation_fraction must be None or between 0 and 1, not 1.5$"),
        ({"validation_fraction": 0.99}, "^validation_fraction 0.99 of 6 rows leaves none to learn from$"),
        ({"kinds": {"wind": "discrete"}}, "^kinds names column 'wind', which the table does not have; it has 'sky', 'road',"),
        ({"kinds": {"sky": "ordinal"}}, "^column 'sky': kind must be 'discrete' or 'continuous', not 'ordinal'$"),
    ],
)  # fmt: skip
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        LDFM(**settings).fit(WEATHER)


@pytest.mark.parametrize(
    ("objective", "cars", "message"),
    [
        ("generation", WEATHER["cars"], "^validation_fraction holds out complete rows of positive weight, and"),
        (
            "likelihood",
            [None, None, None, None, None, "few"],
            "^validation_fraction holds out rows of positive weight with two",
        ),
    ],
)
def test_rows_that_cannot_be_held_out(objective, cars, message):
    gaps = changed(sky=["sun", None] * 3, road=[None, "wet"] * 2 + [None, None], cars=cars)
    with pytest.raises(ValueError, match=message):
        LDFM(objective=objective, validation_fraction=0.2).fit(gaps)


def test_a_failed_fit_leaves_the_model_as_it_was(model):
    before = model.score_samples(WEATHER)
    with pytest.raises(TableError, match="all cells are missing"):
        model.fit(changed(sky=[None] * 6))
    np.testing.assert_array_equal(model.score_samples(WEATHER), before)


def test_nothing_warns(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.most_probable(pd.DataFrame({"sky": ["sun"], "road": [np.nan], "cars": [np.nan]}))
        model.most_probable(pl.DataFrame({"sky": ["sun"], "road": [None], "cars": [None]}))
        model.most_probable(pa.table({"sky": ["sun"], "road": [None], "cars": [None]}))
