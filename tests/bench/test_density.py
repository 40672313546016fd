"""Files of 0/1 rows."""

import gzip
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from ldfm.bench.density import read_rows
from ldfm.cli.main import app


def write(path, rows: np.ndarray) -> None:
    text = "\n".join(",".join(map(str, row)) for row in rows) + "\n"
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)


def test_a_data_set_is_scored_and_absent_ones_are_skipped(tmp_path):
    rng = np.random.default_rng(0)
    for part, rows in (("train", 300), ("valid", 100), ("test", 100)):
        first = rng.integers(0, 2, (rows, 1))
        codes = np.hstack([first, first, rng.integers(0, 2, (rows, 2))])
        write(tmp_path / (f"tiny.{part}.data" + (".gz" if part == "train" else "")), codes)
    command = [
        "bench",
        "density",
        str(tmp_path),
        "--names",
        "tiny,absent",
        "--steps",
        "400",
        "-o",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(app, [*command, "--models", "ldfm,mt,spn"])
    assert done.exit_code == 0, done.output
    assert "skipped absent: no file" in done.stderr
    stored = json.loads((tmp_path / "out" / "tiny.json").read_text())
    assert stored["log_partition"]["exact"]
    # the truth is 3 bits
    assert stored["test"]["log_likelihood"] == pytest.approx(-3 * np.log(2), abs=0.1)
    for peer in ("mt", "spn"):
        other = json.loads((tmp_path / "out" / f"tiny-{peer}.json").read_text())
        assert other["hashes"] == stored["hashes"]
        assert other["test"]["log_likelihood"] == pytest.approx(-3 * np.log(2), abs=0.1)
        assert f"| tiny | 4 | {peer} | {other['test']['log_likelihood']:.3f} ±" in done.stdout
    assert f"| tiny | 4 | ldfm | {stored['test']['log_likelihood']:.3f} ±" in done.stdout
    unknown = CliRunner().invoke(app, [*command, "--models", "ldfm,all"])
    assert unknown.exit_code != 0


@pytest.mark.parametrize(
    ("text", "complaint"), [("0,1\n0,2\n", "row 1: '2'"), ("0,1\n0\n", "row 1 has 1"), ("", "no rows")]
)
def test_bad_rows_are_named(tmp_path, text, complaint):
    path = tmp_path / "bad.data"
    path.write_text(text)
    with pytest.raises(ValueError, match=complaint):
        read_rows(path)
