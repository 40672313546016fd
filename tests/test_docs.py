"""Code in README and docs runs as it stands."""

import doctest
import re
from pathlib import Path

import pytest

from ldfm import estimator

HERE = Path(__file__).parents[1]
PAGES = [HERE / "README.md", *sorted((HERE / "docs").glob("*.md"))]


def python_of(page: Path) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL))


@pytest.mark.parametrize("page", [page for page in PAGES if python_of(page)], ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(python_of(page), str(page), "exec"), {"__name__": "__main__"})


def test_links_lead_somewhere():
    for page in [*PAGES, *(HERE / "docs" / "decisions").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_examples_in_docstrings_run():
    results = doctest.testmod(estimator)
    assert results.attempted > 5
    assert results.failed == 0
