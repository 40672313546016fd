from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from ldfm.tables import TableError, learn_table, read_source


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.array([1, 2]), r"2 dimensions, rows and columns, not an array of shape \(2,\)"),
        (np.zeros((2, 2, 2), dtype=int), r"not an array of shape \(2, 2, 2\)"),
        (np.array(3), r"not an array of shape \(\)"),
        (np.empty((3, 0), dtype=int), "the table has no columns"),
        (pd.DataFrame(index=[1, 2]), "the table has no columns"),
        (pl.DataFrame(), "the table has no columns"),
        (pa.table({}), "the table has no columns"),
        ({}, "the table has no columns"),
        ([], "the table has no rows"),
        ([[], []], "the table has no columns"),
        ([1, 2], "row 0 must be a list of cells, not 1"),
        (["ab", "cd"], "row 0 must be a list of cells, not 'ab'"),
        ([["a"], {"x": "a"}], r"row 1 must be a list of cells, not \{'x': 'a'\}"),
        ([["a", "b"], ["a"]], "row 1 has 1 cells, row 0 has 2"),
        ({"a": "xyz"}, "column 'a' must be a list of cells, one a row, not 'xyz'"),
        ({"a": 1}, "column 'a' must be a list of cells, one a row, not 1"),
        ({"a": {"x": 1}}, r"column 'a' must be a list of cells, one a row, not \{'x': 1\}"),
        ({"a": None}, "column 'a' must be a list of cells, one a row, not None"),
        ({"a": np.array(1)}, r"column 'a' must be a list of cells, one a row, not array\(1\)"),
        ({"a": [1, 2], "b": [1]}, r"columns have different numbers of rows: \{'a': 2, 'b': 1\}"),
        ({"a": [[1], [2]]}, "column 'a' row 0: a list cannot be a value"),
        ({"a": ["x", None, {}]}, "column 'a' row 2: a dict cannot be a value"),
        ({"a": ["x", ([],)]}, "column 'a' row 1: a tuple cannot be a value"),
        ({"a": np.zeros((1, 1))}, r"column 'a' must be a list of cells, one a row, not array\(\[\[0.\]\]\)"),
        ({"a": [np.zeros(2)]}, "column 'a' row 0: a ndarray cannot be a value"),
        (pl.DataFrame({"a": [None, [1]]}), "column 'a' row 1: a (list|Series) cannot be a value"),
        (pl.DataFrame({"a": [{"b": 1}]}), "column 'a' row 0: a dict cannot be a value"),
        (pa.table({"a": [None, [1]]}), "column 'a' row 1: a list cannot be a value"),
        (pd.DataFrame({"a": [*"abc" * 50, []]}, dtype=object), "column 'a' row 150: a list cannot be a value"),
        (np.array([[1 + 2j]]), "column 'x0': Complex data not supported"),
        (np.array([[1]], dtype="m8[s]"), r"column 'x0': arrays of dtype timedelta64\[s\] are not supported"),
        (np.array([[1.0, 2.0], [3.0, np.inf]]), "column 'x1' row 1: value inf is not finite"),
        (pd.DataFrame({"a": [1.0, -np.inf]}), "column 'a' row 1: value -inf is not finite"),
        (pd.DataFrame({"a": [1.0, -np.inf]}, dtype="Float64"), "column 'a' row 1: value -inf is not finite"),
        (pl.DataFrame({"a": [None, np.inf]}), "column 'a' row 1: value inf is not finite"),
        (pa.table({"a": [None, np.inf]}), "column 'a' row 1: value inf is not finite"),
        ({"a": [1, 2, None, True]}, r"column 'a' mixes types: 1 \(int\) row 0, True \(bool\) row 3"),
        ({"a": [True, np.nan, 1.0]}, r"column 'a' mixes types: True \(bool\) row 0, 1.0 \(float\) row 2"),
        ([[0], [False]], r"column 'x0' mixes types: 0 \(int\) row 0, False \(bool\) row 1"),
        (
            np.array([[0], [np.False_]], dtype=object),
            r"column 'x0' mixes types: 0 \(int\) row 0, (np.)?False_? \(bool_?\) row 1",
        ),
    ],
)
def test_what_is_no_table(table, message):
    with pytest.raises(TableError, match=message):
        read_source(table)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (None, "not NoneType"),
        (3, "not int"),
        (b"x.csv", "not bytes"),
        (pd.Series([1]), "not Series"),
        (pl.Series([1]), "not Series"),
        ({1, 2}, "not set"),
        (iter([[1]]), "not list_iterator"),
        (csr_array([[1, 0]]), "a sparse matrix cannot be a table"),
    ],
)
def test_what_is_of_no_type_of_table(table, message):
    with pytest.raises(TypeError, match=message):
        read_source(table)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["a", 1], r"column 'a' mixes types: 'a' \(str\) row 0, 1 \(int\) row 1"),
        ([None, 1.5, 2, "b"], r"column 'a' mixes types: 1.5 \(float\) row 1, 'b' \(str\) row 3"),
        (
            [date(2020, 1, 1), datetime(2020, 1, 1)],
            r"mixes types: datetime.date\(2020, 1, 1\) \(date\) row 0, datetime",
        ),
        ([datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)], "with and without a time zone"),
        (pd.Categorical(["a"], ["a", 1]), r"column 'a' mixes types: 'a' \(str\) row 0, 1 \(int\);?"),
        ([b"x"], "column 'a' row 0: b'x' is of type bytes, which cannot be a value"),
        (["x", None, Decimal(1)], "column 'a' row 2: Decimal.* is of type Decimal, which cannot be a value"),
        ([Fraction(1, 2)], "is of type Fraction, which cannot be a value"),
        ([(1, 2)], "is of type tuple, which cannot be a value"),
        ([timedelta(1)], "is of type timedelta, which cannot be a value"),
        (pd.cut([1.0, 2.0], 2), "is of type Interval, which cannot be a value; use text, numbers, bools or dates"),
        ([1j], "is of type complex, which cannot be a value"),
        ([np.inf, 1.0], "column 'a' row 0: value inf is not finite"),
        ([1, None, -np.inf], "column 'a' row 2: value -inf is not finite"),
        ([None, None], "column 'a': all cells are missing"),
        (np.array([np.nan]), "column 'a': all cells are missing"),
        ([], "the table has no rows"),
    ],
)
def test_what_is_no_value(cells, message):
    cells = pd.Series(cells) if isinstance(cells, pd.Categorical) else cells
    with pytest.raises(TableError, match=message):
        learn_table(read_source({"a": cells}))


@pytest.mark.parametrize("dtype", [pl.Decimal(10, 2), pl.Duration, pl.Time, pl.Binary], ids=str)
def test_frame_columns_that_hold_no_values(dtype):
    cell = {pl.Decimal: Decimal(1), pl.Duration: timedelta(1), pl.Time: datetime(2020, 1, 1).time(), pl.Binary: b"x"}
    frame = pl.DataFrame({"a": pl.Series([None, cell[dtype.base_type()]], dtype=dtype)})
    with pytest.raises(TableError, match=r"column 'a' row 1: .* which cannot be a value"):
        learn_table(read_source(frame))
