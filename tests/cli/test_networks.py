"""ldfm network: rows of networks that come along and of BIF files."""

from pathlib import Path

from command_line import Ldfm, assert_refused, strict_json
from ldfm.cli.networks import NAMES
from ldfm.networks import load, names
from ldfm.tables import read_source

RAIN = """network weather { }
variable rain { type discrete [ 2 ] { yes, no }; }
probability ( rain ) { table 0.25, 0.75; }
"""


def test_rows_of_a_network_that_comes_along(ldfm: Ldfm, tmp_path: Path) -> None:
    ended = ldfm("network", "asia", "-n", 30, "--seed", 3, "-o", tmp_path / "asia.csv")
    assert ended == (0, "", f"drew 30 rows of 8 variables; wrote {tmp_path / 'asia.csv'}\n")
    written = {column.name: column for column in read_source(tmp_path / "asia.csv").columns}
    for name, values in load("asia").sample(30, seed=3).items():
        assert [written[name].distinct[i] for i in written[name].indices] == values.tolist()


def test_help_names_the_networks_that_come_along(ldfm: Ldfm) -> None:
    assert ", ".join(sorted(names())) == NAMES
    assert NAMES in " ".join(ldfm("network", "--help").stdout.split())


def test_rows_of_a_bif_file(ldfm: Ldfm, tmp_path: Path) -> None:
    (tmp_path / "rain.bif").write_text(RAIN)
    document = strict_json(ldfm("network", tmp_path / "rain.bif", "-n", 200, "--json").stdout)
    assert (document["network"], document["variables"], document["arcs"]) == ("weather", 1, 0)
    assert set(document["table"]["rain"]) == {"yes", "no"}
    lines = ldfm("network", tmp_path / "rain.bif", "-n", 2).stdout.splitlines()
    assert lines[0] == "rain"
    assert len(lines) == 3


def test_networks_that_cannot_be_read_are_refused(ldfm: Ldfm, tmp_path: Path) -> None:
    assert_refused(ldfm("network", "nowhere"), "no such file, and no network that comes along; these are alarm, asia")
    (tmp_path / "bad.bif").write_text(RAIN.replace("0.75", "0.5"))
    assert_refused(ldfm("network", tmp_path / "bad.bif"), "line 3: probabilities of variable 'rain' sum to 0.75")
    assert_refused(ldfm("network", tmp_path / "bad.bif", "-o", tmp_path / "x.txt"), "x.txt")
