import pickle
from datetime import UTC, date, datetime

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ldfm.tables import MISSING, Schema, encode, fill_missing, learn_table, new_frame, read_source, template_of

# a column of each type: a known cell, a missing one, a known one; the missing one becomes the first value
SERIES = {
    "pandas text": pd.Series(["b", None, "a"]),
    "pandas string": pd.Series(["b", None, "a"], dtype="string"),
    "pandas object": pd.Series(["b", None, "a"], dtype=object),
    "pandas int": pd.Series([2, None, 1], dtype="Int64"),
    "pandas narrow int": pd.Series([2, None, 1], dtype="UInt8"),
    "pandas float": pd.Series([2.5, None, 1.5]),
    "pandas nullable float": pd.Series([2.5, None, 1.5], dtype="Float32"),
    "pandas bool": pd.Series([True, None, False], dtype="boolean"),
    "pandas bool object": pd.Series([True, np.nan, False], dtype=object),
    "pandas category": pd.Series(pd.Categorical(["b", None, "c"], ["a", "c", "b"])),
    "pandas ordered category": pd.Series(pd.Categorical(["b", None, "c"], ["a", "c", "b"], ordered=True)),
    "pandas int category": pd.Series(pd.Categorical([2, None, 3], [1, 3, 2])),
    "pandas datetime": pd.Series(pd.to_datetime(["2021-01-01", None, "2020-01-01"])),
    "pandas datetime ns": pd.Series(pd.to_datetime(["2021-01-01", None, "2020-01-01"])).astype("M8[ns]"),
    "pandas datetime zone": pd.Series(pd.to_datetime(["2021-01-01", None, "2020-01-01"])).dt.tz_localize("Asia/Tokyo"),
    "pandas arrow text": pd.Series(["b", None, "a"], dtype=pd.ArrowDtype(pa.large_string())),
    "pandas arrow int": pd.Series([2, None, 1], dtype="int16[pyarrow]"),
    "pandas arrow date": pd.Series([date(2021, 1, 1), None, date(2020, 1, 1)], dtype=pd.ArrowDtype(pa.date32())),
    "polars text": pl.Series(["b", None, "a"]),
    "polars int": pl.Series([2, None, 1], dtype=pl.Int8),
    "polars wide int": pl.Series([2, None, 1], dtype=pl.Int128),
    "polars float": pl.Series([2.5, None, 1.5], dtype=pl.Float32),
    "polars NaN": pl.Series([2.5, float("nan"), 1.5]),
    "polars bool": pl.Series([True, None, False]),
    "polars enum": pl.Series(["b", None, "c"], dtype=pl.Enum(["a", "c", "b"])),
    "polars category": pl.Series(["b", None, "a"], dtype=pl.Categorical),
    "polars object": pl.Series(["b", None, "a"], dtype=pl.Object),
    "polars date": pl.Series([date(2021, 1, 1), None, date(2020, 1, 1)]),
    "polars datetime": pl.Series([datetime(2021, 1, 1), None, datetime(2020, 1, 1)], dtype=pl.Datetime("ms")),
    "polars datetime zone": pl.Series(
        [datetime(2021, 1, 1, tzinfo=UTC), None, datetime(2020, 1, 1, tzinfo=UTC)], dtype=pl.Datetime("ns", "UTC")
    ),
    "pyarrow text": pa.chunked_array([["b", None], ["a"]]),
    "pyarrow large text": pa.chunked_array([["b", None], ["a"]], pa.large_string()),
    "pyarrow int": pa.chunked_array([[2, None], [1]], pa.int8()),
    "pyarrow float": pa.chunked_array([[2.5, None, 1.5]], pa.float32()),
    "pyarrow NaN": pa.chunked_array([[2.5, float("nan"), 1.5]]),
    "pyarrow bool": pa.chunked_array([[True, None, False]]),
    "pyarrow dictionary": pa.chunked_array([pa.array(["b", None, "a"]).dictionary_encode()]),
    "pyarrow dictionaries": pa.chunked_array(
        [pa.array(["b", None]).dictionary_encode(), pa.array(["a"]).dictionary_encode()]
    ),
    "pyarrow ordered dictionary": pa.chunked_array(
        [pa.DictionaryArray.from_arrays(pa.array([2, None, 1], pa.int8()), ["a", "c", "b"], ordered=True)]
    ),
    "pyarrow date": pa.chunked_array([[date(2021, 1, 1), None, date(2020, 1, 1)]]),
    "pyarrow datetime": pa.chunked_array([[datetime(2021, 1, 1), None, datetime(2020, 1, 1)]], pa.timestamp("s")),
    "pyarrow datetime zone": pa.chunked_array(
        [[datetime(2021, 1, 1), None, datetime(2020, 1, 1)]], pa.timestamp("ns", "Asia/Tokyo")
    ),
}


