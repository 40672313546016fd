"""The benchmark of mixed tables: its parts, and that its page shows what is stored."""

import json
from pathlib import Path

import numpy as np
import pytest

from ldfm.bench import imputation
from ldfm.bench.mixture import best_mixture, fit_mixture
from ldfm.bench.pages import render_all

HERE = Path(__file__).parents[2]


@pytest.mark.parametrize(("name", "shape"), [("iris", (150, 4)), ("diabetes", (442, 10))])
def test_tables_have_numbers_and_one_column_of_categories(name, shape):
    table = imputation.load_table(name)
    assert table.numbers.shape == shape
    assert len(table.names) == shape[1] + 1
    assert set(table.classes) == set(range(len(set(table.classes))))
    removed = np.zeros((shape[0], shape[1] + 1), dtype=bool)
    removed[0, [0, -1]] = True
    frame = table.frame(removed)
    assert np.isnan(frame[table.names[0]][0])
    assert frame[table.names[-1]][0] is None
    assert frame[table.names[-1]][1] == f"c{int(table.classes[1])}"


def test_every_row_is_tested_once():
    folds = imputation.folds_of("iris", 150)
    assert (np.sum(folds, axis=0) == 1).all()
    assert [fold.sum() for fold in folds] == [30] * 5


def test_errors_are_those_of_removed_cells_alone():
    table = imputation.load_table("iris")
    test = imputation.folds_of("iris", 150)[0]
    removed = np.random.default_rng(0).random((150, 5)) < 0.2
    truth = imputation.standardised(table, table.numbers)[test]
    ends = np.stack([truth - 1.0, truth + 1.0], axis=-1)
    right = imputation.Filled(np.where(removed[test][:, :-1], truth, 99.0), table.classes[test], ends)
    nothing_wrong = {"numbers": 0.0, "categories": 0.0, "covered": 1.0}
    assert imputation.errors_of(table, test, [(removed, right)]) == nothing_wrong
    wrong = right._replace(numbers=truth + 2.0, classes=table.classes[test] + 1.0, ends=ends + 2.5)
    found = imputation.errors_of(table, test, [(removed, wrong)])
    assert found == {"numbers": pytest.approx(2.0), "categories": 1.0, "covered": 0.0}
    both = imputation.errors_of(table, test, [(removed, wrong), (removed, right)])
    assert both == {"numbers": pytest.approx(np.sqrt(2.0)), "categories": 0.5, "covered": 0.5}


def test_cells_are_removed_anew_each_time_but_the_same_in_every_run():
    table = imputation.load_table("iris")
    first, second = imputation.removals_of("iris", table), imputation.removals_of("iris", table)
    assert len(first) == imputation.REMOVALS
    assert np.array_equal(first, second)
    assert not np.array_equal(first[0], first[1])
    assert np.mean(first) == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("name", imputation.PEERS[:2])
def test_peers_fill_what_is_removed(name):
    table = imputation.load_table("iris")
    test = imputation.folds_of("iris", 150)[0]
    removed = np.random.default_rng(0).random((150, 5)) < 0.2
    filled = imputation.fill_by_peer(name, table, removed, test)
    assert np.isfinite(filled.numbers).all()
    found = imputation.errors_of(table, test, [(removed, filled)])
    assert 0.2 < found["numbers"] < 1.4
    kept = ~removed[test][:, :-1]
    np.testing.assert_allclose(filled.numbers[kept], imputation.standardised(table, table.numbers)[test][kept])


def test_a_mixture_finds_shared_components():
    rng = np.random.default_rng(0)
    spot, numbers = rng.integers(2, size=600), rng.normal(size=(600, 2))
    numbers[:, 1] = 0.9 * numbers[:, 0] + 0.3 * numbers[:, 1]
    numbers += 6.0 * spot[:, None]
    classes = np.where(spot == 1, 2, rng.integers(2, size=600))  # two classes share a component
    found = best_mixture(numbers[:500], classes[:500], 0)
    assert len(found.shares) == 2
    shared = int(found.means[:, 0].argmin())
    np.testing.assert_allclose(found.kinds[shared], [0.5, 0.5, 0.0], atol=0.1)
    assert found.covariances[shared][0, 1] == pytest.approx(0.9, abs=0.2)
    truth = -np.log(0.3) - np.log(2 * np.pi) - 1.0 - np.log(2.0) - 0.5 * np.log(2.0)
    assert found.log_density(numbers[500:], classes[500:]).mean() == pytest.approx(truth, abs=0.3)


