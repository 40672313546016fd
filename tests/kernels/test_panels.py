import numpy as np
import pytest
from numba import njit

from ldfm.kernels import panels
from ldfm.kernels.brackets import invert

ROUNDING = 1e-5


@njit
def _take_factors(matrix, column, factors, low, high):
    panels.take_factors(matrix, column, factors, low, high)


@njit
def _add_four_rows(matrix, first, factors, low, high, stop):
    panels.add_four_rows(matrix, first, factors, low, high, stop)


@njit
def _mix_four_rows(matrix, first, factors, stop):
    panels.mix_four_rows(matrix, first, factors, stop)


@njit
def _sum_rows(matrix, lines):
    panels.sum_rows(matrix, lines, 0, 1)


@njit
def _sum_squares(matrix, lines):
    panels.sum_squares(matrix, lines, 0, 1, 2, 3, 4)


def random_matrix(shape: tuple[int, int], kind: type = np.float32) -> np.ndarray:
    return np.random.default_rng(shape).random(shape).astype(kind)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "width"), [(4, 16), (12, 16), (20, 32), (76, 80)])
def test_vector_loops_equal_numpy(rows, width, kind):
    matrix, factors, lines = (random_matrix(shape, kind) for shape in ((rows, width), (rows, 4), (5, width)))
    for compiled, plain, bounds in (
        (_add_four_rows, panels._python_add_four_rows, (4, rows, width - width % 16)),
        (_mix_four_rows, panels._python_mix_four_rows, (width,)),
        (_take_factors, panels._python_take_factors, (0, rows)),
    ):
        found, expected = (matrix.copy(), factors.copy()), (matrix.copy(), factors.copy())
        compiled(found[0], 0, found[1], *bounds)
        plain(expected[0], 0, expected[1], *bounds)
        np.testing.assert_allclose(found[0], expected[0], rtol=ROUNDING)
        np.testing.assert_allclose(found[1], expected[1], rtol=ROUNDING)
    found, expected = lines.copy(), lines.copy()
    _sum_rows(matrix, found)
    panels._python_sum_rows(matrix, expected, 0, 1)
    np.testing.assert_allclose(found, expected, rtol=ROUNDING)
    found, expected = lines.copy(), lines.copy()
    _sum_squares(matrix, found)
    panels._python_sum_squares(matrix, expected, 0, 1, 2, 3, 4)
    np.testing.assert_allclose(found, expected, rtol=ROUNDING)


@pytest.mark.parametrize(("rows", "width"), [(4, 16), (20, 32), (76, 80)])
def test_inversion(rows, width):
    matrix = np.zeros((rows, width), dtype=np.float32)
    steps = random_matrix((rows, rows)) * (1 - np.eye(rows, dtype=np.float32))
    matrix[:, :rows] = np.eye(rows) - 0.9 * steps / steps.sum(axis=1, keepdims=True)
    expected = np.linalg.inv(matrix[:, :rows].astype(float))
    invert(matrix, np.zeros((rows, 4), dtype=np.float32))
    np.testing.assert_allclose(matrix[:, :rows], expected, rtol=ROUNDING)
    assert (matrix[:, rows:] == 0).all()
