from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldfm.tables import MISSING, Schema, TableError, encode, learn_table, read_source
from ldfm.tables import cells as cells_module

# one column a type, every column with missing cells; text that CSV has to quote, and text that looks missing or like a number
COLUMNS = {
    "town": ["Köln", "a b", None, 'say "hi"', "two\nlines", "Köln", "a,b", "None", " x "],
    "number": [3, 1, 20, None, 3, 1, 1, -2, 0],
    "open": [True, None, False, True, True, False, True, False, None],
    "zip": ["007", "010", "007", None, "010", "0", "1", None, "007"],
    "share": [0.5, 1.25, None, 0.5, -3.0, 1e-7, 0.5, None, 2.0],
    "mark": ["'", "日本", "😀", "é", "é", None, "\t", "\\", '"'],
}
VALUES = {
    name: sorted({cell for cell in cells if cell is not None}, key=lambda cell: cell) for name, cells in COLUMNS.items()
}
CODES = np.array(
    [[VALUES[name].index(cell) if cell is not None else MISSING for cell in cells] for name, cells in COLUMNS.items()]
).T
ROWS = [list(row) for row in zip(*COLUMNS.values(), strict=True)]
NULLABLE = {"number": "Int64", "open": "boolean"}


def objects(cells: list) -> np.ndarray:
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


def csv_file(folder, name="table.csv", **options):
    path = folder / name
    pd.DataFrame(COLUMNS).astype(NULLABLE).to_csv(path, index=False, **options)
    return path


def parquet_file(folder, frame):
    path = folder / "table.parquet"
    frame.to_parquet(path)
    return path


def numpy_backed(folder):
    return pd.DataFrame(COLUMNS).astype(NULLABLE)


TABLES = {
    "pandas": numpy_backed,
    "pandas objects": lambda _: pd.DataFrame({name: objects(cells) for name, cells in COLUMNS.items()}, dtype=object),
    "pandas nullable": lambda _: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas pyarrow": lambda _: pa.table(COLUMNS).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas categories": lambda folder: numpy_backed(folder).astype("category"),
    "pandas odd index": lambda folder: numpy_backed(folder).set_axis(list("aabbccdde"), axis=0),
    "polars": lambda _: pl.DataFrame(COLUMNS),
    "polars NaN": lambda _: pl.DataFrame(COLUMNS).with_columns(pl.col("share").fill_null(float("nan"))),
    "polars categories": lambda _: pl.DataFrame(COLUMNS).with_columns(pl.col("town", "zip").cast(pl.Categorical)),
    "polars lazy": lambda _: pl.LazyFrame(COLUMNS),
    "polars narrow": lambda _: pl.DataFrame(COLUMNS).with_columns(pl.col("number").cast(pl.Int8)),
    "polars wide": lambda _: pl.DataFrame(COLUMNS).with_columns(pl.col("number").cast(pl.Int128)),
    "pyarrow": lambda _: pa.table(COLUMNS),
    "pyarrow chunks": lambda _: pa.concat_tables([pa.table(COLUMNS).slice(0, 4), pa.table(COLUMNS).slice(4)]),
    "pyarrow dictionaries": lambda _: pa.table(
        {name: pa.array(cells).dictionary_encode() for name, cells in COLUMNS.items()}
    ),
    "numpy": lambda _: np.array(ROWS, dtype=object),
    "numpy masked": lambda _: np.ma.array(
        objects([0 if cell is None else cell for row in ROWS for cell in row]).reshape(len(ROWS), -1),
        mask=[[cell is None for cell in row] for row in ROWS],
    ),
    "rows": lambda _: ROWS,
    "tuples": lambda _: tuple(map(tuple, ROWS)),
    "rows of arrays": lambda _: [objects(row) for row in ROWS],
    "mapping": lambda _: COLUMNS,
    "mapping of arrays": lambda _: {name: objects(cells) for name, cells in COLUMNS.items()},
    "mapping of pandas": lambda folder: {name: numpy_backed(folder)[name] for name in COLUMNS},
    "mapping of polars": lambda _: {name: pl.Series(cells) for name, cells in COLUMNS.items()},
    "mapping of pyarrow": lambda _: {name: pa.chunked_array([cells]) for name, cells in COLUMNS.items()},
    "csv": csv_file,
    "csv text path": lambda folder: str(csv_file(folder)),
    "csv in capitals": lambda folder: csv_file(folder, "TABLE.CSV"),
    "csv gz": lambda folder: csv_file(folder, "table.csv.gz"),
    "csv with mark": lambda folder: csv_file(folder, encoding="utf-8-sig"),
    "csv all quoted": lambda folder: csv_file(folder, quoting=1),
    "csv windows": lambda folder: csv_file(folder, lineterminator="\r\n"),
    "parquet": lambda folder: parquet_file(folder, numpy_backed(folder)),
    "parquet with index": lambda folder: parquet_file(folder, numpy_backed(folder).set_axis(list("abcdefghi"), axis=0)),
    "parquet categories": lambda folder: parquet_file(folder, numpy_backed(folder).astype("category")),
}


