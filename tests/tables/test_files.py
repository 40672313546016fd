import csv
import gzip
import io
import sys
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldfm.tables import MISSING, Schema, TableError, encode, files, fill_missing, learn_table, read_source
from ldfm.tables.files import LINES, read_csv
from ldfm.tables.texts import MISSING_IN_CSV, typed_texts


@pytest.fixture
def written(tmp_path):
    def write(text: str | bytes, name: str = "table.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def learned(path, **kinds):
    return learn_table(read_source(path), kinds)


def values_of(path, **kinds):
    return {column.name: column.values for column in learned(path, **kinds).schema.columns}


# --- cells -----------------------------------------------------------------------------------------------------------


def test_quotes_commas_and_line_breaks_in_cells(written):
    table = learned(written('a,"b ""c"", d"\n"x,y","two\r\nlines"\n"say ""hi""", z \n'))
    assert table.schema.names == ("a", 'b "c", d')
    assert table.schema.columns[0].values == ('say "hi"', "x,y")
    assert table.schema.columns[1].values == (" z ", "two\r\nlines")
    assert table.codes.tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize("missing", sorted(MISSING_IN_CSV))
def test_missing_cells(written, missing):
    table = learned(written(f'a,b\nx,{missing}\n"{missing}",y\n'))
    assert table.codes.tolist() == [[0, MISSING], [MISSING, 0]]


@pytest.mark.parametrize("text", ["None", "none", "?", "-", "n/a", "Na", "<NA>", " ", "NaT", "Null", "missing"])
def test_what_is_not_missing(written, text):
    assert values_of(written(f"a,b\n{text},x\n")) == {"a": (text,), "b": ("x",)}


def test_blank_lines_are_no_rows(written):
    assert learned(written("\n\r\na,b\n\nx,y\n\n\nz,\n\n")).codes.tolist() == [[0, 0], [1, MISSING]]


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_blank_lines_of_a_single_column_are_missing_cells(written, end, line_end):
    table = learned(written(("\na\nx\n\ny\n\nx\ny" + end).replace("\n", line_end)))
    assert table.codes[:, 0].tolist() == [0, MISSING, 1, MISSING, 0, 1]
    assert learned(written("a\nx\n\n\n")).codes[:, 0].tolist() == [0, MISSING, MISSING]


def test_a_file_need_not_end_its_last_line(written):
    assert learned(written("a,b\nx,1\ny,2")).codes.tolist() == [[0, 0], [1, 1]]


def test_a_byte_order_mark_is_not_part_of_a_name(written):
    assert values_of(written(b"\xef\xbb\xbfa,b\nx,y\n")) == {"a": ("x",), "b": ("y",)}
    assert values_of(written(gzip.compress(b"\xef\xbb\xbfa,b\nx,y\n", mtime=0), "t.csv.gz")) == {
        "a": ("x",),
        "b": ("y",),
    }


def test_more_lines_than_are_read_at_once(written):
    rows = 3 * LINES + 7
    text = "a,b\n" + "".join(f"v{i % 5},{i % 3}\n\n" for i in range(rows))
    table = learned(written(text))
    assert table.codes.tolist() == [[i % 5, i % 3] for i in range(rows)]
    with pytest.raises(TableError, match=rf"data row {rows} has 3 cells, the header has 2"):
        learned(written(text + "x,y,z\n"))


def test_chunks_are_joined_while_reading(written, monkeypatch):
    monkeypatch.setattr(files, "CHUNKS", 2)
    joined = []
    concatenate = np.concatenate
    monkeypatch.setattr(np, "concatenate", lambda parts: joined.append(len(parts)) or concatenate(parts))
    rows = 5 * LINES + 7
    source = read_csv(written("a,b\n" + "".join(f"v{i % 300},{i % 3}\n" for i in range(rows))))
    assert joined == [2, 2, 2, 2, 5, 5]  # twice, of two columns; then an empty part, two joined ones and what is left
    for cells, values in zip(source.columns, (300, 3), strict=True):
        np.testing.assert_array_equal(cells.indices, np.arange(rows) % values)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_what_was_written_is_read(tmp_path_factory, rows, line_end):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    path.write_bytes(buffer.getvalue().encode())
    source = read_csv(path)
    for place, cells in enumerate(source.columns):
        read = [None if index == MISSING else cells.distinct[index] for index in cells.indices]
        assert read == [None if row[place] in MISSING_IN_CSV else row[place] for row in rows]


# --- types -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "values"),
    [
        (["3", "10", "-2", "0"], [3, 10, -2, 0]),
        (["007", "008"], ["007", "008"]),
        (["7", "007"], ["7", "007"]),
        (["1.5", "007"], ["1.5", "007"]),
        (["+1", "2"], ["+1", "2"]),
        (["1", " 2"], ["1", " 2"]),
        (["1_000", "2"], ["1_000", "2"]),
        (["٣", "1"], ["٣", "1"]),
        (["1e3", "2"], [1000.0, 2.0]),
        (["1.0", "2.", ".5", "-0.25"], [1.0, 2.0, 0.5, -0.25]),
        (["1,5", "2"], ["1,5", "2"]),
        (["999999999999999999"], [999999999999999999]),
        (["12345678901234567890", "12345678901234567891"], ["12345678901234567890", "12345678901234567891"]),
        (["12345678901234567890", "1.5"], ["12345678901234567890", "1.5"]),
        (["True", "False"], [True, False]),
        (["true"], [True]),
        (["True", "false"], [True, False]),
        (["TRUE", "FALSE", "true"], [True, False, True]),
        (["tRUE", "false"], ["tRUE", "false"]),
        (["True", "1"], ["True", "1"]),
        (["Inf", "high"], ["Inf", "high"]),
        (["1", "x"], ["1", "x"]),
        (["2020-01-01"], ["2020-01-01"]),
    ],
)
def test_the_type_of_a_column_of_texts(given, values):
    found = typed_texts(given)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


