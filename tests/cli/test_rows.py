"""Commands that ask a model: query, impute, score, sample and forest."""

import csv
import gzip
import io
import re
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from command_line import Ldfm, assert_refused, strict_json
from ldfm import LDFM, load
from ldfm.cli.options import parse_evidence, parse_query
from ldfm.tables import Schema, learn_table, read_source
from models import random_weights, values_of


@pytest.fixture
def holes(tmp_path: Path) -> Path:
    path = tmp_path / "holes.csv"
    path.write_text('sky,road,size\nrain,,1.50\n,"ice, black",NA\nsun,dry,2.5\n')
    return path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Give a model with too many rows to enumerate."""
    cardinalities = (2,) * 20
    weights = random_weights(cardinalities, 3)
    model = LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values_of(cardinalities))
    model.save(tmp_path / "large.ldfm")
    return tmp_path / "large.ldfm"


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# --- query -----------------------------------------------------------------------------------------------------------


def test_query_lists_posteriors(ldfm: Ldfm, model: Path) -> None:
    ended = ldfm("query", model, "--evidence", "sky=rain,size=1.50")
    assert (ended.code, ended.stderr) == (0, "")
    header, *lines = ended.stdout.splitlines()
    assert header.split() == ["variable", "value", "probability", "standard", "error"]
    shares = load(model).marginals({"sky": ["rain"], "road": [None], "size": [1.5]}).probabilities["road"][0]
    assert [line.split()[-2:] for line in lines] == [[f"{share:.4f}", "exact"] for share in shares]
    assert lines[1].startswith("road      'ice, black'")


def test_query_of_some_columns_in_json(ldfm: Ldfm, model: Path) -> None:
    ended = ldfm("query", model, "--evidence", '"road=ice, black"', "--query", "size", "--json")
    assert (ended.code, ended.stderr) == (0, "")
    document = strict_json(ended.stdout)
    assert document["evidence"] == {"road": "ice, black"}
    assert document["exact"] is True
    (posterior,) = document["posteriors"]
    assert posterior["variable"] == "size"
    assert posterior["values"] == [1.5, 2.5]
    assert sum(posterior["probabilities"]) == pytest.approx(1.0)


def test_query_of_a_joint_probability(ldfm: Ldfm, model: Path) -> None:
    row = {"sky": ["rain"], "road": ["wet"], "size": [2.5]}
    expected = float(load(model).query_log_likelihood(row, ["road", "size"], ["sky"]).joint[0])
    words = ("query", model, "--evidence", "sky=rain", "--query", "road=wet,size=2.5")
    assert strict_json(ldfm(*words, "--json").stdout)["log_probability"] == pytest.approx(expected)
    ended = ldfm(*words)
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout.startswith(f"p(road = wet, size = 2.5 | sky = rain) = {np.exp(expected):.6g}  (log ")


def test_query_answers_the_rows_of_a_table(ldfm: Ldfm, model: Path, holes: Path, tmp_path: Path) -> None:
    ended = ldfm("query", model, "--table", holes)
    assert (ended.code, ended.stderr) == (0, "")
    lines = read(ended.stdout)
    assert [(line["row"], line["variable"], line["value"]) for line in lines] == [
        *(("0", "road", value) for value in ("dry", "ice, black", "wet")),
        *(("1", "sky", value) for value in ("rain", "sun")),
        *(("1", "size", value) for value in ("1.5", "2.5")),
    ]
    assert sum(float(line["probability"]) for line in lines) == pytest.approx(3.0)
    assert [line["variable"] for line in read(ldfm("query", model, "--table", holes, "--query", "sky").stdout)] == [
        *("sky", "sky")
    ]
    ended = ldfm("query", model, "--table", holes, "-o", tmp_path / "long.parquet")
    assert (ended.code, ended.stdout) == (0, "")
    assert ended.stderr == f"3 unknown cells of 3 rows; wrote {tmp_path / 'long.parquet'}\n"
    columns = pq.read_table(tmp_path / "long.parquet").to_pydict()
    assert columns["value"] == [line["value"] for line in lines]
    assert columns["probability"] == pytest.approx([float(line["probability"]) for line in lines])
    document = strict_json(ldfm("query", model, "--table", holes, "-o", tmp_path / "long.csv", "--json").stdout)
    assert document["output"] == str(tmp_path / "long.csv")
    assert read((tmp_path / "long.csv").read_text()) == lines


def test_sampled_answers_have_standard_errors_and_keep_to_their_seed(ldfm: Ldfm, large: Path) -> None:
    words = ("query", large, "--evidence", "x0=v1", "--query", "x1", "--method", "tree", "--target-se", 0.05)
    first, second = ldfm(*words), ldfm(*words, "--jobs", 1)
    assert first == second
    errors = [float(line.split()[-1]) for line in first.stdout.splitlines()[1:]]
    assert all(0 < error < 0.05 for error in errors)
    assert ldfm(*words, "--seed", 1).stdout != first.stdout
    joint = ldfm("query", large, "--query", "x0=v1,x1=v0", "--method", "blocked", "--target-se", 0.5)
    assert joint.code == 0
    assert re.search(r"\(log -\d+\.\d+, standard error 0\.\d+\)$", joint.stdout)


def test_answers_that_are_less_sure_than_wanted_say_so(ldfm: Ldfm, large: Path) -> None:
    words = ("query", large, "--query", "x1", "--method", "blocked", "--target-se", 1e-9, "--seconds", 0.01)
    ended = ldfm(*words)
    assert ended.code == 0
    assert re.fullmatch(
        r"1 of 1 rows are less sure than wanted, the first is row 0 \(R-hat .*\); --seconds .*\n", ended.stderr
    )
    assert ldfm(*words, "--quiet").stderr == ""
    assert strict_json(ldfm(*words, "--json").stdout)["met_target"] is False


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--evidence", "sky=fog"], "column 'sky' has no value 'fog'; its values are 'rain', 'sun'"),
        (["--evidence", "size=x"], "column 'size' has no value 'x'"),
        (["--evidence", "skies=rain"], "column 'skies', which the model does not have"),
        (["--evidence", "sky"], "must be COLUMN=VALUE, not 'sky'"),
        (["--evidence", "sky=rain,sky=sun"], "two values"),
        (["--evidence", 'road="ice, black"'], "was cut at a comma; quote the whole part"),
        (["--query", "sky=rain,sky=sun"], "query gives column 'sky' two values"),
        (["--query", "sky,sky=sun"], "query gives column 'sky' two values"),
        (["--query", "skies"], "column 'skies'"),
        (["--query", "sky=fog"], "column 'sky' has no value 'fog'"),
        (["--query", "sky=rain,road"], "to all of its columns"),
        (["--evidence", "sky=rain", "--query", "sky"], "both query and evidence"),
        (["--evidence", "sky=rain", "--table", "t.csv"], "give one of them"),
        (["--query", "sky=rain", "--table", "t.csv"], "one number"),
        (["--method", "magic"], "'magic'"),
        (["--seconds", "0"], "seconds"),
        (["--target-se", "-1"], "target_se"),
        (["--jobs", "0"], "--jobs"),
        (["--table", "t.csv"], "no such file: t.csv"),
        (["-o", "t.xlsx"], "t.xlsx"),
        (["-o", "-", "--json"], "both write to stdout"),
    ],
)
def test_bad_questions_are_refused(ldfm: Ldfm, model: Path, options: list[str], reason: str) -> None:
    assert_refused(ldfm("query", model, *options), reason)


def test_texts_become_values_of_the_types_that_columns_have() -> None:
    values = {"a=b": ["x", "y=z"], "a": ["b=x", ""], "n": [1, 20], "t": [True, False], "d": [date(2020, 1, 2)]}
    schema = Schema.of_values(values)
    assert parse_evidence(["a=b=y=z,n=1", " t=true, d=2020-01-02"], schema) == {
        "a=b": "y=z",
        "n": 1,
        "t": True,
        "d": date(2020, 1, 2),
    }
    assert parse_evidence(["a="], schema) == {"a": ""}
    assert parse_query(["a=b", "n"], schema) == {"a=b": None, "n": None}
    assert parse_query(["n=20"], schema) == {"n": 20}
    with pytest.raises(ValueError, match="has no value '1'"):
        parse_evidence(["t=1"], schema)
    with pytest.raises(ValueError, match=r"has no value '2021-01-02'; its values are 2020-01-02$"):
        parse_evidence(["d=2021-01-02"], schema)


# --- impute ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["marginal", "joint", "draw"])
def test_impute_fills_cells_and_leaves_the_others_as_they_were(ldfm: Ldfm, model: Path, holes: Path, how: str) -> None:
    ended = ldfm("impute", model, holes, "--how", how)
    assert (ended.code, ended.stderr) == (0, "")
    lines = read(ended.stdout)
    opened = load(model).set_params(random_state=0)
    expected = opened.impute(holes, how)
    assert [line["sky"] for line in lines] == list(expected["sky"])
    assert [line["road"] for line in lines] == list(expected["road"])
    assert [line["size"] for line in lines][::2] == ["1.50", "2.5"]
    assert lines[1]["size"] == {1.5: "1.50", 2.5: "2.5"}[expected["size"][1]]
    assert ldfm("impute", model, holes, "--how", how, "-o", "-").stdout == ended.stdout


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet", "out.pq"])
def test_a_filled_table_is_written(ldfm: Ldfm, model: Path, holes: Path, tmp_path: Path, name: str) -> None:
    ended = ldfm("impute", model, holes, "-o", tmp_path / name)
    assert ended == (0, "", f"filled 3 cells of 3 rows; wrote {tmp_path / name}\n")
    assert ldfm("impute", model, tmp_path / name, "-o", tmp_path / "again.csv", "-q") == (0, "", "")
    lines = read((tmp_path / "again.csv").read_text())
    expected = load(model).impute(holes)
    assert [(line["sky"], line["road"], float(line["size"])) for line in lines] == list(
        zip(expected["sky"], expected["road"], expected["size"], strict=True)
    )
    if name == "out.csv.gz":
        assert gzip.decompress((tmp_path / name).read_bytes()).startswith(b"sky,road,size\n")


def test_impute_in_json(ldfm: Ldfm, model: Path, holes: Path, tmp_path: Path) -> None:
    document = strict_json(ldfm("impute", model, holes, "--json").stdout)
    assert document["filled"] == 3
    assert document["table"]["road"][1:] == ["ice, black", "dry"]
    document = strict_json(ldfm("impute", model, holes, "--json", "-o", tmp_path / "out.csv").stdout)
    assert document == {"rows": 3, "filled": 3, "output": str(tmp_path / "out.csv")}


def test_parquet_keeps_its_types(ldfm: Ldfm, tmp_path: Path) -> None:
    import pyarrow as pa

    rows = pa.table(
        {"a": pa.array([1, 2, 1, 2] * 5, pa.int8()), "b": pa.array(["x", "y", "x", "y"] * 5).dictionary_encode()}
    )
    pq.write_table(rows, tmp_path / "t.parquet")
    LDFM(objective="generation", max_iter=3).fit(rows).save(tmp_path / "m")
    holes = rows.slice(0, 2).append_column("c", pa.array([0, 0])).drop(["c"])
    pq.write_table(holes.set_column(0, "a", pa.array([None, 2], pa.int8())), tmp_path / "holes.parquet")
    assert ldfm("impute", tmp_path / "m", tmp_path / "holes.parquet", "-o", tmp_path / "out.parquet").code == 0
    filled = pq.read_table(tmp_path / "out.parquet")
    assert filled.schema.field("a").type == pa.int8()
    assert filled["a"].to_pylist() == [1, 2]


def test_row_labels_of_pandas_are_carried_over(ldfm: Ldfm, tmp_path: Path) -> None:
    import pandas as pd

    labels = pd.Index([f"patient {number}" for number in range(20)], name="id")
    rows = pd.DataFrame({"a": ["x", "y", None, "y"] * 5, "b": ["u", "v"] * 10}, index=labels)
    rows.to_parquet(tmp_path / "t.parquet")
    LDFM(objective="generation", max_iter=3).fit(rows).save(tmp_path / "m")
    words = ("impute", tmp_path / "m", tmp_path / "t.parquet")
    assert ldfm(*words, "-o", tmp_path / "out.parquet").code == 0
    filled = pd.read_parquet(tmp_path / "out.parquet")
    pd.testing.assert_index_equal(filled.index, rows.index)
    assert list(filled) == ["a", "b"]
    assert ldfm("score", tmp_path / "m", tmp_path / "out.parquet").code == 0
    assert set(read(ldfm(*words).stdout)[0]) == {"a", "b"}
    assert set(strict_json(ldfm(*words, "--json").stdout)["table"]) == {"a", "b"}


def test_impute_refuses(ldfm: Ldfm, model: Path, holes: Path, tmp_path: Path) -> None:
    content = holes.read_bytes(), model.read_bytes()
    assert_refused(ldfm("impute", model, holes, "-o", holes), "would replace the table")
    (tmp_path / "model.csv").symlink_to(model)
    assert_refused(ldfm("impute", model, holes, "-o", tmp_path / "model.csv"), "would replace the model")
    assert_refused(ldfm("impute", model, holes, "-o", tmp_path / "nowhere" / "x.csv"), "no such folder")
    assert_refused(ldfm("impute", model, holes, "--how", "guess"), "'guess'")
    holes.write_text("sky,road,size\nfog,dry,1.5\n")
    assert_refused(ldfm("impute", model, holes, "-o", tmp_path / "x.csv"), "column 'sky' row 0: value 'fog'")
    holes.write_text("sky,road\nsun,dry\n")
    assert_refused(ldfm("impute", model, holes, "-o", tmp_path / "x.csv"), "lacks column 'size'")
    assert not (tmp_path / "x.csv").exists()
    holes.write_bytes(content[0])
    assert model.read_bytes() == content[1]


# --- score -----------------------------------------------------------------------------------------------------------


def test_score(ldfm: Ldfm, model: Path, holes: Path, tmp_path: Path) -> None:
    expected = load(model).score_samples(holes)
    ended = ldfm("score", model, holes)
    assert ended == (0, f"{expected.mean():.4f} nats a row, the mean of 3 rows\n", "")
    document = strict_json(ldfm("score", model, holes, "--json").stdout)
    assert document == {"rows": 3, "mean": expected.mean(), "of_probability_zero": 0, "log_partition_se": 0.0}
    assert ldfm("score", model, holes, "-o", tmp_path / "s.csv").stdout == ended.stdout
    lines = read((tmp_path / "s.csv").read_text())
    assert [float(line["log_probability"]) for line in lines] == expected.tolist()
    to_stdout = ldfm("score", model, holes, "-o", "-")
    assert read(to_stdout.stdout) == lines
    assert to_stdout.stderr == ended.stdout


def test_rows_of_probability_zero_are_counted(ldfm: Ldfm, tmp_path: Path) -> None:
    LDFM.from_weights([1, 0], np.zeros((2, 2)), values={"a": ["x", "y"]}).save(tmp_path / "m")
    (tmp_path / "t.csv").write_text("a\nx\ny\n")
    assert "1 rows have probability zero" in ldfm("score", tmp_path / "m", tmp_path / "t.csv").stdout
    document = strict_json(ldfm("score", tmp_path / "m", tmp_path / "t.csv", "--json").stdout)
    assert (document["mean"], document["of_probability_zero"]) == (None, 1)
    (tmp_path / "t.csv").write_text("a\n")
    assert_refused(ldfm("score", tmp_path / "m", tmp_path / "t.csv"), "no rows")


# --- sample ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_sample(ldfm: Ldfm, model: Path, tmp_path: Path, name: str) -> None:
    words = ("sample", model, "-n", 50, "--evidence", "sky=rain")
    assert ldfm(*words, "-o", tmp_path / name) == (0, "", f"drew 50 rows; wrote {tmp_path / name}\n")
    lines = read(ldfm(*words).stdout)
    assert len(lines) == 50
    assert {line["sky"] for line in lines} == {"rain"}
    table = ldfm("impute", model, tmp_path / name)
    assert read(table.stdout) == lines
    assert strict_json(ldfm(*words, "--json").stdout)["table"]["road"] == [line["road"] for line in lines]
    assert read(ldfm(*words, "--seed", 5).stdout) != lines


def test_sample_refuses(ldfm: Ldfm, model: Path, tmp_path: Path) -> None:
    assert ldfm("sample", model, "-n", 0).code == 2
    assert_refused(ldfm("sample", model, "--evidence", "sky=fog"), "column 'sky' has no value 'fog'")
    LDFM.from_weights([1, 1], np.zeros((2, 2)), values={"a": ["NA", "NULL"]}).save(tmp_path / "m")
    assert_refused(ldfm("sample", tmp_path / "m", "-o", tmp_path / "x.csv"), "would mean a missing cell in a CSV file")
    assert_refused(ldfm("query", tmp_path / "m", "-o", tmp_path / "x.csv"), "would mean a missing cell in a CSV file")
    assert not (tmp_path / "x.csv").exists()
    for words in (("sample", tmp_path / "m"), ("query", tmp_path / "m")):
        assert ldfm(*words, "-o", tmp_path / "x.parquet").code == 0


@pytest.mark.parametrize("texts", [("true", "false"), ("TRUE", "FALSE")])
def test_bools_are_drawn_as_they_are_read(ldfm: Ldfm, tmp_path: Path, texts: tuple[str, str]) -> None:
    (tmp_path / "part-1.csv").write_text("a,b\n" + "".join(f"{text},x\n{text},y\n" for text in texts) * 5)
    LDFM(objective="generation", max_iter=3).fit(tmp_path / "part-1.csv").save(tmp_path / "m")
    assert ldfm("sample", tmp_path / "m", "-n", 50, "-o", tmp_path / "part-2.csv").code == 0
    assert {line["a"] for line in read((tmp_path / "part-2.csv").read_text())} == {"true", "false"}
    both = learn_table(read_source(tmp_path / "part-*.csv"))
    assert both.schema.columns[0].values == (False, True)
    (tmp_path / "holes.csv").write_text(f"a,b\n{texts[0]},\n{texts[1]},x\n,x\n")
    filled = read(ldfm("impute", tmp_path / "m", tmp_path / "holes.csv").stdout)
    assert {line["a"] for line in filled} == set(texts)
    assert ldfm("sample", tmp_path / "m", "--evidence", f"a={texts[1]}").stdout.startswith("a,b\nfalse,")


def test_any_text_comes_back_from_csv(ldfm: Ldfm, tmp_path: Path) -> None:
    values = ["a,b", 'say "x"', "two\nlines", "re\rturn", " space ", "é😀", "1", "True", "None"]
    model = LDFM.from_weights(np.ones(9), np.zeros((9, 9)), values={"a\rb": values})
    model.save(tmp_path / "m")
    assert ldfm("sample", tmp_path / "m", "-n", 200, "-o", tmp_path / "t.csv").code == 0
    assert (
        ldfm("score", tmp_path / "m", tmp_path / "t.csv").stdout
        == f"{-np.log(9):.4f} nats a row, the mean of 200 rows\n"
    )
    assert set(model.impute(tmp_path / "t.csv")["a\rb"]) == set(values)


# --- forest ----------------------------------------------------------------------------------------------------------


def test_forest_lists_arcs(ldfm: Ldfm, model: Path, holes: Path) -> None:
    ended = ldfm("forest", model, holes, "--row", 1)
    assert (ended.code, ended.stderr) == (0, "")
    header, *lines = ended.stdout.splitlines()
    assert header.split() == ["probability", "parent", "child"]
    shares = [float(line.split()[0]) for line in lines]
    assert shares == sorted(shares, reverse=True)
    assert any(line.endswith("sky = ?") for line in lines)
    assert any("(root)" in line for line in lines)
    document = strict_json(ldfm("forest", model, holes, "--row", 1, "--threshold", 0, "--most", 99, "--json").stdout)
    assert document["values"] == {"sky": None, "road": "ice, black", "size": None}
    assert sum(arc["probability"] for arc in document["arcs"]) == pytest.approx(3.0)
    assert len(strict_json(ldfm("forest", model, holes, "--most", 2, "--json").stdout)["arcs"]) == 2


@pytest.mark.parametrize(("name", "start"), [("f.png", b"\x89PNG"), ("f.svg", b"<?xml"), ("f.pdf", b"%PDF")])
def test_forest_draws(ldfm: Ldfm, model: Path, holes: Path, tmp_path: Path, name: str, start: bytes) -> None:
    ended = ldfm("forest", model, holes, "-o", tmp_path / name)
    assert (ended.code, ended.stderr) == (0, f"wrote {tmp_path / name}\n")
    assert (tmp_path / name).read_bytes().startswith(start)


def test_forest_compares_two_rows(ldfm: Ldfm, model: Path, table: Path, tmp_path: Path) -> None:
    rows = [line.split(",")[0] for line in table.read_text().splitlines()[1:]]
    rain, sun = rows.index("rain"), rows.index("sun")
    picture = tmp_path / "contrast.png"
    ended = ldfm("forest", model, table, "--row", rain, "--against", sun, "--threshold", 0, "--json", "-o", picture)
    document = strict_json(ended.stdout)
    assert (document["values"]["sky"], document["other_values"]["sky"]) == ("rain", "sun")
    differences = [abs(arc["probability"] - arc["other_probability"]) for arc in document["arcs"]]
    assert differences == sorted(differences, reverse=True)
    assert len(differences) == 12
    assert picture.read_bytes().startswith(b"\x89PNG")
    alone = strict_json(ldfm("forest", model, table, "--row", sun, "--threshold", 0, "--json").stdout)["arcs"]
    expected = {(arc["parent"], arc["child"]): arc["probability"] for arc in alone}
    assert {(arc["parent"], arc["child"]): arc["other_probability"] for arc in document["arcs"]} == expected
    listed = ldfm("forest", model, table, "--row", rain, "--against", sun, "--threshold", 0)
    assert listed.stdout.splitlines()[0].split("  ")[:2] == ["probability", "other probability"]
    assert "sky = rain | sun" in listed.stdout
    assert_refused(ldfm("forest", model, table, "--against", 80), "has no row 80")


def test_forest_refuses(ldfm: Ldfm, model: Path, holes: Path, tmp_path: Path, monkeypatch: Any) -> None:
    assert_refused(ldfm("forest", model, holes, "--row", 3), "has no row 3: it has 3 rows")
    assert ldfm("forest", model, holes, "--row", -1).code == 2
    assert_refused(ldfm("forest", model, holes, "-o", tmp_path / "f.txt"), "f.txt: pictures are written to .png")
    LDFM.from_weights([1, 0], np.zeros((2, 2)), values={"a": ["x", "y"]}).save(tmp_path / "m")
    (tmp_path / "t.csv").write_text("a\nx\ny\n")
    assert_refused(ldfm("forest", tmp_path / "m", tmp_path / "t.csv", "--row", 1), "row 1 has probability zero")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    ended = ldfm("forest", model, holes, "-o", tmp_path / "f.png")
    assert (ended.code, (tmp_path / "f.png").exists()) == (1, False)
