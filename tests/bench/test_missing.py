"""Learning from tables with missing cells, compared and stored."""

import json

import numpy as np
from typer.testing import CliRunner

from ldfm.bench.missing import HOLES, WHOLE, tables_of
from ldfm.bench.pages import render_all
from ldfm.bench.protocol import draw_rows
from ldfm.cli.main import app


def test_tables_differ_in_removed_cells_alone():
    train = draw_rows("asia", 400, 0).train
    tables = tables_of(train, 0.3, 0)
    holes, filled = tables[HOLES], tables["most frequent values filled in"]
    removed = holes == -1
    assert abs(removed.mean() - 0.3) < 0.05
    assert (holes == train)[~removed].all()
    assert (filled == train)[~removed].all()
    for column in range(train.shape[1]):
        usual = np.bincount(train[~removed[:, column], column]).argmax()
        assert (filled[removed[:, column], column] == usual).all()
    dropped = tables["incomplete rows dropped"]
    assert np.array_equal(dropped, train[~removed.any(axis=1)])
    half = tables["one column missing in half of the rows"]
    assert (half == -1).sum() == 200
    assert ((half == -1).any(axis=0)).sum() == 1


def test_a_network_is_measured_stored_and_rendered(tmp_path):
    words = ["--network", "asia", "--rows", "300", "--queries", "50", "--steps", "60", "--removed", "0.7"]
    done = CliRunner().invoke(app, ["bench", "missing", *words, "-o", str(tmp_path / "results" / "missing")])
    assert done.exit_code == 0, done.output
    stored = json.loads((tmp_path / "results" / "missing" / "asia.json").read_text())["tables"]
    assert stored[WHOLE]["loss"]["mean"] == 0.0
    # of 300 rows with 70 % of eight cells removed none is complete
    assert stored["incomplete rows dropped"]["fit"]["rows"] == 0
    assert np.isclose(stored["incomplete rows dropped"]["score"]["mean"], -np.log(2))
    for part in stored.values():
        assert np.isclose(part["loss"]["mean"], stored[WHOLE]["score"]["mean"] - part["score"]["mean"])
    render_all(tmp_path / "results", tmp_path / "tables", None)
    assert f"{stored[HOLES]['loss']['mean']:.4f}" in (tmp_path / "tables" / "missing.md").read_text()