def test_numbers_written_in_two_ways_are_one_value(written):
    table = learned(written("a,b\n1.0,x\n1.00,x\n2.5,x\n1,y\n"), a="discrete")
    assert table.schema.columns[0].values == (1.0, 2.5)
    assert table.codes[:, 0].tolist() == [0, 0, 1, 0]


def test_bools_written_in_several_ways_are_two_values(written):
    for number, spelled in enumerate((("true", "false"), ("True", "False"), ("TRUE", "FALSE"))):
        written(f"a,b\n{spelled[0]},x\n{spelled[1]},y\n", f"part-{number}.csv")
    table = learned(written("", "empty.csv").parent / "part-*.csv")
    assert table.schema.columns[0].values == (False, True)
    assert table.codes[:, 0].tolist() == [1, 0] * 3


def test_infinite_numbers_are_refused(written):
    with pytest.raises(TableError, match="column 'a' row 1: value -inf is not finite"):
        learned(written("a,b\n1.5,x\n-inf,y\n"), a="discrete")


def test_texts_are_read_as_the_type_the_model_has(written):
    schema = Schema.of_values(
        {
            "text": ["1", "2.0"],
            "int": [1, 2**53 + 1, 2**53],
            "float": [1.0, 2.5],
            "bool": [False, True],
            "day": [date(2020, 1, 1), date(2020, 1, 2)],
            "time": [datetime(2020, 1, 1), datetime(2020, 1, 1, 5, 30)],
        }
    )
    rows = [
        "text,int,float,bool,day,time",
        "2.0,9007199254740993,1,true,2020-01-02,2020-01-01",
        "1,9007199254740992,2.50,False,2020-01-01,2020-01-01 05:30:00",
        ",1.0,,,,",
    ]
    table = encode(read_source(written("\n".join(rows))), schema)
    assert table.codes.tolist() == [[1, 1, 0, 1, 1, 0], [0, 2, 1, 0, 0, 1], [MISSING, 0, *[MISSING] * 4]]


