import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrain.climate import Grid
from fedrain.errors import InputError


def test_cells_of_the_paper():
    grid = Grid(96)
    assert grid.centres[0] == -89.0625
    assert grid.centres[-1] == 89.0625
    np.testing.assert_allclose(np.diff(grid.centres), 1.875)


@given(latitudes=st.integers(2, 200), seed=st.integers(0, 2**32 - 1))
def test_diffusion_conserves_energy(latitudes, seed):
    grid = Grid(latitudes)
    temperature = np.random.default_rng(seed).normal(0, 30, latitudes)
    flux = grid.weights * (grid.laplacian @ temperature)
    assert abs(flux.sum()) <= 1e-10 * np.abs(flux).sum()


@given(latitudes=st.integers(2, 200))
def test_modes_are_those_of_the_laplacian(latitudes):
    grid = Grid(latitudes)
    eigenvalues, vectors, inverse = grid.modes
    scale = np.abs(grid.laplacian).max()
    np.testing.assert_allclose(
        vectors @ np.diag(eigenvalues) @ inverse, grid.laplacian, atol=1e-12 * scale
    )
    np.testing.assert_allclose(inverse @ vectors, np.eye(latitudes), atol=1e-12)
    assert eigenvalues.max() < 1e-10 * scale  # diffusion never heats


def test_constant_is_not_diffused():
    np.testing.assert_allclose(Grid(90).laplacian @ np.ones(90), 0, atol=1e-9)


def test_area_mean_of_p2_vanishes_at_second_order():
    errors = [abs(Grid(n).mean(Grid(n).p2)) for n in (24, 48, 96)]
    assert errors[-1] < 1e-3
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 4, rtol=0.01)


@pytest.mark.parametrize("latitudes", [1, 0, -4, True])
def test_bad_size(latitudes):
    with pytest.raises(InputError):
        Grid(latitudes)
