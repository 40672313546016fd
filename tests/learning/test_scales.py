"""Bends and relations are chosen together: sums of skewed columns stay straight, products are bent."""

import numpy as np
import pytest

from ldfm.learning import choose_scales
from ldfm.tables import learn_table, read_source


def skewed(rng, rows):
    return np.exp(0.8 * rng.normal(size=rows))


def sum_of(rng, rows):
    a, b = skewed(rng, rows), skewed(rng, rows)
    return {"a": a, "b": b, "c": a + b + 0.05 * rng.normal(size=rows)}


def product_of(rng, rows):
    a, b = skewed(rng, rows), skewed(rng, rows)
    return {"a": a, "b": b, "c": a * b * np.exp(0.05 * rng.normal(size=rows))}


def seen(columns, **choices):
    table, relations = choose_scales(
        learn_table(read_source(columns)), None, **{"bend": True, "relate": True} | choices
    )
    bent = [column.units.bend is not None for column in table.schema.columns if column.is_continuous]
    return table, bent, relations


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(("make", "bent"), [(sum_of, False), (product_of, True)])
def test_sums_stay_straight_and_products_are_bent(make, bent, holes):
    rng = np.random.default_rng(1)
    columns = make(rng, 400)
    if holes:
        columns = {name: np.where(rng.random(400) < 0.15, np.nan, cells) for name, cells in columns.items()}
    _, bends, relations = seen(columns)
    assert bends == [bent] * 3
    assert relations.related.sum() == 1
    assert relations.involved.all()


def test_columns_that_are_in_no_relation_keep_their_bends():
    rng = np.random.default_rng(2)
    income = skewed(rng, 400)
    rent = 0.3 * income * np.exp(0.3 * rng.normal(size=400))
    table, bends, relations = seen({**sum_of(rng, 400), "income": income, "rent": rent})
    assert bends == [False, False, False, True, True]
    assert not relations.involved[3:].any()
    straight = learn_table(read_source({"income": income})).codes
    assert not np.allclose(table.codes[:, 3], straight[:, 0])


def test_a_pair_that_tells_much_of_each_other_does_not_count_twice():
    # the bill is nearly a line in the hours, whatever the scale of the small skewed part of it is
    rng = np.random.default_rng(0)
    parts, hours = np.exp(4.0 + 0.6 * rng.normal(size=400)), rng.gamma(4.0, 2.0, 400)
    table = {"parts": parts, "hours": hours, "bill": parts + 45.0 * hours + 5.0 * rng.normal(size=400)}
    _, bends, relations = seen(table)
    assert not bends[0]
    assert relations.related.tolist() == [False, False, True]


def test_each_can_be_left_out():
    columns = product_of(np.random.default_rng(3), 300)
    assert seen(columns, relate=False)[1:] == ([True] * 3, None)
    assert seen(columns, bend=False)[1] == [False] * 3
    table = learn_table(read_source(columns))
    assert choose_scales(table, None, bend=False, relate=False) == (table, None)


def test_discrete_tables_are_as_they_are():
    table = learn_table(read_source({"a": ["x", "y"] * 30, "b": ["u", "u", "v"] * 20}))
    assert choose_scales(table, None, bend=True, relate=True) == (table, None)


def test_rows_that_weigh_nothing_do_not_count():
    rng = np.random.default_rng(4)
    columns = sum_of(rng, 300)
    spoilt = {name: np.concatenate([cells, rng.permutation(cells)]) for name, cells in columns.items()}
    table = learn_table(read_source(spoilt))
    weights = np.repeat([1.0, 0.0], 300)
    found = choose_scales(table, weights, bend=True, relate=True)[1]
    assert found.related.sum() == 1
    assert found.scales[found.related] < 0.2
