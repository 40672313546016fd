"""Missing cells are hidden variables: better than dropping rows and than filling them first."""

import numpy as np
import pytest

from ldfm import LDFM
from ldfm.learning import likelihood
from ldfm.learning.completion import CompletedRows
from ldfm.learning.likelihood import divide_known
from ldfm.learning.priors import ModifiedDirichlet
from ldfm.networks import load
from ldfm.tables import unmerged
from models import random_weights
from oracles.joint import joint_table
from statistics_checks import FALSE_ALARM, p_value

SETTINGS = {
    "generation": {"max_iter": 30, "prior": ModifiedDirichlet(1.0, 1e-3)},
    "likelihood": {"max_iter": 200},
}


def with_gaps(rows: int, share: float, seed: int = 0) -> dict[str, list]:
    rng = np.random.default_rng(seed)
    table = load("asia").sample(rows, seed=seed)
    return {name: [None if rng.random() < share else cell for cell in cells] for name, cells in table.items()}


def complete_rows(table: dict[str, list]) -> dict[str, list]:
    kept = [row for row in zip(*table.values(), strict=True) if None not in row]
    return dict(zip(table, map(list, zip(*kept, strict=True)), strict=True))


def most_frequent(table: dict[str, list]) -> dict[str, list]:
    filled = {}
    for name, cells in table.items():
        seen = [cell for cell in cells if cell is not None]
        usual = max(sorted(set(seen)), key=seen.count)
        filled[name] = [usual if cell is None else cell for cell in cells]
    return filled


@pytest.mark.parametrize("objective", ["generation", "likelihood"])
def test_held_out_rows_are_more_probable_than_after_filling(objective):
    table, held_out = with_gaps(1500, 0.3), load("asia").sample(1000, seed=9)
    settings = {"objective": objective, "random_state": 0, "n_jobs": 1, **SETTINGS[objective]}
    score = LDFM(**settings).fit(table).score(held_out)
    assert score > LDFM(**settings).fit(most_frequent(table)).score(held_out) + 0.05


def test_held_out_rows_are_more_probable_than_after_dropping_rows():
    """On the likelihood only: EM learns a model that fits less well, and completes rows by it."""
    table, held_out = with_gaps(4000, 0.3), load("asia").sample(1000, seed=9)
    settings = {"max_iter": 1000, "random_state": 0, "n_jobs": 1}
    score = LDFM(**settings).fit(table).score(held_out)
    assert score > LDFM(**settings).fit(complete_rows(table)).score(held_out) + 0.005


def test_few_states_are_drawn_exactly():
    weights = random_weights((2, 3, 2), 1, decades=1.5)
    joint = joint_table(weights.table, weights.stop, (2, 3, 2))
    codes = np.full((4000, 3), -1)
    codes[:, 1] = 2
    completed = CompletedRows(unmerged(codes), (2, 3, 2), (0,))
    completed.redraw(weights, 1, 1, 1)
    assert len(completed.codes) == 4 * 4000
    assert (completed.codes[:, 1] == 2).all()
    expected = {(a, b): float(p) for (a, b), p in np.ndenumerate(joint[:, 2] / joint[:, 2].sum())}
    assert p_value([(int(a), int(b)) for a, _, b in completed.codes], expected) > FALSE_ALARM
    before = completed.codes.copy()
    completed.redraw(weights, 2, 1, 1, np.array([0, 5]))
    assert (before[1:5] == completed.codes[1:5]).all()


@pytest.mark.parametrize("objective", ["generation", "likelihood"])
def test_a_column_missing_in_half_of_the_rows(objective):
    table, held_out = load("asia").sample(1200, seed=0), load("asia").sample(500, seed=9)
    settings = {"objective": objective, "random_state": 0, "n_jobs": 1, **SETTINGS[objective]}
    whole = LDFM(**settings).fit(table)
    half = LDFM(**settings).fit({**table, "either": [None if i % 2 else c for i, c in enumerate(table["either"])]})
    assert half.score(held_out) > whole.score(held_out) - 0.1
    again = LDFM(**settings).fit({**table, "either": [None if i % 2 else c for i, c in enumerate(table["either"])]})
    assert np.array_equal(again.weights_.table, half.weights_.table)


@pytest.mark.parametrize("states", [likelihood.MAX_STATES, 1])
def test_rows_with_missing_cells_are_held_out(states, monkeypatch):
    """A table without a complete row has something to choose its pull by, whether rows can be enumerated or not."""
    table = with_gaps(300, 0.3)
    table["either"] = [None] * 150 + table["either"][150:]
    table["smoke"] = table["smoke"][:150] + [None] * 150
    judged, judge = [], likelihood.LikelihoodFit._held_out_scores

    def judge_and_note(self, weights, draws, held_out):
        scores = judge(self, weights, draws, held_out)
        judged.append((held_out.codes, scores))
        return scores

    monkeypatch.setattr(likelihood.LikelihoodFit, "_held_out_scores", judge_and_note)
    monkeypatch.setattr(likelihood, "MAX_STATES", states)
    monkeypatch.setattr(likelihood, "MAX_ENUMERATED", states)
    model = LDFM(max_iter=12, random_state=0, n_jobs=1).fit(table)
    assert len(judged) > 1
    for codes, scores in judged:
        assert (codes == -1).any(axis=1).all()
        assert np.isfinite(scores).all()
        assert scores.std() > 0
    assert np.isnan(model.history_.validation).all()  # which is of whole rows


@pytest.mark.parametrize("seed", range(5))
def test_known_cells_are_divided_and_no_others(seed):
    rng = np.random.default_rng(seed)
    known = rng.random((200, 7)) < 0.6
    places = rng.permuted(np.tile(np.arange(7), (200, 1)), axis=1)
    asked, given = divide_known(known, places)
    counts = known.sum(axis=1)
    some = counts > 0
    assert not (asked & given).any()
    assert not (given & ~known).any()
    assert not (asked & ~known)[some].any()
    assert (asked.sum(axis=1) == np.maximum(1, 2 * counts // 5))[some].all()
    assert (given.sum(axis=1) == counts // 3).all()
    whole = divide_known(np.ones_like(known), places)
    assert (whole[0] == (places < 2)).all()
    assert (whole[1] == (places >= 5)).all()


@pytest.mark.parametrize("objective", ["generation", "likelihood"])
def test_a_column_missing_everywhere_is_named(objective):
    table = load("asia").sample(50, seed=0)
    with pytest.raises(ValueError, match=r"^column 'lung': all cells are missing$"):
        LDFM(objective=objective).fit({**table, "lung": [None] * 50})


def test_rows_without_any_cell_count_nothing_much():
    table = {name: [*cells, None] for name, cells in with_gaps(200, 0.0).items()}
    model = LDFM(objective="generation", max_iter=10, random_state=0, n_jobs=1).fit(table)
    assert np.isfinite(model.score(load("asia").sample(50, seed=0)))
