from itertools import product

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldfm.forests import log_sums
from ldfm.weights import ArcWeights, arc_mask
from mixed_models import random_mixed
from models import random_weights


def all_rows(cardinalities: tuple[int, ...]) -> np.ndarray:
    return np.array(list(product(*map(range, cardinalities))))


def log_probabilities(weights: ArcWeights) -> np.ndarray:
    logs = log_sums(weights, all_rows(weights.cardinalities))
    return logs - np.logaddexp.reduce(logs)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 2.0, 10.0, 60.0]),
)
def test_the_normalised_form_is_the_same_model(cardinalities, seed, stops, normalise, decades):
    weights = random_weights(cardinalities, seed, stops=stops, decades=decades, normalise=normalise)
    same = weights.normalised()
    assert same.variant == "ldfm-s"
    assert np.abs(same.table.sum(axis=1) + same.stop - 1).max() <= 1e-15 * len(same.table)
    assert (same.stop > 0).all()
    np.testing.assert_allclose(log_probabilities(same), log_probabilities(weights), rtol=1e-12, atol=1e-12)


def test_a_normalised_ldfm_s_is_its_own_normalised_form():
    weights = random_weights((2, 3), 0)
    assert weights.is_normalised
    assert weights.normalised() is weights


@pytest.mark.parametrize("size", [1e-320, 1e-160, 1e300])
def test_weights_of_any_common_size_can_be_normalised(size):
    weights = random_weights((2, 3), 0, stops=False, normalise=False, decades=0.0)
    stop = np.full(6, min(size, 1.0))
    np.testing.assert_allclose(
        log_probabilities(ArcWeights(weights.table * size, (2, 3), stop).normalised()),
        log_probabilities(weights),
        rtol=1e-3,
    )


def test_a_root_that_cannot_stop_has_no_normalised_form():
    weights = random_weights((2, 2), 0)
    stop = weights.stop.copy()
    stop[0] = 0.0
    with pytest.raises(ValueError, match="no row can be generated"):
        ArcWeights(weights.table, (2, 2), stop).normalised()


def test_weights_too_far_apart_to_normalise_are_refused():
    table = np.where(arc_mask((2, 2)), 1.0, 0.0)
    table[0, 0], table[0, 1] = 1e300, 1e-300
    with pytest.raises(ValueError, match="too many orders of magnitude"):
        ArcWeights(table, (2, 2)).normalised()


def test_scaling_the_arcs_into_a_variable_leaves_the_model_alone():
    weights = random_weights((2, 3, 2), 1, stops=False)
    table = weights.table * np.repeat([3.0, 0.01, 7.0], (2, 3, 2))
    np.testing.assert_allclose(
        log_probabilities(ArcWeights(table, weights.cardinalities)), log_probabilities(weights), rtol=1e-13
    )


def test_weights_are_frozen():
    weights = random_weights((2, 2), 0)
    with pytest.raises(ValueError, match="read-only"):
        weights.table[0, 0] = 1.0


def test_the_uniform_start():
    for variant in ("ldfm", "ldfm-s"):
        weights = ArcWeights.uniform((2, 3), variant)
        assert weights.variant == variant
        assert weights.is_normalised
        assert len(set(weights.table[1][weights.mask[1]])) == 1
    # one variable: its values have no children
    alone = ArcWeights.uniform((3,), "ldfm-s")
    np.testing.assert_array_equal(alone.stop, [0.25, 1, 1, 1])
    assert ArcWeights.uniform((3,), "ldfm").table[1:].sum() == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": np.ones((3, 3))}, r"must be \(5, 4\)"),
        ({"table": np.full((5, 4), np.nan)}, r"arc weight at \(0, 0\) is nan"),
        ({"table": np.full((5, 4), -1.0)}, r"arc weight at \(0, 0\) is -1.0"),
        ({"table": np.ones((5, 4))}, "value 0 to value 0 must be 0"),
        ({"stop": np.ones(4)}, r"must be \(5,\)"),
        ({"stop": np.full(5, np.inf)}, r"stop weight at \(0,\) is inf"),
        ({"cardinalities": (4, 0)}, "at least one value"),
    ],
)
def test_bad_weights_are_named(change, message):
    good = {"table": np.where(arc_mask((2, 2)), 0.1, 0.0), "cardinalities": (2, 2), "stop": np.ones(5)}
    with pytest.raises(ValueError, match=message):
        ArcWeights(**{**good, **change})


@pytest.mark.parametrize("mmap_mode", [None, "r"])
@pytest.mark.parametrize("weights", [random_weights((2, 3), 0), random_mixed((2, 0), 0)], ids=["discrete", "mixed"])
def test_weights_from_a_pickle_are_as_frozen_as_they_were(weights, mmap_mode, tmp_path):
    def arrays(found):
        kept = [found.table, found.stop, found.offsets, found.mask]
        return kept + [part for part in getattr(found, "model", ()) if isinstance(part, np.ndarray)]

    expected = arrays(weights)  # asked for, so that there is something to pickle
    joblib.dump(weights, tmp_path / "weights")
    found = arrays(joblib.load(tmp_path / "weights", mmap_mode=mmap_mode))
    # to Numba an array that is frozen has another type than one that is not: kernels would be compiled again
    assert [array.flags.writeable for array in found] == [array.flags.writeable for array in expected]
    assert [array.tobytes() for array in found] == [array.tobytes() for array in expected]
