from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldfm.tables import MISSING, Schema, TableError, encode, learn_table, read_source
from ldfm.tables.encoding import MAX_VALUES

SCHEMA = Schema.of_values({"size": ["s", "m", "l"], "count": [1, 2, 30]})


def codes_of(table, schema=SCHEMA):
    return encode(read_source(table), schema).codes.tolist()


# --- encoding by a schema --------------------------------------------------------------------------------------------


def test_columns_are_found_by_name():
    table = {"count": [30, None], "size": ["m", "s"]}
    for make in (dict, pl.DataFrame, pa.table, pd.DataFrame):
        assert codes_of(make(table)) == [[1, 2], [0, MISSING]]


def test_columns_of_arrays_are_found_by_place():
    assert codes_of(np.array([["m", 30], ["s", None]], dtype=object)) == [[1, 2], [0, MISSING]]
    assert codes_of([["m", 30], ["s", None]]) == [[1, 2], [0, MISSING]]


def test_a_model_of_an_array_knows_its_columns_by_their_places():
    schema = learn_table(read_source(np.array([["m", "x"], ["s", "y"]]))).schema
    assert schema.names == ("x0", "x1")
    assert codes_of({"x1": ["y"], "x0": ["m"]}, schema) == [[0, 1]]


@pytest.mark.parametrize(
    "counts",
    [
        pd.Series([1.0, np.nan, 30.0]),
        pd.Series([1, None, 30], dtype="Int64"),
        pd.Series([1, None, 30], dtype="Float64"),
        pd.Series([1, None, 30], dtype=object),
        pd.Series([1, None, 30], dtype="category"),
        pd.Series([1, None, 30], dtype="int8[pyarrow]"),
        pl.Series([1.0, float("nan"), 30.0]),
        pl.Series([1, None, 30], dtype=pl.UInt8),
        pa.chunked_array([[1, None, 30]]),
        np.array([1.0, np.nan, 30.0], dtype=np.float32),
        [1, None, 30.0],
    ],
    ids=lambda counts: f"{type(counts).__name__} {getattr(counts, 'dtype', '')}",
)
def test_whole_numbers_are_known_in_any_dtype(counts):
    assert codes_of({"size": ["s", "s", "s"], "count": counts}) == [[0, 0], [0, MISSING], [0, 2]]


def test_the_smallest_type_that_fits():
    for values, dtype in ((127, np.int8), (128, np.int16), (32_767, np.int16), (32_768, np.int32)):
        schema = Schema.of_values({"a": range(values), "b": ["x"]})
        codes = encode(read_source({"a": [values - 1, 0, None], "b": ["x", None, "x"]}), schema).codes
        assert codes.dtype == dtype
        assert codes.tolist() == [[values - 1, 0], [0, MISSING], [MISSING, 0]]


def test_an_empty_table_has_no_codes():
    assert codes_of(pd.DataFrame({"size": pd.Series([], dtype=str), "count": pd.Series([], dtype=int)})) == []
    assert encode(read_source(np.empty((0, 2), dtype=object)), SCHEMA).codes.shape == (0, 2)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"size": ["s"]}, "the table lacks column 'count'; it has 'size', the model needs 'size', 'count'"),
        ({"size": ["s"], "Count": [1]}, "the table lacks column 'count'; it has 'size', 'Count', the model"),
        (
            {"size": ["s"], "count": [1], "color": ["red"]},
            "the model does not know column 'color'; it knows 'size', 'count'",
        ),
        ([["s"]], "X has 1 features, but model is expecting 2 features as input"),
        (np.zeros((1, 3), dtype=int), "X has 3 features, but model is expecting 2 features as input"),
        (
            {"size": ["s", None, "xl", "xs"], "count": [1, 1, 1, 1]},
            r"column 'size' row 2: value 'xl' \(str\) was not seen in training; the column's values are 's', 'm', 'l' \(str\)",
        ),
        (
            {"size": ["s", "s"], "count": [7, 5]},
            r"column 'count' row 0: value 7 \(int\) was not seen in training; the column's values are 1, 2, 30 \(int\)",
        ),
        ({"size": ["s"], "count": ["1"]}, r"column 'count' row 0: value '1' \(str\) was not seen"),
        ({"size": ["s"], "count": [True]}, r"column 'count' row 0: value True \(bool\) was not seen"),
        ({"size": ["s"], "count": [1.5]}, r"column 'count' row 0: value 1.5 \(float\) was not seen"),
        ({"size": [1], "count": [1]}, r"column 'size' row 0: value 1 \(int\) was not seen"),
        ({"size": ["s"], "count": [date(2020, 1, 1)]}, r"row 0: value datetime.date\(2020, 1, 1\) \(date\) was not"),
        (np.array([["s", 1], ["S", 1]], dtype=object), r"column 'x0' row 1: value 'S' \(str\) was not seen"),
    ],
)
def test_tables_that_do_not_fit_the_model(table, message):
    with pytest.raises(TableError, match=message):
        codes_of(table)


def test_numbers_are_no_bools_and_days_no_times():
    schema = Schema.of_values({"a": [False, True], "b": [datetime(2020, 1, 1)]})
    with pytest.raises(TableError, match=r"column 'a' row 0: value 1 \(int\) was not seen in training"):
        codes_of({"a": [1], "b": [None]}, schema)
    with pytest.raises(TableError, match=r"column 'b' row 0: value datetime.date\(2020, 1, 1\) \(date\) was not seen"):
        codes_of({"a": [None], "b": [date(2020, 1, 1)]}, schema)


