import numpy as np
import pytest

from ldfm.forests import log_sums
from ldfm.inference.chains import fold
from ldfm.kernels.gibbs import MOST_CHANGED, _apply_change, _is_trusted, _ratios, _refresh, _set_up_change
from ldfm.weights import ArcWeights
from models import random_weights

CONDITIONAL = 1e-9


def sparse_weights(cardinalities: tuple[int, ...], seed: int) -> ArcWeights:
    """Give weights that sit on a floor but for a few, as a modified Dirichlet prior leaves them."""
    rng = np.random.default_rng(seed)
    dense = random_weights(cardinalities, seed, stops=False, normalise=False)
    table = np.where(dense.mask, 1e-4, 0.0)
    table = np.where(dense.mask & (rng.random(table.shape) < 0.06), dense.table, table)
    table[0] = dense.table[0]
    return ArcWeights(table, cardinalities)


@pytest.mark.parametrize("seed", [0, 1])
def test_kept_inverse_gives_the_naive_conditionals_over_ten_thousand_updates(seed):
    cardinalities = (2, 3, 2, 4) * 5
    weights = sparse_weights(cardinalities, seed)
    model, n = fold(weights), len(cardinalities)
    rng = np.random.default_rng(seed)
    codes = np.array([int(rng.integers(k)) for k in cardinalities])
    kept = np.empty((1, n + 1, n)), np.empty((n, n)), np.empty((n, n)), np.empty(n)
    size = MOST_CHANGED + 1
    change = np.empty(n), np.empty(size, dtype=np.int64), np.empty(size), np.empty((size, size))
    solved, ratios = np.empty((size, n)), np.empty(4)
    assert _refresh(model, codes, kept)
    checked = 0
    for update in range(10_000):
        i = int(rng.integers(n))
        k = cardinalities[i]
        assert _ratios(model, codes, i, kept[2], change, ratios)
        found = ratios[:k] / ratios[:k].sum()
        if update % 10 == 0:
            rows = np.repeat(codes[None], k, axis=0)
            rows[:, i] = np.arange(k)
            logs = log_sums(weights, rows)
            expected = np.exp(logs - np.logaddexp.reduce(logs))
            assert np.abs(found - expected).max() < CONDITIONAL
            checked += 1
        v = int(rng.choice(k, p=found))
        if v != codes[i]:
            change_size = _set_up_change(model, codes, i, v, kept[2], change)
            _apply_change(kept[2], kept[3], change, change_size, solved)
            codes[i] = v
            if update % 25 == 0 or not _is_trusted(kept[2], kept[3]):
                assert _refresh(model, codes, kept)
    assert checked == 1000
