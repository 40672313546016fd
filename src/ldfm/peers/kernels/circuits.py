"""Sums and products of trees: exact answers by one pass up and one down.

A circuit is a tree of nodes whose leaves are tree-structured distributions over some of the variables (their scope). A sum mixes
children of one scope, a product joins children of disjoint scopes. Nodes come children first; the root is the last. Arrays:

    kinds, parents, log_weights (nodes,)    what a node is, its parent's number (-1: root), log of its weight under a sum
    leaves (nodes,)                         number of a leaf among leaves, -1 for other nodes
    starts (leaves + 1,)                    the places of each leaf's variables, parents first, in the next arrays
    variables, above, tables (places,)      variable; the place of its parent (-1: none); where its table starts in
    probabilities                           tables p(value | parent's value), row by row; one row where there is no parent
    cardinalities (n,)                      numbers of values of variables
"""

from math import exp, inf, log
from typing import NamedTuple

import numpy as np
from numba import njit

from ldfm.types import Floats, Integers

LEAF, SUM, PRODUCT = 0, 1, 2


class Circuit(NamedTuple):
    """See the module."""

    kinds: Integers
    parents: Integers
    log_weights: Floats
    leaves: Integers
    starts: Integers
    variables: Integers
    above: Integers
    tables: Integers
    probabilities: Floats
    cardinalities: Integers


@njit(nogil=True, cache=True, error_model="numpy")
def _heads(circuit, parent, codes):
    """Give the range of values that a parent may have; 0..0 where there is none."""
    if parent < 0:
        return 0, 1
    code = codes[circuit.variables[parent]]
    if code >= 0:
        return code, code + 1
    return 0, circuit.cardinalities[circuit.variables[parent]]


@njit(nogil=True, cache=True, error_model="numpy")
def _send_up(circuit, leaf, codes, messages, below):
    """Fill `below` (places, most values), and `messages` to the parent's values, of one leaf; give the log of its probability.

    `codes` are -1 for what is summed out. Both are scaled to a largest entry of 1.
    """
    low, high = circuit.starts[leaf], circuit.starts[leaf + 1]
    total = 0.0
    for place in range(low, high):
        below[place - low, : circuit.cardinalities[circuit.variables[place]]] = 1.0
    for place in range(high - 1, low - 1, -1):
        j = circuit.variables[place]
        k = circuit.cardinalities[j]
        code = codes[j]
        parent = circuit.above[place]
        first, last = _heads(circuit, parent, codes)
        start = circuit.tables[place]
        largest = 0.0
        for u in range(first, last):
            if code >= 0:
                told = circuit.probabilities[start + u * k + code] * below[place - low, code]
            else:
                told = 0.0
                for v in range(k):
                    told += circuit.probabilities[start + u * k + v] * below[place - low, v]
            messages[place - low, u] = told
            largest = max(largest, told)
        if largest == 0.0:
            return -inf
        total += log(largest)
        for u in range(first, last):
            messages[place - low, u] /= largest
            if parent >= 0:
                below[parent - low, u] *= messages[place - low, u]
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def _send_down(circuit, leaf, codes, messages, below, beliefs):
    """Fill `beliefs` (places, most values) with the posterior of each variable of one leaf, after `_send_up`."""
    low, high = circuit.starts[leaf], circuit.starts[leaf + 1]
    for place in range(low, high):
        j = circuit.variables[place]
        k = circuit.cardinalities[j]
        parent = circuit.above[place]
        first, last = _heads(circuit, parent, codes)
        start = circuit.tables[place]
        total = 0.0
        for v in range(k):
            beliefs[place - low, v] = 0.0
        for u in range(first, last):
            weight = 1.0
            if parent >= 0:
                weight = beliefs[parent - low, u]
                if weight > 0.0:
                    weight /= messages[place - low, u]
            if weight > 0.0:
                for v in range(k):
                    if codes[j] < 0 or codes[j] == v:
                        part = weight * circuit.probabilities[start + u * k + v] * below[place - low, v]
                        beliefs[place - low, v] += part
                        total += part
        for v in range(k):
            beliefs[place - low, v] /= total


