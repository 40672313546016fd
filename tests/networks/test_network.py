"""Networks: published sizes, forward sampling against enumeration, exact probabilities, and what is refused."""

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from itertools import combinations, product
from statistics import NormalDist

import numpy as np
import pytest

from ldfm.networks import Network, NetworkStatistics, load, names
from ldfm.networks.network import BLOCK_ROWS

PUBLISHED = {
    "asia": (8, 2, 2, 2, 2),
    "child": (20, 3, 6, 2.5, 2),
    "alarm": (37, 2.84, 4, 2.49, 4),
    "sachs": (11, 3, 3, 3.09, 3),
    "insurance": (27, 3.30, 5, 3.85, 3),
    "water": (32, 3.63, 4, 4.12, 5),
    "win95pts": (76, 2, 2, 2.95, 7),
    "hepar2": (70, 2.31, 4, 3.51, 6),
    "hailfinder": (56, 3.98, 11, 2.36, 4),
}
# The published table rounds some numbers and truncates others.
PUBLISHED_ROUNDING = 0.01

# Probability of "yes" (code 0) given the codes of the parents, as Lauritzen and Spiegelhalter (1988) give it.
ASIA: dict[str, tuple[tuple[str, ...], Callable[..., float]]] = {
    "asia": ((), lambda: 0.01),
    "tub": (("asia",), lambda asia: (0.05, 0.01)[asia]),
    "smoke": ((), lambda: 0.5),
    "lung": (("smoke",), lambda smoke: (0.1, 0.01)[smoke]),
    "bronc": (("smoke",), lambda smoke: (0.6, 0.3)[smoke]),
    "either": (("lung", "tub"), lambda lung, tub: float(lung == 0 or tub == 0)),
    "xray": (("either",), lambda either: (0.98, 0.05)[either]),
    "dysp": (("bronc", "either"), lambda bronc, either: ((0.9, 0.8), (0.7, 0.1))[bronc][either]),
}

# Chance that a correct sampler fails `assert_matches_asia`, over all its cells, by the normal approximation.
FALSE_ALARM_RATE = 1e-6
ROWS = 200_000


def asia_joint() -> dict[tuple[int, ...], float]:
    """Probability of every row of asia, by multiplying the published numbers."""
    joint = {}
    for row in product((0, 1), repeat=len(ASIA)):
        code = dict(zip(ASIA, row, strict=True))
        joint[row] = 1.0
        for name, (parents, yes) in ASIA.items():
            p = yes(*(code[parent] for parent in parents))
            joint[row] *= p if code[name] == 0 else 1 - p
    return joint


def assert_matches_asia(codes: np.ndarray) -> None:
    """Compare how often each pair of values of two variables was drawn with its exact probability."""
    joint = asia_joint()
    rows, exact = np.array(list(joint)), np.array(list(joint.values()))
    cells = [(i, j, a, b) for i, j in combinations(range(len(ASIA)), 2) for a, b in product((0, 1), repeat=2)]
    limit = NormalDist().inv_cdf(1 - FALSE_ALARM_RATE / (2 * len(cells)))
    for i, j, a, b in cells:
        p = exact[(rows[:, i] == a) & (rows[:, j] == b)].sum()
        frequency = np.mean((codes[:, i] == a) & (codes[:, j] == b))
        standard_error = np.sqrt(p * (1 - p) / len(codes))
        assert abs(frequency - p) <= limit * standard_error, (i, j, a, b, frequency, p)


def test_the_oracle_is_a_distribution() -> None:
    joint = asia_joint()
    assert len(joint) == 256
    assert sum(joint.values()) == pytest.approx(1, rel=1e-14)
    assert sum(p for row, p in joint.items() if row[1] == 0) == pytest.approx(0.0104, rel=1e-14)


def test_names_are_the_nine() -> None:
    assert names() == tuple(sorted(PUBLISHED))


def test_an_unknown_name_lists_the_names() -> None:
    with pytest.raises(
        ValueError, match="no network is called 'Asia'; the networks are alarm, asia, child, hailfinder"
    ):
        load("Asia")


@pytest.mark.parametrize("name", names())
def test_published_statistics(name: str) -> None:
    statistics = load(name).statistics()
    dimension, average_cardinality, max_cardinality, average_degree, max_in_degree = PUBLISHED[name]
    assert load(name).name == name
    assert statistics.dimension == dimension
    assert statistics.average_cardinality == pytest.approx(average_cardinality, abs=PUBLISHED_ROUNDING)
    assert statistics.max_cardinality == max_cardinality
    assert statistics.average_degree == pytest.approx(average_degree, abs=PUBLISHED_ROUNDING)
    assert statistics.max_in_degree == max_in_degree


