"""Mixed tables on the command line."""

from pathlib import Path

import numpy as np
import pandas as pd

from command_line import Ldfm


def write_table(path: Path) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = rng.normal(50.0, 10.0, 60)
    rows = pd.DataFrame(
        {
            "size": size,
            "weight": 2.0 * size + rng.normal(0.0, 5.0, 60),
            "colour": np.where(size > 50, "red", "blue").astype(object),
            "age": rng.integers(1, 90, 60),
        }
    )
    rows.loc[3, "size"] = np.nan
    rows.loc[4, "colour"] = None
    rows.to_csv(path, index=False)
    return rows


def test_the_command_line_takes_mixed_tables(ldfm: Ldfm, tmp_path: Path) -> None:
    table, model, filled = tmp_path / "t.csv", tmp_path / "m.ldfm", tmp_path / "f.csv"
    rows = write_table(table)
    options = ("--continuous", "age", "--objective", "generation", "--max-iter", 5)
    assert ldfm("fit", table, "-o", model, *options).code == 0
    assert "around" in ldfm("info", model).stdout
    assert ldfm("impute", model, table, "-o", filled).code == 0
    back = pd.read_csv(filled)
    assert not back.isna().any().any()
    np.testing.assert_allclose(back["weight"], rows["weight"], rtol=1e-12)
    listed = ldfm("query", model, "--evidence", "size=60,colour=red")
    assert listed.code == 0
    assert "5 % below" in listed.stdout
    joint = ldfm("query", model, "--evidence", "size=60", "--query", "weight=120")
    assert joint.stdout.startswith("density(weight = 120")
    assert ldfm("query", model, "--evidence", "size=60", "--query", "colour=red").stdout.startswith("p(colour = red")
    assert ldfm("score", model, table).code == 0
    assert ldfm("sample", model, "-n", 5).stdout.count("\n") == 6
    assert ldfm("forest", model, table).code == 0
    assert ldfm("query", model, "--evidence", "size=big").code == 2
