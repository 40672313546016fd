"""The paper's protocol on asia, all models, few queries: end to end, stopped and taken up again, rendered."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ldfm.bench import paper
from ldfm.bench.models import MODELS, Effort
from ldfm.bench.pages import BEGIN, END, render_all
from ldfm.bench.paper import Cell, Plan, run
from ldfm.bench.protocol import SPLITS, Split, draw_questions, draw_rows
from ldfm.bench.tables import Key, read_published, read_records
from ldfm.cli.main import app

QUICK = Effort(em_iterations=5, alphas=(1.0, 0.0), tuning_queries=5, likelihood_steps=8, sweeps=1, peer_chains=10)
SPLIT = SPLITS[0]


def plan_in(folder: Path, **options) -> Plan:
    return Plan(["asia"], [500], [SPLIT], **{"queries": 5, "effort": QUICK, "folder": folder, **options})


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    assert run(plan_in(folder / "paper"), "ldfm bench paper", lambda _: None) == len(MODELS)
    return folder


def test_every_model_has_a_record_of_the_same_questions(stored):
    records = read_records(stored / "paper")
    assert {key.model for key in records} == set(MODELS)
    assert len({json.dumps({k: r["hashes"][k] for k in ("test", "asked", "given")}) for r in records.values()}) == 1
    for key, record in records.items():
        result = record["result"]
        score = result["score"]["mean"]
        assert score == max(result["cll"]["mean"], result["cmll"]["mean"]), key
        assert -3 < score < 0
        # floor(8 * 40 %) = 3 variables, divided by 3.2
        assert result["score_by_share"]["mean"] == pytest.approx(score * 3 / 3.2)
        assert record["provenance"]["ldfm"]
    assert records[Key(0, SPLIT, "oracle", "asia")]["result"]["sampling"]["exact"] == 1.0


def test_gaps_are_paired_with_the_true_network(stored):
    records = read_records(stored / "paper")
    oracle = records[Key(0, SPLIT, "oracle", "asia")]["result"]["score"]["mean"]
    for key, record in records.items():
        if key.model != "oracle":
            assert record["gap"]["mean"] == pytest.approx(oracle - record["result"]["score"]["mean"], abs=1e-4)


def test_what_is_stored_is_not_run_again_unless_more_is_asked(stored):
    plan = plan_in(stored / "paper")
    assert run(plan, "", lambda _: None) == 0
    cell = Cell("asia", 500, SPLIT, "mt")
    assert plan.is_done(cell)
    assert Plan(queries=4, effort=QUICK, folder=plan.folder).is_done(cell)
    assert not Plan(queries=6, effort=QUICK, folder=plan.folder).is_done(cell)
    assert not Plan(queries=5, effort=QUICK, folder=plan.folder, seed=1).is_done(cell)
    assert Plan(queries=5, folder=plan.folder).is_done(cell)  # trees have nothing to do with EM's iterations
    assert not Plan(queries=5, folder=plan.folder).is_done(cell._replace(model="g-ldfm"))


def test_a_run_that_is_killed_goes_on_where_it_was(stored, tmp_path, monkeypatch):
    models = ("bn-exact", "moat", "ldfm-s", "ldfm")
    real, calls = paper._run_cell, []

    def killed_at_fourth(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(paper, "_run_cell", killed_at_fourth)
    with pytest.raises(KeyboardInterrupt):
        run(plan_in(tmp_path, models=models), "", lambda _: None)
    assert len(read_records(tmp_path)) == 3
    monkeypatch.setattr(paper, "_run_cell", real)
    said = []
    assert run(plan_in(tmp_path, models=models), "", said.append) == 2
    assert said[-1].startswith("[2/2] 0 s left: asia 500 rows 40/30 ldfm ")
    whole, resumed = read_records(stored / "paper"), read_records(tmp_path)
    for key, record in resumed.items():
        # junction trees add in any order: the last digits of exact answers may differ
        for part in ("cll", "cmll", "score"):
            assert record["result"][part]["mean"] == pytest.approx(whole[key]["result"][part]["mean"], rel=1e-12)
    assert not list(tmp_path.rglob("*.checkpoint"))


def test_more_queries_do_not_learn_again(tmp_path, monkeypatch):
    models = ("ldfm", "g-ldfm")
    run(plan_in(tmp_path, models=models, queries=3), "", lambda _: None)
    before = read_records(tmp_path)
    learn = dict.fromkeys(("em", "likelihood"), lambda *_: pytest.fail("learned again"))
    monkeypatch.setattr(paper, "FITS", {**paper.FITS, **learn})
    assert run(plan_in(tmp_path, models=models, queries=4), "", lambda _: None) == 3
    after = read_records(tmp_path)
    for model in models:
        key = Key(500, SPLIT, model, "asia")
        assert before[key]["fit"] == after[key]["fit"]
        assert (before[key]["queries"], after[key]["queries"]) == (3, 4)
    other = Effort(**{**vars(QUICK), "em_iterations": QUICK.em_iterations + 1})
    with pytest.raises(pytest.fail.Exception):
        run(plan_in(tmp_path, models=("g-ldfm",), effort=other), "", lambda _: None)


def test_the_checkpoint_of_another_fit_is_not_taken_up(stored, tmp_path):
    (tmp_path / ".fits").mkdir()
    (tmp_path / ".fits" / "asia-500-likelihood.checkpoint").write_bytes(b"of something else")
    assert run(plan_in(tmp_path, models=("ldfm",)), "", lambda _: None) == 2
    key = Key(500, SPLIT, "ldfm", "asia")
    assert read_records(tmp_path)[key]["result"] == read_records(stored / "paper")[key]["result"]


def test_tables_are_rendered_from_what_is_stored(stored, tmp_path):
    page = tmp_path / "results.md"
    page.write_text(f"# Results\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    written = render_all(stored, tmp_path / "tables", page)
    assert {path.name for path in written} == {
        "paper.md", "paper.csv", "paper-printed.png", "paper-gaps-500.png", "results.md"
    }  # fmt: skip
    text = page.read_text()
    assert text.startswith("# Results")
    assert text.endswith(f"{END}\n\nafter\n")
    assert "old" not in text
    assert "(tables/paper-gaps-500.png)" in text
    with (tmp_path / "tables" / "paper.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(MODELS)
    of_em = next(line for line in lines if line["model"] == "g-ldfm")
    record = read_records(stored / "paper")[Key(500, SPLIT, "g-ldfm", "asia")]
    assert float(of_em["score"]) == record["result"]["score"]["mean"]
    assert float(of_em["published"]) == -0.263
    assert (
        f"{record['result']['score_by_share']['mean']:.3f} (-0.263)" in (tmp_path / "tables" / "paper.md").read_text()
    )
    render_all(stored, tmp_path / "tables", page)
    assert page.read_text() == text


def test_pages_without_markers_and_empty_folders_are_refused(stored, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing\n")
    with pytest.raises(ValueError, match="must have the lines"):
        render_all(stored, tmp_path, page)
    with pytest.raises(ValueError, match="no results are stored"):
        render_all(tmp_path / "none", tmp_path, None)


def test_published_numbers():
    published = read_published()
    assert published[Key(5000, SPLIT, "g-ldfm", "asia")] == -0.258
    assert published[Key(5000, SPLIT, "t-ldfm-printed", "asia")] == -0.241
    # twelve tables of nine networks; those of LDFM-S repeat two of the others
    assert len(published) == 9 * (10 * 6 + 2)


def test_questions_are_the_same_however_many():
    many, few = (draw_questions("alarm", 37, count, SPLIT, seed=0) for count in (50, 7))
    assert (many.asked.sum(axis=1) == 14).all()
    assert (many.given.sum(axis=1) == 11).all()
    assert not (many.asked & many.given).any()
    np.testing.assert_array_equal(many.asked[:7], few.asked)


def test_rows_depend_on_size_and_seed_but_test_rows_on_the_seed_alone():
    small, large, other = draw_rows("asia", 500, 0), draw_rows("asia", 2000, 0), draw_rows("asia", 500, 1)
    assert small.hashes["test"] == large.hashes["test"] != other.hashes["test"]
    assert not np.array_equal(small.train, large.train[:500])


@pytest.mark.parametrize("text", ["40", "0/30", "60/50", "a/b"])
def test_bad_splits_are_refused(text):
    with pytest.raises(ValueError, match="split"):
        Split.of(text)


def test_command_line_refuses_models_it_does_not_have(tmp_path):
    done = CliRunner().invoke(app, ["bench", "paper", "--models", "gpt", "-o", str(tmp_path)])
    assert isinstance(done.exception, ValueError)
    assert "no model is called 'gpt'" in str(done.exception)
