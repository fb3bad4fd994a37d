"""What a baseline does, as NetCDF: its parameters and the climate at every step."""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from fedrain.baselines.baseline import Baseline
from fedrain.envs import Environment


def sequence_dataset(environment: Environment, baseline: Baseline) -> xr.Dataset:
    """Parameters and temperature of the latitudes that the agents are judged by, at every step."""
    with jax.enable_x64(True):
        values = jax.vmap(environment.own_parameters)(jnp.asarray(baseline.actions))
    grid = environment.model.grid
    variables = {
        row.symbol: (
            ("step", "lat") if row.per_latitude else ("step",),
            np.asarray(values[row.symbol]),
            {"long_name": row.name, "units": row.unit},
        )
        for row in environment.model.table
    }
    temperature = {"standard_name": "surface_temperature", "units": "degC"}
    variables["surface_temperature"] = (("step", "lat"), baseline.profiles, temperature)
    variables["target"] = (("lat",), np.array(environment.target), temperature)
    latitude = {"standard_name": "latitude", "units": "degrees_north"}
    return xr.Dataset(
        variables,
        coords={
            "step": ("step", np.arange(1, environment.episode_length + 1)),
            "lat": ("lat", grid.centres, latitude),
        },
        attrs={
            "Conventions": "CF-1.11",
            "title": f"FedRAIN baseline {baseline.name}",
            "return": float(baseline.returns.mean()),
            "areawrmse_global": baseline.skill.globe,
            "model_runs": baseline.model_runs,
        },
    )
