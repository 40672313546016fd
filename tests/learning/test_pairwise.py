"""The weights that pairs of columns give, against counting."""

import numpy as np
import pytest

from ldfm.learning.pairwise import pair_means, pairwise_weights
from ldfm.tables import MISSING, merge_rows

CARDINALITIES = (2, 3, 4)


def rows_with_gaps(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(k, size=60) for k in CARDINALITIES], axis=1)
    codes[rng.random(codes.shape) < 0.2] = MISSING
    return codes


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_shares_of_rows_that_have_both_cells(seed):
    codes = rows_with_gaps(seed)
    weights = pairwise_weights(merge_rows(codes), CARDINALITIES)
    first = np.concatenate([[0], np.cumsum(CARDINALITIES)])
    for j, k in enumerate(CARDINALITIES):
        alone = np.array([(codes[:, j] == b).sum() + 0.5 for b in range(k)])
        alone /= alone.sum()
        assert weights.root[first[j] : first[j + 1]] == pytest.approx(alone)
        for i, parents in enumerate(CARDINALITIES):
            for a in range(parents) if i != j else ():
                both = np.array([((codes[:, i] == a) & (codes[:, j] == b)).sum() for b in range(k)])
                expected = (both + k * alone) / (both.sum() + k)
                assert weights.arcs[first[i] + a, first[j] : first[j + 1]] == pytest.approx(expected)


def test_weights_are_positive_where_an_arc_exists_even_without_rows():
    weights = pairwise_weights(merge_rows(np.full((1, 3), MISSING)), CARDINALITIES)
    assert (weights.table[weights.mask] > 0).all()
    assert (weights.table[~weights.mask] == 0).all()


def test_rows_count_as_often_as_their_weight_says():
    codes = rows_with_gaps(9)
    twice = pairwise_weights(merge_rows(codes, np.full(len(codes), 2.0)), CARDINALITIES)
    assert np.allclose(twice.table, pairwise_weights(merge_rows(np.vstack([codes, codes])), CARDINALITIES).table)


def test_means_are_those_of_all_arcs_of_two_variables():
    weights = pairwise_weights(merge_rows(rows_with_gaps(3)), CARDINALITIES)
    table = np.random.default_rng(0).normal(size=weights.table.shape) * weights.mask
    means = pair_means(table, CARDINALITIES)
    assert means.shape == table.shape
    assert np.allclose(means[0, 2:5], table[0, 2:5].mean())
    assert np.allclose(means[1:3, 5:9], table[1:3, 5:9].mean())
    assert np.allclose(means[6:10, 0:2], table[6:10, 0:2].mean())
    assert not means[~weights.mask].any()
