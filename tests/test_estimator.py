import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from ldfm import LDFM, Dirichlet, Estimate, ModifiedDirichlet, load
from ldfm.networks import load as load_network
from models import random_weights, values_of
from oracles.em import log_row_probability
from oracles.forests import enumerated_marginals
from statistics_checks import FALSE_ALARM, p_value


@pytest.fixture(scope="module")
def asia() -> dict[str, np.ndarray]:
    return load_network("asia").sample(800, seed=0)


@pytest.fixture(scope="module")
def fitted(asia) -> LDFM:
    return LDFM(objective="generation", prior=ModifiedDirichlet(0.0, 1e-4), max_iter=40, random_state=0).fit(asia)


def model_of(weights, **names) -> LDFM:
    return LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values_of(weights.cardinalities))


def test_fitted_attributes(fitted, asia):
    assert fitted.n_features_in_ == 8
    assert list(fitted.feature_names_in_) == list(asia)
    assert fitted.schema_.names == tuple(asia)
    assert fitted.weights_.variant == "ldfm-s"
    assert len(fitted.history_) == 41
    assert (np.diff(fitted.history_.objective) > 0).all()


def test_the_same_data_in_any_frame_gives_the_same_model(asia):
    models = [
        LDFM(objective="generation", max_iter=5).fit(make(asia)).weights_.table
        for make in (dict, pd.DataFrame, pl.DataFrame, pa.table, lambda d: np.stack(list(d.values()), axis=1))
    ]
    assert all(np.array_equal(table, models[0]) for table in models[1:])


def test_frames_from_files(asia, tmp_path):
    frame = pl.DataFrame(asia)
    frame.write_csv(tmp_path / "asia.csv")
    frame.write_parquet(tmp_path / "asia.parquet")
    expected = LDFM(objective="generation", max_iter=5).fit(frame).weights_.table
    for name in ("asia.csv", "asia.parquet"):
        assert np.array_equal(LDFM(objective="generation", max_iter=5).fit(tmp_path / name).weights_.table, expected)
        assert np.array_equal(
            LDFM(objective="generation", max_iter=5).fit(str(tmp_path / name)).weights_.table, expected
        )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple), st.integers(0, 2**32 - 1), st.booleans())
def test_forest_calls_equal_brute_force(cardinalities, seed, stops):
    weights = random_weights(cardinalities, seed, stops=stops, normalise=False)
    model = model_of(weights)
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, k, 3) for k in cardinalities], axis=1)
    rows = {f"x{i}": [f"v{c}" for c in codes[:, i]] for i in range(len(cardinalities))}
    sums, marginals, forests = model.log_forest_sum(rows), model.arc_marginals(rows), model.best_forest(rows)
    for row in range(3):
        values = weights.offsets[:-1] + codes[row]
        assert sums[row] == pytest.approx(log_row_probability(weights.table, weights.stop, values), rel=1e-9, abs=1e-9)
        arcs = np.vstack([weights.table[0, values], weights.table[1 + values][:, values]])
        expected = enumerated_marginals(arcs)
        np.testing.assert_allclose(marginals[row], expected, rtol=1e-10, atol=1e-14)
        weight = np.prod([arcs[1 + p, j] for j, p in enumerate(forests[row])])
        assert weight > 0


def test_drawn_forests_match_the_arc_marginals(fitted, asia):
    row = {name: values[:1] for name, values in asia.items()}
    draws = fitted.sample_forests(row, 20_000)[0]
    marginals = fitted.arc_marginals(row)[0]
    for child in range(8):
        probabilities = {parent - 1: float(p) for parent, p in enumerate(marginals[:, child])}
        assert p_value(draws[:, child].tolist(), probabilities) > FALSE_ALARM


def test_same_seed_same_forests_any_number_of_threads(asia):
    rows = {name: values[:300] for name, values in asia.items()}
    models = [LDFM(objective="generation", max_iter=3, random_state=7, n_jobs=jobs).fit(asia) for jobs in (1, 2, 5)]
    draws = [model.sample_forests(rows, 3) for model in models]
    assert all(np.array_equal(models[0].weights_.table, model.weights_.table) for model in models)
    assert all(np.array_equal(draws[0], other) for other in draws)
    other_seed = LDFM(objective="generation", max_iter=3, random_state=8).fit(asia).sample_forests(rows, 3)
    assert not np.array_equal(draws[0], other_seed)


def test_scores_are_log_probabilities(fitted, asia):
    partition = fitted.log_partition()
    assert isinstance(partition, Estimate)
    assert partition.exact
    assert partition.standard_error == 0.0
    np.testing.assert_allclose(fitted.score_samples(asia), fitted.log_forest_sum(asia) - partition.value, rtol=1e-12)
    assert fitted.score(asia) == pytest.approx(fitted.score_samples(asia).mean())
    # probabilities of both values of a cell add up to the probability without it
    row = {name: values[:1].copy() for name, values in asia.items()}
    logs = []
    for value in ("no", "yes", None):
        row["xray"][0] = value
        logs.append(fitted.score_samples(row)[0])
    assert np.logaddexp(logs[0], logs[1]) == pytest.approx(logs[2])