# and columns without missing cells, as some dtypes must be
COMPLETE = {
    "pandas int8": pd.Series([2, 1, 2], dtype="int8"),
    "pandas bools": pd.Series([True, False, True]),
    "pandas zone": pd.Series(pd.to_datetime(["2020-10-25 00:30", "2020-10-25 01:30"] * 2, utc=True)[:3]).dt.tz_convert(
        "Europe/Berlin"
    ),
    "polars zone": pl.Series([datetime(2020, 10, 25, 0, 30), datetime(2020, 10, 25, 1, 30)] * 2)[
        :3
    ].dt.convert_time_zone("Europe/Berlin"),
}


def frame_of(series):
    if isinstance(series, pa.ChunkedArray):
        return pa.table({"other": ["x", "y", "z"], "a": series})
    return (pd.DataFrame if isinstance(series, pd.Series) else pl.DataFrame)({"other": ["x", "y", "z"], "a": series})


def column_of(frame):
    """Give column a as a list, and its dtype."""
    column = frame["a"]
    return (column.to_pylist(), column.type) if isinstance(column, pa.ChunkedArray) else (list(column), column.dtype)


def filled_with_zeros(table):
    return fill_missing(table, np.where(table.codes == MISSING, 0, table.codes))


@pytest.mark.parametrize("kind", SERIES)
def test_frames_keep_type_dtype_and_known_cells(kind):
    frame = frame_of(SERIES[kind])
    before, dtype = column_of(frame)
    table = learn_table(read_source(frame), {"a": "discrete"})
    filled = filled_with_zeros(table)
    after, dtype_after = column_of(filled)
    assert type(filled) is type(frame)
    assert dtype_after == dtype
    assert (after[0], after[2]) == (before[0], before[2])
    again = read_source(filled)
    assert encode(again, table.schema).codes[:, 1].tolist() == [table.codes[0, 1], 0, table.codes[2, 1]]
    assert again.columns[1].declared == table.source.columns[1].declared
    assert nw.from_native(filled).columns == ["other", "a"]
    # what was given is as it was
    assert learn_table(read_source(frame), {"a": "discrete"}).codes[1, 1] == MISSING


@pytest.mark.parametrize("kind", [*SERIES, *COMPLETE])
def test_new_rows_have_the_dtypes_of_the_table(kind):
    frame = frame_of({**SERIES, **COMPLETE}[kind])
    table = learn_table(read_source(frame), {"a": "discrete"})
    template = pickle.loads(pickle.dumps(template_of(table.source, table.schema)))
    assert len(template) == 0
    codes = np.array([[0, 1], [2, 0], [1, 1], [0, 0]], dtype=np.int8)
    new = new_frame(table.schema, codes, template)
    assert type(new) is type(frame)
    assert column_of(new)[1] == (pl.String if kind == "polars object" else column_of(frame)[1])
    again = read_source(new)
    np.testing.assert_array_equal(encode(again, table.schema).codes, codes)
    assert again.columns[1].declared == table.source.columns[1].declared


def test_new_rows_are_named_as_the_tables_columns_and_hold_values_that_its_dtypes_lack():
    names = pd.MultiIndex.from_tuples([("a", 0), ("b", 1)], names=["letter", "number"])
    frame = pd.DataFrame({"a": pd.Categorical(["x"]), "b": pd.Series([1], dtype="int8")}).set_axis(names, axis=1)
    schema = Schema.of_values({"('a', 0)": ["x", "z"], "('b', 1)": [1, 300]})
    new = new_frame(schema, np.array([[1, 1], [0, 0]]), template_of(read_source(frame), schema))
    pd.testing.assert_index_equal(new.columns, names)
    assert new.to_numpy().tolist() == [["z", 300], ["x", 1]]
    assert list(new.iloc[:, 0].cat.categories) == ["x", "z"]


def test_new_rows_of_no_frame_are_a_mapping():
    table = learn_table(read_source({"a": ["x", "y"]}))
    assert template_of(table.source, table.schema) is None
    assert new_frame(table.schema, np.array([[1], [0]]))["a"].tolist() == ["y", "x"]