@pytest.mark.parametrize("kind", TABLES)
def test_the_same_data_in_any_table_gives_the_same_codes_and_values(kind, tmp_path):
    source = read_source(TABLES[kind](tmp_path))
    table = learn_table(source, {source.names[4]: "discrete"})
    assert [list(column.values) for column in table.schema.columns] == list(VALUES.values())
    assert [[type(v) for v in column.values] for column in table.schema.columns] == [
        [type(v) for v in values] for values in VALUES.values()
    ]
    assert source.names == (list(COLUMNS) if source.named else [f"x{i}" for i in range(6)])
    np.testing.assert_array_equal(table.codes, CODES)
    assert table.codes.dtype == np.int8


@pytest.mark.parametrize("kind", TABLES)
def test_any_table_can_be_asked_of_a_model_learned_from_another(kind, tmp_path):
    schema = learn_table(read_source(COLUMNS), {"share": "discrete"}).schema
    np.testing.assert_array_equal(encode(read_source(TABLES[kind](tmp_path)), schema).codes, CODES)


# --- arrays of one dtype ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (np.array([[3], [1], [3]]), (1, 3)),
        (np.array([[3], [1], [3]], dtype=np.uint8), (1, 3)),
        (np.array([[2**63 - 1], [-(2**63)], [2**63 - 1]]), (-(2**63), 2**63 - 1)),
        (np.array([[True], [False], [True]]), (False, True)),
        (np.array([["b b"], ["a"], ["b b"]]), ("a", "b b")),
        (np.array([["b"], ["a"], ["b"]], dtype=np.dtypes.StringDType()), ("a", "b")),
        (np.array([[1.5], [-2.0], [1.5]]), (-2.0, 1.5)),
        (np.array([[1.5], [-2.0], [1.5]], dtype=np.float32), (-2.0, 1.5)),
        (np.array([["2021-05-02"], ["2020-01-01"], ["2021-05-02"]], "M8[D]"), (date(2020, 1, 1), date(2021, 5, 2))),
        (np.array([["2021"], ["2020"], ["2021"]], "M8[Y]"), (date(2020, 1, 1), date(2021, 1, 1))),
        (
            np.array([["2021-05-02T03:04:05"], ["2020-01-01"], ["2021-05-02T03:04:05"]], "M8[ns]"),
            (datetime(2020, 1, 1), datetime(2021, 5, 2, 3, 4, 5)),
        ),
        (np.asmatrix([[3], [1], [3]]), (1, 3)),
        (np.array([[3], [1], [3]])[:, ::-1], (1, 3)),
    ],
    ids=lambda x: str(x.dtype) if isinstance(x, np.ndarray) else "",
)
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_arrays(array, values):
    table = learn_table(read_source(array), {"x0": "discrete"})
    assert table.schema.columns[0].values == values
    assert [type(v) for v in table.schema.columns[0].values] == [type(v) for v in values]
    assert table.codes.tolist() == [[1], [0], [1]]
    assert table.schema.columns[0].dtype == str(array.dtype)