@pytest.mark.parametrize("name", names())
def test_order_puts_parents_first(name: str) -> None:
    network = load(name)
    place = {variable: position for position, variable in enumerate(network.order)}
    assert sorted(place) == list(range(len(network.variables)))
    assert all(place[parent] < place[child] for child, of_child in enumerate(network.parents) for parent in of_child)


def test_order_takes_the_smallest_ready_variable() -> None:
    parents = ((4,), (), (1,), (), (3,))
    tables = tuple(np.full((2,) * (len(of_child) + 1), 0.5) for of_child in parents)
    network = Network("x", tuple("abcde"), (("0", "1"),) * 5, parents, tables)
    assert network.order == (1, 2, 3, 4, 0)


def test_sampling_matches_enumeration() -> None:
    asia = load("asia")
    assert asia.variables == tuple(ASIA)
    assert_matches_asia(asia.sample_codes(ROWS, seed=1))


def with_table(network: Network, name: str, table: np.ndarray) -> Network:
    index = network.variables.index(name)
    return replace(network, tables=(*network.tables[:index], table, *network.tables[index + 1 :]))


def shuffled_columns(codes: np.ndarray) -> np.ndarray:
    return np.random.default_rng(5).permuted(codes, axis=0)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda asia: shuffled_columns(asia.sample_codes(ROWS, 1)), id="variables drawn independently"),
        pytest.param(lambda asia: 1 - asia.sample_codes(ROWS, 1), id="codes reversed"),
        pytest.param(
            lambda asia: with_table(asia, "dysp", asia.tables[7].swapaxes(0, 1)).sample_codes(ROWS, 1),
            id="parents in the wrong order",
        ),
        pytest.param(
            lambda asia: with_table(asia, "smoke", np.array([0.51, 0.49])).sample_codes(ROWS, 1), id="smoke off by 0.01"
        ),
    ],
)
def test_a_wrong_sampler_fails_the_same_check(wrong: Callable[[Network], np.ndarray]) -> None:
    with pytest.raises(AssertionError):
        assert_matches_asia(wrong(load("asia")))


def test_log_probability_is_exact() -> None:
    joint = asia_joint()
    log_probability = load("asia").log_probability(np.array(list(joint)))
    assert np.exp(log_probability).sum() == pytest.approx(1, rel=1e-13)
    np.testing.assert_allclose(np.exp(log_probability), list(joint.values()), rtol=1e-13, atol=0)
    assert np.array_equal(log_probability == -np.inf, np.array(list(joint.values())) == 0)


@pytest.mark.parametrize("name", names())
def test_drawn_rows_are_possible(name: str) -> None:
    network = load(name)
    codes = network.sample_codes(5_000, seed=3)
    assert np.isfinite(network.log_probability(codes)).all()
    np.testing.assert_array_equal(network.log_probability(codes.astype(np.uint8)), network.log_probability(codes))


def test_values_of_probability_zero_are_never_drawn() -> None:
    class Extremes(np.random.Generator):
        """The smallest and largest numbers that `random` can give."""

        def random(self, size):
            return np.resize([0.0, 1 - 2.0**-53], size)

    # Ten times 0.1 adds up to just below 1.
    table = np.array([0.0, *[0.1] * 10, 0.0])
    assert np.cumsum(table)[-1] < 1
    network = Network("x", ("x",), (tuple(map(str, range(12))),), ((),), (table,))
    codes = network.sample_codes(2, Extremes(np.random.PCG64(0)))
    assert codes.ravel().tolist() == [1, 10]


def test_same_seed_same_rows() -> None:
    network = load("child")
    codes = network.sample_codes(300, seed=7)
    assert codes.shape == (300, 20)
    assert codes.dtype == np.int64
    np.testing.assert_array_equal(network.sample_codes(300, seed=7), codes)
    np.testing.assert_array_equal(network.sample_codes(300, seed=np.random.default_rng(7)), codes)
    assert not np.array_equal(network.sample_codes(300, seed=8), codes)


def test_a_generator_goes_on() -> None:
    generator = np.random.default_rng(7)
    network = load("asia")
    parts = [network.sample_codes(rows, generator) for rows in (10, 0, 20)]
    np.testing.assert_array_equal(np.concatenate(parts), network.sample_codes(30, seed=7))


