"""Files larger than the memory that there is: the limit is set in the child, once everything is imported and compiled."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import Ldfm, assert_refused
from ldfm.cli import filling

pytest.importorskip("resource", reason="limits of Unix")
ROWS, CELLS = 60_000, 5
MEGABYTES = 12  # allowed beside what is there before the file is opened
NAMES = [f"a name that is long enough to fill {'a big ' * 10}file number {number}" for number in range(4)]

CHILD = """
import resource, sys
from pathlib import Path
from ldfm.cli.main import app
from ldfm.tables import files
{setup}

def run(*arguments):
    app([*map(str, arguments), "--jobs", "1", "--quiet"], standalone_mode=False)

def commands(table):
    folder = Path(table).parent
    run("fit", table, "-o", folder / "m.ldfm", "--objective", "generation", "--max-iter", 3)
    run("score", folder / "m.ldfm", table)
    run("impute", folder / "m.ldfm", table, "-o", folder / "filled.csv")

commands(sys.argv[1])
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + {megabytes} * 2**20,) * 2)
commands(sys.argv[2])
try:
    Path(sys.argv[2]).read_bytes()
except MemoryError:
    sys.exit(0)
sys.exit("the whole file fits into memory: the limit shows nothing")
"""


def columns(rows: int) -> list[list[str]]:
    """Give columns of which the second repeats the first, a tenth of its cells missing."""
    first = [NAMES[(row * row) % 4] for row in range(rows)]
    second = ["" if row % 10 == 3 else name for row, name in enumerate(first)]
    return [first, second, *(first[place:] + first[:place] for place in range(CELLS - 2))]


def write(path: Path, rows: int) -> Path:
    path.parent.mkdir()
    table = {f"c{place}": cells for place, cells in enumerate(columns(rows))}
    if path.suffix == ".parquet":
        arrays = {name: [cell or None for cell in cells] for name, cells in table.items()}
        pq.write_table(pa.table(arrays), path, use_dictionary=False, compression="none", row_group_size=2_000)
    else:
        lines = [",".join(table), *map(",".join, zip(*table.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("how", ["marginal", "joint", "draw"])
def test_parts_are_filled_as_the_whole_table(ldfm: Ldfm, model: Path, tmp_path: Path, how: str, monkeypatch) -> None:
    rows = ["rain,,1.50", ",wet,2.5", "sun,dry,", "rain,wet,1.5", ",,"] * 3
    (tmp_path / "holes.csv").write_text("\n".join(["sky,road,size", *rows]) + "\n")
    impute = ("impute", model, tmp_path / "holes.csv", "--how", how)
    whole = ldfm(*impute).stdout.splitlines()
    monkeypatch.setattr(filling, "PART", 4)
    parts = ldfm(*impute).stdout.splitlines()
    assert len(parts) == 16
    if how != "draw":
        assert parts == whole
    assert parts[:5] == whole[:5]  # the first part has the random numbers that the whole table has
    assert all(all(line.split(",")) for line in parts)
    drawn = {tuple(parts[start : start + 4]) for start in (1, 5, 9)}
    assert len(drawn) > 1


def test_a_row_that_is_wrong_is_named_by_its_place_in_the_file(
    ldfm: Ldfm, model: Path, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "odd.csv").write_text("sky,road,size\n" + "rain,,1.5\n" * 6 + "snow,,1.5\n")
    monkeypatch.setattr(filling, "PART", 4)
    assert_refused(ldfm("impute", model, tmp_path / "odd.csv"), "column 'sky' row 6: value 'snow'")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs to know the size of a process")
@pytest.mark.parametrize(("suffix", "setup"), [(".csv", ""), (".parquet", "files.LARGE, files._BATCH = 0, 1 << 11")])
def test_files_need_a_fraction_of_their_size_as_memory(suffix: str, setup: str, tmp_path: Path) -> None:
    small = write(tmp_path / "small" / f"table{suffix}", 3_000)
    large = write(tmp_path / "large" / f"table{suffix}", ROWS)
    assert large.stat().st_size > 2 * MEGABYTES * 2**20
    code = CHILD.format(setup=setup, megabytes=MEGABYTES)
    ended = subprocess.run([sys.executable, "-c", code, small, large], capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr[-2000:]
    filled = (large.parent / "filled.csv").read_text(encoding="utf-8").splitlines()
    assert len(filled) == 1 + ROWS
    assert all(line.split(",")[0] == line.split(",")[1] for line in filled[1:])