def test_only_a_dozen_values_are_shown():
    schema = Schema.of_values({"a": range(100), "b": ["x"]})
    with pytest.raises(TableError, match=r"the column's values are 0, 1, .*, 11, \.\.\. \(100 in all\) \(int\)"):
        codes_of({"a": [100], "b": ["x"]}, schema)


def test_unused_categories_of_a_question_need_not_be_known():
    frame = pd.DataFrame({"size": pd.Categorical(["m"], ["m", "xxl"]), "count": [2]})
    assert codes_of(frame) == [[1, 1]]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_rows_are_encoded_alike_in_any_order_of_rows_and_columns(data):
    rows = data.draw(st.lists(st.tuples(*[st.none() | st.sampled_from(c.values) for c in SCHEMA.columns]), max_size=9))
    codes = [
        [
            MISSING if cell is None else column.values.index(cell)
            for cell, column in zip(row, SCHEMA.columns, strict=True)
        ]
        for row in rows
    ]
    order = data.draw(st.permutations(range(len(rows))))
    names = data.draw(st.permutations(SCHEMA.names))
    make = data.draw(st.sampled_from([dict, pl.DataFrame, pd.DataFrame]))
    table = make({name: [rows[i][SCHEMA.names.index(name)] for i in order] for name in names})
    assert codes_of(table) == [codes[i] for i in order]


# --- learning the schema ---------------------------------------------------------------------------------------------


def test_floats_can_be_called_discrete():
    table = {"a": [0.5, 1.5, 0.5], "b": ["x", "y", "z"]}
    assert learn_table(read_source(table)).schema.continuous == (True, False)
    learned = learn_table(read_source(table), {"a": "discrete"})
    assert learned.schema.columns[0].values == (0.5, 1.5)
    assert learned.codes.tolist() == [[0, 0], [1, 1], [0, 2]]


def test_kinds_of_columns_whose_names_are_no_text():
    frame = pd.DataFrame([[0.5, "x"], [1.5, "y"]])
    assert learn_table(read_source(frame), {0: "discrete"}).schema.columns[0].values == (0.5, 1.5)


def test_whole_numbers_among_floats_are_floats():
    learned = learn_table(read_source({"a": [2, 0.5, None, 2.0]}), {"a": "discrete"})
    assert learned.schema.columns[0].values == (0.5, 2.0)
    assert learned.schema.columns[0].type_name == "float"
    assert learned.codes.ravel().tolist() == [1, 0, MISSING, 1]


def test_the_two_zeros_are_one_value():
    for cells in ([0.0, -0.0], np.array([0.0, -0.0])):
        assert learn_table(read_source({"a": cells}), {"a": "discrete"}).codes.tolist() == [[0], [0]]


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"c": "discrete"}, "kinds names column 'c', which the table does not have; it has 'a', 'b'"),
        ({"a": "ordinal"}, "column 'a': kind must be 'discrete' or 'continuous', not 'ordinal'"),
        ({"a": "continuous"}, "column 'a': a continuous column needs numbers, not 'x'"),
    ],
)
def test_bad_kinds_are_refused(kinds, message):
    with pytest.raises(TableError, match=message):
        learn_table(read_source({"a": ["x"], "b": ["y"]}), kinds)


def test_tables_without_rows_are_refused():
    for table in ({"a": []}, pd.DataFrame({"a": []}), np.empty((0, 2), dtype=int)):
        with pytest.raises(TableError, match="the table has no rows"):
            learn_table(read_source(table))


def test_columns_without_cells_are_refused_unless_they_declare_values():
    for cells in ([None, None], pl.Series([None, None]), pd.Series([np.nan] * 2), pa.chunked_array([pa.nulls(2)])):
        with pytest.raises(TableError, match="column 'a': all cells are missing"):
            learn_table(read_source({"a": cells, "b": ["x", "y"]}))
    declared = pd.Series([None, None], dtype=pd.CategoricalDtype(["x", "y"]))
    assert learn_table(read_source({"a": declared})).schema.columns[0].values == ("x", "y")


def test_as_many_values_as_a_model_can_have():
    kinds = {"b": "discrete"}
    assert learn_table(read_source({"b": range(MAX_VALUES)}), kinds).schema.cardinalities == (MAX_VALUES,)
    with pytest.raises(TableError, match=r"column 'b' has 4094 distinct values \(such as 0\): a table may have 4096"):
        learn_table(read_source({"a": ["x", "y", "z"] * 1365, "b": [*range(4094), 0]}), kinds)


def test_the_order_of_columns_is_the_tables():
    table = learn_table(read_source({"b": ["x", "y"], "a": [2, 1]}))
    assert table.schema.names == ("b", "a")
    assert table.codes.tolist() == [[0, 1], [1, 0]]
    assert table.codes.flags.c_contiguous


def test_one_kind_for_all_columns():
    table = {"a": [0.5, 1.5], "b": ["x", "y"], "c": [1.0, 2.0]}
    schema = learn_table(read_source(table), "discrete").schema
    assert [column.values for column in schema.columns] == [(0.5, 1.5), ("x", "y"), (1.0, 2.0)]
    with pytest.raises(TableError, match="column 'a': kind must be 'discrete' or 'continuous', not 'ordinal'"):
        learn_table(read_source(table), "ordinal")
