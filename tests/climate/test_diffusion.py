"""Diffusion with a diffusivity that varies: against the fixed operator and dense linear algebra."""

import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.climate import Grid
from fedrain.climate.diffusion import convergence, diffuse


@pytest.mark.parametrize("latitudes", [2, 7, 96])
def test_one_diffusivity_gives_the_laplacian_of_the_grid(x64, latitudes):
    rng, grid = np.random.default_rng(latitudes), Grid(latitudes)
    temperature = rng.normal(0, 20, (latitudes, 3))
    heat = convergence(grid, jnp.asarray(temperature), jnp.full(latitudes, 0.6))
    np.testing.assert_allclose(heat, 0.6 * grid.laplacian @ temperature, atol=1e-8)


@pytest.mark.parametrize("latitudes", [2, 7, 96])
def test_the_implicit_step_solves_its_equation(x64, latitudes):
    rng, grid = np.random.default_rng(latitudes), Grid(latitudes)
    before = jnp.asarray(rng.normal(0, 20, (latitudes, 4)))
    diffusivity = jnp.asarray(rng.uniform(0, 3, latitudes))
    pace = jnp.asarray(rng.uniform(1e-3, 0.1, latitudes))
    after = diffuse(grid, before, diffusivity, pace)
    heat = convergence(grid, after, diffusivity)
    np.testing.assert_allclose(after - pace[:, None] * heat, before, atol=1e-9)
    np.testing.assert_allclose(diffuse(grid, before[:, 0], diffusivity, pace), after[:, 0])


def test_heat_is_moved_and_none_is_made(x64):
    rng, grid = np.random.default_rng(0), Grid(48)
    before = jnp.asarray(rng.normal(0, 20, 48))
    pace = rng.uniform(1e-3, 0.1, 48)
    after = diffuse(grid, before, jnp.asarray(rng.uniform(0, 3, 48)), jnp.asarray(pace))
    assert grid.mean(np.asarray(after - before) / pace) == pytest.approx(0, abs=1e-9)
    assert np.ptp(after) < np.ptp(before)  # and it never makes a new extreme


def test_d_on_an_edge_is_the_mean_of_its_cells(x64):
    """1/cos φ Δ(cos φ D ΔT/Δφ)/Δφ, by hand on four cells of 45°."""
    grid, D = Grid(4), np.array([1.0, 3.0, 0.5, 2.0])
    temperature = np.array([-20.0, 10.0, 25.0, -5.0])
    edge = np.array([2.0, 1.75, 1.25]) * np.cos(np.deg2rad([-45.0, 0.0, 45.0]))
    flux = -edge * np.diff(temperature) / (np.pi / 4)  # northward
    heat = -np.diff(np.concatenate([[0.0], flux, [0.0]])) / (np.pi / 4)
    expected = heat / np.cos(np.deg2rad([-67.5, -22.5, 22.5, 67.5]))
    np.testing.assert_allclose(
        convergence(grid, jnp.asarray(temperature), jnp.asarray(D)), expected
    )
