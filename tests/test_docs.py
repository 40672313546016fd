"""Code in README and docs runs as it stands; everything public is in the reference; the site builds."""

import doctest
import inspect
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from markdown import Markdown
from mkdocs.config import load_config

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


@pytest.fixture(scope="module")
def shown():
    """Markdown to HTML, as the site has it."""
    spec = spec_from_file_location("hooks", HERE / "docs" / "hooks.py")
    hooks = module_from_spec(spec)
    spec.loader.exec_module(hooks)
    config = load_config(str(HERE / "mkdocs.yml"))
    reader = Markdown(extensions=config.markdown_extensions, extension_configs=config.mdx_configs)
    return lambda text: hooks.on_page_content(reader.reset().convert(text), page="a page")


def test_formulas_are_mathml(shown):
    inline = shown(r"the weight $w_i \le 3/4$ of *it*")
    assert 'display="inline"' in inline
    assert "<msub><mi>w</mi><mi>i</mi></msub>" in inline
    assert "$" not in inline
    assert "<em>it</em>" in inline
    displayed = shown("so that\n\n$$\n\\sum_t \\log p'(t) < 1\n$$\n\nholds")
    assert '<div class="formula"><math' in displayed
    assert 'display="block"' in displayed
    assert '<mi>log</mi><mspace width="0.17em"/><mrow><mi>p</mi>' in displayed
    assert "<munder>" in displayed
    assert "$" not in displayed


def test_code_is_no_formula(shown):
    for code in ("`a$b$c`", "```sh\necho $HOME $PATH\n```", "    x = $a$\n"):
        assert "<math" not in shown(code)
        text = re.sub(r"<[^>]+>", "", shown(code))
        assert "$" in text
        assert text.strip() == code.strip("`\n ").removeprefix("sh\n")
    assert "<math" not in shown("costs $5 and $6")


def test_formulas_that_cannot_be_shown_are_an_error(shown):
    with pytest.raises(ValueError, match=r"a page: no MathML for \\unheardof"):
        shown(r"the $\unheardof{x}$")


def test_formulas_are_no_markdown():
    """Elsewhere pages are read as Markdown first, where \\, is a comma and }_ may begin emphasis."""
    for page in PAGES:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for formula in re.findall(r"\$\$.*?\$\$|\$[^$]+\$", text, flags=re.DOTALL):
            assert not re.search(r"\\[^a-zA-Z\s]|[^a-zA-Z0-9]_|[*<]", formula), f"{page.name}: {formula}"


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
    assert (tmp_path / "site" / "math" / "index.html").read_text(encoding="utf-8").count("<math") > 100
    commands = (tmp_path / "site" / "reference" / "commands" / "index.html").read_text(encoding="utf-8")
    assert "--against" in commands
    estimator_page = (tmp_path / "site" / "reference" / "estimator" / "index.html").read_text(encoding="utf-8")
    assert 'id="ldfm.LDFM.plot_contrast"' in estimator_page
