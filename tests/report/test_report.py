"""The page about a model and a table."""

import re

import numpy as np
import pytest
from scipy.stats import norm

from ldfm import LDFM, TableError
from ldfm.report import calibration, html, write_report
from ldfm.report.calibration import Predictions, bin_predictions, predict_cells, predict_numbers
from ldfm.report.changes import find_changes
from ldfm.tables import MISSING, encode, read_source
from models import random_weights, values_of

SHAPE = (2, 3, 2, 2)


def model_of(seed, shape=SHAPE, **settings):
    weights = random_weights(shape, seed, **settings)
    model = LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values_of(shape))
    return model.set_params(random_state=0, n_jobs=1)


def codes_of(table):
    return np.stack([[int(value[1:]) for value in column] for column in table.values()], axis=1)


def furthest(model, codes):
    """Give how many standard errors predictions are off at most, where there are enough of them."""
    bins = bin_predictions(list(predict_cells(model, codes, 0).values()))
    enough = bins.counts >= 50
    return float((np.abs(bins.predicted - bins.observed)[enough] / bins.errors[enough]).max())


def test_a_model_is_calibrated_on_its_own_draws_and_another_is_not():
    model = model_of(0)
    codes = codes_of(model.sample(2000))
    # ten bins at 5 standard errors: a false alarm in a hundred thousand
    assert furthest(model, codes) < 5
    assert furthest(model_of(1), codes) > 5


def test_numbers_are_calibrated_on_rows_like_those_learned_from_and_on_others_not(monkeypatch):
    monkeypatch.setattr(calibration, "_SECONDS_A_ROW", 0.01)
    rng = np.random.default_rng(0)
    size = rng.normal(50.0, 10.0, 400)
    table = {"size": size, "weight": 2.0 * size + rng.normal(0.0, 9.0, 400)}
    model = LDFM(objective="generation", max_iter=20, random_state=0, n_jobs=1).fit(table)
    codes = encode(read_source(table), model.schema_).codes
    found = predict_numbers(model, codes, 0)
    assert len(found.numbers) == 120
    for place, column in enumerate(table.values()):
        part = found.of_variable(place)
        assert np.abs(part.numbers[:, None] - column).min(axis=1).max() < 1e-9
    levels, observed, errors = found.levels()
    assert (np.abs(observed - levels) < 4.5 * errors).all()
    assert 0.8 < found.covered < 0.98
    assert found.of_variable(1).error == pytest.approx(9.0, rel=0.35)
    wide = predict_numbers(model, 3.0 * codes * np.array([1.0, -1.0]), 0)
    assert wide.covered < 0.6


def test_incomplete_rows_have_one_cell_hidden_each():
    model = model_of(0)
    codes = codes_of(model.sample(400))
    codes[np.arange(400), np.arange(400) % 4] = MISSING
    parts = predict_cells(model, codes, 0)
    assert sum(len(part.codes) for part in parts.values()) == 60
    for place, part in parts.items():
        assert (codes[part.rows, place] == part.codes).all()
        hidden = {f"x{i}": [None if c < 0 else f"v{c}" for c in codes[part.rows, i]] for i in range(4)}
        hidden[f"x{place}"] = [None] * len(part.rows)
        np.testing.assert_allclose(part.shares, model.marginals(hidden).probabilities[f"x{place}"])


def test_bins_by_hand():
    shares = np.array([[0.9, 0.1], [0.8, 0.2], [0.85, 0.15]])
    bins = bin_predictions([Predictions(np.array([0, 1, 2]), np.array([0, 1, 0]), shares)])
    assert bins.counts.tolist() == [2, 1, 2, 1]
    np.testing.assert_allclose(bins.predicted, [0.125, 0.2, 0.825, 0.9])
    np.testing.assert_allclose(bins.observed, [0.0, 1.0, 0.5, 1.0])
    np.testing.assert_allclose(bins.errors, [0.0, 0.0, np.sqrt(0.5) / 2, 0.0])
    assert bins.gap == pytest.approx((2 * 0.125 + 0.8 + 2 * 0.325 + 0.1) / 6)


def test_the_change_that_was_put_in_is_found_first():
    root = [100, 1, 0, 0, 0, 0]
    arcs = np.zeros((6, 6))  # X1 = T: X3 can only come from X2; X1 = F: from X1 or, rarely, from X2
    arcs[[0, 0, 1, 1], [2, 3, 2, 3]] = 1.0
    arcs[1, [4, 5]] = 50.0
    arcs[[2, 3], [4, 5]] = 1.0
    values = {name: ["T", "F"] for name in ("X1", "X2", "X3")}
    model = LDFM.from_weights(root, arcs, values=values).set_params(random_state=0)
    table = model.sample(100)
    codes = np.stack([(table[name] == "F").astype(np.int64) for name in values], axis=1)
    found = find_changes(list(codes.T), model.arc_marginals(table))
    strongest = {(change.parent, change.child): change for change in found[:2]}
    assert set(strongest) == {(1, 2), (0, 2)}
    copied = strongest[1, 2]
    assert (copied.context, copied.high, copied.low, copied.high_share) == (0, 0, 1, 1.0)
    assert copied.low_share < 0.05
    assert {c.context for c in found} <= {0, 1, 2}
    of_others = find_changes(list(codes.T), model.arc_marginals(table), outside=True)
    assert of_others[0] == copied
    assert all(change.context not in (change.parent, change.child) for change in of_others)
    constant = np.repeat(model.arc_marginals(table)[:1], 100, axis=0)
    assert find_changes(list(codes.T), constant) == []


def codes_by(model, table):
    columns = zip(table.values(), model.schema_.columns, strict=True)
    return np.stack([[column.values.index(value) for value in cells] for cells, column in columns], axis=1)


