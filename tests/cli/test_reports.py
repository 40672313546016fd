"""ldfm report."""

import json
from pathlib import Path

import pytest

from command_line import Ldfm, assert_refused


def test_a_report_is_written(ldfm: Ldfm, model: Path, table: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert ldfm("report", model, table, "-o", page, "--rows", 30) == (0, "", f"wrote {page}\n")
    text = page.read_text(encoding="utf-8")
    assert "<title>table.csv seen by given.ldfm</title>" in text
    assert "over 30 rows" in text


def test_reports_are_refused_before_anything_is_computed(ldfm: Ldfm, model: Path, table: Path, tmp_path: Path) -> None:
    assert_refused(ldfm("report", model, table, "-o", tmp_path / "report.pdf"), "reports are written to .html files")
    assert_refused(ldfm("report", model, table, "-o", table), "would replace the table")
    assert_refused(ldfm("report", model, tmp_path / "no.csv", "-o", tmp_path / "r.html"), "no.csv")
    assert not (tmp_path / "r.html").exists()
    assert_refused(ldfm("report", model, table), "give a file to write")


def test_a_report_in_json_has_the_numbers_of_the_page(ldfm: Ldfm, model: Path, table: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    code, printed, messages = ldfm("report", model, table, "-o", page, "--json")
    document = json.loads(printed)
    assert (code, messages, document["output"]) == (0, "", str(page))
    assert set(document) == {"title", "table", "fit", "dependencies", "changes", "calibration", "scores", "output"}
    mean = document["scores"]["mean log p(row), nats"]
    scored = json.loads(ldfm("score", model, table, "--json")[1])
    assert document["scores"]["rows scored"] == scored["rows"]
    assert mean["value"] == pytest.approx(scored["mean"], rel=1e-12)
    assert f"{mean['value']:.4f} ± {mean['standard_error']:.4f}" in page.read_text(encoding="utf-8")
    for column in document["table"]["columns"]:
        assert sum(part["share"] for part in column["most frequent, or range"]) == pytest.approx(1.0)
