"""The first page's results are those stored."""

import json
from pathlib import Path

import pytest

from ldfm.bench.headline import headline
from ldfm.bench.pages import BEGIN, END, render_all
from ldfm.bench.protocol import Split
from ldfm.bench.tables import Key, mean_gap

ROOT = Path(__file__).parents[2]


def test_the_readme_shows_what_is_stored():
    shown = (ROOT / "README.md").read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].strip()
    expected = "\n".join(headline(ROOT / "benchmarks" / "results")).strip()
    assert shown == expected, "run: ldfm bench tables --page docs/results.md --readme README.md"


def record(model, network, rows, gap, split=(40, 30)):
    return {
        "cell": {"model": model, "network": network, "rows": rows, "split": list(split)},
        "gap": {"mean": gap, "standard_error": 0.1},
    }


def test_gaps_are_averaged_over_networks_that_all_have(tmp_path):
    (tmp_path / "paper").mkdir()
    stored = [
        record("ldfm", "asia", 500, 0.01),
        record("ldfm", "sachs", 500, 0.03),
        record("mt", "asia", 500, 0.02),
        record("mt", "child", 500, 0.02),  # a network without rows of ours does not count
        record("dn", "asia", 500, None),
        record("dn", "sachs", 500, 0.5),
        record("oracle", "asia", 0, None),
    ]
    for place, one in enumerate(stored):
        (tmp_path / "paper" / f"{place}.json").write_text(json.dumps(one))
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in headline(tmp_path) if line.startswith("| ")}
    by_number = {line.rstrip(" |").split(" | ")[-1] for line in lines.values()}
    assert "0.0200" in by_number  # ldfm
    assert "inf" in by_number  # a query of probability zero
    assert not any("0.0200" in line for title, line in lines.items() if "tree" in title.lower())
    assert headline(tmp_path)[0].startswith("Nats a query variable below the true network, the mean over asia, sachs")


def test_models_are_compared_on_the_splits_that_all_of_them_have():
    first, second = Split(40, 30), Split(30, 20)
    cells = [("ldfm", first, 0.04), ("mt", first, 0.02), ("mt", second, 0.01), ("oracle", second, None)]
    records = {
        Key(500 if model != "oracle" else 0, split, model, "asia"): record(model, "asia", 500, gap, split)
        for model, split, gap in cells
    }
    assert mean_gap(records, 500, "mt", "asia")["mean"] == 0.02
    assert mean_gap(records, 500, "dn", "asia") is None
    del records[Key(500, first, "ldfm", "asia")]
    assert mean_gap(records, 500, "mt", "asia")["mean"] == pytest.approx(0.015)


def test_what_is_not_stored_is_not_shown(tmp_path):
    assert headline(tmp_path) == [
        "The comparison with other models by the paper's protocol has not been stored yet, so none is shown.",
        "",
    ]


def test_the_headline_goes_between_the_markers(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    stored = ROOT / "benchmarks" / "results" / "density"
    (tmp_path / "results" / "density").mkdir(parents=True)
    source = stored / "nltcs.json"
    (tmp_path / "results" / "density" / source.name).write_bytes(source.read_bytes())
    assert readme in render_all(tmp_path / "results", tmp_path / "tables", None, readme)
    text = readme.read_text()
    value = json.loads(source.read_text())["test"]["log_likelihood"]
    assert f"{value:.3f} ±" in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    readme.write_text("nothing")
    with pytest.raises(ValueError, match="must have the lines"):
        render_all(tmp_path / "results", tmp_path / "tables", None, readme)


def test_peers_are_named_beside_ours(tmp_path):
    folder = tmp_path / "density"
    folder.mkdir()
    for model, mean in (("ldfm", -3.25), ("mt", -3.125)):
        record = {
            "data": "tiny",
            "model": model,
            "variables": 4,
            "test": {"log_likelihood": mean, "standard_error": 0.5},
        }
        (folder / f"tiny-{model}.json").write_text(json.dumps(record))
    assert headline(tmp_path)[-1] == "- Test log-likelihood of tiny, 4 variables: -3.250 ±0.500 nats a row; mt -3.125."
