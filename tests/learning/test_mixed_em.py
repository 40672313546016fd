"""EM and learning on the likelihood for mixed tables."""

from dataclasses import replace

import numpy as np
import pytest

from ldfm.forests import log_sums
from ldfm.independent_draws import PlainModel
from ldfm.learning import Dirichlet, EMSettings, ModifiedDirichlet, fit_generation
from ldfm.learning.mixed_em import first_weights, fit_normals
from ldfm.learning.mixed_likelihood import MixedLikelihoodFit, MixedLikelihoodSettings
from ldfm.mixed_weights import MixedWeights
from mixed_models import merged, random_cells, random_mixed, related

ONE = EMSettings(max_iter=25, tol=0.0, n_jobs=1)


@pytest.mark.parametrize("variant", ["ldfm", "ldfm-s"])
@pytest.mark.parametrize("prior", [None, Dirichlet(1.5), ModifiedDirichlet(0.0, 1e-4)])
@pytest.mark.parametrize("kinds", [(0, 0, 3, 2), (0, 0, 0)])
@pytest.mark.parametrize("relations", [False, True])
def test_the_objective_never_falls(variant, prior, kinds, relations):
    model = random_mixed(kinds, 1)
    rows = merged(random_cells(model, 300, 2))
    uniform = MixedWeights.uniform(model.cardinalities, model.continuous, variant)
    if relations:
        uniform = related(uniform, 3)
    weights, history = fit_generation(rows, first_weights(rows, uniform), prior, ONE)
    assert (np.diff(history.objective) > -1e-9).all()
    assert history.objective[-1] > history.objective[0] + 0.01
    assert weights.is_normalised


def test_the_fit_of_one_arc_is_a_ridge_regression():
    rng = np.random.default_rng(0)
    x, c = rng.normal(size=200), rng.uniform(size=200)
    y = 0.5 + 2.0 * x + 0.3 * rng.normal(size=200)
    sums = np.array([c.sum(), c @ x, c @ x**2, c @ y, c @ (x * y), c @ y**2])[:, None, None]
    a, b, v = (float(part[0, 0]) for part in fit_normals(sums))

    def penalised(a, b, v):
        squares = c @ (y - a - b * x) ** 2 + 0.1 * (a * a + b * b) + 1.0
        return -0.5 * (c.sum() + 1.0) * np.log(v) - squares / (2 * v)

    best = penalised(a, b, v)
    for change in np.random.default_rng(1).normal(size=(200, 3)) * 0.01:
        assert penalised(a + change[0], b + change[1], v * np.exp(change[2])) < best


def tree_generator():
    """Ten variables on one tree: values, numbers, and both kinds of arcs between them, with the arcs' places."""
    kinds = (3, 0, 0, 2, 0, 0, 3, 0, 0, 2)
    parents = (-1, 0, 1, 1, 3, 2, 5, 6, 7, 8)
    model = random_mixed(kinds, 11)
    rng = np.random.default_rng(12)
    table = np.zeros(model.table.shape)
    for child, parent in enumerate(parents):
        columns = slice(model.offsets[child], model.offsets[child + 1])
        rows = [0] if parent < 0 else range(1 + model.offsets[parent], 1 + model.offsets[parent + 1])
        for row in rows:
            numeric_parent = parent >= 0 and model.continuous[parent]
            k = model.cardinalities[child]
            table[row, columns] = 1.0 if numeric_parent or model.continuous[child] else rng.dirichlet(np.full(k, 5.0))
    return replace(model, table=table, stop=None), parents


def draw_tree(model, parents, rows, rng):
    cells = np.zeros((rows, len(parents)))
    for child, parent in enumerate(parents):
        columns = np.arange(model.offsets[child], model.offsets[child + 1])
        number = parent >= 0 and model.continuous[parent]
        row = np.zeros(rows, dtype=int) if parent < 0 else 1 + model.offsets[parent] + (
            0 if number else cells[:, parent].astype(int)
        )  # fmt: skip
        row = np.broadcast_to(row, rows)
        x = cells[:, parent] if number else np.zeros(rows)
        if model.continuous[child]:
            means = model.intercepts[row, columns[0]] + model.slopes[row, columns[0]] * x
            cells[:, child] = means + model.deviations[row, columns[0]] * rng.normal(size=rows)
            continue
        if number:
            logits = model.intercepts[row][:, columns] + model.slopes[row][:, columns] * x[:, None]
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        else:
            shares = model.table[row][:, columns]
        shares = shares / shares.sum(axis=1, keepdims=True)
        cells[:, child] = (rng.random(rows)[:, None] > np.cumsum(shares, axis=1)).sum(axis=1)
    return cells


