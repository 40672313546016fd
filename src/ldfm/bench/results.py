"""Stored results: one JSON file a benchmark, with everything needed to know where its numbers came from."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ldfm.files import written_whole
from ldfm.version import __version__

_PACKAGE = Path(__file__).parents[1]


def provenance(command: str, packages: tuple[str, ...] = ("numpy", "numba", "scipy")) -> dict[str, Any]:
    """Say what made a result: command, commit, versions, machine, time."""
    return {
        "command": command,
        "ldfm": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in packages if _version(name)},
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "system": platform.platform()},
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Give the commit that the package is of, and whether the package was changed since; results beside it may be."""
    try:
        commit, changes = (
            subprocess.run(["git", *words], cwd=_PACKAGE, capture_output=True, text=True, check=True).stdout.strip()
            for words in (("describe", "--always"), ("status", "--porcelain", "--", "."))
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{commit}-dirty" if changes else commit


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def store(path: Path, result: dict[str, Any]) -> None:
    """Write a result, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """Read a stored result."""
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result
