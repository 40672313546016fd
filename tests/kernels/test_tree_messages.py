from itertools import product

import numpy as np
import pytest

from ldfm.draws import fold
from ldfm.kernels.tree_messages import draw_values, order_from_roots, send_down, send_up
from models import random_weights
from oracles.forests import all_forests
from statistics_checks import FALSE_ALARM, p_value

CARDINALITIES = (2, 3, 2, 4)


def weights_given_forest(model, parents, clamped):
    """Give the weight of every completion on one forest."""
    table, offsets = model.table, model.offsets
    found = {}
    for codes in product(*map(range, CARDINALITIES)):
        if all(c in (-1, v) for c, v in zip(clamped, codes, strict=True)):
            rows = [0 if p == -1 else 1 + offsets[p] + codes[p] for p in parents]
            found[codes] = float(np.prod([table[r, offsets[j] + codes[j]] for j, r in enumerate(rows)]))
    return found


@pytest.mark.parametrize("clamped", [(-1, -1, -1, -1), (1, -1, -1, 2), (-1, 2, -1, -1), (0, 1, 1, 3)])
def test_posteriors_on_every_forest_equal_enumeration(clamped):
    model = fold(random_weights(CARDINALITIES, 0, decades=4))
    known = np.array(clamped)
    for forest in all_forests(4):
        parents, order = np.array(forest), np.empty(4, dtype=np.int64)
        below, messages, posterior = np.zeros((4, 4)), np.zeros((4, 4)), np.zeros((4, 4))
        order_from_roots(parents, order)
        assert all(p == -1 or list(order).index(p) < list(order).index(j) for j, p in enumerate(forest))
        send_up(model.table, model.offsets, known, parents, order, below, messages)
        send_down(model.table, model.offsets, known, parents, order, below, messages, posterior)
        weights = weights_given_forest(model, forest, clamped)
        total = sum(weights.values())
        for j, k in enumerate(CARDINALITIES):
            for v in range(k):
                if clamped[j] in (-1, v):
                    expected = sum(w for codes, w in weights.items() if codes[j] == v) / total
                    assert posterior[j, v] == pytest.approx(expected, rel=1e-10, abs=1e-14)


def test_drawn_values_match_enumeration():
    model = fold(random_weights(CARDINALITIES, 1))
    clamped, forest = (-1, -1, 1, -1), (-1, 0, 1, 1)
    parents, order, known = np.array(forest), np.empty(4, dtype=np.int64), np.array(clamped)
    below, messages = np.zeros((4, 4)), np.zeros((4, 4))
    order_from_roots(parents, order)
    send_up(model.table, model.offsets, known, parents, order, below, messages)
    generator = np.random.default_rng(0)
    draws = []
    for _ in range(20_000):
        codes = np.empty(4, dtype=np.int64)
        draw_values(model.table, model.offsets, known, parents, order, below, generator, codes)
        draws.append(tuple(codes.tolist()))
    weights = weights_given_forest(model, forest, clamped)
    total = sum(weights.values())
    assert p_value(draws, {codes: w / total for codes, w in weights.items()}) > FALSE_ALARM
