"""Relations of several columns: the map, answers where all is normal, and columns that are sums, through estimator and file."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from ldfm import LDFM, ModelFileError, load
from ldfm.explorer.answers import Answers
from ldfm.inference import Budget, engine_of
from ldfm.interchange import to_networkx
from ldfm.kernels.mixed_arcs import fill_rests
from ldfm.kernels.mixed_sweeps import BLOCKED, BOTH, GIBBS, TREE
from ldfm.mixed_draws import draw_from, find_log_partition, move
from ldfm.mixed_weights import MixedWeights
from ldfm.relations import Relations, RelationsError
from ldfm.report import write_report
from mixed_models import merged, random_cells, random_mixed, related
from oracles.mixed import rests_of

QUICK = {"objective": "generation", "max_iter": 15, "random_state": 0, "n_jobs": 1}
LARGEST = 4.5


# --- the map ---------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 7))
def test_rests_and_cells_are_each_others_inverse(seed, size):
    rng = np.random.default_rng(seed)
    order = rng.permutation(size)
    shares = np.zeros((size, size))
    for place, j in enumerate(order):
        for k in order[:place]:
            shares[j, k] = rng.normal() * (rng.random() < 0.6)
    found = Relations(shares, rng.normal(size=size), rng.uniform(0.1, 3.0, size))
    cells = rng.normal(size=(5, size))
    np.testing.assert_allclose(found.cells(found.rests(cells)), cells, atol=1e-9)
    np.testing.assert_allclose(np.linalg.slogdet(found.steps)[1], -found.log_scale, atol=1e-9)


def test_rests_of_rows_are_those_of_the_definition_in_kernels_too():
    weights = related(random_mixed((0, 2, 0, 0), 1), 2)
    cells = random_cells(weights, 6, 3)
    expected = np.array([rests_of(weights, row) for row in cells])
    np.testing.assert_allclose(weights.rests(cells), expected, rtol=1e-12)
    assert (weights.rests(cells)[:, 1] == cells[:, 1]).all()
    filled = np.empty(4)
    for row, rest in zip(cells, expected, strict=True):
        fill_rests(weights.model, row, filled)
        np.testing.assert_allclose(filled, rest, rtol=1e-12)


def test_what_takes_a_missing_cell_is_missing():
    weights = related(random_mixed((0, 2, 0, 0), 1), 2)
    cells = random_cells(weights, 2, 3)
    cells[0, 2] = cells[1, 1] = np.nan
    assert np.isnan(weights.rests(cells)).tolist() == [[False, False, True, True], [False, True, False, False]]


@pytest.mark.parametrize(
    ("shares", "levels", "scales", "message"),
    [
        ([[0, 1], [1, 0]], [0, 0], [1, 1], "go round in a circle"),
        ([[1, 0], [0, 0]], [0, 0], [1, 1], "go round in a circle"),
        ([[0, 0], [1, 0]], [0, 0], [1, 0], "scales of relations must be positive"),
        ([[0, 0], [np.nan, 0]], [0, 0], [1, 1], "shares of relations must be finite"),
        ([[0, 0, 0], [1, 0, 0]], [0, 0], [1, 1], "shares of relations must be finite numbers"),
    ],
)
def test_what_is_no_relation_is_refused(shares, levels, scales, message):
    with pytest.raises(RelationsError, match=message):
        Relations(np.array(shares, dtype=float), np.array(levels, dtype=float), np.array(scales, dtype=float))


def test_discrete_variables_have_no_relations():
    weights = random_mixed((0, 2), 1)
    with pytest.raises(ValueError, match="continuous ones alone"):
        replace(weights, relations=Relations(np.array([[0.0, 1.0], [0.0, 0.0]]), np.zeros(2), np.ones(2)))
    with pytest.raises(ValueError, match="of these variables"):
        replace(weights, relations=Relations.none(3))


# --- against linear algebra ------------------------------------------------------------------------------------------


def normal_model(scale: float) -> tuple[MixedWeights, np.ndarray]:
    """Give a model of four numbers that are measured from each other, all arcs from the root, and its covariance."""
    shares = np.zeros((4, 4))
    shares[2, [0, 1]], shares[3, [0, 2]] = [0.7, 0.7], [0.5, -0.4]
    scales = np.array([1.0, 1.0, scale, 0.3])
    table = np.zeros((5, 4))
    table[0] = 1.0
    zeros, ones = np.zeros((5, 4)), np.ones((5, 4))
    weights = MixedWeights(
        table, zeros, zeros, ones, (1,) * 4, (True,) * 4, None, Relations(shares, np.zeros(4), scales)
    )
    back = np.linalg.inv(np.eye(4) - shares) * scales
    return weights, back @ back.T


def conditional(covariance: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give means and deviations of the cells that are not known."""
    g, m = ~np.isnan(known), np.isnan(known)
    factor = np.linalg.solve(covariance[np.ix_(g, g)], covariance[np.ix_(g, m)]).T
    left = covariance[np.ix_(m, m)] - factor @ covariance[np.ix_(g, m)]
    return factor @ known[g], np.sqrt(np.diag(left))


