"""Forest sums, marginals, statistics and forests of mixed rows, against enumeration and finite differences."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from ldfm import forests
from ldfm.kernels.elimination import schedule_of
from ldfm.kernels.mixed_arcs import fill_logs, log_sum_of_logs
from ldfm.kernels.wide_range import arc_marginals_of_logs, log_forest_sum_of_logs
from mixed_models import random_cells, random_mixed, related
from oracles.forests import enumerated_log_sum, enumerated_marginals, forest_weights
from oracles.mixed import Grid, arc_matrix, rests_of
from statistics_checks import FALSE_ALARM, p_value

KINDS = [(0, 0, 3, 2), (0, 0, 0), (2, 3, 0), (0,), (0, 1)]


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("stops", [True, False])
@pytest.mark.parametrize("change", [None, related])
def test_forest_sums_are_sums_over_all_forests(kinds, stops, change):
    weights = random_mixed(kinds, 1, stops=stops)
    if change is not None:
        weights = change(weights, 7)
    cells = random_cells(weights, 5, 2)
    root = 0.0 if weights.stop is None else np.log(weights.stop[0])
    lost = 0.0 if weights.relations is None else np.log(weights.relations.scales).sum()
    expected = [enumerated_log_sum(arc_matrix(weights, rests_of(weights, row))) + root - lost for row in cells]
    np.testing.assert_allclose(forests.log_sums(weights, cells), expected, rtol=1e-12)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("change", [None, related])
def test_arc_marginals_are_those_of_all_forests(kinds, change):
    weights = random_mixed(kinds, 3)
    if change is not None:
        weights = change(weights, 7)
    cells = random_cells(weights, 5, 4)
    expected = [enumerated_marginals(arc_matrix(weights, rests_of(weights, row))) for row in cells]
    np.testing.assert_allclose(forests.marginals_of_arcs(weights, cells), expected, rtol=1e-10, atol=1e-14)


def test_numbers_far_apart_leave_sums_and_marginals_right():
    # the root is less probable than each copy of the other by exp(-20000): no double holds that
    weights = random_mixed((0, 0), 5)
    weights = replace(
        weights,
        intercepts=np.zeros((3, 2)),
        slopes=np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]),
        deviations=np.where(np.arange(3)[:, None] > 0, 0.01, 1.0) * np.ones(2),
    )
    cells = np.array([[200.0, 200.0]])
    logs = np.empty((3, 2))
    fill_logs(weights.model, cells[0], logs)
    forest = np.logaddexp(logs[0, 0] + logs[1, 1], logs[0, 1] + logs[2, 0])  # both from the root weigh nothing beside
    expected = forest + np.log(weights.stop[0])
    assert forests.log_sums(weights, cells)[0] == pytest.approx(expected, rel=1e-12)
    marginals = forests.marginals_of_arcs(weights, cells)[0]
    np.testing.assert_allclose(marginals.sum(axis=0), 1.0)
    assert marginals[0, 0] == pytest.approx(np.exp(logs[0, 0] + logs[1, 1] - forest), rel=1e-9)
    drawn = forests.draws_of_forests(weights, cells, 200, np.random.SeedSequence(0))[0]
    assert {tuple(parents) for parents in drawn} <= {(-1, 0), (1, -1)}


@pytest.mark.parametrize("seed", range(4))
def test_the_ways_to_add_up_forests_agree(seed):
    weights = random_mixed((0, 2, 0, 3, 0), seed)
    logs = np.empty((6, 5))
    for cells in random_cells(weights, 6, seed):
        fill_logs(weights.model, cells, logs)
        expected = forests.log_sums(weights, cells[None])[0] - np.log(weights.stop[0])
        assert log_sum_of_logs(logs, np.empty((6, 5))) == pytest.approx(expected, rel=1e-12)
        assert log_forest_sum_of_logs(logs) == pytest.approx(expected, rel=1e-12)
        marginals = np.empty((6, 5))
        arc_marginals_of_logs(logs, schedule_of(5, 1), marginals)
        np.testing.assert_allclose(marginals, forests.marginals_of_arcs(weights, cells[None])[0], rtol=1e-9)


@pytest.mark.parametrize("change", [None, related])
def test_forests_are_drawn_in_proportion_to_their_weights(change):
    weights = random_mixed((0, 2, 0), 6)
    if change is not None:
        weights = change(weights, 7)
    cells = random_cells(weights, 1, 7)
    exact = forest_weights(arc_matrix(weights, rests_of(weights, cells[0])))
    total = sum(exact.values())
    drawn = forests.draws_of_forests(weights, cells, 4000, np.random.SeedSequence(1))[0]
    shares = {parents: float(weight / total) for parents, weight in exact.items()}
    assert p_value((tuple(parents) for parents in drawn.tolist()), shares) > FALSE_ALARM
    best = max(exact, key=lambda parents: exact[parents])
    assert tuple(forests.best_forests(weights, cells)[0]) == best
    assert Counter(map(tuple, drawn.tolist())).most_common(1)[0][0] == best


@pytest.fixture(scope="module", params=["unrelated", "related"])
def integrated(request):
    """A small model and its grid, stop weights left out."""
    weights = replace(random_mixed((0, 0, 2), 8), stop=None)
    if request.param == "related":
        weights = related(weights, 7)
    return weights, Grid(weights, points=61)


def test_statistics_are_the_gradient_of_the_partition(integrated):
    # d log partition / d parameter = E[marginal * d log weight / d parameter], by finite differences of the integral
    weights, grid = integrated
    sums = forests.expected_statistics(weights, grid.cells, grid.shares()).sums
    c, cx, cxx, cy, cxy, cyy = sums
    a, b, v = weights.intercepts, weights.slopes, weights.deviations**2
    squares = cyy - 2 * (a * cy + b * cxy) + a * a * c + 2 * a * b * cx + b * b * cxx
    normal = weights.mask & weights.numeric
    gradients = {
        "table": c,
        "intercepts": np.where(normal, (cy - a * c - b * cx) / v, cy),
        "slopes": np.where(normal, (cxy - a * cx - b * cxx) / v, cxy),
        "deviations": squares / v - c,
    }

    def log_partition(changed):
        return np.logaddexp.reduce(forests.log_sums(changed, grid.cells)) + grid.log_step

    for name, place in [
        ("table", (0, 0)), ("table", (1, 1)), ("table", (3, 0)), ("table", (2, 3)),
        ("intercepts", (0, 0)), ("intercepts", (3, 1)), ("intercepts", (1, 2)), ("slopes", (2, 3)), ("slopes", (1, 1)),
        ("deviations", (0, 0)), ("deviations", (4, 1)),
    ]:  # fmt: skip
        ends = []
        for step in (1e-4, -1e-4):
            array = getattr(weights, name).copy()
            in_logs = name in ("table", "deviations")
            array[place] = array[place] * np.exp(step) if in_logs else array[place] + step
            ends.append(log_partition(replace(weights, **{name: array})))
        assert (ends[0] - ends[1]) / 2e-4 == pytest.approx(gradients[name][place], abs=2e-6)