def test_pandas_keeps_index_names_and_order_of_columns():
    frame = pd.DataFrame(
        {3: ["x", None, "x"], 1: [1.0, np.nan, 2.0]}, index=pd.Index(["r", "r", "s"], name="label")
    ).rename_axis(columns="things")
    schema = Schema.of_values({"1": [1, 2], "3": ["x"]})
    filled = fill_missing(encode(read_source(frame), schema), np.array([[0, 0], [1, 0], [1, 0]]))
    expected = frame.copy()
    expected.iloc[1] = ["x", 2.0]
    pd.testing.assert_frame_equal(filled, expected)
    assert frame.isna().sum().sum() == 2


def test_nothing_missing_gives_an_equal_table():
    frame = pd.DataFrame({"a": ["x", "y"]})
    filled = filled_with_zeros(learn_table(read_source(frame)))
    pd.testing.assert_frame_equal(filled, frame)
    filled.loc[0, "a"] = "z"
    assert frame.loc[0, "a"] == "x"
    for made in (pl.DataFrame({"a": ["x", "y"]}), pa.table({"a": ["x", "y"]})):
        assert filled_with_zeros(learn_table(read_source(made))).equals(made)


@pytest.mark.parametrize(
    "value", ["x", 5, 2.5, True, date(2020, 1, 1), datetime(2020, 1, 1)], ids=lambda v: type(v).__name__
)
@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [np.nan, np.nan]}),
        pd.DataFrame({"a": [None, None]}, dtype=object),
        pd.DataFrame({"a": [None, None]}, dtype="Int8"),
        pd.DataFrame({"a": pd.Categorical([None, None], ["p"])}),
        pd.DataFrame({"a": pd.to_datetime([None, None])}),
        pl.DataFrame({"a": [None, None]}),
        pl.DataFrame({"a": [None, None]}, schema={"a": pl.Float64}),
        pl.DataFrame({"a": [None, None]}, schema={"a": pl.Int8}),
        pl.DataFrame({"a": [None, None]}, schema={"a": pl.String}),
        pl.DataFrame({"a": [None, None]}, schema={"a": pl.Enum(["p"])}),
        pa.table({"a": pa.nulls(2)}),
        pa.table({"a": pa.nulls(2, pa.float64())}),
        pa.table({"a": pa.nulls(2, pa.string())}),
        {"a": np.array([np.nan, np.nan])},
        {"a": np.array(["NaT", "NaT"], "M8[s]")},
        {"a": [None, None]},
        np.array([[np.nan], [np.nan]]),
        np.array([[None], [None]]),
        [[None], [None]],
    ],
    ids=lambda f: f"{type(f).__name__} {column_of(f)[1] if hasattr(f, 'columns') else ''}",
)
def test_a_column_of_nothing_but_missing_cells_can_be_filled(frame, value):
    schema = Schema.of_values({"a": [value]})
    filled = fill_missing(encode(read_source(frame), schema), np.zeros((2, 1), dtype=np.int8))
    assert type(filled) is type(frame)
    assert encode(read_source(filled), schema).codes.tolist() == [[0], [0]]


def test_values_that_the_dtype_of_a_question_lacks_are_added():
    schema = Schema.of_values({"a": ["p", "q"], "b": [1, 300]})
    codes = np.array([[0, 0], [1, 1]])
    for frame in (
        pd.DataFrame({"a": pd.Categorical(["p", None], ["p"]), "b": pd.Series([1, None], dtype="Int8")}),
        pl.DataFrame({"a": ["p", None], "b": [1, None]}, schema={"a": pl.Enum(["p"]), "b": pl.Int8}),
        pa.table({"a": pa.array(["p", None]).dictionary_encode(), "b": pa.array([1, None], pa.int8())}),
    ):
        table = encode(read_source(frame), schema)
        filled = nw.from_native(fill_missing(table, codes))
        assert filled["a"].to_list() == ["p", "q"]
        assert filled["b"].to_list() == [1, 300]
        assert filled["a"].dtype.base_type() == nw.from_native(frame)["a"].dtype.base_type()