@pytest.mark.parametrize(
    ("values", "text", "shown"),
    [
        ([7], "007", "'007' (str)"),
        ([1, 0], "True", "'True' (str)"),
        ([True, False], "1", "'1' (str)"),
        ([1, 2], "x", "'x' (str)"),
        ([2**53], "9007199254740993", "'9007199254740993' (str)"),
        ([date(2020, 1, 1)], "1st of May", "'1st of May' (str)"),
        ([1.5], "inf", "'inf' (str)"),
        (["a"], "A", "'A' (str)"),
    ],
)
def test_texts_that_are_no_value_of_the_model(written, values, text, shown):
    with pytest.raises(TableError) as caught:
        encode(read_source(written(f"a,b\n{text},1\n")), Schema.of_values({"a": values, "b": [1]}))
    assert f"column 'a' row 0: value {shown} was not seen in training" in str(caught.value)


# --- files that are no tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "table.csv: the file is empty"),
        (b"\n\n\r\n", "table.csv: the file is empty"),
        (b"\xef\xbb\xbf", "table.csv: the file is empty"),
        (b"a,b\n", "the table has no rows"),
        (b"a,b\n\n\n", "the table has no rows"),
        (b"a,b\n1,2\n1\n", r"table.csv: data row 1 has 1 cells, the header has 2"),
        (b"a,b\n\n1,2\n\n1,2,3\n", r"table.csv: data row 1 has 3 cells, the header has 2"),
        (b"a,b,a\n1,2,3\n", "column name 'a' occurs more than once"),
        (b'a,b\n1,"2\n3,4\n', r"table.csv: not a readable CSV file \(unexpected end of data\)"),
        (b'a,b\n1,"2"x\n3,4\n', r"table.csv: not a readable CSV file \(',' expected after '\"'\)"),
        (b"a,b\n" + b"x" * 200_000 + b",1\n", r"not a readable CSV file \(field larger than field limit"),
        (b"a,b\nK\xf6ln,1\n", r"table.csv: not a readable CSV file \('utf-8' codec can't decode byte 0xf6"),
        ("a,b\nx,1\n".encode("utf-16"), r"table.csv: not a readable CSV file \('utf-8' codec can't decode byte 0xff"),
        ("a,b\nx,1\n".encode("utf-16-le"), r"table.csv: not a readable CSV file \(its first line is not text\)"),
        (b"PK\x03\x04\x14\x00\x06\x00\x08\x00", r"table.csv: not a readable CSV file \(its first line is not text\)"),
        (
            gzip.compress(b"a,b\n1,2\n", mtime=0),
            r"table.csv: not a readable CSV file \('utf-8' codec can't decode byte 0x8b",
        ),
        (b"a;b;c\n1;2;3\n", "cells must be separated by commas, but the header is the one cell 'a;b;c'"),
        (b"a\tb\n1\t2\n", r"cells must be separated by commas, but the header is the one cell 'a\\tb'"),
    ],
)
def test_bad_csv_files_are_refused(written, content, message):
    with pytest.raises(TableError, match=message):
        learned(written(content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n", r"table.csv.gz: not a readable CSV file \(Not a gzipped file"),
        (
            gzip.compress(b"a,b\n" + np.random.default_rng(0).bytes(500), mtime=0)[:-100],
            "table.csv.gz: not a readable CSV file",
        ),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-6], r"not a readable CSV file \(Compressed file ended"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:10] + b"\xff" * 30, "table.csv.gz: not a readable CSV file"),
        (gzip.compress(b"", mtime=0), "table.csv.gz: the file is empty"),
    ],
)
def test_bad_gzip_files_are_refused(written, content, message):
    with pytest.raises(TableError, match=message):
        learned(written(content, "table.csv.gz"))


