"""LDFM and the peers as scikit-learn estimators: its own checks, and the tools people put estimators into."""

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from ldfm import LDFM, Dirichlet
from ldfm.peers import BayesianNetwork, DependencyNetwork, MixtureOfAllTrees, MixtureOfTrees, SumProductNetwork

PLAIN = {"n_jobs": 1, "random_state": 0}
# the checks give tables of random numbers, which only "discrete" makes categories
SMALL = {"kinds": "discrete", **PLAIN}
ESTIMATORS = [
    LDFM(objective="generation", max_iter=5, **PLAIN),
    LDFM(objective="likelihood", max_iter=3, **PLAIN),
    LDFM(objective="generation", max_iter=5, **SMALL),
    LDFM(objective="likelihood", max_iter=3, **SMALL),
    BayesianNetwork(criterion="BIC", pseudo_count=1.0, **SMALL),
    DependencyNetwork(leaf_cost=1.0, strength=1.0, **SMALL),
    MixtureOfTrees(components=2, strength=1.0, max_iter=3, **SMALL),
    MixtureOfAllTrees(strength=1.0, max_iter=2, **SMALL),
    SumProductNetwork(p_value=0.01, strength=1.0, max_iter=3, **SMALL),
]


EQUIVALENCE = "check_sample_weight_equivalence_on_dense_data"
EXPECTED_FAILURES = {
    EQUIVALENCE: "its numbers are all different, and a category that only removed rows have was not seen in training: an error",
}


def expected_failures(estimator: BaseEstimator) -> dict[str, str]:
    """Give the checks that an LDFM of categories does not pass, and why; everything else passes all."""
    return EXPECTED_FAILURES if isinstance(estimator, LDFM) and estimator.kinds == "discrete" else {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures, xfail_strict=True)
def test_scikit_learns_own_checks(estimator, check):
    if check.func.__name__ in expected_failures(estimator):
        pytest.xfail(EXPECTED_FAILURES[EQUIVALENCE])  # before it learns from 30 columns of 15 categories for a minute
    check(estimator)


# --- tools -----------------------------------------------------------------------------------------------------------


def weather(rows: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    sky = rng.choice(["rain", "sun"], rows)
    road = np.where(rng.random(rows) < 0.9, np.where(sky == "rain", "wet", "dry"), "ice")
    return pd.DataFrame({"sky": sky, "road": road, "cars": rng.integers(0, 3, rows)}, index=np.arange(rows) + 1000)


def with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    holes = frame.astype({"cars": "Int64"})
    holes.iloc[::3, 1] = None
    holes.iloc[1::3, 2] = None
    return holes


def em(**settings) -> LDFM:
    return LDFM(**{"objective": "generation", "max_iter": 5, "n_jobs": 1, "random_state": 0, **settings})


def test_grid_search_goes_by_held_out_log_likelihood():
    frame, folds = weather(), KFold(3)
    priors = [None, Dirichlet(1.5), Dirichlet(50.0)]
    search = GridSearchCV(em(), {"prior": priors}, cv=folds).fit(frame)
    expected = [
        np.mean([em(prior=prior).fit(frame.iloc[train]).score(frame.iloc[test]) for train, test in folds.split(frame)])
        for prior in priors
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-12)
    assert search.best_params_["prior"] == priors[int(np.argmax(expected))]
    assert search.score(frame) == search.best_estimator_.score(frame)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_any_backend_of_joblib_gives_the_same_scores(backend):
    frame = weather(60)
    with joblib.parallel_backend(backend, n_jobs=2):
        scores = cross_val_score(em(prior=Dirichlet(1.5)), frame, cv=2)
    np.testing.assert_array_equal(scores, cross_val_score(em(prior=Dirichlet(1.5)), frame, cv=2))


def test_gaps_are_filled_before_a_classifier():
    frame = with_gaps(weather())
    wet = weather()["road"] == "wet"
    model = make_pipeline(em(), OneHotEncoder(), LogisticRegression())
    assert model.fit(frame, wet).score(frame, wet) > 0.8
    assert model[:-1].get_feature_names_out()[:2].tolist() == ["sky_rain", "sky_sun"]
    columns = ColumnTransformer([("filled", em(), ["sky", "road"])], remainder="drop").set_output(transform="pandas")
    filled = columns.fit_transform(frame)
    assert list(filled.columns) == ["filled__sky", "filled__road"]
    assert not filled.isna().any().any()


MAKERS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
    "array": lambda frame: frame.astype(object).to_numpy(),
    "mapping": dict,
}


@pytest.mark.parametrize(
    ("given", "output"),
    # scikit-learn cannot make a pandas frame of a pyarrow table
    [
        (given, output)
        for given in MAKERS
        for output in ("pandas", "polars")
        if (given, output) != ("pyarrow", "pandas")
    ],
)
def test_set_output_chooses_the_frame(given, output):
    make, kind = MAKERS[given], {"pandas": pd.DataFrame, "polars": pl.DataFrame}[output]
    frame = with_gaps(weather()).reset_index(drop=True)
    model = em().fit(make(frame))
    expected = em().fit(frame).transform(frame)
    model.set_output(transform=output)
    found = model.transform(make(frame))
    assert isinstance(found, kind)
    names = [f"x{place}" for place in range(3)] if isinstance(make(frame), np.ndarray) else ["sky", "road", "cars"]
    assert list(found.columns) == names
    assert found.to_numpy().tolist() == expected.to_numpy().tolist()
    with sklearn.config_context(transform_output=output):
        assert isinstance(clone(em()).fit_transform(make(frame)), kind)


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_columns_in_another_order_keep_their_names(output):
    frame = with_gaps(weather())
    model = em().fit(frame).set_output(transform=output)
    turned = model.transform(frame[["cars", "sky", "road"]])
    assert list(turned.columns) == ["sky", "road", "cars"]
    assert turned.to_numpy().tolist() == model.transform(frame).to_numpy().tolist()
    assert list(model.impute(frame[["cars", "sky", "road"]]).columns) == ["cars", "sky", "road"]


def test_pandas_output_keeps_index_and_dtypes():
    frame = with_gaps(weather())
    filled = em().fit(frame).set_output(transform="pandas").transform(frame)
    assert filled.index.equals(frame.index)
    assert filled.dtypes.equals(frame.dtypes)
    pd.testing.assert_frame_equal(frame, with_gaps(weather()))


@pytest.mark.parametrize(
    ("rows", "dtype"),
    [([[1.5, 2.5], [2.5, None], [0.5, 1.0]], np.float64), ([["a", 1], ["b", 2], ["a", None]], object)],
)
def test_a_list_of_rows_is_transformed_to_an_array(rows, dtype):
    model = em().fit(rows)
    found = model.transform(rows)
    assert (found.shape, found.dtype) == ((3, 2), dtype)
    assert found.tolist() == model.impute(rows)  # which gives a list back


def test_names_and_iterations_are_told():
    model = em().fit(weather())
    assert model.get_feature_names_out().tolist() == ["sky", "road", "cars"]
    assert model.n_iter_ == model.history_.steps[-1].iteration
