"""Commands in this process: what fit, info and demo write, print and refuse; help and errors of all."""

import errno
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import COMMANDS, Ldfm, assert_refused, strict_json
from ldfm import LDFM, Dirichlet, ModifiedDirichlet, __version__, load
from ldfm.cli.options import parse_prior
from ldfm.cli.output import shown
from ldfm.model import ForestModel
from ldfm.model_file import read_model

ROOT = Path(__file__).parents[2]


# --- help ------------------------------------------------------------------------------------------------------------


def test_version(ldfm: Ldfm) -> None:
    assert ldfm("--version") == (0, f"ldfm {__version__}\n", "")


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_every_command_with_what_it_does(ldfm: Ldfm, option: str) -> None:
    ended = ldfm(option)
    assert (ended.code, ended.stderr) == (0, "")
    for words in COMMANDS:
        assert re.search(rf"^ *{words[0]} +[A-Z]", ended.stdout, re.MULTILINE)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_of_a_command_has_an_example_and_explains_everything(ldfm: Ldfm, words: tuple[str, ...]) -> None:
    ended = ldfm(*words, "--help")
    assert (ended.code, ended.stderr) == (0, "")
    assert f"Example: ldfm {' '.join(words)}" in ended.stdout
    assert all(parameter.help for parameter in COMMANDS[words].params)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_is_documented(words: tuple[str, ...]) -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `ldfm {' '.join(words)}\b", page, re.MULTILINE)
    for parameter in COMMANDS[words].params:
        if words[0] != "bench" and parameter.param_type_name == "option":
            assert any(option in page for option in parameter.opts), parameter.opts


def test_without_a_command_help_goes_to_stderr(ldfm: Ldfm) -> None:
    ended = ldfm()
    assert (ended.code, ended.stdout) == (2, "")
    assert "Usage: ldfm" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["bogus"], "No such command 'bogus'."),
        (["fit"], "Missing argument 'table'."),
        (["fit", "t.csv"], "Missing option '--output'"),
        (["fit", "t.csv", "-o", "m", "--max-iter", "x"], "Invalid value for '--max-iter'"),
        (["fit", "t.csv", "-o", "m", "--seed", "-1"], "Invalid value for '--seed'"),
        (["fit", "t.csv", "-o", "m", "--bogus"], "No such option: --bogus"),
        (["info"], "Missing argument 'model'."),
        (["info", "a", "b"], "unexpected extra argument"),
    ],
)
def test_bad_usage_ends_with_its_reason(ldfm: Ldfm, arguments: list[str], reason: str) -> None:
    ended = ldfm(*arguments)
    assert (ended.code, ended.stdout) == (2, "")
    assert reason in ended.stderr.splitlines()[-1]


# --- fit -------------------------------------------------------------------------------------------------------------


def test_fit_writes_a_model_and_one_message(ldfm: Ldfm, table: Path, tmp_path: Path) -> None:
    output = tmp_path / "m[b] :smile:.ldfm"
    ended = ldfm("fit", table, "-o", output, "--discrete", "size", "--objective", "generation")
    assert (ended.code, ended.stdout) == (0, "")
    assert re.fullmatch(rf"3 variables, 7 values; .*; wrote {re.escape(str(output))}\n", ended.stderr)
    model = load(output)
    assert model.schema_.names == ("sky", "road", "size")
    assert model.random_state == 0
    expected = LDFM(objective="generation", kinds={"size": "discrete"}, random_state=0).fit(table)
    assert model.weights_.table.tobytes() == expected.weights_.table.tobytes()


def test_fit_quietly(ldfm: Ldfm, table: Path, tmp_path: Path) -> None:
    assert ldfm("fit", table, "-o", tmp_path / "m", "--discrete", "size", "--max-iter", 4, "--quiet") == (0, "", "")
    assert load(tmp_path / "m").n_features_in_ == 3


@pytest.mark.parametrize(("terminal", "option", "verbose"), [(True, [], 1), (True, ["-q"], 0), (False, [], 0)])
def test_progress_is_shown_on_a_terminal_only(
    ldfm: Ldfm,
    table: Path,
    tmp_path: Path,
    terminal: bool,
    option: list[str],
    verbose: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def fit(model: ForestModel, _: object) -> None:
        asked.append(model.verbose)
        raise ValueError("enough")

    monkeypatch.setattr(ForestModel, "fit", fit)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert_refused(ldfm("fit", table, "-o", tmp_path / "m", *option), "enough")
    assert asked == [verbose]


def test_fit_with_json_prints_one_document(ldfm: Ldfm, table: Path, tmp_path: Path) -> None:
    options = "--discrete size --objective generation --json --max-iter 4 --tol 0"
    ended = ldfm("fit", table, "-o", tmp_path / "m", *options.split())
    assert (ended.code, ended.stderr) == (0, "")
    document = strict_json(ended.stdout)
    assert document["model"] == str(tmp_path / "m")
    assert document["variables"] == 3
    assert [step["iteration"] for step in document["steps"]] == [0, 1, 2, 3, 4]
    assert document["steps"][-1]["objective"] == load(tmp_path / "m").history_.objective[-1]


def test_json_has_no_infinities(ldfm: Ldfm, tmp_path: Path) -> None:
    # each value is in one row only: held-out rows have probability 0
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"x{k},y{k}\n" for k in range(6)))
    options = "--objective generation --json --validation 0.5 --tol inf"
    ended = ldfm("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *options.split())
    assert ended.code == 0
    assert None in [step["validation"] for step in strict_json(ended.stdout)["steps"]]
    ended = ldfm("info", tmp_path / "m", "--json")
    assert strict_json(ended.stdout)["settings"]["tol"] is None


def test_fit_passes_its_options_on(ldfm: Ldfm, table: Path, tmp_path: Path) -> None:
    options = (
        "--objective generation --variant ldfm --prior modified:-0.5,1e-4 --max-iter 5 --tol 0.001 --validation 0.25"
    )
    options += " --seed 7 --jobs 1"
    assert ldfm("fit", table, "-o", tmp_path / "m", "--discrete", "size", *options.split()).code == 0
    model = load(tmp_path / "m")
    assert model.weights_.variant == model.variant == "ldfm"
    assert model.prior == ModifiedDirichlet(-0.5, 1e-4)
    assert (model.max_iter, model.tol, model.validation_fraction, model.random_state) == (5, 0.001, 0.25, 7)
    assert np.isfinite(model.history_.validation).any()


@pytest.mark.parametrize(
    ("text", "prior"),
    [
        ("none", None),
        ("dirichlet:2", Dirichlet(2.0)),
        ("dirichlet:1", Dirichlet(1.0)),
        ("modified:0,1e-6", ModifiedDirichlet(0.0, 1e-6)),
        ("modified:-1.5, 0.01", ModifiedDirichlet(-1.5, 0.01)),
    ],
)
def test_priors(text: str, prior: Any) -> None:
    assert parse_prior(text) == prior


@pytest.mark.parametrize(
    "text",
    [
        *("", "None", "none:", "none:1", "dirichlet", "dirichlet:", "dirichlet:x", "dirichlet:1,2", "modified:1"),
        *(
            "modified:1,2,3",
            "modified:,",
            "dirichlet:0.5",
            "dirichlet:nan",
            "modified:0,0",
            "modified:0,1",
            "laplace:1",
        ),
    ],
)
def test_what_is_no_prior_is_refused(ldfm: Ldfm, table: Path, tmp_path: Path, text: str) -> None:
    assert_refused(ldfm("fit", table, "-o", tmp_path / "m", "--prior", text), "prior")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--continuous", "colour"], "'colour'"),
        (["--discrete", "colour"], "'colour'"),
        (["--discrete", "size", "--variant", "tree"], "'tree'"),
        (["--discrete", "size", "--objective", "beauty"], "'beauty'"),
        (["--discrete", "size", "--variant", "ldfm"], "objective='generation'"),
        (["--discrete", "size", "--max-iter", "-1"], "-1"),
        (["--discrete", "size", "--tol", "-1"], "-1"),
        (["--discrete", "size", "--tol", "nan"], "tol"),
        (["--discrete", "size", "--validation", "1.5"], "1.5"),
        (["--discrete", "size", "--jobs", "0"], "n_jobs"),
        (["--discrete", "size", "--prior", "modified:0,0.5"], "floor"),
    ],
)
def test_a_fit_that_fails_leaves_no_file(
    ldfm: Ldfm, table: Path, tmp_path: Path, options: list[str], reason: str
) -> None:
    assert_refused(ldfm("fit", table, "-o", tmp_path / "m", *options), reason)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("t.csv", None, "t.csv"),
        ("t.csv", b"", "empty"),
        ("t.csv", b"a,b\n", "no rows"),
        ("t.csv", b"a,b\n1,2\n3\n", "row 1"),
        ("t.csv", b"a,a\n1,2\n", "'a'"),
        ("t.csv", b"a,b\n1,\n2,\n", "'b'"),
        ("t.csv", b"a\n\xff\xfe\n", "t.csv"),
        ("t.csv.gz", b"not gzip", "t.csv.gz"),
        ("t.parquet", b"not parquet", "t.parquet"),
        ("t.xlsx", b"PK", "t.xlsx"),
    ],
)
def test_a_broken_table_is_refused(ldfm: Ldfm, tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert_refused(ldfm("fit", tmp_path / name, "-o", tmp_path / "m"), reason)
    assert not (tmp_path / "m").exists()


def test_where_to_write_is_checked_before_the_fit(
    ldfm: Ldfm, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ForestModel, "fit", lambda *_: pytest.fail("fitted"))
    content = table.read_bytes()
    assert_refused(ldfm("fit", table, "-o", tmp_path / "nowhere" / "m"), "no such folder")
    assert_refused(ldfm("fit", table, "-o", tmp_path), "is a folder")
    assert_refused(ldfm("fit", table, "-o", ""), "is a folder")
    assert_refused(ldfm("fit", table, "-o", os.devnull), "not an ordinary file")
    assert_refused(ldfm("fit", table, "-o", "-"), "to a file, not to stdout")
    assert_refused(ldfm("fit", table, "-o", tmp_path / "m", "--checkpoint", table), "would replace the table")
    assert_refused(ldfm("fit", table, "-o", tmp_path / "m", "--checkpoint", tmp_path / "m"), "would replace the model")
    assert_refused(ldfm("fit", table, "-o", table), "would replace the table")
    (tmp_path / "link").symlink_to(table)
    assert_refused(ldfm("fit", table, "-o", tmp_path / "link"), "would replace the table")
    assert_refused(ldfm("fit", tmp_path / "nothing.csv", "-o", tmp_path / "nothing.csv"), "would replace the table")
    assert table.read_bytes() == content


def test_an_old_model_survives_a_fit_that_fails(ldfm: Ldfm, table: Path, model: Path) -> None:
    content = model.read_bytes()
    assert ldfm("fit", table, "-o", model, "--variant", "tree").code == 2
    assert model.read_bytes() == content
    assert ldfm("fit", table, "-o", model, "--discrete", "size", "--objective", "generation").code == 0
    assert model.read_bytes() != content


def test_a_fit_goes_on_from_its_checkpoint(ldfm: Ldfm, table: Path, tmp_path: Path) -> None:
    def fit(name: str, *options: object) -> LDFM:
        ended = ldfm("fit", table, "-o", tmp_path / name, "--discrete", "size", "--max-iter", 60, *options)
        assert (ended.code, ended.stdout) == (0, "")
        return load(tmp_path / name)

    whole, kept = fit("whole"), fit("kept", "--checkpoint", tmp_path / "part")
    assert (tmp_path / "part").is_file()
    again = fit("again", "--checkpoint", tmp_path / "part")
    assert whole.objective == "likelihood"
    for model in (kept, again):
        assert model.weights_.table.tobytes() == whole.weights_.table.tobytes()
    ended = ldfm(
        "fit", table, "-o", tmp_path / "m", "--discrete", "size", "--seed", 1, "--checkpoint", tmp_path / "part"
    )
    assert_refused(ended, "checkpoint of another fit")


# --- anything else ---------------------------------------------------------------------------------------------------


def test_a_full_disk_is_nobodys_input(ldfm: Ldfm, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", fail)
    ended = ldfm("fit", table, "-o", tmp_path / "m", "--discrete", "size", "--objective", "generation")
    assert ended == (1, "", f"ldfm: {os.strerror(errno.ENOSPC)}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv"]


def test_interrupted(ldfm: Ldfm, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ForestModel, "fit", interrupt)
    ended = ldfm("fit", table, "-o", tmp_path / "m")
    assert (ended.code, ended.stdout) == (1, "")
    assert len(ended.stderr.splitlines()) == 1
    assert not (tmp_path / "m").exists()


def test_a_missing_library_is_named(ldfm: Ldfm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    ended = ldfm("demo", "-o", tmp_path / "demo")
    assert ended.code == 1
    assert re.fullmatch(r"ldfm: plots need matplotlib; .*\n", ended.stderr)
    assert not (tmp_path / "demo" / "forest.png").exists()


# --- info ------------------------------------------------------------------------------------------------------------


def test_info(ldfm: Ldfm, model: Path) -> None:
    ended = ldfm("info", model)
    assert (ended.code, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert "variant          ldfm-s" in lines
    assert "values           7" in lines
    assert "iterations       3" in lines
    assert "objective        generation" in lines
    assert "sky       str       rain, sun" in lines
    assert "road      str       dry, 'ice, black', wet" in lines
    assert "size      float     1.5, 2.5" in lines


def test_info_with_json_is_one_document(ldfm: Ldfm, model: Path) -> None:
    ended = ldfm("info", model, "--json")
    assert (ended.code, ended.stderr) == (0, "")
    document = strict_json(ended.stdout)
    record = read_model(model)
    assert document["schema"] == record.schema.to_json()
    assert document["settings"] == record.settings
    assert document["variables"] == 3
    assert document["library_version"] == __version__
    assert document["normalised"] is True


def test_info_sends_no_control_characters_to_the_terminal(ldfm: Ldfm, tmp_path: Path) -> None:
    values = {"\x1b]0;title\x07": ["\x1b[31mred", "[bold]x[/]", ":smile:", "", " y", "\u202e", "\udc80", "é 😀"]}
    LDFM.from_weights(np.ones(8), np.zeros((8, 8)), values=values).save(tmp_path / "m")
    ended = ldfm("info", tmp_path / "m")
    assert ended.code == 0
    assert "\\x1b[31mred', [bold]x[/], :smile:, '', ' y', '\\u202e', '\\udc80', é 😀" in ended.stdout
    assert ended.stdout.replace("\n", "").isprintable()


def test_info_shortens_long_lists_of_values(ldfm: Ldfm, tmp_path: Path) -> None:
    LDFM.from_weights(np.ones(20), np.zeros((20, 20)), values={"a": range(20)}).save(tmp_path / "m")
    assert ldfm("info", tmp_path / "m").stdout.endswith("a         int       0, 1, 2, 3, 4, 5, 6, 7, ... (20 in all)\n")


def test_shown() -> None:
    assert [shown(value) for value in (1, True, "a b", "", "a,b", "a\nb")] == [
        "1",
        "True",
        "a b",
        "''",
        "'a,b'",
        "'a\\nb'",
    ]


def test_info_of_what_is_no_model(ldfm: Ldfm, table: Path, tmp_path: Path) -> None:
    assert_refused(ldfm("info", tmp_path / "nothing"), "nothing: No such file")
    assert_refused(ldfm("info", tmp_path), "not a usable model file")
    assert_refused(ldfm("info", table), "not a usable model file")
    assert_refused(ldfm("info", table / "m"), "Not a directory")
    assert_refused(ldfm("info", table, "--json"), "not a usable model file")


# --- demo ------------------------------------------------------------------------------------------------------------


def test_demo(ldfm: Ldfm, tmp_path: Path) -> None:
    folder = tmp_path / "new [b]" / "demo"
    ended = ldfm("demo", "-o", folder)
    assert (ended.code, ended.stderr) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == ["asia.ldfm", "forest.png"]
    assert (folder / "forest.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert str(folder / "forest.png") in ended.stdout
    assert re.search(r"^ *lung +no 0\.\d+ +yes 0\.\d+$", ended.stdout, re.MULTILINE)
    assert f"ldfm info {folder / 'asia.ldfm'}" in ended.stdout
    assert load(folder / "asia.ldfm").n_features_in_ == 8


def test_demo_into_a_file(ldfm: Ldfm, table: Path) -> None:
    assert_refused(ldfm("demo", "-o", table), "File exists")