def test_a_known_generator_is_recovered():
    model, parents = tree_generator()
    cells = draw_tree(model, parents, 20_000, np.random.default_rng(13))
    uniform = MixedWeights.uniform(model.cardinalities, model.continuous, "ldfm")
    # arcs of other directions would give the same rows: leave those of the tree alone
    start = first_weights(merged(cells), replace(uniform, table=np.where(model.table > 0, uniform.table, 0.0)))
    found, _ = fit_generation(merged(cells), start, None, EMSettings(max_iter=12, tol=0.0, n_jobs=1))
    distances = []
    for child, parent in enumerate(parents):
        columns = slice(model.offsets[child], model.offsets[child + 1])
        number = parent >= 0 and model.continuous[parent]
        rows = [0] if parent < 0 else range(1 + model.offsets[parent], 1 + model.offsets[parent + 1])
        for place, row in enumerate(rows):
            here = np.ones(len(cells), dtype=bool) if parent < 0 or number else cells[:, parent] == place
            x = np.column_stack([np.ones(here.sum()), cells[here, parent] if number else np.zeros(here.sum())])
            if model.continuous[child]:
                t = columns.start
                deviation = model.deviations[row, t]
                spread = np.sqrt(np.diag(np.linalg.pinv(x.T @ x))) * deviation
                distances.append((found.intercepts[row, t] - model.intercepts[row, t]) / spread[0])
                if number:
                    distances.append((found.slopes[row, t] - model.slopes[row, t]) / spread[1])
                distances.append((found.deviations[row, t] / deviation - 1.0) * np.sqrt(2 * here.sum()))
            elif number:
                # only differences of logits are known, those to the first value
                logits = x @ np.stack([model.intercepts[row, columns], model.slopes[row, columns]])
                shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
                curvatures = (
                    np.einsum("ra,ab->rab", shares, np.eye(shares.shape[1])) - shares[:, :, None] * shares[:, None]
                )
                information = np.einsum("rab,rp,rq->apbq", curvatures[:, 1:, 1:], x, x)
                size = 2 * (shares.shape[1] - 1)
                spread = np.sqrt(np.diag(np.linalg.inv(information.reshape(size, size)))).reshape(-1, 2)
                off = np.stack(
                    [(found.intercepts - model.intercepts)[row, columns], (found.slopes - model.slopes)[row, columns]]
                )
                distances += list(((off[:, 1:] - off[:, :1]).T / spread).ravel())
            else:
                p = model.table[row, columns]
                distances += list((found.table[row, columns] - p) / np.sqrt(p * (1 - p) / here.sum()))
    assert len(distances) > 30
    assert np.abs(distances).max() < 3.0
    # and not closer than chance lets them be
    assert 0.6 < np.sqrt(np.mean(np.square(distances))) < 1.3


def test_a_gaussian_tree_is_matched_in_density():
    rng = np.random.default_rng(5)
    parents, slopes = (-1, 0, 0, 1, 1, 4), (0.0, 0.9, -0.7, 0.5, 0.8, -0.95)

    def draw(rows):
        cells = np.zeros((rows, 6))
        for j, (parent, slope) in enumerate(zip(parents, slopes, strict=True)):
            above = cells[:, parent] if parent >= 0 else 0.0
            cells[:, j] = slope * above + np.sqrt(1 - slope**2) * rng.normal(size=rows)
        return cells

    train, test = draw(4000), draw(4000)
    true_fit = 0.0
    for j, parent in enumerate(parents):
        x = np.column_stack([np.ones(4000), train[:, parent] if parent >= 0 else np.zeros(4000)])
        beta = np.linalg.lstsq(x, train[:, j], rcond=None)[0]
        variance = np.mean((train[:, j] - x @ beta) ** 2)
        means = beta[0] + beta[1] * (test[:, parent] if parent >= 0 else 0.0)
        true_fit += np.mean(-0.5 * np.log(2 * np.pi * variance) - (test[:, j] - means) ** 2 / (2 * variance))
    uniform = MixedWeights.uniform((1,) * 6, (True,) * 6, "ldfm-s")
    rows = merged(train)
    fit = MixedLikelihoodFit(rows, first_weights(rows, uniform), MixedLikelihoodSettings(n_jobs=1), 0)
    weights, history, draws = fit.run()
    score = log_sums(weights, test).mean() - PlainModel(weights).log_partition
    assert score > true_fit - 0.01
    assert history.objective[-1] == pytest.approx(log_sums(weights, train).mean() - PlainModel(weights).log_partition)
    assert draws.shape[1] == 6


def test_missing_cells_leave_a_fit_near_that_of_complete_rows():
    model = random_mixed((0, 0, 0), 9)
    cells = PlainModel(model).draw(1500, np.random.default_rng(1))
    holes = np.where(np.random.default_rng(2).random(cells.shape) < 0.25, np.nan, cells)
    uniform = MixedWeights.uniform((1,) * 3, (True,) * 3, "ldfm-s")
    scores = []
    for rows in (merged(cells), merged(holes)):
        fit = MixedLikelihoodFit(rows, first_weights(rows, uniform), MixedLikelihoodSettings(60, n_jobs=1), 0)
        weights, _, _ = fit.run()
        scores.append(log_sums(weights, cells).mean() - PlainModel(weights).log_partition)
    filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    fit = MixedLikelihoodFit(
        merged(filled), first_weights(merged(filled), uniform), MixedLikelihoodSettings(60, n_jobs=1), 0
    )
    weights, _, _ = fit.run()
    by_means = log_sums(weights, cells).mean() - PlainModel(weights).log_partition
    assert scores[1] > scores[0] - 0.05
    assert scores[1] > by_means + 0.05


def test_the_likelihood_of_a_mixed_table_beats_generation():
    model = random_mixed((0, 0, 2, 0), 21)
    from ldfm.mixed_draws import anneal, find_log_partition

    cells = np.asarray(anneal(model, 1024, (0, 1), 1, spread=0.5).codes, dtype=np.float64)
    rows = merged(cells[:512])
    first = first_weights(rows, MixedWeights.uniform(model.cardinalities, model.continuous, "ldfm-s"))
    scores = {}
    by_em, _ = fit_generation(rows, first, None, ONE)
    fit = MixedLikelihoodFit(rows, first, MixedLikelihoodSettings(80, n_jobs=1), 0)
    for name, weights in (("generation", by_em), ("likelihood", fit.run()[0]), ("truth", model)):
        partition, error = find_log_partition(weights, 256, (0, 2), 1)
        assert error < 0.1
        scores[name] = log_sums(weights, cells[512:]).mean() - partition
    assert scores["likelihood"] > scores["generation"] - 0.02
    assert scores["likelihood"] > scores["truth"] - 0.25