@pytest.mark.parametrize(
    "cells",
    [
        np.array([1.0, np.nan]),
        np.array([np.nan, 1.0], dtype=np.float32)[::-1],
        np.ma.array([1.0, 7.0], mask=[False, True]),
        np.ma.array([1, 7], mask=[False, True]),
        np.array(["2020-01-01", "NaT"], "M8[D]"),
        np.array(["2020-01-01", "NaT"], "M8[ns]"),
        objects(["a", None]),
        objects(["a", float("nan")]),
        objects(["a", np.float32("nan")]),
        objects(["a", pd.NA]),
        objects(["a", pd.NaT]),
        objects([True, np.nan]),
        objects([np.True_, None]),
        objects(["a", np.datetime64("NaT")]),
        [1, None],
        [1.5, float("nan")],
        (1, pd.NA),
        pd.Series([1.0, None]),
        pd.Series([1, None], dtype="Int64"),
        pd.Series([1.5, None], dtype="Float64"),
        pd.Series([True, None], dtype="boolean"),
        pd.Series(["a", None], dtype="string"),
        pd.Series(["a", None], dtype=object),
        pd.Series(["a", None]),
        pd.Series(["a", None], dtype="category"),
        pd.Series(pd.to_datetime(["2020-01-01", None])),
        pd.Series([1, None], dtype="int64[pyarrow]"),
        pl.Series([1, None]),
        pl.Series([1.5, float("nan")]),
        pl.Series(["a", None]),
        pl.Series(["a", None], dtype=pl.Enum(["a"])),
        pl.Series([date(2020, 1, 1), None]),
        pl.Series([datetime(2020, 1, 1), None]),
        pa.chunked_array([[1], [None]], pa.int8()),
        pa.chunked_array([[1.5, float("nan")]]),
        pa.chunked_array([["a", None]]),
        pa.chunked_array([[False, None]]),
    ],
    ids=lambda cells: f"{type(cells).__name__} {getattr(cells, 'dtype', '')} {list(cells)[1]}",
)
def test_missing_is_minus_one(cells):
    table = learn_table(read_source({"a": cells}), {"a": "discrete"})
    assert table.codes.tolist() == [[0], [MISSING]]
    assert len(table.schema.columns[0].values) == 1


@pytest.mark.parametrize(
    "cells",
    [
        [date(2021, 5, 2), date(2020, 1, 1), None, date(2021, 5, 2)],
        [datetime(2021, 5, 2, 3, 4, 5, 678901), datetime(2020, 1, 1), None, datetime(2021, 5, 2, 3, 4, 5, 678901)],
        [
            datetime(2021, 5, 2, 3, 4, 5, 678901, tzinfo=UTC),
            datetime(2020, 1, 1, tzinfo=UTC),
            None,
            datetime(2021, 5, 2, 3, 4, 5, 678901, tzinfo=UTC),
        ],
    ],
    ids=["date", "datetime", "datetime with zone"],
)
@pytest.mark.parametrize(
    "make",
    [
        dict,
        pl.DataFrame,
        pa.table,
        pd.DataFrame,
        lambda d: pd.DataFrame(d, dtype=object),
        lambda d: pd.DataFrame(d).astype("category"),
        lambda d: np.array([d["a"]], dtype=object).T,
        lambda d: [[cell] for cell in d["a"]],
        lambda d: (
            pl.DataFrame(d).cast({pl.Datetime: pl.Datetime("ns", d["a"][0].tzinfo and "UTC")})
            if isinstance(d["a"][0], datetime)
            else pl.DataFrame(d)
        ),
    ],
    ids=["mapping", "polars", "pyarrow", "pandas", "pandas objects", "pandas categories", "numpy", "rows", "polars ns"],
)
def test_dates_and_datetimes_are_values(make, cells):
    table = learn_table(read_source(make({"a": cells})))
    assert table.schema.columns[0].values == (cells[1], cells[0])
    assert [type(v) for v in table.schema.columns[0].values] == [type(cells[0])] * 2
    assert table.codes.ravel().tolist() == [1, 0, MISSING, 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda times: {"a": times},
        lambda times: {"a": list(times)},
        lambda times: {"a": list(pd.DatetimeIndex(times))},
        lambda times: pd.DataFrame({"a": times}),
        lambda times: pl.DataFrame({"a": times}),
        lambda times: pa.table({"a": times}),
    ],
    ids=["array", "numpy scalars", "timestamps", "pandas", "polars", "pyarrow"],
)
def test_nanoseconds_are_not_cut_off(make):
    times = np.array(["2020-01-01", "NaT", "2020-01-01T00:00:00.000000001"], dtype="M8[ns]")
    with pytest.raises(TableError, match="column 'a' row 2: times are read to the microsecond"):
        read_source(make(times))


