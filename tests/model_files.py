"""What the tests of model files share."""

from typing import Any

import numpy as np

from ldfm import LDFM
from ldfm.learning.settings import settings_to_json
from ldfm.model_file import ModelRecord
from models import random_weights

SETTINGS = settings_to_json(LDFM().get_params())


def model_of(values: dict[str, list[Any]], seed: int = 0, *, stops: bool = True, decades: float = 2.0) -> LDFM:
    weights = random_weights(tuple(map(len, values.values())), seed, stops=stops, decades=decades, normalise=False)
    return LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values)


def same_bits(first: np.ndarray[Any, Any] | None, second: np.ndarray[Any, Any] | None) -> bool:
    if first is None or second is None:
        return first is second
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def assert_same(first: ModelRecord, second: ModelRecord) -> None:
    assert first.schema == second.schema
    assert repr(first.schema) == repr(second.schema)  # also -0.0 and the types of values, which == does not see
    assert same_bits(first.weights.table, second.weights.table)
    assert same_bits(first.weights.stop, second.weights.stop)
    assert first.weights.cardinalities == second.weights.cardinalities
    assert first.settings == second.settings
    assert repr(first.history) == repr(second.history)  # NaN differs from itself
    assert first.library_version == second.library_version