def test_paths_to_no_table(written, tmp_path):
    for path in (tmp_path / "none.csv", str(tmp_path / "none.csv"), tmp_path / "none.parquet", "no/such/folder/t.csv"):
        with pytest.raises(FileNotFoundError, match=r"no such file: .*(none|t)\.(csv|parquet)") as caught:
            read_source(path)
        assert isinstance(caught.value, TableError)
    with pytest.raises(TableError, match=r"is a folder; a table is one \.csv"):
        read_source(tmp_path)
    with pytest.raises(TableError, match=r"t.txt: tables are read from \.csv, \.csv\.gz and \.parquet files"):
        read_source(written("a,b\n1,2\n", "t.txt"))
    with pytest.raises(TableError, match=r"t\.gz: tables are read from"):
        read_source(written("a,b\n1,2\n", "t.gz"))


# --- Parquet ---------------------------------------------------------------------------------------------------------


def test_broken_parquet_files_are_refused(written, tmp_path):
    pl.DataFrame({"a": ["x"] * 100}).write_parquet(tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    for content in (b"", b"PAR1", b"a,b\n1,2\n", whole[:-20], whole[20:], b"\0" * 1000):
        with pytest.raises(TableError, match=r"table.parquet: not a readable Parquet file \(.+\)") as caught:
            read_source(written(content, "table.parquet"))
        assert "\n" not in str(caught.value)


def test_row_labels_of_pandas_are_no_column(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": ["x", "y"]}, index=pd.MultiIndex.from_tuples([(1, 2), (3, 4)])).to_parquet(path)
    assert read_source(path).names == ["a"]


def labelled(tmp_path):
    frame = pd.DataFrame({"a": ["x", None], "b": ["y", "z"]}, index=pd.Index([7, 9], name="id"))
    frame.to_parquet(tmp_path / "labelled.parquet")
    return tmp_path / "labelled.parquet", frame


@pytest.mark.parametrize("way", ["pyarrow", "polars", "batches", "glob"])
def test_named_row_labels_of_pandas_are_no_column(tmp_path, monkeypatch, way):
    path, _ = labelled(tmp_path)
    if way == "polars":
        for name in [module for module in sys.modules if module.split(".")[0] == "pyarrow"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    if way == "batches":
        monkeypatch.setattr(files, "LARGE", 1)
    source = read_source(tmp_path / "*.parquet" if way == "glob" else path)
    assert source.names == ["a", "b"]
    assert learn_table(source).codes.tolist() == [[0, 0], [MISSING, 1]]


def test_row_labels_stay_with_the_rows_of_a_parquet_file(tmp_path):
    path, frame = labelled(tmp_path)
    filled = fill_missing(learn_table(read_source(path)), np.array([[0, 0], [0, 1]], dtype=np.int8))
    pd.testing.assert_frame_equal(filled.to_pandas(), frame.fillna("x"))
    assert read_source(filled).names == ["a", "b"]  # what was filled can be asked about


def test_row_labels_without_a_note_are_dropped(tmp_path):
    pq.write_table(pa.table({"a": ["x", None], "__index_level_0__": [3, 4]}), tmp_path / "t.parquet")
    table = learn_table(read_source(tmp_path / "t.parquet"))
    assert fill_missing(table, np.zeros((2, 1), dtype=np.int8)).column_names == ["a"]


@pytest.mark.parametrize(
    "note", [b"no JSON", b"[]", b'{"index_columns": 3}', b'{"index_columns": [{"kind": "range"}]}']
)
def test_notes_in_parquet_files_that_name_no_row_labels(tmp_path, note):
    table = pa.table({"a": ["x", "y"], "id": [1, 2]}).replace_schema_metadata({b"pandas": note})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read_source(tmp_path / "t.parquet").names == ["a", "id"]


@pytest.mark.parametrize("lacking", [("pyarrow",), ("pyarrow", "polars")])
def test_parquet_without_pyarrow(tmp_path, monkeypatch, lacking):
    path = tmp_path / "t.pq"
    pl.DataFrame({"a": ["y", "x"]}).write_parquet(path)
    for name in [module for module in sys.modules if module.split(".")[0] in lacking]:
        monkeypatch.delitem(sys.modules, name)
    for name in lacking:
        monkeypatch.setitem(sys.modules, name, None)
    if "polars" in lacking:
        with pytest.raises(
            TableError, match=r"reading Parquet needs pyarrow or polars; try: pip install 'ldfm\[parquet\]'"
        ):
            read_source(path)
    else:
        assert learned(path).codes.tolist() == [[1], [0]]


# --- files in parts --------------------------------------------------------------------------------------------------


def assert_same_table(table, expected):
    assert table.schema == expected.schema
    assert table.codes.dtype == expected.codes.dtype
    np.testing.assert_array_equal(table.codes, expected.codes)


def test_files_of_a_glob_are_one_table(written, tmp_path):
    written("a,b\n1,x\n,y\n", "part-1.csv")
    written("b,a\nNA,2\nz,1\n", "part-2.csv")
    whole = written("a,b\n1,x\n,y\n2,\n1,z\n", "whole.csv")
    assert_same_table(learned(tmp_path / "part-*.csv"), learned(whole))
    assert_same_table(learned(str(tmp_path / "p*[12].csv")), learned(whole))
    written("a,b\nmany,x\n", "part-3.csv")  # one text makes the column one of texts
    assert values_of(tmp_path / "part-*.csv")["a"] == ("1", "2", "many")


def test_a_name_that_looks_like_a_glob_is_a_name(written):
    assert values_of(written("a\nx\n", "t[1].csv")) == {"a": ("x",)}
    with pytest.raises(FileNotFoundError, match="no such files: nothing"):
        read_source("nothing-*.csv")


def mixed(rows):
    rng = np.random.default_rng(0)
    return pl.DataFrame({
        "text": rng.choice(["x", "y y", "é"], rows),
        "number": rng.integers(-3, 15, rows),
        "truth": rng.choice([True, False], rows),
        "day": [date(2024, 1, 1 + k) for k in rng.integers(0, 28, rows)],
        "grade": pl.Series(rng.choice(["low", "high"], rows), dtype=pl.Enum(["low", "middle", "high"])),
    }).with_columns(pl.when(pl.Series(rng.random(rows) < 0.8)).then(pl.all()))  # fmt: skip


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_parquet_and_csv_parts(tmp_path, ending):
    frame = mixed(400)
    for name, part in (("whole", frame), ("part-1", frame[:150]), ("part-2", frame[150:].select(frame.columns[::-1]))):
        getattr(part, f"write_{ending}")(tmp_path / f"{name}.{ending}")
    assert_same_table(learned(tmp_path / f"part-*.{ending}"), learned(tmp_path / f"whole.{ending}"))


def test_large_parquet_files_are_read_in_batches(tmp_path, monkeypatch):
    mixed(400).write_parquet(tmp_path / "t.parquet", row_group_size=64)
    expected = learned(tmp_path / "t.parquet")
    monkeypatch.setattr(files, "LARGE", 0)
    monkeypatch.setattr(files, "_BATCH", 50)
    monkeypatch.setattr(files.nw, "read_parquet", lambda *_, **__: pytest.fail("read whole"))
    found = learned(tmp_path / "t.parquet")
    assert_same_table(found, expected)
    assert all(cells.indices.itemsize <= 2 for cells in found.source.columns)
    filled = fill_missing(found, np.where(found.codes == MISSING, 0, found.codes))
    assert filled["text"].tolist() == [cell or "x" for cell in mixed(400)["text"]]


def test_a_csv_file_takes_a_byte_a_cell(written):
    source = read_csv(written("a,b\n" + "x,1\ny,2\n" * 3 * LINES))
    assert [cells.indices.dtype for cells in source.columns] == [np.int8, np.int8]