def test_the_hour_that_occurs_twice_is_two_hours():
    hours = pd.Series(pd.to_datetime(["2024-10-27 00:30", "2024-10-27 01:30", None])).dt.tz_localize("UTC")
    paris = hours.dt.tz_convert("Europe/Paris")  # half past two, twice
    for table in (pd.DataFrame({"a": paris}), pl.DataFrame({"a": paris}), pa.table({"a": paris}), {"a": list(paris)}):
        learned = learn_table(read_source(table))
        assert learned.codes.ravel().tolist() == [0, 1, MISSING]
        assert learned.schema.columns[0].values == (hours[0].to_pydatetime(), hours[1].to_pydatetime())
        read = Schema.from_json(learned.schema.to_json())
        assert encode(read_source(table), read).codes.ravel().tolist() == [0, 1, MISSING]


# --- order of values -------------------------------------------------------------------------------------------------

KINDS_OF_VALUES = [
    st.text(max_size=5),
    st.integers(-(2**62), 2**62),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.datetimes(),
]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_values_do_not_depend_on_the_order_of_rows(data):
    cells = data.draw(st.one_of([st.lists(kind | st.none(), min_size=1, max_size=12) for kind in KINDS_OF_VALUES]))
    if all(cell is None for cell in cells):
        return
    order = data.draw(st.permutations(range(len(cells))))
    makers = [dict, pa.table, lambda d: np.array([d["x0"]], dtype=object).T]
    make = data.draw(st.sampled_from(makers))
    one = learn_table(read_source(make({"x0": cells})), {"x0": "discrete"})
    two = learn_table(read_source(make({"x0": [cells[i] for i in order]})), {"x0": "discrete"})
    assert one.schema.columns[0].values == two.schema.columns[0].values == tuple(sorted({*cells} - {None}))
    np.testing.assert_array_equal(two.codes, one.codes[order])
    for cell, code in zip(cells, one.codes[:, 0], strict=True):
        assert cell == (None if code == MISSING else one.schema.columns[0].values[code])


