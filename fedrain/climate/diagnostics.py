"""Fluxes, heat transport and global means of a model state, with CF attributes."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fedrain.climate.grid import EARTH_RADIUS, Grid
from fedrain.climate.models.climlab import ClimlabModel
from fedrain.climate.models.energy_balance import EnergyBalanceModel
from fedrain.climate.parameters import Parameters
from fedrain.errors import InputError

if TYPE_CHECKING:  # slow to import, and not needed by an environment
    import xarray

#: Name of a field on the cells: CF standard name, long name and unit.
CELL_FIELDS = {
    "surface_temperature": ("surface_temperature", "surface temperature", "degC"),
    "absorbed_shortwave": (
        "toa_net_downward_shortwave_flux",
        "absorbed shortwave radiation",
        "W m-2",
    ),
    "outgoing_longwave": ("toa_outgoing_longwave_flux", "outgoing longwave radiation", "W m-2"),
    "net_radiation": ("toa_net_downward_radiative_flux", "net downward radiation", "W m-2"),
}


def heat_transport(
    grid: Grid,
    temperature: Float[np.ndarray, "*batch lat"],
    diffusivity: Float[np.ndarray, "*#batch"],
) -> Float[np.ndarray, "*batch edge"]:
    """Northward heat transport −2π a² D cos φ ∂T/∂φ across each cell edge, in PW.

    Args:
        grid: The latitudes.
        temperature: In °C, ``[..., lat]``; leading axes are times or climates.
        diffusivity: D in W m⁻² K⁻¹, ``[...]``: one number for each of them.

    Returns:
        In PW, ``[..., edge]``: one more than the latitudes, and 0 at the poles.
    """
    gradient = np.zeros((*temperature.shape[:-1], grid.latitudes + 1))
    gradient[..., 1:-1] = np.diff(temperature, axis=-1) / grid.spacing
    per_gradient = -2 * np.pi * EARTH_RADIUS**2 * grid.edge_weights * 1e-15
    return diffusivity[..., None] * per_gradient * gradient


def diagnostics(
    model: EnergyBalanceModel | ClimlabModel,
    temperature: Float[Array, "*time lat"] | Float[np.ndarray, "*time lat"],
    parameters: Parameters,
) -> "xarray.Dataset":
    """One profile, or one for each step, as a Dataset with fluxes, transport and global means.

    Parameters are those in force at that time; without a time axis they hold for all of it.

    Args:
        model: An energy balance model.
        temperature: In °C, ``[lat]``, or ``[time, lat]``.
        parameters: By symbol, in physical units, as of :meth:`EnergyBalanceModel.step`.

    Returns:
        ``surface_temperature``, the fluxes in W m⁻², ``heat_transport`` on the edges of the cells
        in PW, and global means; with the axis ``time``, if the temperature has one.
    """
    import xarray

    if isinstance(model, ClimlabModel):
        model = model.settings  # the same physics
    profile = np.asarray(temperature, float)
    if profile.ndim > 2 or profile.shape[-1] != model.grid.latitudes:
        raise InputError(
            f"diagnostics take profiles of {model.grid.latitudes} latitudes, with or without "
            f"a time axis, not an array of shape {profile.shape}"
        )
    with jax.enable_x64(True):
        state = jnp.asarray(profile)
        shortwave = np.asarray(model.absorbed_shortwave(state, parameters))
        longwave = np.asarray(model.outgoing_longwave(state, parameters))
    cells = {
        "surface_temperature": profile,
        "absorbed_shortwave": np.broadcast_to(shortwave, profile.shape),
        "outgoing_longwave": longwave,
        "net_radiation": shortwave - longwave,
    }
    time = ("time",) if profile.ndim == 2 else ()
    dataset = xarray.Dataset(
        {name: _cell_variable(name, data, time) for name, data in cells.items()},
        coords=latitude_coordinates(model.grid),
        attrs={"Conventions": "CF-1.11", "source": "FedRAIN energy balance model"},
    )
    dataset["heat_transport"] = xarray.Variable(
        (*time, "lat_edge"),
        heat_transport(model.grid, profile, np.asarray(parameters["D"], float)),
        {"long_name": "northward heat transport by atmosphere and ocean", "units": "PW"},
    )
    dataset["global_mean_temperature"] = xarray.Variable(
        time,
        model.grid.mean(profile),
        {
            "standard_name": "surface_temperature",
            "long_name": "global mean surface temperature",
            "units": "degC",
            "cell_methods": "area: mean",
        },
    )
    if time:
        years = np.arange(1, len(profile) + 1) / model.steps_per_year
        attributes = {"long_name": "time since the start", "units": "year", "axis": "T"}
        dataset = dataset.assign_coords(time=("time", years, attributes))
    return dataset


def _cell_variable(
    name: str, data: Float[np.ndarray, "*time lat"], time: tuple[str, ...]
) -> "xarray.Variable":
    import xarray

    standard_name, long_name, units = CELL_FIELDS[name]
    attributes = {
        "standard_name": standard_name,
        "long_name": long_name,
        "units": units,
        "cell_methods": "longitude: mean",
    }
    return xarray.Variable((*time, "lat"), data, attributes)


def latitude_coordinates(grid: Grid) -> "dict[str, xarray.Variable]":
    """Cell centres and edges as CF coordinates."""
    import xarray

    north = {"standard_name": "latitude", "units": "degrees_north"}
    return {
        "lat": xarray.Variable(
            "lat", grid.centres, {**north, "long_name": "latitude", "axis": "Y"}
        ),
        "lat_edge": xarray.Variable(
            "lat_edge", grid.edges, {**north, "long_name": "latitude of cell edges"}
        ),
    }
