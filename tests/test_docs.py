"""Code in README and docs runs as it stands; everything public is in the reference; the site builds."""

import doctest
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from ldfm import estimator, model

HERE = Path(__file__).parents[1]
PAGES = [HERE / "README.md", *sorted((HERE / "docs").rglob("*.md"))]
DRAWN = ("pictures.md", "tumours.md")  # pages whose code draws the pictures they show
PUBLIC = [
    (module, name)
    for module in ("ldfm", "ldfm.networks", "ldfm.peers", "ldfm.report", "ldfm.interchange", "ldfm.plots")
    for name in import_module(module).__all__
    if callable(getattr(import_module(module), name))
]


def python_of(page: Path) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL))


@pytest.mark.parametrize("page", [page for page in PAGES if python_of(page)], ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(python_of(page), str(page), "exec"), {"__name__": "__main__"})
    if page.name in DRAWN:
        drawn = {path.name for path in tmp_path.glob("*.png")}
        assert drawn == set(re.findall(r"\(images/([^)]+)\)", page.read_text(encoding="utf-8")))


def test_links_lead_somewhere():
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
            if not target.startswith("http") and target != "commands.md":  # made when the site is built
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_examples_in_docstrings_run():
    for module in (estimator, model):
        results = doctest.testmod(module)
        assert results.attempted > 2
        assert results.failed == 0


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=lambda part: part)
def test_everything_public_is_in_the_reference(module, name):
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (HERE / "docs" / "reference").glob("*.md"))
    assert name in _HELPERS.get(module, ()) or re.search(rf"^::: {re.escape(module)}\.{name}$", pages, re.MULTILINE)


_HELPERS = {"ldfm.plots": ("new_axes",)}  # for other parts of the package


def functions_of(thing):
    """Give a function, or the public methods that a class has from this library."""
    if not inspect.isclass(thing):
        return [thing]
    parts = [
        item for kind in inspect.getmro(thing) if kind.__module__.startswith("ldfm") for item in vars(kind).items()
    ]
    own = {name for name, part in parts if inspect.isfunction(part) or isinstance(part, classmethod)}
    return [getattr(thing, name) for name in sorted(own) if not name.startswith("_")]


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=lambda part: part)
def test_everything_public_says_what_it_does_and_takes(module, name):
    thing = getattr(import_module(module), name)
    assert inspect.getdoc(thing)
    for function in functions_of(thing):
        text = inspect.getdoc(function)
        assert text, function.__qualname__
        if "Parameters\n" in text:
            named = re.split(r"\n(?:Returns|Raises|Examples)\n", text.split("Parameters\n")[1])[0]
            described = {
                word for line in re.findall(r"^(\w[\w, ]*)$", named, re.MULTILINE) for word in line.split(", ")
            }
            taken = set(inspect.signature(function).parameters) - {"self", "cls"}
            assert taken <= described, function.__qualname__


def test_the_site_builds_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    ended = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("index.html")}
    assert {"index.html", "tumours/index.html", "math/index.html", "reference/commands/index.html"} <= pages
    for page in (tmp_path / "site").rglob("*.html"):
        fetched = re.findall(
            r"<(?:script|link|img)[^>]+(?:src|href)=.?(https?://[^\s>]+)", page.read_text(encoding="utf-8")
        )
        assert not fetched, f"{page.name} fetches {fetched[0]}"
    commands = (tmp_path / "site" / "reference" / "commands" / "index.html").read_text(encoding="utf-8")
    assert "--against" in commands
    estimator_page = (tmp_path / "site" / "reference" / "estimator" / "index.html").read_text(encoding="utf-8")
    assert 'id="ldfm.LDFM.plot_contrast"' in estimator_page