@pytest.mark.parametrize(
    ("table", "values"),
    [
        (pd.DataFrame({"a": pd.Categorical(["m", "l", None], ["s", "m", "l"])}), ("s", "m", "l")),
        (pd.DataFrame({"a": pd.Categorical(["m", "l", None], ["s", "m", "l"], ordered=True)}), ("s", "m", "l")),
        (pd.DataFrame({"a": pd.Categorical([5, 1, None], [9, 5, 1])}), (9, 5, 1)),
        (pd.DataFrame({"a": pd.Categorical([5, 1, None], [9, 5, 1], ordered=True)}), (9, 5, 1)),
        (pd.DataFrame({"a": pd.Categorical([0.5, 0.1, None], [0.9, 0.5, 0.1])}), (0.9, 0.5, 0.1)),
        (pd.DataFrame({"a": pd.Categorical([True, False, None], ["x", True, False][1:])}), (True, False)),
        (
            pd.DataFrame({"a": pd.Categorical(pd.to_datetime(["2020-02-02", None]), pd.to_datetime(["2021-01-01", "2020-02-02"]))}),
            (datetime(2021, 1, 1), datetime(2020, 2, 2)),
        ),
        (pl.DataFrame({"a": pl.Series(["m", "l", None], dtype=pl.Enum(["s", "m", "l"]))}), ("s", "m", "l")),
        (pa.table({"a": pa.DictionaryArray.from_arrays([1, 2, None], ["s", "m", "l"], ordered=True)}), ("s", "m", "l")),
        ({"a": pd.Series(pd.Categorical(["m", "l", None], ["s", "m", "l"]))}, ("s", "m", "l")),
    ],
)  # fmt: skip
def test_declared_categories_keep_their_order_also_the_unused(table, values):
    learned = learn_table(read_source(table))
    assert learned.schema.columns[0].values == values
    assert learned.codes[-1, 0] == MISSING
    assert MISSING not in learned.codes[:-1]


def test_declared_order_survives_parquet(tmp_path):
    frame = pd.DataFrame({"a": pd.Categorical(["m", "l"], ["s", "m", "l"], ordered=True), "b": ["x", "y"]})
    path = parquet_file(tmp_path, frame)
    assert learn_table(read_source(path)).schema.columns[0].values == ("s", "m", "l")


def test_a_dictionary_that_only_saves_space_declares_nothing():
    table = pa.table({"a": pa.array(["m", "l", "m"]).dictionary_encode()})
    assert learn_table(read_source(table)).schema.columns[0].values == ("l", "m")


# --- names -----------------------------------------------------------------------------------------------------------


def test_names_need_not_be_text():
    frame = pd.DataFrame([["a", 1], ["b", 2]])
    assert read_source(frame).names == ["0", "1"]
    assert list(frame.columns) == [0, 1]
    assert read_source({0: ["a"], 1.5: [1]}).names == ["0", "1.5"]
    assert read_source(pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", 1)]))).names == ["('a', 1)"]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame([["a", "b"]], columns=["x y", "x y"]),
        pd.DataFrame([["a", "b", "c"]], columns=["z", "x y", "x y"]),
        pa.table([["a"], ["b"]], names=["x y", "x y"]),
    ],
)
def test_duplicate_names_are_named(table):
    with pytest.raises(TableError, match="column name 'x y' occurs more than once"):
        read_source(table)


def test_names_that_are_the_same_as_text():
    with pytest.raises(TableError, match="column name '1' occurs more than once"):
        read_source(pd.DataFrame([["a", "b"]], columns=[1, "1"]))
    with pytest.raises(TableError, match="column name '1' occurs more than once"):
        read_source({1: ["a"], "1": ["b"]})


# --- cost ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["numpy", "pandas", "polars", "pyarrow", "mapping", "rows"])
def test_python_code_sees_distinct_values_only(kind, monkeypatch):
    calls = []
    monkeypatch.setattr(cells_module, "is_missing", lambda value: bool(calls.append(value)) or value is None)
    rows = 200_000  # more than one chunk
    cells = objects(["red", "green", None, "blue"] * (rows // 4))
    make = {
        "numpy": lambda: cells[:, None],
        "pandas": lambda: pd.DataFrame({"a": cells}, dtype=object),
        "polars": lambda: pl.DataFrame({"a": cells.tolist()}),
        "pyarrow": lambda: pa.table({"a": cells.tolist()}),
        "mapping": lambda: {"a": cells.tolist()},
        "rows": lambda: [[cell] for cell in cells],
    }
    table = learn_table(read_source(make[kind]()))
    assert len(calls) == 4
    assert table.codes.ravel().tolist() == [2, 1, MISSING, 0] * (rows // 4)