@pytest.mark.parametrize("scale", [0.5, 0.02])
@pytest.mark.parametrize(
    "known", [[np.nan, 0.4, 0.9, np.nan], [0.5, np.nan, np.nan, -0.3], [np.nan, np.nan, 1.1, np.nan]]
)
def test_posteriors_are_those_of_a_normal_distribution(scale, known):
    weights, covariance = normal_model(scale)
    draws = draw_from(weights, 256, (0, 8), 1)
    engine = engine_of(weights, lambda: draws)
    row = np.array(known)
    means, deviations = conditional(covariance, row)
    found = engine.marginals(merged(row[None]), "auto", Budget(), np.random.SeedSequence(1), 0)
    for place, (mean, deviation) in zip(
        np.flatnonzero(np.isnan(row)), zip(means, deviations, strict=True), strict=True
    ):
        numbers = found.numbers[place]
        assert abs(numbers.means[0] - mean) < LARGEST * numbers.mean_errors[0] + 1e-6
        # given all known cells and the forest, which is always the same, nothing is left to chance
        assert numbers.deviations[0] == pytest.approx(deviation, rel=1e-6)
        assert numbers.mean_errors[0] < 1e-6
    assert found.diagnostics.met.all()


@pytest.mark.parametrize("kernel", [BLOCKED, TREE, GIBBS, BOTH])
def test_draws_follow_a_normal_distribution(kernel):
    weights, covariance = normal_model(0.5)
    chains, known = 800, np.array([np.nan, 0.4, 0.9, np.nan])
    cells = np.tile(np.array([0.0, 0.4, 0.9, 0.0]), (chains, 1))
    parents = np.full((chains, 4), -1)
    move(weights.model, np.tile(known, (chains, 1)), cells, parents, 40, (3, kernel), 1, kernel)
    means, deviations = conditional(covariance, known)
    for place, mean, deviation in zip((0, 3), means, deviations, strict=True):
        assert abs(cells[:, place].mean() - mean) < LARGEST * deviation / np.sqrt(chains)
        assert abs(cells[:, place].std() / deviation - 1.0) < LARGEST / np.sqrt(2 * chains)


@pytest.mark.parametrize("kernel", [BLOCKED, TREE, GIBBS, BOTH])
def test_a_sampler_that_leaves_out_what_is_measured_from_a_cell_is_found_out(kernel):
    weights, covariance = normal_model(0.5)
    alone = weights.model._replace(steps=weights.model.steps * np.eye(4))  # moves of a cell leave the rests of others
    chains, known = 800, np.array([np.nan, 0.4, 0.9, np.nan])
    cells = np.tile(np.array([0.0, 0.4, 0.9, 0.0]), (chains, 1))
    move(alone, np.tile(known, (chains, 1)), cells, np.full((chains, 4), -1), 40, (3, kernel), 1, kernel)
    means, deviations = conditional(covariance, known)
    assert abs(cells[:, 0].mean() - means[0]) > LARGEST * deviations[0] / np.sqrt(chains)


def log_density(covariance: np.ndarray, row: np.ndarray, kept: np.ndarray) -> float:
    return float(multivariate_normal(np.zeros(kept.sum()), covariance[np.ix_(kept, kept)]).logpdf(row[kept]))


@pytest.mark.parametrize("scale", [0.2, 0.02, 0.002])
def test_densities_of_incomplete_rows_are_those_of_a_normal_distribution(scale):
    weights, covariance = normal_model(scale)
    draws = draw_from(weights, 256, (0, 8), 1)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.25)
    assert find_log_partition(weights, 64, (1,), 1) == pytest.approx((0.0, 0.0), abs=1e-12)
    engine = engine_of(weights, lambda: draws)
    rows = np.array([[0.3, np.nan, 0.5, np.nan], [np.nan, 0.2, np.nan, 0.1], [0.3, 0.2, 0.35, 0.1]])
    found = engine.log_evidence(merged(rows), np.random.SeedSequence(1), 0)
    exact = [log_density(covariance, row, ~np.isnan(row)) for row in rows]
    np.testing.assert_allclose(found, exact, atol=1e-5)  # there is one forest, and numbers are integrated out


