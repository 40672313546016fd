"""The installed command in a process of its own: exit codes, streams and terminals."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

from ldfm import LDFM, __version__, load

LDFM_COMMAND = Path(sys.executable).with_name("ldfm")
needs_unix = pytest.mark.skipif(os.name != "posix", reason="pipes and terminals of Unix")


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([LDFM_COMMAND, *map(str, arguments)], text=True, encoding="utf-8", timeout=120, **streams)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    path.write_text("a,b\nx,1\ny,2\nx,1\ny,1\n")
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "m.ldfm"
    LDFM.from_weights(np.ones(3), np.zeros((3, 3)), values={"naïve 😀": ["é", "x", "y"]}).save(path)
    return path


def test_version_is_told_without_loading_the_compiler() -> None:
    code = "import sys; from ldfm.cli import main\ntry: main.run()\nfinally: assert 'numba' not in sys.modules, 'numba'"
    ended = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"ldfm {__version__}\n", "")


def test_the_package_runs_as_a_module() -> None:
    ended = subprocess.run([sys.executable, "-m", "ldfm", "--version"], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"ldfm {__version__}\n", "")


def test_a_small_fit_loads_nothing_that_takes_longer_than_itself(table: Path, tmp_path: Path) -> None:
    heavy = "{'sklearn', 'pandas', 'polars', 'pyarrow', 'matplotlib', 'rich.progress', 'scipy.stats'}"
    code = f"import sys; from ldfm.cli import main\ntry: main.run()\nfinally: print(*{heavy} & set(sys.modules))"
    fit = ("fit", table, "-o", tmp_path / "m.ldfm", "--objective", "generation", "--jobs", "1", "--quiet")
    ended = subprocess.run([sys.executable, "-c", code, *fit], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "\n", "")


def test_fit_without_a_terminal_shows_no_progress(table: Path, tmp_path: Path) -> None:
    ended = run("fit", table, "-o", tmp_path / "m.ldfm", "--objective", "generation", "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["variables"] == 2
    assert load(tmp_path / "m.ldfm").schema_.names == ("a", "b")


@needs_unix
def test_progress_goes_to_a_terminal_on_stderr(table: Path, tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    arguments = ("fit", table, "-o", tmp_path / "m.ldfm", "--objective", "generation")
    ended = run(*arguments, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    seen = os.read(ours, 1 << 16)
    os.close(ours)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert b"EM" in seen
    assert b"wrote" in seen


def test_bad_input_ends_with_2_and_one_line(table: Path) -> None:
    ended = run("info", table)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert ended.stderr.startswith("ldfm: ")


def test_bad_usage_ends_with_2() -> None:
    ended = run("fit", "--bogus")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Traceback" not in ended.stderr


def test_a_fault_of_ours_ends_with_1() -> None:
    code = "from ldfm.cli import main, models; models.check_file = lambda *_: 1 / 0; main.run()"
    command = [sys.executable, "-c", code, "fit", "t.csv", "-o", "m"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "ZeroDivisionError" in ended.stderr


def test_names_the_terminal_cannot_show_are_escaped(model: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    ended = subprocess.run([LDFM_COMMAND, "info", model], capture_output=True, env=environment, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert "naïve 😀".encode("latin-1", "backslashreplace") in ended.stdout


@needs_unix
def test_a_reader_that_leaves_is_no_fault_to_speak_of(model: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    ended = run("info", model, stdout=theirs)
    os.close(theirs)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs the device that is always full")
def test_output_that_cannot_be_written_is_a_fault(model: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ended = run("info", model, stdout=full)
    assert (ended.returncode, ended.stderr) == (1, "ldfm: No space left on device\n")


def explored(model: Path, *options: str) -> subprocess.Popen[str]:
    command = [LDFM_COMMAND, "explore", model, "--no-browser", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@needs_unix
def test_ctrl_c_ends_the_page_with_0_within_a_second(model: Path) -> None:
    with explored(model) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().strip()
        with urlopen(f"{address}api/model", timeout=10) as reply:
            assert json.load(reply)["title"] == "m.ldfm"
        assert process.stderr.readline().startswith("Ctrl-C stops")
        began = time.perf_counter()
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == "stopped\n"
        assert time.perf_counter() - began < 1
        assert (process.wait(30), process.stdout.read(), process.stderr.read()) == (0, "", "")


def test_a_page_at_a_busy_port_is_refused(model: Path) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        ended = run("explore", model, "--no-browser", "--port", busy.getsockname()[1])
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(r"ldfm: port \d+ cannot be used: Address already in use\n", ended.stderr)


def test_only_a_model_can_be_explored(table: Path) -> None:
    ended = run("explore", table, "--no-browser")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)


def test_a_warning_is_one_line_and_none_where_quiet(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{row},{row % 2}\n" for row in range(60)))
    words = ("fit", tmp_path / "t.csv", "-o", tmp_path / "m.ldfm", "--objective", "generation", "--max-iter", 2)
    first, *rest = run(*words).stderr.splitlines()
    told = (
        "ldfm: column 'a' has 60 different whole numbers in 60 rows and is taken as continuous; --discrete a takes its"
    )
    assert first.startswith(told)
    assert len(rest) == 1
    assert run(*words, "--quiet").stderr == ""
