"""Bent scales of continuous columns: maps and moments against numbers, and which columns are bent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from ldfm.tables import Bend, Schema, Units, bend_columns, bending, learn_table, read_source

UNITS = [
    pytest.param(Units(3.0, 2.0), id="straight"),
    pytest.param(Units(3.0, 2.0, Bend(-1.2, 0.3, 0.7, 1.4, -2.0, 3.0)), id="bent"),
    pytest.param(Units(-5.0, 1e3, Bend(4.0, 2.5, -0.2, 0.3, -3.0, 2.5)), id="hardly bent"),
]


# --- the maps --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", UNITS)
def test_cells_and_numbers_are_each_others_inverse(units):
    cells = np.linspace(-6, 6, 49)
    numbers = units.numbers(cells)
    assert (np.diff(numbers) > 0).all()
    np.testing.assert_allclose(units.cells(numbers), cells, atol=1e-6)


@given(st.floats(-1e150, 1e150))
def test_no_number_is_too_far_for_a_bend(share):
    bend = Bend(-1.2, 0.1, 0.7, 1.4, -3.0, 4.0)
    cell = bend.cells(np.array([share]))
    assert np.isfinite(cell).all()
    np.testing.assert_allclose(bend.shares(cell), share, rtol=1e-9, atol=1e-9)
    assert np.isfinite(bend.log_slopes(cell)).all()


@pytest.mark.parametrize("units", UNITS)
def test_slopes_are_those_of_the_map(units):
    cells, step = np.linspace(-4, 4, 17), 1e-5
    slopes = (units.numbers(cells + step) - units.numbers(cells - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(units.log_slopes(cells)), slopes, rtol=1e-5)


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (-1.5, 0.4), (2.0, 0.0)])
def test_moments_are_integrals(mean, deviation):
    bend = Bend(-1.2, 0.3, 0.7, 0.9, -1.0, 2.0)

    def average(of):
        if deviation == 0.0:
            return of(mean)
        ends = mean - 14 * deviation, mean + 14 * deviation
        return quad(lambda cell: of(cell) * norm.pdf(cell, mean, deviation), *ends, limit=200)[0]

    found = bend.moments(np.array(mean), np.array(deviation))
    np.testing.assert_allclose(found[0], average(lambda cell: float(bend.shares(np.array(cell)))), rtol=1e-3)
    np.testing.assert_allclose(found[1], average(lambda cell: float(bend.shares(np.array(cell)) ** 2)), rtol=5e-3)


def test_beyond_what_was_seen_a_scale_is_straight():
    bend = Bend(-1.2, 0.3, 0.7, 0.9, -1.0, 2.0)
    cells = np.array([1.999, 2.0, 2.5, 4.0, 100.0])
    shares = bend.shares(cells)
    slopes = np.diff(shares) / np.diff(cells)
    np.testing.assert_allclose(slopes, np.exp(bend.log_slopes(np.array(2.0))), rtol=1e-2)
    assert np.isfinite(bend.moments(np.array([0.0]), np.array([50.0]))).all()


# --- which columns are bent ------------------------------------------------------------------------------------------


def bends_of(columns, weights=None):
    table = bend_columns(learn_table(read_source(columns)), weights)
    return {column.name: column.units.bend for column in table.schema.columns if column.is_continuous}


def skewed(rows, seed=0):
    return np.exp(np.random.default_rng(seed).normal(size=rows))


def test_skewed_columns_are_bent_and_normal_ones_are_not():
    rng = np.random.default_rng(7)
    found = bends_of(
        {
            "normal": rng.normal(size=400),
            "skewed": skewed(400),
            "left": -skewed(400, 1),
            "heavy": rng.standard_cauchy(400),
        }
    )
    assert found["normal"] is None
    assert found["skewed"] is not None
    assert found["left"] is not None


def test_bent_cells_are_standardised_and_far_closer_to_normal():
    table = bend_columns(learn_table(read_source({"a": skewed(400), "b": ["x", "y"] * 200})))
    cells = table.codes[:, 0]
    assert cells.mean() == pytest.approx(0.0, abs=1e-12)
    assert cells.std() == pytest.approx(1.0)
    assert (
        abs((cells**3).mean()) < 0.3 < 2.0 < abs((((skewed(400) - skewed(400).mean()) / skewed(400).std()) ** 3).mean())
    )
    np.testing.assert_allclose(table.schema.columns[0].decode(cells), skewed(400), rtol=1e-9)
    assert Schema.from_json(table.schema.to_json()) == table.schema


def test_peaks_that_a_category_explains_need_no_bend():
    rng = np.random.default_rng(0)
    kind = rng.choice(3, p=[0.7, 0.2, 0.1], size=600)
    size = 4.0 * kind + rng.normal(size=600)
    assert bends_of({"size": size}) != {"size": None}
    assert bends_of({"size": size, "kind": kind.astype(str)}) == {"size": None}


def test_what_is_linear_as_it_is_stays_so():
    x = skewed(500)
    rng = np.random.default_rng(7)
    y = 2.0 * x + 0.5 * rng.normal(size=500)
    assert bends_of({"x": x, "y": y}) == {"x": None, "y": None}
    both = bends_of({"x": x, "y": x**2 * np.exp(0.2 * rng.normal(size=500))})
    assert both["y"] is not None  # linear in logarithms only


def test_weights_count_as_rows():
    rng = np.random.default_rng(0)
    x, y = skewed(120), rng.normal(size=120)
    weights = rng.integers(0, 4, 120)
    one = bends_of({"x": x, "y": y}, weights.astype(float))
    many = bends_of({"x": np.repeat(x, weights), "y": np.repeat(y, weights)})
    # centre and scale are those of all rows, whatever they weigh: bends are compared as the map they make
    assert (one["y"] is None) == (many["y"] is None)
    first, second = (learn_units(part) for part in ((x, one["x"]), (np.repeat(x, weights), many["x"])))
    np.testing.assert_allclose(first.cells(x), second.cells(x), atol=0.15)


def learn_units(part):
    numbers, bend = part
    column = learn_table(read_source({"x": numbers})).schema.columns[0]
    return Units(column.units.centre, column.units.scale, bend)


@pytest.mark.parametrize("code", [999.0, 1e6])
def test_outliers_and_codes_ask_for_no_bend(code):
    """Models explain them by other arcs than the rest of the column."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=300)
    y = x + 0.3 * rng.normal(size=300)
    y[::50] = code
    assert bends_of({"x": x, "y": y}) == {"x": None, "y": None}
    y = x + 0.3 * rng.normal(size=300)
    y[::50] *= code
    assert bends_of({"x": x, "y": y}) == {"x": None, "y": None}


