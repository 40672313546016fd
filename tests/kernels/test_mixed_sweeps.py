"""Samplers of mixed rows against numerical integration, in units of their standard errors."""

from dataclasses import replace

import numpy as np
import pytest

from ldfm.kernels import mixed_sweeps
from ldfm.kernels.mixed_states import fill_conditionals
from ldfm.mixed_draws import anneal, move
from mixed_models import random_mixed, related
from oracles.mixed import Grid

CHAINS, SWEEPS = 1024, 24
LARGEST = 4.5  # standard errors: 28 comparisons reject a right sampler once in 5,000 runs


@pytest.fixture(scope="module", params=["unrelated", "related"])
def model(request):
    weights = random_mixed((0, 0, 3), 4)
    if request.param == "related":
        weights = related(weights, 5)
    return weights, Grid(weights, points=61), anneal(weights, CHAINS, (0, 1), 1, spread=0.3)


def features(cells):
    """Give what is compared: moments, a product, and indicators of values."""
    a, b, k = cells[:, 0], cells[:, 1], cells[:, 2]
    return np.column_stack([a, b, a * a, a * b, k == 0, k == 1, a * (k == 0)])


def distances(weights, grid, start, kernel, known):
    """Give how many standard errors the means over chains are from the integrals."""
    cells, parents = np.array(start.codes, dtype=np.float64), start.parents.copy()
    given = ~np.isnan(known)
    cells[:, given] = known[given]
    tiled = np.tile(known, (CHAINS, 1))
    move(weights.model, tiled, cells, parents, 30, (1, kernel), 1, kernel)
    records = []
    for sweep in range(SWEEPS):
        move(weights.model, tiled, cells, parents, 1, (2, kernel, sweep), 1, kernel)
        records.append(features(cells))
    means = np.array(records).mean(axis=0)
    expected = grid.shares(known) @ features(grid.cells)
    errors = means.std(axis=0, ddof=1) / np.sqrt(CHAINS)
    moving = errors > 0
    return np.abs(means.mean(axis=0) - expected)[moving] / errors[moving]


KERNELS = [mixed_sweeps.BLOCKED, mixed_sweeps.TREE, mixed_sweeps.GIBBS, mixed_sweeps.BOTH]


@pytest.mark.parametrize("kernel", KERNELS)
def test_samplers_agree_with_integration(model, kernel):
    weights, grid, start = model
    assert distances(weights, grid, start, kernel, np.full(3, np.nan)).max() < LARGEST


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_samplers_agree_with_integration_given_a_cell(model, kernel, place):
    weights, grid, start = model
    known = np.full(3, np.nan)
    known[place] = 2.0 if place == 2 else 0.0
    assert distances(weights, grid, start, kernel, known).max() < LARGEST


def test_a_biased_sampler_is_found_out(model):
    weights, grid, start = model
    biased = replace(weights, slopes=weights.slopes + 0.1)
    assert distances(biased, grid, start, mixed_sweeps.BOTH, np.full(3, np.nan)).max() > LARGEST


def test_the_partition_by_annealing_is_the_integral(model):
    _, grid, start = model
    assert abs(start.value - grid.log_partition) < 4 * start.standard_error
    assert start.standard_error < 0.05


def test_conditionals_of_a_cell_integrate_to_one(model):
    # given the forest without the arc into it: over all values, or over a fine grid of numbers
    weights, _, start = model
    cells, parents = np.array(start.codes[:40], dtype=np.float64), start.parents[:40]
    found, known = np.empty((40, 1)), np.full(3, np.nan)
    totals = np.zeros((40, 3))
    for place, points in ((0, np.linspace(-9, 9, 721)), (1, np.linspace(-9, 9, 721)), (2, np.arange(3.0))):
        width = points[1] - points[0] if place < 2 else 1.0
        for point in points:
            values = np.full(3, point)
            fill_conditionals(weights.model, known, cells, parents, np.array([place]), values, found)
            totals[:, place] += width * np.exp(found[:, 0])
    np.testing.assert_allclose(totals, 1.0, rtol=2e-3)