@pytest.mark.parametrize("scale", [0.2, 0.02, 0.002])
def test_queries_are_those_of_a_normal_distribution(scale):
    weights, covariance = normal_model(scale)
    draws = draw_from(weights, 256, (0, 8), 1)
    engine = engine_of(weights, lambda: draws)
    rows = np.tile([0.3, 0.2, 0.35, 0.1], (3, 1))
    asked = np.array([[False, False, True, False], [True, False, True, False], [True, True, False, True]])
    evidence = np.array([[True, False, False, False], [False, True, False, False], [False, False, True, False]])
    given_cells = np.where(asked | evidence, rows, np.nan)
    found = engine.queries(merged(given_cells), asked, "auto", Budget(), np.random.SeedSequence(1), 0)
    for place, (q, e) in enumerate(zip(asked, evidence, strict=True)):
        exact = log_density(covariance, rows[place], q | e) - log_density(covariance, rows[place], e)
        assert found.joint[place] == pytest.approx(exact, abs=1e-5)
        singles = [np.arange(4) == i for i in np.flatnonzero(q)]
        one = sum(
            log_density(covariance, rows[place], s | e) - log_density(covariance, rows[place], e) for s in singles
        )
        assert found.marginal[place] == pytest.approx(one, abs=1e-5)


@pytest.mark.parametrize("method", ["auto", "gibbs", "tree", "blocked"])
def test_the_top_of_a_ridge_is_found(method):
    weights, covariance = normal_model(0.01)
    draws = draw_from(weights, 256, (0, 8), 1)
    engine = engine_of(weights, lambda: draws)
    known = np.array([np.nan, np.nan, 1.1, 0.4])
    top = engine.most_probable(merged(known[None]), method, np.random.SeedSequence(0))[0]
    np.testing.assert_allclose(top[:2], conditional(covariance, known)[0], atol=2e-3)


# --- through the estimator -------------------------------------------------------------------------------------------


