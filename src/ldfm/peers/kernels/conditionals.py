"""Distribution of one variable given all others, in two kinds of models: the step of every Gibbs sampler here."""

from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload

from ldfm.types import Floats, Integers


class NetworkTables(NamedTuple):
    """A Bayesian network for Gibbs sampling: the conditional of a variable multiplies the tables it is in.

    Attributes
    ----------
    starts, tables, strides
        Table numbers of variable i, and how far its code reaches in each, are at starts[i] to starts[i + 1].
    scope_starts, scope, scope_strides
        Variables in a table and how far their codes reach, are at scope_starts[t] to scope_starts[t + 1].
    bases
        Where each table starts in `probabilities`.
    probabilities
        All tables.
    cardinalities
        Numbers of values.
    order
        (n,): parents before their children. Table i is that of variable i given its parents.
    """

    starts: Integers
    tables: Integers
    strides: Integers
    scope_starts: Integers
    scope: Integers
    scope_strides: Integers
    bases: Integers
    probabilities: Floats
    cardinalities: Integers
    order: Integers


class ProbabilityTrees(NamedTuple):
    """One probability tree a variable.

    Attributes
    ----------
    roots
        (n,): the node that the walk for a variable starts from.
    variables, codes
        (nodes,): what a node looks at; -1 for a leaf.
    otherwise, equal
        (nodes,): where to go on if the variable has another code, or this one. In a leaf `equal` is its row in `probabilities`.
    probabilities
        (leaves, most values).
    cardinalities
        Numbers of values.
    order
        (n,): the order of sweeps and clamps, that of columns.
    """

    roots: Integers
    variables: Integers
    codes: Integers
    otherwise: Integers
    equal: Integers
    probabilities: Floats
    cardinalities: Integers
    order: Integers


@njit(nogil=True, cache=True, error_model="numpy")
def _from_tables(model, state, i, counts, chances):
    k = model.cardinalities[i]
    for v in range(k):
        chances[v] = 1.0
    for at in range(model.starts[i], model.starts[i + 1]):
        table, stride = model.tables[at], model.strides[at]
        if table != i and not counts[table]:
            continue
        start = model.bases[table] - stride * state[i]
        for place in range(model.scope_starts[table], model.scope_starts[table + 1]):
            start += model.scope_strides[place] * state[model.scope[place]]
        for v in range(k):
            chances[v] *= model.probabilities[start + v * stride]


@njit(nogil=True, cache=True, error_model="numpy")
def _from_tree(model, state, i, chances):
    node = model.roots[i]
    while model.variables[node] >= 0:
        same = state[model.variables[node]] == model.codes[node]
        node = model.equal[node] if same else model.otherwise[node]
    leaf = model.equal[node]
    for v in range(model.cardinalities[i]):
        chances[v] = model.probabilities[leaf, v]


def fill_conditional(model, state, i, counts, chances):
    """Fill `chances` (values,) with p(X_i = value | the codes of `state`) up to a constant; by the kind of model.

    Variables that do not count (`counts`, see `plan_sweep`) are summed out where i has them for children.
    """
    if isinstance(model, NetworkTables):
        _from_tables(model, state, i, counts, chances)
    else:
        _from_tree(model, state, i, chances)


@overload(fill_conditional)
def _choose_kind(model, state, i, counts, chances):
    if isinstance(model, types.BaseNamedTuple) and model.instance_class is NetworkTables:
        return lambda model, state, i, counts, chances: _from_tables(model, state, i, counts, chances)
    return lambda model, state, i, counts, chances: _from_tree(model, state, i, chances)  # noqa: ARG005


@njit(nogil=True, cache=True, error_model="numpy")
def _plan_tables(model, free, counts, visits):
    n = free.shape[0]
    for i in range(n):
        counts[i] = not free[i]
    for place in range(n - 1, -1, -1):
        i = model.order[place]
        if counts[i]:
            for at in range(model.scope_starts[i], model.scope_starts[i + 1]):
                counts[model.scope[at]] = True
    length = 0
    for counted in (True, False):
        for i in model.order:
            if free[i] and counts[i] == counted:
                visits[length] = i
                length += 1
    return length


@njit(nogil=True, cache=True, error_model="numpy")
def _plan_trees(model, free, counts, visits):
    counts[:] = True
    length = 0
    for i in model.order:
        if free[i]:
            visits[length] = i
            length += 1
    return length


def plan_sweep(model, free, counts, visits):
    """Fill `visits` with the free variables in the order of a sweep, and `counts` (n,); give how many are free.

    In a Bayesian network free variables with nothing known below them sum out to 1: they do not count for others, and are drawn
    given their parents after all that do. Near-deterministic tables would tie the others to them for nothing. In a dependency
    network all count, and sweeps go by column.
    """
    if isinstance(model, NetworkTables):
        return _plan_tables(model, free, counts, visits)
    return _plan_trees(model, free, counts, visits)


@overload(plan_sweep)
def _choose_plan(model, free, counts, visits):
    if isinstance(model, types.BaseNamedTuple) and model.instance_class is NetworkTables:
        return lambda model, free, counts, visits: _plan_tables(model, free, counts, visits)
    return lambda model, free, counts, visits: _plan_trees(model, free, counts, visits)


@njit(nogil=True, cache=True, error_model="numpy")
def log_conditionals(trees, codes, logs):
    """Fill `logs` (rows, n) with log p(cell | the other cells of its row)."""
    chances = np.empty(trees.probabilities.shape[1])
    for row in range(codes.shape[0]):
        for i in range(codes.shape[1]):
            _from_tree(trees, codes[row], i, chances)
            logs[row, i] = np.log(chances[codes[row, i]])