def text_of(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_a_page_needs_nothing_but_itself_and_says_what_is_so(tmp_path):
    rows = {
        "a <b>": ["x&y", "x&y", "x&y", "z"] * 30,
        "b": ["x", "x", "x", "y"] * 28 + ["x"] * 8,
        "c": ["1", "2", "2"] * 40,
    }
    model = LDFM(objective="generation", max_iter=5, random_state=0).fit(rows)
    write_report(model, rows, tmp_path / "report.html", title="Rows & more")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|<script|<link|url\(", page)
    assert {source[:22] for source in re.findall(r"src='([^']+)'", page)} == {"data:image/png;base64,"}
    assert len(re.findall(r"<img alt='[^']+'", page)) == page.count("<img") >= 4
    assert "<title>Rows &amp; more</title>" in page
    assert "a &lt;b&gt;" in page
    assert "<b>" not in page
    titles = re.findall(r"<h2>([^<]+)</h2>", page)
    assert titles == [
        "The table",
        "The fit",
        "Strongest dependencies",
        "How dependencies change with the values",
        "Calibration",
        "Scores",
    ]
    assert "120 rows, 3 columns; 100.0% of the rows are complete." in text_of(page)
    assert f"mean log p(row), nats {model.score(rows):.4f} ±" in text_of(page)
    assert "360 cells" in text_of(page)
    # b is y in 28 of 120 cells
    alone = (28 * np.log(28 / 120) + 92 * np.log(92 / 120)) / 120
    predicted = predict_cells(model, codes_by(model, rows), 0)[1]
    assert f"b 120 {predicted.log_score:.3f} {alone:.3f} {100 * predicted.hits:.1f}% 76.7%" in text_of(page)
    write_report(model, rows, tmp_path / "again.html", title="Rows & more")
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "report.html").read_bytes()


def test_a_page_on_incomplete_rows_and_few_of_them(tmp_path):
    model = model_of(3)
    table = {name: list(cells) for name, cells in model.sample(40).items()}
    for place, cells in enumerate(table.values()):
        cells[place::4] = [None] * len(cells[place::4])
    write_report(model, table, tmp_path / "report.html", rows=20)
    text = text_of((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "40 rows, 4 columns; 0.0% of the rows are complete." in text
    assert "over 20 rows" in text
    assert "rows scored 20" in text
    assert "20 of 20 rows have missing cells: of some rows one known cell each is predicted." in text
    table = {name: [None, *cells[1:]] for name, cells in model.sample(40).items()}
    write_report(model, table, tmp_path / "report.html")
    text = text_of((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "156 cells of 39 rows" in text
    assert "Only complete rows count: 1 of 40 have missing cells and are left out." in text


def test_a_page_on_impossible_rows(tmp_path):
    table = np.zeros((4, 4))
    model = LDFM.from_weights([1, 0, 1, 0], table, values={"a": ["x", "y"], "b": ["x", "y"]})
    write_report(model, {"a": ["y", "y"], "b": ["y", "y"]}, tmp_path / "report.html")
    text = text_of((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "of probability zero 2" in text
    assert "There is no cell to predict" in text
    write_report(model, {"a": ["x", "x", "y"], "b": ["x", "x", "y"]}, tmp_path / "report.html")
    text = text_of((tmp_path / "report.html").read_text(encoding="utf-8"))
    # the mean of all rows is not that of the possible ones
    assert "of probability zero 1 mean log p(row), nats minus infinity: some have probability zero" in text
    assert "of the rows that are possible 0.0000" in text


def test_what_fails_leaves_no_page(tmp_path, monkeypatch):
    model = model_of(0)
    with pytest.raises(TableError, match="no rows"):
        write_report(model, {f"x{i}": [] for i in range(4)}, tmp_path / "report.html")
    with pytest.raises(ValueError, match="rows must be 1 or more"):
        write_report(model, model.sample(3), tmp_path / "report.html", rows=0)
    with pytest.raises(FileNotFoundError):
        write_report(model, model.sample(3), tmp_path / "nowhere" / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_tables_set_numbers_to_the_right():
    made = html.table(("name", "share"), [("a", "12.5%"), ("b", "-0.3 ± 0.1")])
    assert made.count("<td class=number>") == 2
    assert "<th class=number>share" in made
    assert "<th>name" in made


def test_a_page_on_continuous_columns(tmp_path):
    rng = np.random.default_rng(0)
    kind = rng.choice(["small", "large"], 150)
    length = np.where(kind == "small", 1.0, 4.0) + rng.normal(size=150)
    weight = 10 * length + rng.normal(size=150)
    rows = {"kind": kind.astype(object), "length": length, "weight": weight}
    model = LDFM(objective="generation", max_iter=10, random_state=0).fit(rows)
    write_report(model, rows, tmp_path / "report.html")
    text = text_of((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert f"{length.min():.4g} to {length.max():.4g}, median {np.median(length):.4g}" in text
    assert "150 cells" in text
    assert f"mean log p(row), nats {model.score(rows):.4f} ±" in text
    alone = sum(norm.logpdf(x, x.mean(), x.std()).mean() for x in (length, weight))
    share = np.mean(kind == "small")
    alone += share * np.log(share) + (1 - share) * np.log(1 - share)
    assert f"columns as if independent {alone:.4f}" in text
    holes = {
        "kind": np.where(rng.random(150) < 0.5, None, rows["kind"]),
        "length": np.where(rng.random(150) < 0.5, np.nan, length),
        "weight": np.where(rng.random(150) < 0.9, np.nan, weight),
    }
    write_report(model, holes, tmp_path / "holes.html", rows=30)
    assert "over 30 rows" in text_of((tmp_path / "holes.html").read_text(encoding="utf-8"))
