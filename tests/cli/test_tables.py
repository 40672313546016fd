"""Tables that commands read: globs of files, and CSV from stdin; and completion of shells."""

import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from command_line import COMMANDS, Ldfm, assert_refused, strict_json
from ldfm import load


@pytest.fixture
def type_in(monkeypatch: pytest.MonkeyPatch):
    def put(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))

    return put


def halves(table: Path) -> str:
    """Cut a table into two files, the columns of the second in another order; give their glob."""
    header, *lines = table.read_text().splitlines()
    (table.parent / "part-1.csv").write_text("\n".join([header, *lines[:30]]) + "\n")
    turned = [line.rpartition(",")[::-2] for line in [header, *lines[30:]]]
    (table.parent / "part-2.csv").write_text("".join(f"{last},{first}\n" for last, first in turned))
    return str(table.parent / "part-*.csv")


FIT = ("--discrete", "size", "--objective", "generation", "--max-iter", "2", "-q")


def test_fit_reads_stdin_and_globs_as_it_reads_a_file(ldfm: Ldfm, table: Path, tmp_path: Path, type_in) -> None:
    type_in(b"\xef\xbb\xbf" + table.read_bytes())
    for name, source in (("file", table), ("stdin", "-"), ("glob", halves(table))):
        assert ldfm("fit", source, "-o", tmp_path / name, *FIT) == (0, "", "")
    content = load(tmp_path / "file").weights_.table.tobytes()
    assert load(tmp_path / "stdin").weights_.table.tobytes() == content
    assert load(tmp_path / "glob").weights_.table.tobytes() == content


def test_rows_go_through_a_pipe(ldfm: Ldfm, model: Path, type_in) -> None:
    type_in(b"sky,road,size\nrain,,1.50\n,wet,2.5\n")
    ended = ldfm("impute", model, "-")
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[1:] == ["rain,wet,1.50", "rain,wet,2.5"]
    type_in(ended.stdout.encode())
    assert strict_json(ldfm("score", model, "-", "--json").stdout)["rows"] == 2
    type_in(b"sky,road,size\nrain,,1.5\n")
    assert ldfm("query", model, "--table", "-").stdout.startswith("row,variable,value")
    type_in(b"sky,road,size\nrain,wet,1.5\nsun,dry,1.5\n")
    assert strict_json(ldfm("forest", model, "-", "--row", 1, "--json").stdout)["values"]["sky"] == "sun"


def test_a_table_to_report_on_may_come_from_stdin(ldfm: Ldfm, model: Path, table: Path, type_in) -> None:
    named = strict_json(ldfm("report", model, table, "--json").stdout)
    type_in(table.read_bytes())
    assert strict_json(ldfm("report", model, "-", "--json").stdout) == {**named, "title": "stdin seen by given.ldfm"}


def test_what_is_wrong_on_stdin_is_said(ldfm: Ldfm, model: Path, tmp_path: Path, type_in) -> None:
    type_in(b"")
    assert_refused(ldfm("fit", "-", "-o", tmp_path / "m"), "stdin: the file is empty")
    type_in(b"sky,road,size\nrain,wet\n")
    assert_refused(ldfm("impute", model, "-"), "stdin: data row 0 has 2 cells, the header has 3")


def test_globs_that_are_no_table(ldfm: Ldfm, table: Path, model: Path, tmp_path: Path) -> None:
    parts = halves(table)
    assert_refused(ldfm("score", model, tmp_path / "nothing-*.csv"), "no such files")
    assert_refused(ldfm("impute", model, parts, "-o", tmp_path / "part-2.csv"), "would replace the table")
    (tmp_path / "part-3.csv").write_text("sky,road\nrain,wet\n")
    assert_refused(ldfm("score", model, parts), "must have the same columns, but only one of them has 'size'")
    (tmp_path / "part-3.csv").rename(tmp_path / "part-3.parquet")
    assert_refused(ldfm("score", model, tmp_path / "part-*"), "must all be CSV or all be Parquet")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str) -> None:
    command = [str(Path(sys.executable).with_name("ldfm"))]
    typed = {"COMP_WORDS": "ldfm ", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "ldfm "}
    asked = {"_LDFM_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    ended = subprocess.run(command, env={**os.environ, **typed, **asked}, capture_output=True, text=True, timeout=60)
    for words in COMMANDS:
        assert words[0] in ended.stdout