def test_fewer_rows_are_the_first_of_more() -> None:
    network = load("asia")
    many = network.sample_codes(2 * BLOCK_ROWS + 5, seed=7)
    np.testing.assert_array_equal(network.sample_codes(BLOCK_ROWS + 1, seed=7), many[: BLOCK_ROWS + 1])


def test_sample_names_the_values_of_the_codes() -> None:
    network = load("child")
    codes, columns = network.sample_codes(50, seed=2), network.sample(50, seed=2)
    assert tuple(columns) == network.variables
    for variable, column in enumerate(columns.values()):
        assert column.tolist() == [network.values[variable][code] for code in codes[:, variable]]


def test_no_rows() -> None:
    network = load("asia")
    assert network.sample_codes(0, seed=1).shape == (0, 8)
    assert all(column.shape == (0,) for column in network.sample(0, seed=1).values())
    assert network.log_probability(np.empty((0, 8), dtype=np.int64)).shape == (0,)
    with pytest.raises(ValueError, match="rows must be at least 0, got -1"):
        network.sample_codes(-1, seed=1)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.zeros(8, dtype=int), r"codes must have shape \(rows, 8\), got \(8,\)"),
        (np.zeros((3, 7), dtype=int), r"codes must have shape \(rows, 8\), got \(3, 7\)"),
        (np.zeros((3, 8)), "codes must be integers, got float64"),
        (np.array([[0] * 8, [0, 0, 2, 0, 0, 0, 0, 0]]), "row 1: variable 'smoke' has codes 0 to 1, got 2"),
        (np.array([[0, -1, 0, 0, 0, 0, 0, 0]]), "row 0: variable 'tub' has codes 0 to 1, got -1"),
    ],
)
def test_log_probability_refuses_what_is_not_a_row(codes: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load("asia").log_probability(codes)


def test_networks_are_immutable_values() -> None:
    table = np.array([0.5, 0.5])
    network = Network("x", ("a",), (("0", "1"),), ((),), (table,))
    table[:] = (0.0, 1.0)
    assert network.tables[0].tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        network.tables[0][0] = 1
    with pytest.raises(FrozenInstanceError):
        network.name = "y"
    copy = pickle.loads(pickle.dumps(network))
    assert copy == network
    assert hash(copy) == hash(network)
    assert network != Network("x", ("a",), (("0", "1"),), ((),), (table,))
    assert network != replace(network, name="y")
    assert network != "x"


HALF = np.array([0.5, 0.5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": (("0", "1"),)}, "values has 1 entries for 2 variables"),
        ({"parents": ((),)}, "parents has 1 entries for 2 variables"),
        ({"tables": (HALF,)}, "tables has 1 entries for 2 variables"),
        ({"variables": ("a", "a")}, "two variables share a name"),
        ({"values": (("0", "1"), ())}, "variable 'b' has no values"),
        ({"values": (("0", "1"), ("0", "0"))}, "two values of variable 'b' share a name"),
        ({"parents": ((), (2,))}, r"parents of variable 'b' must be different indices below 2, got \(2,\)"),
        ({"parents": ((), (-1,))}, r"parents of variable 'b' must be .* got \(-1,\)"),
        ({"parents": ((), (0, 0))}, r"parents of variable 'b' must be .* got \(0, 0\)"),
        ({"parents": ((1,), (0,))}, "the arcs hold a cycle: a -> b -> a"),
        ({"parents": ((), (1,))}, "the arcs hold a cycle: b -> b"),
        ({"tables": (HALF, HALF)}, r"table of variable 'b' must have shape \(2, 2\), got \(2,\)"),
        ({"tables": (np.array([1.5, -0.5]), np.eye(2))}, "table of variable 'a' holds a negative number or NaN"),
        ({"tables": (np.array([np.nan, 0.5]), np.eye(2))}, "table of variable 'a' holds a negative number or NaN"),
        ({"tables": (HALF, np.eye(2) * 0.75)}, "a row in the table of variable 'b' sums to 0.75, not 1"),
    ],
)
def test_parts_that_disagree_are_refused(change: dict, message: str) -> None:
    network = Network("x", ("a", "b"), (("0", "1"), ("0", "1")), ((), (0,)), (HALF, np.eye(2)))
    with pytest.raises(ValueError, match=message):
        replace(network, **change)


def test_statistics_by_hand() -> None:
    network = Network("x", ("a", "b"), (("0", "1"), ("0", "1", "2")), ((), (0,)), (HALF, np.eye(3)[:2]))
    assert network.statistics() == NetworkStatistics(2, 2.5, 3, 1.0, 1)
    with pytest.raises(ValueError, match="no statistics"):
        Network("x", (), (), (), ()).statistics()
