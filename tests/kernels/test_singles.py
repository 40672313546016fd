import numpy as np
import pytest
from numba import njit

from ldfm.kernels import singles
from ldfm.kernels.brackets import invert

ROUNDING = 1e-5


@njit
def _take_factors(matrix, first, factors, low, high):
    singles.take_factors(matrix, first, factors, low, high)


@njit
def _add_four_rows(matrix, first, factors, low, high):
    singles.add_four_rows(matrix, first, factors, low, high)


@njit
def _mix_four_rows(matrix, first, factors):
    singles.mix_four_rows(matrix, first, factors)


@njit
def _sum_rows(matrix, lines):
    singles.sum_rows(matrix, lines, 0, 1)


@njit
def _sum_squares(matrix, lines):
    singles.sum_squares(matrix, lines, 0, 1, 2, 3, 4)


def random_singles(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(shape).random(shape).astype(np.float32)


@pytest.mark.parametrize(("rows", "width"), [(4, 16), (12, 16), (20, 32), (76, 80)])
def test_vector_loops_equal_numpy(rows, width):
    matrix, factors, lines = random_singles((rows, width)), random_singles((rows, 4)), random_singles((5, width))
    for compiled, plain, bounds in (
        (_add_four_rows, singles._python_add_four_rows, (4, rows)),
        (_mix_four_rows, singles._python_mix_four_rows, ()),
        (_take_factors, singles._python_take_factors, (0, rows)),
    ):
        found, expected = (matrix.copy(), factors.copy()), (matrix.copy(), factors.copy())
        compiled(found[0], 0, found[1], *bounds)
        plain(expected[0], 0, expected[1], *bounds)
        np.testing.assert_allclose(found[0], expected[0], rtol=ROUNDING)
        np.testing.assert_allclose(found[1], expected[1], rtol=ROUNDING)
    found, expected = lines.copy(), lines.copy()
    _sum_rows(matrix, found)
    singles._python_sum_rows(matrix, expected, 0, 1)
    np.testing.assert_allclose(found, expected, rtol=ROUNDING)
    found, expected = lines.copy(), lines.copy()
    _sum_squares(matrix, found)
    singles._python_sum_squares(matrix, expected, 0, 1, 2, 3, 4)
    np.testing.assert_allclose(found, expected, rtol=ROUNDING)


@pytest.mark.parametrize(("rows", "width"), [(4, 16), (20, 32), (76, 80)])
def test_inversion(rows, width):
    matrix = np.zeros((rows, width), dtype=np.float32)
    steps = random_singles((rows, rows)) * (1 - np.eye(rows, dtype=np.float32))
    matrix[:, :rows] = np.eye(rows) - 0.9 * steps / steps.sum(axis=1, keepdims=True)
    expected = np.linalg.inv(matrix[:, :rows].astype(float))
    invert(matrix, np.zeros((rows, 4), dtype=np.float32))
    np.testing.assert_allclose(matrix[:, :rows], expected, rtol=ROUNDING)
    assert (matrix[:, rows:] == 0).all()