def sums(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """Give a table with a column that is the sum of two others, and a class that moves one of them."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=rows)
    first, second = rng.normal(50.0, 10.0, rows), rng.normal(20.0, 6.0, rows) + 8.0 * kind
    return pd.DataFrame(
        {
            "first": first,
            "second": second,
            "total": first + second + rng.normal(0.0, 1.0, rows),
            "kind": np.where(kind == 1, "b", "a"),
        }
    )


@pytest.fixture(scope="module")
def model() -> LDFM:
    return LDFM(**QUICK).fit(sums())


def test_a_sum_is_found_and_gains(model):
    assert model.weights_.relations.related.sum() == 1
    without = LDFM(relate=False, **QUICK).fit(sums())
    assert without.weights_.relations is None
    assert model.score(sums(300, 1)) > without.score(sums(300, 1)) + 0.5
    holes = sums(40, 2).assign(total=np.nan)
    truth = sums(40, 2)["total"]
    errors = [np.sqrt(np.mean((m.impute(holes)["total"] - truth) ** 2)) for m in (model, without)]
    assert errors[0] < 1.3
    assert errors[1] > 2.0 * errors[0]


def test_a_sum_is_found_through_holes():
    table = sums(400)
    holes = table.mask(np.random.default_rng(5).random(table.shape) < 0.2)
    found = LDFM(**QUICK).fit(holes)
    assert found.weights_.relations.related.sum() == 1
    assert found.score(sums(300, 1)) > LDFM(relate=False, **QUICK).fit(holes).score(sums(300, 1)) + 0.4


def test_densities_of_a_related_table_integrate_to_one_in_its_units(model):
    step = 0.5
    second, total = np.meshgrid(np.arange(-20, 70, step), np.arange(-10, 140, step), indexing="ij")
    logs = []
    for kind in ("a", "b"):
        grid = {
            "first": np.full(second.size, 52.0),
            "second": second.ravel(),
            "total": total.ravel(),
            "kind": [kind] * second.size,
        }
        logs.append(model.score_samples(pd.DataFrame(grid)))
    alone = pd.DataFrame({"first": [52.0], "second": [np.nan], "total": [np.nan], "kind": [None]})
    inside = np.log(np.exp(logs).sum() * step**2)
    assert model.score_samples(alone)[0] == pytest.approx(inside, abs=0.35)  # its own target is 0.1
    assert inside == pytest.approx(norm.logpdf(52.0, 50.0, 10.0), abs=0.4)


def test_draws_keep_the_sum(model):
    drawn = model.sample(400)
    off = drawn["total"] - drawn["first"] - drawn["second"]
    assert off.std() < 2.0
    assert drawn["total"].std() > 8.0
    held = model.sample(100, evidence={"total": 100.0})
    assert (held["total"] == 100.0).all()
    assert (100.0 - held["first"] - held["second"]).std() < 2.0


def test_answers_do_not_depend_on_threads(model):
    holes = sums(6, 3).assign(first=np.nan, second=np.nan)
    one = model.marginals(holes).numbers["first"].means
    model.n_jobs = 2
    two = model.marginals(holes).numbers["first"].means
    model.n_jobs = 1
    assert np.array_equal(one, two)


@pytest.mark.parametrize("objective", ["generation", "likelihood"])
def test_more_rows_and_warm_starts_keep_relations(objective):
    settings = {**QUICK, "objective": objective, "max_iter": 3}
    first = LDFM(warm_start=True, **settings).fit(sums())
    before = first.weights_.relations
    first.fit(sums())
    assert first.weights_.relations is before
    assert first.partial_fit(sums(50, 4)).weights_.relations is before


def test_checkpoints_of_fits_with_other_relations_are_refused(tmp_path):
    from ldfm.learning.checkpoint import CheckpointError

    path = tmp_path / "c"
    LDFM(checkpoint=path, **QUICK).fit(sums())
    LDFM(checkpoint=path, **QUICK).fit(sums())
    with pytest.raises(CheckpointError, match="another fit"):
        LDFM(checkpoint=path, relate=False, **QUICK).fit(sums())


# --- where arcs are shown --------------------------------------------------------------------------------------------


def test_pictures_and_graphs_say_of_what_arcs_are(model):
    place = int(np.flatnonzero(model.weights_.related)[0])
    column = model.schema_.names[place]
    texts = [text.get_text() for text in model.plot_forest(sums(1)).texts]
    assert any(f"{column} (rest)" in text for text in texts)
    assert not any("kind (rest)" in text for text in texts)
    graph = to_networkx(model, sums(1))
    assert [name for name, told in graph.nodes(data="related") if told] == [column]


def test_reports_and_the_explorer_tell_of_relations(model, tmp_path):
    write_report(model, sums(60, 1), tmp_path / "page.html", rows=20)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    (line,) = model.weights_.relations.described(model.schema_.names)
    assert line.split(" = ")[1].replace("+", "&#43;") in page or line.split(" = ")[1] in page
    (related,) = (v for v in Answers(model, "m").description()["variables"] if "measured_from" in v)
    assert {related["name"], *related["measured_from"]} == {"first", "second", "total"}


# --- files -----------------------------------------------------------------------------------------------------------


def test_files_keep_relations(model, tmp_path):
    model.save(tmp_path / "m")
    assert b'\\"format_version\\": 4' in (tmp_path / "m").read_bytes()
    loaded = load(tmp_path / "m")
    for name, array in model.weights_.relations.arrays().items():
        np.testing.assert_array_equal(loaded.weights_.relations.arrays()[name], array)
    np.testing.assert_array_equal(loaded.score_samples(sums(9)), model.score_samples(sums(9)))
    assert loaded.relate
    LDFM(relate=False, **QUICK).fit(sums()).save(tmp_path / "plain")
    assert not load(tmp_path / "plain").relate
    assert b'\\"format_version\\": 4' not in (tmp_path / "plain").read_bytes()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'\\"format_version\\": 4', b'\\"format_version\\": 3'),
        (b'"levels"', b'"lewels"'),
        (b'"scales":{"dtype":"F64","shape":[4]', b'"scales":{"dtype":"F64","shape":[2]'),
    ],
)
def test_files_with_spoilt_relations_are_refused(model, tmp_path, old, new):
    model.save(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    assert old in content
    (tmp_path / "m").write_bytes(content.replace(old, new))
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_files_with_circles_are_refused(model, tmp_path):
    model.save(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    shares = model.weights_.relations.shares
    circle = np.where(np.eye(4) > 0, 1.0, shares)
    (tmp_path / "m").write_bytes(content.replace(shares.tobytes(), circle.tobytes()))
    with pytest.raises(ModelFileError, match="circle"):
        load(tmp_path / "m")
