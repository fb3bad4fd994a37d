"""Heat diffusion along the meridian with a diffusivity that varies with latitude.

    H = 1/cos φ ∂/∂φ (D cos φ ∂T/∂φ)

D is given in the cells and averaged to their edges, where the fluxes are; no heat passes the poles.
"""

import jax.numpy as jnp
from jax.lax.linalg import tridiagonal_solve
from jaxtyping import Array, Float

from fedrain.climate.grid import Grid


def _conductance(grid: Grid, diffusivity: Float[Array, " lat"]) -> Float[Array, " edge"]:
    """Heat across each edge for a difference of 1 K, the poles among them, by area weight."""
    between = (diffusivity[1:] + diffusivity[:-1]) / 2
    length = jnp.asarray(grid.edge_weights / grid.spacing**2, diffusivity.dtype)
    return length * jnp.pad(between, 1)


def convergence(
    grid: Grid, temperature: Float[Array, "lat *more"], diffusivity: Float[Array, " lat"]
) -> Float[Array, "lat *more"]:
    """H in W m⁻², if D is in W m⁻² K⁻¹. Its area mean is zero."""
    extra = (1,) * (temperature.ndim - 1)
    ends = jnp.zeros((1, *temperature.shape[1:]), temperature.dtype)
    slope = jnp.concatenate([ends, jnp.diff(temperature, axis=0), ends])
    northward = -_conductance(grid, diffusivity).reshape(-1, *extra) * slope
    weights = jnp.asarray(grid.weights, temperature.dtype).reshape(-1, *extra)
    return -jnp.diff(northward, axis=0) / weights


def diffuse(
    grid: Grid,
    temperature: Float[Array, "lat *more"],
    diffusivity: Float[Array, " lat"],
    pace: Float[Array, " lat"],
) -> Float[Array, "lat *more"]:
    """The temperature after one implicit step: T' − pace H(T') = T.

    Args:
        grid: The latitudes.
        temperature: T, with any axes after the latitude.
        diffusivity: D in W m⁻² K⁻¹, in the cells.
        pace: Δt/C in K m² W⁻¹, in the cells.
    """
    conductance = _conductance(grid, diffusivity)
    share = pace / jnp.asarray(grid.weights, temperature.dtype)
    south, north = -share * conductance[:-1], -share * conductance[1:]
    sheet = temperature.reshape(len(temperature), -1)
    return tridiagonal_solve(south, 1 - south - north, north, sheet).reshape(temperature.shape)
