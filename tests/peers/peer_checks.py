"""Small tables, and answers by plain enumeration of a model's own row probabilities."""

from itertools import product

import numpy as np
import pandas as pd

from ldfm import networks
from ldfm.networks import Network


def frame_of(network: Network, codes: np.ndarray) -> pd.DataFrame:
    """Give codes as a frame that declares all values, seen or not."""
    columns = zip(network.variables, network.values, codes.T, strict=True)
    return pd.DataFrame({name: pd.Categorical.from_codes(c, categories=list(v)) for name, v, c in columns})


def asia_rows(rows: int, seed: int) -> pd.DataFrame:
    """Draw rows of asia."""
    network = networks.load("asia")
    return frame_of(network, network.sample_codes(rows, seed))


def all_rows(network: Network) -> pd.DataFrame:
    """Give every complete row."""
    return frame_of(network, np.array(list(product(*map(range, network.cardinalities)))))


def small_network() -> Network:
    """Give a network of four variables with 2, 3, 2 and 4 values, all of which depend on one another."""
    rng = np.random.default_rng(5)
    parents = ((), (0,), (0, 1), (1, 2))
    sizes = (2, 3, 2, 4)
    tables = tuple(
        rng.dirichlet(np.ones(sizes[child]), size=tuple(sizes[p] for p in of_child))
        if of_child
        else rng.dirichlet(np.ones(sizes[child]))
        for child, of_child in enumerate(parents)
    )
    values = tuple(tuple(f"v{c}" for c in range(k)) for k in sizes)
    return Network("small", ("a", "b", "c", "d"), values, parents, tables)


def random_roles(rows: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Give which cells are query and which evidence, a third each or so."""
    roles = np.random.default_rng(seed).integers(0, 3, (rows, n))
    return roles == 0, roles == 1


def enumerated(joint: np.ndarray, codes: np.ndarray, asked: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Give (2, rows): log p(query | evidence) and the sum of log p(query cell | evidence), from a joint table."""

    def chance(row: np.ndarray, fixed: np.ndarray) -> float:
        return joint[tuple(int(c) if f else slice(None) for c, f in zip(row, fixed, strict=True))].sum()

    answers = np.zeros((2, len(codes)))
    for place, (row, q, e) in enumerate(zip(codes, asked, given, strict=True)):
        evidence = chance(row, e)
        answers[0, place] = np.log(chance(row, q | e) / evidence)
        answers[1, place] = sum(
            np.log(chance(row, e | (np.arange(len(row)) == i)) / evidence) for i in np.flatnonzero(q)
        )
    return answers