def test_marginals_of_known_and_unknown_cells(fitted, asia):
    frame = pd.DataFrame({name: values[:4] for name, values in asia.items()})
    frame.loc[[0, 2], "lung"] = None
    answer = fitted.marginals(frame)
    assert answer.diagnostics.exact.all()
    assert answer.unknown.sum() == 2
    for values in answer.probabilities.values():
        np.testing.assert_allclose(values.sum(axis=1), 1.0)
    assert set(np.unique(answer.probabilities["smoke"])) == {0.0, 1.0}
    table = answer.table
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == ["row", "variable", "value", "probability", "standard_error"]
    assert table["row"].tolist() == [0, 0, 2, 2]
    assert isinstance(fitted.marginals(pl.from_pandas(frame)).table, pl.DataFrame)
    filled = fitted.most_probable(frame)
    assert isinstance(filled, pd.DataFrame)
    assert not filled.isna().any().any()
    assert filled.drop(columns="lung").equals(frame.drop(columns="lung"))


def test_roles_by_name_and_by_array_agree_in_any_column_order(fitted, asia):
    frame = pd.DataFrame({name: values[:50] for name, values in asia.items()})
    by_name = fitted.query_log_likelihood(frame, ["lung", "dysp"], ["smoke", "xray"])
    turned = frame[frame.columns[::-1]]
    asked = np.tile(turned.columns.isin(["lung", "dysp"]), (50, 1))
    given_ = np.tile(turned.columns.isin(["smoke", "xray"]), (50, 1))
    by_array = fitted.query_log_likelihood(turned, asked, given_, method="exact")
    np.testing.assert_allclose(by_array.joint, by_name.joint, rtol=1e-12)
    np.testing.assert_allclose(by_array.marginal, by_name.marginal, rtol=1e-12)
    assert (by_name.n_query == 2).all()
    assert (by_name.joint_se == 0).all()


def test_roles_in_a_frame_go_by_name(fitted, asia):
    frame = pd.DataFrame({name: values[:9] for name, values in asia.items()})
    asked = pd.DataFrame(False, index=frame.index, columns=frame.columns)
    asked["lung"] = True
    given_ = pd.DataFrame(False, index=frame.index, columns=frame.columns[::-1])
    given_["smoke"] = True
    expected = fitted.query_log_likelihood(frame, ["lung"], ["smoke"]).joint
    for roles in (pd.DataFrame, pl.from_pandas):
        found = fitted.query_log_likelihood(frame, roles(asked[frame.columns[::-1]]), roles(given_)).joint
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="must have the table's columns"):
        fitted.query_log_likelihood(frame, asked.rename(columns={"lung": "long"}), ["smoke"])
    with pytest.raises(ValueError, match="an array of roles must be boolean"):
        fitted.query_log_likelihood(frame, asked.astype(int), ["smoke"])
    with pytest.raises(TypeError, match="query must be a list of column names or a boolean array, not None"):
        fitted.query_log_likelihood(frame, None, ["smoke"])


def test_a_model_that_gives_no_row_a_probability_has_no_scores():
    model = LDFM.from_weights([0, 0], np.zeros((2, 2)), values={"a": ["x", "y"]})
    with pytest.raises(ValueError, match="no row has positive probability"):
        model.score_samples({"a": ["x"]})
    with pytest.raises(TypeError, match="values must be in order, not a set"):
        LDFM.from_weights([0, 0], np.zeros((2, 2)), values={"a": {"x", "y"}})


def test_a_float_column_taken_as_categories_survives_saving(tmp_path):
    table = {"a": np.array([0.5, 1.5, 0.5]), "b": ["x", "y", "x"]}
    LDFM(objective="generation", kinds={"a": "discrete"}, max_iter=2).fit(table).save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.kinds == {"a": "discrete"}
    assert again.fit(table).schema_.columns[0].values == (0.5, 1.5)


def test_a_model_survives_saving_and_pickling(fitted, asia, tmp_path):
    fitted.save(tmp_path / "asia.ldfm")
    for again in (load(tmp_path / "asia.ldfm"), pickle.loads(pickle.dumps(fitted))):
        assert np.array_equal(again.score_samples(asia), fitted.score_samples(asia))
        assert again.get_params() == fitted.get_params()


