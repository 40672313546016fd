"""Weights that pairs of columns give: where learning on the likelihood starts, and what it is pulled to.

What is sure about the arc from a to b, before any forest is known, is how probable b is where a is: its weight is p(b | a) times
the strength of the dependency of the two variables. Strengths are one number a pair of variables, so they are learned freely; that
an arc differs from p(b | a) must be paid for.
"""

import numpy as np

from ldfm.kernels.pairs import add_pairs
from ldfm.tables import MergedRows
from ldfm.types import Floats
from ldfm.weights import ArcWeights


def pairwise_weights(rows: MergedRows, cardinalities: tuple[int, ...]) -> ArcWeights:
    """Give weights p(b | a), and p(b) for the root, counted where both cells are known; all positive.

    p(b) is smoothed with half a row a value, p(b | a) with as many rows of p(b) as the child has values.
    """
    uniform = ArcWeights.uniform(cardinalities, "ldfm")
    counts = np.zeros(uniform.table.shape)
    add_pairs(rows.codes, rows.weights, uniform.offsets, counts)
    kinds = np.repeat(cardinalities, cardinalities)
    alone = counts[0] + 0.5
    alone /= _sums(alone[None], uniform)[0]
    found = (counts + kinds * alone) / (_sums(counts, uniform) + kinds)
    found[0] = alone
    return ArcWeights(np.where(uniform.mask, found, 0.0), cardinalities)


def _sums(table: Floats, like: ArcWeights) -> Floats:
    """Sum over the values of each child."""
    return np.repeat(np.add.reduceat(table, like.offsets[:-1], axis=1), like.cardinalities, axis=1)


def pair_means(table: Floats, cardinalities: tuple[int, ...]) -> Floats:
    """Give (S + 1, S) the mean over all arcs from one variable, or from the root, to another; 0 inside a variable."""
    first = np.concatenate([[0], np.cumsum(cardinalities)[:-1]])
    down = np.add.reduceat(table, np.concatenate([[0], 1 + first]), axis=0)
    sizes = np.outer([1, *cardinalities], cardinalities)
    means = np.add.reduceat(down, first, axis=1) / sizes
    return np.repeat(np.repeat(means, [1, *cardinalities], axis=0), cardinalities, axis=1)
