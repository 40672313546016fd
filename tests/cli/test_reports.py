"""ldfm report."""

from pathlib import Path

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
