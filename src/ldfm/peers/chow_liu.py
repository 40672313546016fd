"""The tree-structured distribution closest to a table of pairs (Chow and Liu, 1968)."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ldfm.types import Codes, Floats, Integers


class Tree(NamedTuple):
    """A tree-structured distribution over some variables.

    Attributes
    ----------
    variables
        (size,): variables, parents first.
    above
        (size,): place of each one's parent in `variables`, -1 for none.
    tables
        p(value | parent's value), (values of the parent or 1, values).
    """

    variables: Integers
    above: Integers
    tables: tuple[Floats, ...]


def one_hot(codes: Codes, offsets: Integers) -> Floats:
    """Give (rows, S): 1 where a row has the value."""
    cells = np.zeros((len(codes), int(offsets[-1])))
    cells[np.arange(len(codes))[:, None], offsets[:-1] + codes] = 1.0
    return cells


def pair_counts(cells: Floats, row_weights: Floats) -> Floats:
    """Give (S, S): the weight of the rows that have both values; the diagonal holds single values. O(rows S^2)."""
    counts: Floats = cells.T @ (cells * row_weights[:, None])
    return counts


def uniform_pairs(offsets: Integers) -> Floats:
    """Give the pair table of independent, uniform variables, (S, S)."""
    sizes = np.diff(offsets)
    single = np.repeat(1.0 / sizes, sizes)
    pairs = np.outer(single, single)
    for low, high in pairwise(offsets.tolist()):
        pairs[low:high, low:high] = np.diag(single[low:high])
    return pairs


def smoothed(counts: Floats, prior: Floats, strength: float) -> Floats:
    """Give the pair table of `counts` with `strength` rows like the pair table `prior` added; its marginals are consistent."""
    total = counts.diagonal().sum() / prior.diagonal().sum()  # the diagonal of a pair table sums to n
    pairs: Floats = (counts + strength * prior) / (total + strength)
    return pairs


def mutual_information(pairs: Floats, offsets: Integers) -> Floats:
    """Give (n, n): mutual information of each two variables under a pair table (S, S), in nats; entropies on the diagonal."""
    single = pairs.diagonal()
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = pairs * np.log(pairs / np.outer(single, single))
    terms[pairs <= 0] = 0.0
    starts = offsets[:-1]
    sums: Floats = np.add.reduceat(np.add.reduceat(terms, starts, axis=0), starts, axis=1)
    return sums


def heaviest_tree(weights: Floats) -> tuple[Integers, Integers]:
    """Give a spanning tree of largest weight (Prim, O(n^2)): nodes, parents first, and the place of each one's parent."""
    n = len(weights)
    order, above = np.zeros(n, dtype=np.int64), np.full(n, -1)
    best, nearest = np.array(weights[0], dtype=np.float64), np.zeros(n, dtype=np.int64)
    best[0] = -np.inf
    for place in range(1, n):
        chosen = int(np.argmax(best))
        order[place], above[place] = chosen, nearest[chosen]
        closer = (weights[chosen] > best) & (best > -np.inf)
        best[closer], nearest[closer] = weights[chosen][closer], place
        best[chosen] = -np.inf
    return order, above


def learn_tree(pairs: Floats, offsets: Integers) -> Tree:
    """Give the Chow-Liu tree of a smoothed pair table (S, S), all entries of which between variables are positive."""
    order, above = heaviest_tree(np.maximum(mutual_information(pairs, offsets), 0.0))
    tables = []
    for variable, parent in zip(order, above, strict=True):
        own = slice(offsets[variable], offsets[variable + 1])
        if parent < 0:
            table = pairs.diagonal()[own][None]
        else:
            head = order[parent]
            table = pairs[offsets[head] : offsets[head + 1], own]
        tables.append(table / table.sum(axis=1, keepdims=True))
    return Tree(order, above, tuple(tables))


class TreeLearner:
    """Learns trees from weighted rows: counts plus `strength` rows like the table of all rows.

    Parameters
    ----------
    codes, row_weights
        Complete rows.
    cardinalities
        Numbers of values.
    strength
        Weight of the prior, in rows.
    """

    def __init__(self, codes: Codes, row_weights: Floats, cardinalities: tuple[int, ...], strength: float) -> None:
        self.offsets = np.concatenate([[0], np.cumsum(cardinalities)])
        self.strength = strength
        self.cells = one_hot(codes, self.offsets)
        self.whole = smoothed(pair_counts(self.cells, row_weights), uniform_pairs(self.offsets), 1.0)

    def counts(self, row_weights: Floats, scope: Integers) -> tuple[Floats, Integers, Floats]:
        """Give the pair counts of the variables `scope` in rows of these weights, their offsets, and the prior of the pairs."""
        values = np.concatenate([np.arange(self.offsets[i], self.offsets[i + 1]) for i in scope])
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[scope])])
        kept = row_weights > 1e-9 * row_weights.max()
        return pair_counts(self.cells[kept][:, values], row_weights[kept]), offsets, self.whole[np.ix_(values, values)]

    def tree(self, row_weights: Floats, scope: Integers) -> Tree:
        """Learn a tree over the variables `scope`; O(rows S^2)."""
        counts, offsets, prior = self.counts(row_weights, scope)
        tree = learn_tree(smoothed(counts, prior, self.strength), offsets)
        return tree._replace(variables=scope[tree.variables])


def log_probabilities(tree: Tree, codes: Codes) -> Floats:
    """Give the log probability of the tree's variables in complete rows (rows, n)."""
    total = np.zeros(len(codes))
    for variable, parent, table in zip(tree.variables, tree.above, tree.tables, strict=True):
        heads = codes[:, tree.variables[parent]] if parent >= 0 else 0
        total += np.log(table)[heads, codes[:, variable]]
    return total
