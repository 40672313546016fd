"""Cells given the rest of their row, against the enumerated joint."""

from itertools import product

import numpy as np
import pytest

from ldfm.inference import log_conditionals
from ldfm.weights import ArcWeights
from models import random_weights
from oracles.joint import joint_table


@pytest.mark.parametrize("stops", [True, False])
def test_every_cell_given_the_others(stops):
    shape = (2, 3, 1, 2)
    weights = random_weights(shape, 5, stops=stops)
    joint = joint_table(weights.table, weights.stop, shape)
    codes = np.array(list(product(*map(range, shape))))
    for i, logs in enumerate(log_conditionals(weights, codes)):
        assert logs.shape == (len(codes), shape[i])
        conditional = np.moveaxis(joint / joint.sum(axis=i, keepdims=True), i, -1)
        others = np.delete(codes, i, axis=1)
        np.testing.assert_allclose(np.exp(logs), conditional[tuple(others.T)], rtol=1e-10)


def test_a_row_that_no_value_makes_possible_has_none():
    table = np.zeros((5, 4))
    table[0] = 1.0, 0.0, 1.0, 0.0
    first, second = log_conditionals(ArcWeights(table, (2, 2)), np.array([[0, 1], [0, 0]]))
    assert np.isnan(first[0]).all()
    assert np.exp(first[1]).tolist() == [1.0, 0.0]
    assert np.exp(second[0]).tolist() == [1.0, 0.0]
