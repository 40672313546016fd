"""`ldfm fit` and `ldfm info` of tables with a column that is the sum of two others."""

import json

import numpy as np
import pandas as pd


def sums() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    first, second = rng.normal(50.0, 10.0, 150), rng.normal(20.0, 6.0, 150)
    return pd.DataFrame({"first": first, "second": second, "total": first + second + rng.normal(0.0, 1.0, 150)})


def test_commands_tell_of_relations(ldfm, tmp_path):
    sums().to_csv(tmp_path / "t.csv", index=False)
    arguments = ["fit", str(tmp_path / "t.csv"), "--objective", "generation", "--max-iter", "5"]
    ldfm(*arguments, "-o", str(tmp_path / "m"))
    told = ldfm("info", str(tmp_path / "m")).stdout
    assert "relations, in standard units" in told
    listed = json.loads(ldfm("info", str(tmp_path / "m"), "--json").stdout)["relations"]
    assert len(listed) == 1
    assert set(listed[0]["shares"]) | {listed[0]["column"]} == {"first", "second", "total"}
    ldfm(*arguments, "-o", str(tmp_path / "p"), "--no-relate")
    assert "relations" not in ldfm("info", str(tmp_path / "p")).stdout
    assert json.loads(ldfm("info", str(tmp_path / "p"), "--json").stdout)["relations"] is None
    table, column = str(tmp_path / "t.csv"), listed[0]["column"]
    assert f"{column} (rest) = " in ldfm("forest", str(tmp_path / "m"), table).stdout
    arcs = json.loads(ldfm("forest", str(tmp_path / "m"), table, "--json").stdout)["arcs"]
    assert column in {arc["child"] for arc in arcs}