def test_densities_of_mixtures_integrate_to_one():
    rng = np.random.default_rng(1)
    numbers, classes = rng.normal(size=(80, 1)), rng.integers(3, size=80)
    for diagonal in (False, True):
        found, likelihood = fit_mixture(numbers, classes, 2, rng, diagonal=diagonal)
        grid = np.linspace(-12, 12, 2001)[:, None]
        total = sum(np.exp(found.log_density(grid, np.full(2001, code))).sum() for code in range(3)) * 24 / 2000
        assert total == pytest.approx(1.0, abs=1e-6)
        assert found.log_density(numbers, classes).mean() == pytest.approx(likelihood, abs=1e-3)


def test_densities_of_classes_are_proper():
    table = imputation.load_table("iris")
    test = imputation.folds_of("iris", 150)[0]

    class Even:
        def score_samples(self, rows):
            return np.zeros(len(rows))

    found = imputation.per_class(table, test, lambda rows: Even())
    shares = np.array([((table.classes == code) & ~test).sum() / 120 for code in range(3)])
    assert found == pytest.approx(np.log(shares)[table.classes[test].astype(int)].mean())


def test_the_page_shows_what_is_stored(tmp_path):
    render_all(HERE / "benchmarks" / "results", tmp_path, None)
    page = (HERE / "benchmarks" / "tables" / "imputation.md").read_text(encoding="utf-8")
    assert (tmp_path / "imputation.md").read_text(encoding="utf-8") == page


def test_ours_is_compared_with_the_best_of_the_others_fold_by_fold(tmp_path, monkeypatch):
    errors = {imputation.OURS: (0.22, 0.44), "one": (0.2, 0.4), "other": (0.5, 0.5)}

    def fake(name, table, fold, seed, n_jobs):
        found = {m: {"numbers": e[fold], "categories": e[fold], "covered": None} for m, e in errors.items()}
        return {"imputation": found, "densities": {imputation.OURS: -1.0}, "seconds": 1.0}

    monkeypatch.setattr(imputation, "measure_fold", fake)
    monkeypatch.setattr(imputation, "PEERS", ("one", "other"))
    monkeypatch.setattr(imputation, "FOLDS", 2)
    found = imputation.run("iris", 0, 1, tmp_path, "")
    assert "| numbers | +10% ±3% (one) |" in imputation.lines_of([found])


def test_a_run_that_is_stopped_goes_on_with_the_next_fold(tmp_path, monkeypatch):
    measured = []

    def fake(name, table, fold, seed, n_jobs):
        if len(measured) == 2:
            measured.append("stopped")
            raise KeyboardInterrupt
        measured.append(fold)
        errors = {"numbers": float(fold), "categories": 0.1, "covered": None}
        return {"imputation": {imputation.OURS: errors}, "densities": {imputation.OURS: -1.0}, "seconds": 1.0}

    monkeypatch.setattr(imputation, "measure_fold", fake)
    monkeypatch.setattr(imputation, "PEERS", ())
    with pytest.raises(KeyboardInterrupt):
        imputation.run("iris", 0, 1, tmp_path, "")
    partial = json.loads((tmp_path / "iris.json").read_text())
    assert partial["imputation"][imputation.OURS]["numbers"]["mean"] == 0.5
    assert any("iris (2 of 5 folds)" in line for line in imputation.lines_of([partial]))
    whole = imputation.run("iris", 0, 1, tmp_path, "")
    assert measured == [0, 1, "stopped", 2, 3, 4]
    assert whole["imputation"][imputation.OURS]["numbers"]["mean"] == 2.0
    assert not any("of 5 folds" in line for line in imputation.lines_of([whole]))
    # what is whole is measured anew, and so is what was asked otherwise
    imputation.run("iris", 0, 1, tmp_path, "")
    assert measured[6:] == [0, 1, 2, 3, 4]
    monkeypatch.setattr(imputation, "REMOVED", 0.4)
    imputation.run("iris", 0, 1, tmp_path, "")
    assert measured[11:] == [0, 1, 2, 3, 4]
