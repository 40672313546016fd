"""What a stranger does, timed, from nothing: build, install, fit, ask, fill and report, then the same with pandas and polars.

Run it with the Python to try: ``make stranger PYTHON=python3.13``. It needs a package index and nothing installed; its times
depend on the machine, so it is no test of the suite, but every step must succeed and every answer is looked at.
"""

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tarfile
import time
import venv
import zipfile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
# kinds of files that the package may have
WANTED = {".py", ".typed", ".md", ".json", ".bif", ".gz", ".csv", ".html", ".js", ".css"}


class Stranger:
    """Runs commands in a folder of its own and says how long they took."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        # none of the packages or caches of whoever runs this
        hidden = ("PYTHONPATH", "NUMBA_CACHE_DIR", "VIRTUAL_ENV")
        self.environment = {name: value for name, value in os.environ.items() if name not in hidden}

    def run(self, what: str, program: str, *arguments: object) -> str:
        """Run a program of the environment; give what it printed."""
        start, before = time.perf_counter(), os.times()
        command = [str(self.bin / program), *map(str, arguments)]
        ended = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        if ended.returncode:
            sys.exit(f"{what}: {' '.join(command)} ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
        wall, after = time.perf_counter() - start, os.times()
        work = sum(after[2:4]) - sum(before[2:4])  # of children: what an idle machine would take, or less
        print(f"{wall:7.1f} s  {work:6.1f} s of processors  {what}", flush=True)
        return ended.stdout


def write_survey(path: Path) -> None:
    """Write 500 rows with categories and missing cells; whether somebody coughs is decided by whether they smoke."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smokes", "coughs", "town", "visits"])
        for row in range(500):
            smokes = row * row % 7 < 3
            writer.writerow(
                [
                    "" if row % 11 == 5 else ("no", "yes, often")[smokes],
                    "" if row % 9 == 4 else ("no", "yes")[smokes],
                    ("north", "south", "west")[row % 3],
                    row % 4,
                ]
            )


def build(stranger: Stranger) -> Path:
    """Build wheel and sdist and look into them; give the wheel."""
    stranger.run("build the wheel and the sdist", "python", "-m", "build", "--outdir", stranger.folder / "dist", ROOT)
    (wheel,), (sdist,) = (list((stranger.folder / "dist").glob(end)) for end in ("*.whl", "*.tar.gz"))
    with zipfile.ZipFile(wheel) as file:
        names = [PurePosixPath(name) for name in file.namelist()]
    inside = {name for name in names if name.parts[0] == "ldfm"}
    strange = [str(name) for name in inside if name.suffix not in WANTED or "__pycache__" in name.parts]
    others = [str(name) for name in names if name not in inside and not name.parts[0].endswith(".dist-info")]
    assert not strange, strange
    assert not others, others
    assert PurePosixPath("ldfm/py.typed") in inside
    with tarfile.open(sdist) as file:
        kept = {PurePosixPath(name).relative_to(PurePosixPath(name).parts[0]).parts[:1] for name in file.getnames()}
    assert {("src",), ("tests",), ("docs",), ("LICENSE",), ("pyproject.toml",)} <= kept, kept
    print(
        f"           wheel {wheel.stat().st_size // 1024} KB, {len(names)} files; sdist {sdist.stat().st_size // 1024} KB"
    )
    return wheel


def use_commands(stranger: Stranger) -> None:
    """Fit, ask, fill and report, each in one command."""
    write_survey(stranger.folder / "survey.csv")
    fit = ("fit", "survey.csv", "-o", "survey.ldfm", "--jobs", 1)
    stranger.run("ldfm fit, the first call: kernels are compiled", "ldfm", *fit, "--objective", "generation")
    stranger.run("ldfm fit by EM, a second process", "ldfm", *fit, "--objective", "generation")
    stranger.run("ldfm fit on the likelihood, the first time", "ldfm", *fit)
    stranger.run("ldfm fit on the likelihood, again", "ldfm", *fit)
    question = ("query", "survey.ldfm", "--evidence", '"smokes=yes, often"', "--query", "coughs", "--json")
    answer = json.loads(stranger.run("ldfm query", "ldfm", *question))
    assert answer["posteriors"][0]["probabilities"][1] > 0.9, answer
    stranger.run("ldfm impute", "ldfm", "impute", "survey.ldfm", "survey.csv", "-o", "filled.csv")
    with (stranger.folder / "filled.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 500
    agreeing = sum((row["smokes"] == "yes, often") == (row["coughs"] == "yes") for row in rows)
    assert all(all(row.values()) for row in rows)
    assert agreeing >= 490, agreeing  # all but some of the five rows that miss both
    stranger.run("ldfm report", "ldfm", "report", "survey.ldfm", "survey.csv", "-o", "report.html")
    assert "</html>" in (stranger.folder / "report.html").read_text(encoding="utf-8")


def use_python(stranger: Stranger) -> None:
    """Run what the page about tables shows for pandas and for polars."""
    page = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    blocks = re.findall(r"## (pandas|polars)\n\n```python\n(.*?)```", page, flags=re.DOTALL)
    assert [name for name, _ in blocks] == ["pandas", "polars"]
    for name, code in blocks:
        assert len([line for line in code.splitlines() if line.strip()]) < 20
        stranger.run(f"the same in Python with {name}", "python", "-c", code)


def main() -> None:
    """Walk the path."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    print(f"Python {sys.version.split()[0]}")
    start = time.perf_counter()
    with TemporaryDirectory() as folder:
        stranger = Stranger(Path(folder))
        venv.create(Path(folder) / "env", with_pip=True)
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        stranger.run("install what builds", "python", *pip, "build")
        wheel = build(stranger)
        stranger.run("install the wheel", "python", *pip, f"ldfm[plots] @ {wheel.as_uri()}")
        stranger.run("say the version", "ldfm", "--version")
        use_commands(stranger)
        stranger.run("install pandas and polars", "python", *pip, "pandas", "polars")
        use_python(stranger)
    print(f"{time.perf_counter() - start:7.1f} s  in all")


if __name__ == "__main__":
    main()
