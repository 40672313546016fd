import numpy as np
import pytest

from ldfm.draws import fold
from ldfm.inference.chains import Chains
from ldfm.kernels.brackets import make_walks, refresh, set_value
from ldfm.kernels.elimination import make_workspace
from ldfm.kernels.gibbs import fill_conditional, fill_floors
from ldfm.kernels.one_sum import make_elimination
from ldfm.weights import ArcWeights
from models import random_weights

CONDITIONAL = 1e-9
UPDATES = 10_000


def sparse_weights(cardinalities: tuple[int, ...], seed: int) -> ArcWeights:
    """Give weights that sit on a floor but for a few, as a modified Dirichlet prior leaves them."""
    rng = np.random.default_rng(seed)
    dense = random_weights(cardinalities, seed, stops=False, normalise=False)
    table = np.where(dense.mask, 1e-4, 0.0)
    table = np.where(dense.mask & (rng.random(table.shape) < 0.06), dense.table, table)
    table[0] = dense.table[0]
    return ArcWeights(table, cardinalities)


def naive_conditional(table: np.ndarray, offsets: np.ndarray, codes: np.ndarray, i: int) -> np.ndarray:
    """Give p(x_i | rest) from plain determinants, one a value."""
    logs = []
    for v in range(offsets[i + 1] - offsets[i]):
        row = codes.copy()
        row[i] = v
        values = offsets[:-1] + row
        arcs = table[1 + values][:, values]
        logs.append(np.linalg.slogdet(np.diag(table[0, values] + arcs.sum(axis=0)) - arcs)[1])
    return np.exp(logs - np.logaddexp.reduce(logs))