def test_a_number_that_many_cells_have_asks_for_no_bend():
    rng = np.random.default_rng(7)
    x = rng.normal(size=400)
    assert bends_of({"x": x, "y": np.maximum(0.0, x + 0.4 * rng.normal(size=400))})["y"] is None


def test_constants_and_columns_without_a_cell_looked_at_do_no_harm(monkeypatch):
    x = skewed(300)
    alone = bends_of({"x": x, "y": skewed(300, 1)})
    beside = bends_of({"x": x, "y": skewed(300, 1), "constant": np.full(300, 2.0)})
    assert beside == alone | {"constant": None}
    monkeypatch.setattr(bending, "MOST_ROWS", 10)
    rare = np.full(300, np.nan)
    rare[1] = 1.0
    assert bends_of({"x": x, "rare": rare})["rare"] is None


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_units_do_not_matter(factor):
    x = skewed(200)
    one, other = bends_of({"x": x})["x"], bends_of({"x": x * factor})["x"]
    np.testing.assert_allclose(list(vars(one).values()), list(vars(other).values()), rtol=1e-6)


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(np.full(50, 5.0), id="constant"),
        pytest.param(np.repeat([0.0, 1.0, 9.0], 20), id="few numbers"),
        pytest.param(np.array([1.0, 2.0]), id="two rows"),
        pytest.param(np.r_[np.random.default_rng(0).normal(size=60), np.nan], id="normal, one missing"),
    ],
)
def test_columns_that_are_left_alone(numbers):
    assert bends_of({"a": numbers, "b": np.arange(len(numbers)).astype(str)}) == {"a": None}


@pytest.mark.parametrize("farthest", [1e9, 1e140])
def test_a_number_far_out_is_no_trouble(farthest):
    numbers = np.r_[np.random.default_rng(0).normal(size=60), farthest]
    found = bends_of({"a": numbers, "b": np.random.default_rng(1).normal(size=61)})
    assert found["a"] is None
    assert np.isfinite(learn_units((numbers, found["a"])).cells(numbers)).all()


@pytest.mark.parametrize(
    "spoilt",
    [
        {"width": 0.0},
        {"spread": -1.0},
        {"pivot": float("nan")},
        {"level": "high"},
        {"level": 1},
        {"colour": 1.0},
        {"high": -2.0},
    ],
)
def test_spoilt_bends_are_refused(spoilt):
    record = {"pivot": 0.0, "width": 1.0, "level": 0.0, "spread": 1.0, "low": -2.0, "high": 3.0}
    assert Bend.from_json(record) == Bend(**record)
    with pytest.raises(ValueError, match="bend"):
        Bend.from_json(record | spoilt)
