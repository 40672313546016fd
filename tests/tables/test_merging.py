import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ldfm.tables import merge_rows
from ldfm.tables.merging import FEW, _find_places


def merged_by_dictionary(codes, weights):
    """Number rows by their tuples."""
    numbers, totals, places = {}, [], []
    for row, weight in zip(codes.tolist(), weights, strict=True):
        number = numbers.setdefault(tuple(row), len(numbers))
        if number == len(totals):
            totals.append(0.0)
        totals[number] += weight
        places.append(number)
    return np.array(list(numbers)).reshape(len(numbers), codes.shape[1]), np.array(totals), np.array(places, dtype=int)


def assert_merged(codes, weights=None):
    merged = merge_rows(codes, weights)
    distinct, totals, places = merged_by_dictionary(codes, np.ones(len(codes)) if weights is None else weights)
    np.testing.assert_array_equal(merged.codes, distinct)
    np.testing.assert_allclose(merged.weights, totals, rtol=1e-12, atol=0)
    np.testing.assert_array_equal(merged.places, places)
    assert merged.codes.dtype == codes.dtype
    assert merged.weights.dtype == np.float64
    assert merged.codes.flags.c_contiguous


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_equals_a_dictionary(data):
    dtype = data.draw(st.sampled_from([np.int8, np.int16, np.int32, np.int64]))
    shape = data.draw(st.tuples(st.integers(0, 40), st.integers(1, 4)))
    largest = data.draw(st.sampled_from([0, 1, 2, 127]))
    codes = data.draw(arrays(dtype, shape, elements=st.integers(-1, largest)))
    if data.draw(st.booleans()):
        codes = np.asfortranarray(codes)
    weights = data.draw(st.none() | arrays(np.float64, shape[0], elements=st.floats(0, 1e6)))
    assert_merged(codes, weights)


def test_many_rows_all_different_and_all_the_same():
    digits = np.arange(50_000)[:, None] // 10 ** np.arange(5) % 10
    assert_merged(digits.astype(np.int8))
    assert_merged(np.zeros((50_000, 5), dtype=np.int8))
    rng = np.random.default_rng(0)
    assert_merged(rng.integers(-1, 3, (50_000, 9), dtype=np.int8), rng.random(50_000))


@pytest.mark.parametrize("distinct", [FEW - 1, FEW, FEW + 1, 8 * FEW, 8 * FEW + 1])
def test_about_as_many_distinct_rows_as_there_is_memory_for(distinct):
    numbers = np.concatenate([np.arange(distinct), [0, distinct - 1]]).astype(np.int32)[:, None]
    merged = merge_rows(numbers)
    np.testing.assert_array_equal(merged.codes, numbers[:distinct])
    np.testing.assert_array_equal(merged.places, numbers[:, 0])
    np.testing.assert_array_equal(merged.first_rows, np.arange(distinct))


def test_memory_is_for_distinct_rows():
    rows = np.random.default_rng(0).integers(0, 4, (2_000_000, 4), dtype=np.int8)
    merge_rows(rows[:10])
    tracemalloc.start()
    merged = merge_rows(rows)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(merged.codes) == 256
    assert most < 12 * len(rows)  # 8 bytes a row say which distinct row it became


def test_rows_of_no_weight_are_kept():
    merged = merge_rows(np.array([[0], [1], [0]]), np.array([0.0, 2.0, 0.0]))
    assert merged.codes.tolist() == [[0], [1]]
    assert merged.weights.tolist() == [0.0, 2.0]


@pytest.mark.parametrize("distinct", [1, 2, 64, 1024])
def test_a_full_table_of_slots_in_which_almost_every_row_collides(distinct):
    # as many slots as distinct rows: the last ones find all but one taken
    rng = np.random.default_rng(distinct)
    codes = np.stack([np.arange(distinct) % 32, np.arange(distinct) // 32], axis=1).astype(np.int16)
    codes = codes[np.concatenate([rng.permutation(distinct), rng.integers(0, distinct, 3 * distinct)])]
    places = np.empty(len(codes), dtype=np.int64)
    first_rows = _find_places(codes, np.full(distinct, -1, dtype=np.int64), places, distinct)
    expected, _, expected_places = merged_by_dictionary(codes, np.ones(len(codes)))
    np.testing.assert_array_equal(codes[first_rows], expected)
    np.testing.assert_array_equal(places, expected_places)


def test_rows_that_start_at_the_same_slot():
    codes = np.stack([np.arange(4000) % 64, np.arange(4000) // 64], axis=1).astype(np.int8)
    slots, place = np.empty(4096, dtype=np.int64), np.empty(1, dtype=np.int64)
    home = []
    for row in codes:
        slots[:] = -1
        _find_places(row[None, :], slots, place, 1)
        home.append(int(np.argmax(slots)))
    together = codes[np.bincount(home)[home] >= 2]
    assert len(together) > 500
    repeated = np.concatenate([together, together[::-1]])
    places = np.empty(len(repeated), dtype=np.int64)
    first_rows = _find_places(repeated, np.full(4096, -1, dtype=np.int64), places, 4096)
    np.testing.assert_array_equal(first_rows, np.arange(len(together)))
    np.testing.assert_array_equal(places, [*range(len(together)), *reversed(range(len(together)))])
