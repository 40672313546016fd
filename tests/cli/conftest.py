import sys
from pathlib import Path

import numpy as np
import pytest

from command_line import Ended, Ldfm
from ldfm import LDFM
from ldfm.cli import main


@pytest.fixture
def ldfm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ldfm:
    """Give a function that runs the command line as a shell would, but in this process."""

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["ldfm", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main.run()
        assert ended.value.code is None or isinstance(ended.value.code, int)
        return Ended(ended.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    sky = rng.choice(["rain", "sun"], 80)
    road = np.where(rng.random(80) < 0.9, np.where(sky == "rain", "wet", "dry"), "ice, black")
    size = rng.choice(["1.5", "2.5"], 80)
    path = tmp_path / "table.csv"
    lines = [f'{a},"{b}",{c}' for a, b, c in zip(sky, road, size, strict=True)]
    path.write_text("\n".join(["sky,road,size", *lines]) + "\n")
    return path


@pytest.fixture
def model(table: Path, tmp_path: Path) -> Path:
    settings = {"objective": "generation", "max_iter": 3, "kinds": {"size": "discrete"}}
    LDFM(**settings).fit(table).save(tmp_path / "given.ldfm")
    return tmp_path / "given.ldfm"