def test_is_a_scikit_learn_estimator(asia):
    model = LDFM(objective="generation", max_iter=4, prior=Dirichlet(1.1))
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.score_samples(asia)
    search = GridSearchCV(LDFM(objective="generation", max_iter=4), {"prior": [None, Dirichlet(2.0)]}, cv=2).fit(
        pd.DataFrame(asia)
    )
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_sample_weight_counts_rows(asia):
    weights = np.ones(800)
    weights[:100] = 3.0
    repeated = {name: np.concatenate([values, values[:100], values[:100]]) for name, values in asia.items()}
    a = LDFM(objective="generation", max_iter=10).fit(asia, sample_weight=weights)
    b = LDFM(objective="generation", max_iter=10).fit(repeated)
    np.testing.assert_allclose(a.weights_.table, b.weights_.table, rtol=0, atol=1e-12)


def test_validation_rows_are_held_out(asia):
    model = LDFM(objective="generation", max_iter=30, validation_fraction=0.25, random_state=0).fit(asia)
    assert np.isfinite(model.history_.validation).all()
    assert np.isnan(LDFM(objective="generation", max_iter=2).fit(asia).history_.validation).all()


def test_refitting_on_an_array_forgets_names(asia):
    model = LDFM(objective="generation", max_iter=1).fit(asia)
    model.fit(np.array([[0, 1], [1, 0]]))
    assert not hasattr(model, "feature_names_in_")
    assert model.schema_.names == ("x0", "x1")


def test_one_thread_starts_nothing(asia):
    import threading

    before = threading.active_count()
    LDFM(objective="generation", max_iter=2, n_jobs=1).fit(asia).score(asia)
    assert threading.active_count() == before


def test_import_is_quick_and_light():
    code = (
        "import sys, time; t = time.perf_counter(); import ldfm; t = time.perf_counter() - t; "
        "print(t, *[m for m in ('pandas', 'matplotlib', 'torch', 'polars', 'numba') if m in sys.modules])"
    )
    seconds, *heavy = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert float(seconds) < 1.0
    assert heavy == []


# the peak of this process alone: that of getrusage is also that of the process that started it
MEMORY = """
import re
from pathlib import Path
import numpy as np
from ldfm import LDFM
from ldfm.networks import load
network = load("alarm")
codes = network.sample_codes(1_000_000, 0).astype(np.int8)
model = LDFM(objective="generation", max_iter=1, n_jobs=2).fit(codes)
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024)
"""


def test_a_million_rows_stay_below_two_gigabytes():
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2000


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [[0, 1], [("a", 0), ("a", 1)], [2.5, True]])
def test_columns_are_named_as_the_frame_names_them_or_by_text(names):
    frame = pd.DataFrame([["x", "y"], ["x", "z"], ["w", "y"], ["w", "y"]], columns=pd.Index(names, tupleize_cols=False))
    model = LDFM(objective="generation", max_iter=5, kinds={names[0]: "discrete"}, random_state=0).fit(frame)
    one, other = names
    found = model.query_log_likelihood(frame, [one], [other])
    by_text = model.query_log_likelihood(frame, [str(one)], [str(other)])
    np.testing.assert_array_equal(found.joint, by_text.joint)
    roles = pd.DataFrame([[False, True]] * 4, columns=pd.Index([other, one], tupleize_cols=False))
    np.testing.assert_array_equal(model.query_log_likelihood(frame, roles, ~roles).joint, found.joint)
    drawn, drawn_by_text = (model.sample(20, evidence={name: "x"}) for name in (one, str(one)))
    assert set(drawn.iloc[:, 0]) == {"x"}
    pd.testing.assert_frame_equal(drawn, drawn_by_text)
    with pytest.raises(ValueError, match=r"evidence names column .* twice: as "):
        model.sample(evidence={one: "x", str(one): "w"})


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_drawn_rows_have_the_dtypes_of_the_table_until_the_model_comes_from_a_file(kind, tmp_path):
    columns = {"grade": ["low", "high", "low", "high"] * 5, "count": [1, 2, None, 2] * 5, "truth": [True, None] * 10}
    if kind == "pandas":
        grades = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
        frame = pd.DataFrame(columns).astype({"grade": grades, "count": "Int8", "truth": "boolean"})
    else:
        frame = pl.DataFrame(columns, schema_overrides={"grade": pl.Enum(["low", "middle", "high"]), "count": pl.Int8})
    model = LDFM(objective="generation", max_iter=3, random_state=0).fit(frame)
    drawn = pickle.loads(pickle.dumps(model)).sample(6)
    assert list(drawn.dtypes) == list(frame.dtypes)
    assert list(drawn.columns) == list(frame.columns)
    model.save(tmp_path / "m")
    assert {name: list(cells) for name, cells in load(tmp_path / "m").sample(6).items()} == {
        name: list(drawn[name]) for name in frame.columns
    }
    assert not hasattr(clone(model), "_template")