def test_values_are_neither_cut_nor_rounded():
    schema = Schema.of_values({"a": [0.5, 0.1], "b": [datetime(2020, 1, 1), datetime(2020, 1, 1, 0, 0, 0, 1)]})
    days = [datetime(2020, 1, 1), None]
    for table in (
        pl.DataFrame({"a": [0.5, None], "b": days}, schema={"a": pl.Float32, "b": pl.Datetime("ms")}),
        pa.table({"a": pa.array([0.5, None], pa.float32()), "b": pa.array(days, pa.timestamp("s"))}),
        pd.DataFrame({"a": pd.Series([0.5, None], dtype="float32"), "b": pd.Series(days, dtype="M8[s]")}),
        {"a": np.array([0.5, np.nan], dtype=np.float32), "b": np.array(["2020-01-01", "NaT"], "M8[s]")},
    ):
        filled = fill_missing(encode(read_source(table), schema), np.array([[0, 0], [1, 1]]))
        assert encode(read_source(filled), schema).codes.tolist() == [[0, 0], [1, 1]]


# --- arrays, mappings, rows, files -----------------------------------------------------------------------------------


def test_arrays_keep_dtype_and_known_cells():
    for array, kinds in (
        (np.array([[1.5, 2.0], [np.nan, 3.0]]), {"x0": "discrete", "x1": "discrete"}),
        (np.array([[1.5, 2.0], [np.nan, 3.0]], dtype=np.float32), {"x0": "discrete", "x1": "discrete"}),
        (np.array([["x", 1], [None, 2]], dtype=object), {}),
        (np.array([["2020-01-01", "2021-01-01"], ["NaT", "2022-01-01"]], "M8[s]"), {}),
    ):
        before = array.copy()
        filled = filled_with_zeros(learn_table(read_source(array), kinds))
        assert filled.dtype == array.dtype
        expected = array.copy()
        expected[1, 0] = expected[0, 0]
        np.testing.assert_array_equal(filled, expected)
        np.testing.assert_array_equal(array, before)


def test_float_arrays_take_whole_numbers_but_no_text():
    schema = Schema.of_values({"a": [1, 2], "b": ["x"]})
    array = np.array([[1.0, np.nan], [np.nan, np.nan]])
    filled = fill_missing(encode(read_source(array), schema), np.array([[0, 0], [1, 0]]))
    assert filled.dtype == object
    assert filled.tolist() == [[1.0, "x"], [2, "x"]]
    numbers = Schema.of_values({"a": [1, 2], "b": [5]})
    filled = fill_missing(encode(read_source(array), numbers), np.array([[0, 0], [1, 0]]))
    assert filled.dtype == float
    assert filled.tolist() == [[1.0, 5.0], [2.0, 5.0]]


def test_masked_arrays_lose_their_masks():
    array = np.ma.array([[1, 5], [9, 6]], mask=[[False, False], [True, False]])
    filled = filled_with_zeros(learn_table(read_source(array)))
    assert not np.ma.getmaskarray(filled).any()
    assert filled.tolist() == [[1, 5], [1, 6]]


def test_mappings_come_back_as_mappings_of_arrays():
    mapping = {1: [2, None], "b": np.array([np.nan, 0.5]), "c": pl.Series(["x", None])}
    filled = filled_with_zeros(learn_table(read_source(mapping), {"b": "discrete"}))
    assert list(filled) == [1, "b", "c"]
    assert [cells.dtype for cells in filled.values()] == [object, float, object]
    assert [cells.tolist() for cells in filled.values()] == [[2, 2], [0.5, 0.5], ["x", "x"]]
    assert mapping[1] == [2, None]


def test_rows_come_back_as_rows():
    rows = [["x", 1], [None, 2]]
    assert filled_with_zeros(learn_table(read_source(rows))) == [["x", 1], ["x", 2]]
    assert rows == [["x", 1], [None, 2]]


def test_files_come_back_as_mappings_or_frames(tmp_path):
    (tmp_path / "t.csv").write_text("b,a\n2,x\n,y\n")
    schema = Schema.of_values({"a": ["x", "y"], "b": [1, 2]})
    filled = fill_missing(encode(read_source(tmp_path / "t.csv"), schema), np.array([[0, 1], [1, 0]]))
    assert {name: cells.tolist() for name, cells in filled.items()} == {"b": [2, 1], "a": ["x", "y"]}
    assert list(filled) == ["b", "a"]
    pl.DataFrame({"b": [2, None], "a": ["x", "y"]}).write_parquet(tmp_path / "t.parquet")
    filled = fill_missing(encode(read_source(tmp_path / "t.parquet"), schema), np.array([[0, 1], [1, 0]]))
    assert filled.to_pydict() == {"b": [2, 1], "a": ["x", "y"]}


def test_lazy_frames_come_back_as_frames():
    frame = pl.LazyFrame({"a": ["x", None]})
    assert filled_with_zeros(learn_table(read_source(frame))).equals(pl.DataFrame({"a": ["x", "x"]}))