@njit(nogil=True, cache=True, error_model="numpy")
def evaluate(circuit, codes, values, messages, below):
    """Fill `values` (nodes,) with the log probability of the known cells of one row under each node; give the root's."""
    nodes = circuit.kinds.shape[0]
    largest = np.full(nodes, -inf)
    for node in range(nodes):
        if circuit.kinds[node] == LEAF:
            values[node] = _send_up(circuit, circuit.leaves[node], codes, messages, below)
        else:
            values[node] = 0.0
    for node in range(nodes):  # children come first, so that a node is complete when its turn comes
        if circuit.kinds[node] == SUM:
            values[node] = largest[node] + log(values[node]) if largest[node] > -inf else -inf
        parent = circuit.parents[node]
        if parent < 0:
            continue
        if circuit.kinds[parent] == PRODUCT:
            values[parent] += values[node]
        else:
            term = circuit.log_weights[node] + values[node]
            if term > largest[parent]:
                values[parent] = values[parent] * exp(largest[parent] - term) + 1.0
                largest[parent] = term
            elif term > -inf:
                values[parent] += exp(term - largest[parent])
    return values[nodes - 1]


@njit(nogil=True, cache=True, error_model="numpy")
def _share_down(circuit, values, shares):
    """Fill `shares` (nodes,) with the posterior probability that the draw of a row passes through each node."""
    nodes = circuit.kinds.shape[0]
    shares[nodes - 1] = 1.0
    for node in range(nodes - 2, -1, -1):
        parent = circuit.parents[node]
        shares[node] = shares[parent]
        if circuit.kinds[parent] == SUM:
            shares[node] *= exp(circuit.log_weights[node] + values[node] - values[parent])


@njit(nogil=True, cache=True, error_model="numpy")
def log_probabilities(circuit, codes, logs):
    """Fill `logs` (rows,) with the log probability of the known cells of `codes` (rows, n)."""
    n = codes.shape[1]
    most = circuit.cardinalities.max()
    values = np.empty(circuit.kinds.shape[0])
    messages, below = np.empty((n, most)), np.empty((n, most))
    for row in range(codes.shape[0]):
        logs[row] = evaluate(circuit, codes[row], values, messages, below)


@njit(nogil=True, cache=True, error_model="numpy")
def node_shares(circuit, codes, logs, shares):
    """Fill `logs` (rows,) as `log_probabilities` does and `shares` (rows, nodes) with P(node | row)."""
    n = codes.shape[1]
    most = circuit.cardinalities.max()
    values = np.empty(circuit.kinds.shape[0])
    messages, below = np.empty((n, most)), np.empty((n, most))
    for row in range(codes.shape[0]):
        logs[row] = evaluate(circuit, codes[row], values, messages, below)
        _share_down(circuit, values, shares[row])


@njit(nogil=True, cache=True, error_model="numpy")
def query(circuit, codes, asked, joint, marginal):
    """Fill `joint` and `marginal` (rows,): log p(query | evidence), and the sum over query cells of log p(cell | evidence).

    `codes` (rows, n) are -1 where hidden; `asked` says which known cells are query. NaN where the evidence is impossible.
    """
    rows, n = codes.shape
    nodes, most = circuit.kinds.shape[0], circuit.cardinalities.max()
    values, shares = np.empty(nodes), np.empty(nodes)
    messages, below, beliefs = np.empty((n, most)), np.empty((n, most)), np.empty((n, most))
    evidence, chances = np.empty(n, dtype=np.int64), np.empty(n)
    for row in range(rows):
        for j in range(n):
            evidence[j] = -1 if asked[row, j] else codes[row, j]
        given = evaluate(circuit, evidence, values, messages, below)
        if given == -inf:
            joint[row] = marginal[row] = np.nan
            continue
        _share_down(circuit, values, shares)
        chances[:] = 0.0
        for node in range(nodes):
            if circuit.kinds[node] != LEAF or shares[node] == 0.0:
                continue
            leaf = circuit.leaves[node]
            _send_up(circuit, leaf, evidence, messages, below)
            _send_down(circuit, leaf, evidence, messages, below, beliefs)
            for place in range(circuit.starts[leaf], circuit.starts[leaf + 1]):
                j = circuit.variables[place]
                if asked[row, j]:
                    chances[j] += shares[node] * beliefs[place - circuit.starts[leaf], codes[row, j]]
        marginal[row] = 0.0
        for j in range(n):
            if asked[row, j]:
                marginal[row] += log(chances[j])
        joint[row] = evaluate(circuit, codes[row], values, messages, below) - given
