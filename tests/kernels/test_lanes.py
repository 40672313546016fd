import numpy as np
import pytest
from numba import njit

from ldfm.kernels import lanes
from ldfm.kernels.lanes import LANES, add_rows, copy_columns, normalise_row, zeros_of_lanes


@njit
def _normalise(matrix, row, count, sum_row):
    normalise_row(matrix, row, count, sum_row)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("width", [1, 2, 3, 7])
def test_vector_updates_equal_numpy(count, width):
    rng = np.random.default_rng(count)
    matrix = zeros_of_lanes(9, 7)
    matrix[:] = rng.random(matrix.shape)
    multiples = zeros_of_lanes(5, 9)
    multiples[:] = rng.random(multiples.shape)
    expected = matrix.copy()
    plain = lanes._python_row_update(count)
    plain(expected, 1, expected, 5, multiples, 0, (0, 3), width)
    add_rows(matrix, 1, matrix, 5, count, multiples, (0, 3), width)
    np.testing.assert_allclose(matrix, expected, rtol=1e-14)


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_vector_normalisation_equals_numpy(count):
    rng = np.random.default_rng(count)
    matrix = zeros_of_lanes(3, 8)
    matrix[:] = rng.random(matrix.shape)
    expected = matrix.copy()
    lanes._python_normalise_row(expected, 1, count, 2)
    _normalise(matrix, 1, count, 2)
    np.testing.assert_allclose(matrix[1], expected[1], rtol=1e-14)
    np.testing.assert_allclose(matrix[2, :LANES], expected[2, :LANES], rtol=1e-14)


def test_matrices_start_on_a_cache_line():
    assert all(zeros_of_lanes(3, n).ctypes.data % 64 == 0 for n in range(1, 20))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_copied_columns_equal_numpy(count):
    rng = np.random.default_rng(count)
    matrix = zeros_of_lanes(9, 7)
    matrix[:] = rng.random(matrix.shape)
    target, expected = zeros_of_lanes(5, 9), zeros_of_lanes(5, 9)
    lanes._python_copy_columns(count)(matrix, 2, 1, 6, expected)
    copy_columns(matrix, 2, 1, count, 6, target)
    np.testing.assert_array_equal(target, expected)
