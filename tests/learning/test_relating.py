"""Which relations are chosen: sums are, also through holes and outliers; what forests say by themselves is not."""

import numpy as np
import pytest

from ldfm.learning.relating import choose_relations
from ldfm.mixed_draws import draw_from
from mixed_models import merged, random_mixed


def chosen(cells, cardinalities=None, continuous=None):
    size = cells.shape[1]
    return choose_relations(merged(cells), cardinalities or (1,) * size, continuous or (True,) * size)


def with_a_sum(rows, seed):
    rng = np.random.default_rng(seed)
    cells = rng.normal(size=(rows, 5))
    cells[:, 2] = (cells[:, 0] + cells[:, 1] + 0.2 * rng.normal(size=rows)) / 1.4
    return cells, rng


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("holes", [0.0, 0.25])
@pytest.mark.parametrize("outliers", [0.0, 0.01])
def test_a_sum_is_found(seed, holes, outliers):
    cells, rng = with_a_sum(300, seed)
    cells[rng.random(cells.shape) < outliers] = 25.0
    cells[rng.random(cells.shape) < holes] = np.nan
    found = chosen(cells)
    assert found.related.sum() == 1
    (j,) = np.flatnonzero(found.related)
    assert {0, 1, 2} <= set(
        np.flatnonzero(found.involved).tolist()
    )  # and perhaps, by chance, a very small share of another
    exact = {0: [0, -1, 1.4, 0, 0], 1: [-1, 0, 1.4, 0, 0], 2: [1 / 1.4, 1 / 1.4, 0, 0, 0]}[int(j)]
    np.testing.assert_allclose(found.shares[j], exact, atol=0.25)


@pytest.mark.parametrize("rows", [100, 400, 4000])
@pytest.mark.parametrize("seed", range(6))
def test_a_tree_needs_none(rows, seed):
    rng = np.random.default_rng(seed)
    cells = rng.normal(size=(rows, 8))
    for j in range(1, 8):
        slope = rng.uniform(-0.95, 0.95)
        cells[:, j] = slope * cells[:, rng.integers(j)] + np.sqrt(1 - slope**2) * cells[:, j]
    assert chosen(cells) is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kinds", [(0,) * 6, (0, 0, 0, 0, 2, 3)])
def test_forests_need_none(kinds, seed):
    weights = random_mixed(kinds, seed)
    cells = draw_from(weights, 1024, (seed,), 1)
    numbers = np.array(weights.continuous)
    cells[:, numbers] = (cells[:, numbers] - cells[:, numbers].mean(axis=0)) / cells[:, numbers].std(axis=0)
    assert chosen(cells, weights.cardinalities, weights.continuous) is None


@pytest.mark.parametrize("rows", [300, 3000])
def test_different_parents_in_different_rows_need_none(rows):
    rng = np.random.default_rng(rows)
    cells, kind = rng.normal(size=(rows, 5)), rng.integers(3, size=rows)
    cells[:, 3] = cells[np.arange(rows), kind] * 0.9 + 0.3 * rng.normal(size=rows)
    cells[:, 4] = np.where(kind == 0, cells[:, 3], -cells[:, 1]) * 0.8 + 0.4 * rng.normal(size=rows)
    assert chosen(cells) is None
    # though one regression on all columns explains more than the best single column
    single = 1.0 - np.corrcoef(cells.T)[3] ** 2
    whole = np.linalg.inv(np.corrcoef(cells.T)).diagonal()[3]
    assert 0.5 * np.log(np.sort(single)[1] * whole) > 0.05


@pytest.mark.parametrize(("rows", "columns"), [(30, 30), (50, 40), (100, 60), (25, 10)])
@pytest.mark.parametrize("seed", range(3))
def test_noise_has_none_where_rows_are_few(rows, columns, seed):
    assert chosen(np.random.default_rng(seed).normal(size=(rows, columns))) is None


def test_few_rows_of_many_related_columns_have_some():
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 20)) + 0.3 * rng.normal(size=(100, 20))
    assert chosen((cells - cells.mean(axis=0)) / cells.std(axis=0)).related.sum() > 8


@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("rows", [300, 2000])
def test_of_a_sum_the_total_is_measured_from_its_parts(noise, rows):
    # not a part from total and other part, which trees gain as much from: parts are independent
    rng = np.random.default_rng(rows)
    a, b = rng.normal(50, 10, rows), rng.normal(20, 6, rows)
    cells = np.column_stack([a, b, rng.normal(size=rows), a + b + noise * rng.normal(size=rows)])
    found = chosen((cells - cells.mean(axis=0)) / cells.std(axis=0))
    assert found.related.tolist() == [False, False, False, True]
    exact = np.array([10.0, 6.0, 0.0, 0.0]) / np.hypot(10.0, 6.0)
    np.testing.assert_allclose(found.shares[3], exact, atol=0.05)


def test_classes_need_none():
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=600)
    numbers = rng.normal(size=(600, 4)) + np.array([[0, 0, 0, 0], [2, 2, -2, 0], [-2, 2, 2, 1]])[kind]
    assert chosen(np.column_stack([numbers, kind]), (1, 1, 1, 1, 3), (True,) * 4 + (False,)) is None


def test_a_sum_is_found_beside_classes_that_move_it():
    cells, rng = with_a_sum(400, 1)
    kind = rng.integers(2, size=400)
    cells[:, 0] += 2.0 * kind
    cells[:, 2] += 2.0 * kind / 1.4
    holes = np.column_stack([cells, np.where(rng.random(400) < 0.2, np.nan, kind)])
    found = chosen(holes, (1,) * 5 + (2,), (True,) * 5 + (False,))
    assert found.related.sum() == 1
    assert {0, 1, 2} <= set(
        np.flatnonzero(found.involved).tolist()
    )  # and perhaps, by chance, a very small share of another


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param(np.random.default_rng(0).normal(size=(300, 2)), id="two columns"),
        pytest.param(np.random.default_rng(0).normal(size=(5, 8)), id="few rows"),
        pytest.param(np.zeros((50, 4)), id="constants"),
        pytest.param(np.full((50, 4), np.nan), id="nothing known"),
    ],
)
def test_tables_without_relations(cells):
    assert chosen(cells) is None


@pytest.mark.parametrize("scale", [1e-150, 1e200])
def test_odd_cells_do_no_harm(scale):
    cells, _ = with_a_sum(100, 0)
    cells[:, 3] *= scale
    found = chosen(cells)
    assert found is None or np.isfinite(found.rests(np.zeros((1, 5)))).all()


def test_copies_and_more_columns_than_rows_do_no_harm():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1))
    for cells in (np.hstack([x, x, 2 * x, rng.normal(size=(60, 1))]), rng.normal(size=(25, 60))):
        found = chosen(cells)
        assert found is None or np.isfinite(found.cells(found.rests(cells))).all()


def test_the_order_of_columns_does_not_matter():
    cells, _ = with_a_sum(300, 3)
    order = np.array([3, 2, 4, 0, 1])
    found, other = chosen(cells), chosen(cells[:, order])
    np.testing.assert_allclose(other.shares, found.shares[np.ix_(order, order)], atol=1e-9)