class OneChain:
    """A chain moved one variable at a time, with everything that `gibbs_sweeps` computes on the way."""

    def __init__(self, weights: ArcWeights, seed: int) -> None:
        self.model, self.n = fold(weights), len(weights.cardinalities)
        self.rng = np.random.default_rng(seed)
        self.codes = np.array([int(self.rng.integers(k)) for k in weights.cardinalities])
        self.walks = make_walks(self.model, self.codes)
        self.rounding = refresh(self.walks)
        self._scratch = make_elimination(self.n), make_workspace(self.n)
        self.log_now, self.logs = np.nan, np.empty(self.model.most)
        self.brackets = np.empty(self.model.most), np.empty(self.model.most)

    def conditional(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Give the conditional distribution and its lower bounds."""
        k = self.model.offsets[i + 1] - self.model.offsets[i]
        exact, floors = np.empty(k), np.empty(k)
        fill_conditional(self.model, self.walks, self.codes, i, self.log_now, self._scratch, self.logs, exact)
        self.log_now = self.logs[self.codes[i]]
        fill_floors(self.model, self.walks, i, self.codes[i], self.rounding, self.brackets, floors)
        return exact, floors

    def move(self, i: int, v: int) -> None:
        if v != self.codes[i]:
            self.log_now = self.logs[v]
            self.codes[i] = v
            set_value(self.model, self.walks, i, v)
            self.rounding = refresh(self.walks)


@pytest.mark.parametrize(
    ("weights", "most_doubt"),
    [
        (sparse_weights((2, 3, 2, 4) * 5, 0), 0.05),
        (random_weights((2,) * 76, 1, decades=2.0), 0.01),
        (random_weights((2, 3, 5) * 10, 2, stops=False, decades=4.0), 0.03),
        (random_weights((2, 4) * 15, 3, decades=8.0), 0.3),
    ],
    ids=["sparse", "dense and wide", "dense", "eight decades"],
)
def test_conditionals_are_the_naive_ones_over_ten_thousand_updates(weights, most_doubt):
    chain = OneChain(weights, 0)
    doubts = []
    for update in range(UPDATES):
        i = update % chain.n
        found, floors = chain.conditional(i)
        if update % 10 == 0:
            naive = naive_conditional(chain.model.table, chain.model.offsets, chain.codes, i)
            assert np.abs(found - naive).max() < CONDITIONAL
        assert (floors <= found + CONDITIONAL).all()
        doubts.append(1 - floors.sum())
        chain.move(i, int(chain.rng.choice(len(found), p=found)))
    assert np.mean(doubts) < most_doubt


@pytest.mark.parametrize("decades", [16.0, 40.0, 200.0])
def test_bounds_hold_where_the_inverse_cannot_be_trusted(decades):
    chain = OneChain(random_weights((2, 3) * 6, 5, decades=decades, normalise=False), 0)
    for update in range(2000):
        i = update % chain.n
        with np.errstate(all="ignore"):  # for runs with the compiler switched off
            found, floors = chain.conditional(i)
        assert np.isfinite(found).all()
        assert found.sum() == pytest.approx(1.0)
        assert ((floors >= 0) & (floors <= found + CONDITIONAL)).all()
        chain.move(i, int(chain.rng.choice(len(found), p=found)))


def test_brackets_hold_for_weak_roots_floors_and_any_scale():
    rng = np.random.default_rng(0)
    found = 0
    for seed in range(300):
        cardinalities = tuple(int(k) for k in rng.integers(2, 5, 1 + seed % 20))
        weights = random_weights(cardinalities, seed, stops=seed % 3 == 0, decades=rng.choice([1.0, 4.0, 16.0]))
        table = weights.table * 10.0 ** rng.uniform(-100, 100)  # the scale of all weights does not matter
        table[0] *= 10.0 ** -rng.choice([0.0, 4.0, 8.0])
        floor = table.max() * 10.0 ** -rng.choice([3.0, 9.0, 150.0])
        on_floor = weights.mask & (rng.random(table.shape) < 0.5)
        chain = OneChain(ArcWeights(np.where(on_floor, floor, table), cardinalities, weights.stop), seed)
        for i in range(chain.n):
            exact, floors = chain.conditional(i)
            assert (floors <= exact + 1e-12).all()
            ratios = np.exp(np.clip(chain.logs[: len(exact)] - chain.log_now, -600, 600))
            lower, upper = (b[: len(exact)] for b in chain.brackets)
            assert ((lower <= ratios * (1 + 1e-12)) & (ratios <= upper * (1 + 1e-12))).all()
            found += np.isfinite(upper).sum() - 1
    assert found > 1500


def test_values_that_cannot_be_are_never_drawn():
    weights = random_weights((2, 3, 2, 3), 0, decades=1.0)
    table = weights.table.copy()
    table[:, 2] = 0.0  # X_1 = 0 has no parent
    model = fold(ArcWeights(table, weights.cardinalities, weights.stop))
    codes = np.array([[0, 1, 0, 0]])
    chains = Chains(model, np.full(4, -1), codes, np.full((1, 4), -1), np.random.default_rng(0))
    records = chains.move("gibbs", 2000, 1)
    assert records[0, 0, 1, 0] == 0.0
    np.testing.assert_allclose(records[0, 0].sum(axis=1), 1.0)
    for _ in range(50):
        chains.move("gibbs", 1)
        assert chains.codes[0, 1] != 0


def test_what_is_recorded_averages_to_the_conditional():
    weights = random_weights((2, 3, 4, 2, 3), 4, decades=3.0)
    chain = OneChain(weights, 1)
    exact, floors = chain.conditional(0)
    assert 1e-5 < 1 - floors.sum() < 0.5  # both branches are taken
    start, repeats = np.repeat(chain.codes[None], 20_000, axis=0), 20_000
    known = np.where(np.arange(5) == 0, -1, chain.codes)
    chains = Chains(chain.model, known, start, np.full(start.shape, -1), np.random.default_rng(0))
    records = chains.move("gibbs", 1, 1)[:, 0, 0, : len(exact)]
    errors = records.std(axis=0) / np.sqrt(repeats)
    assert (np.abs(records.mean(axis=0) - exact) < 4.5 * errors + CONDITIONAL).all()
