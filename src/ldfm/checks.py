"""Checks of the numbers that users give, and the root of everything random."""

from numbers import Integral, Real
from typing import Any

import numpy as np

RandomState = int | np.random.Generator | None


def is_integer(value: Any) -> bool:
    """Say whether a value is a whole number, of Python or NumPy."""
    return isinstance(value, Integral)


def is_whole(value: Any, least: int = 0) -> bool:
    """Say whether a value is a whole number, and at least so large."""
    return is_integer(value) and int(value) >= least


def is_real(value: Any) -> bool:
    """Say whether a value is a number, of Python or NumPy."""
    return isinstance(value, Real)


def is_share(value: Any) -> bool:
    """Say whether a value is a number between 0 and 1, neither of them."""
    return is_real(value) and 0 < float(value) < 1


def check_count(name: str, value: Any) -> None:
    """Refuse what is not a number of things to make."""
    if not is_whole(value, 1):
        raise ValueError(f"{name} must be a whole number, 1 or more, not {value!r}")


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse what is not a number of threads."""
    if n_jobs is not None and not (is_integer(n_jobs) and n_jobs != 0):
        raise ValueError(f"n_jobs must be None or a whole number other than 0, not {n_jobs!r}")


def check_random_state(random_state: Any) -> None:
    """Refuse what no random numbers can be made from."""
    if not (random_state is None or isinstance(random_state, np.random.Generator) or is_whole(random_state)):
        raise ValueError(f"random_state must be None, a whole number, 0 or more, or a Generator, not {random_state!r}")


def seed_sequence(random_state: RandomState) -> np.random.SeedSequence:
    """Give the root of random streams: of a number always the same, of a generator a new one each time."""
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(2**63))
    return np.random.SeedSequence(random_state)
