"""A model of 24 × 48 latitude–longitude columns, divided among agents as 2 × 4 tiles.

    C ∂T/∂t = (1 − α(φ, λ)) Q(φ) − (A(φ, λ) + B T) + D ∇²T

Two continents reflect more sunlight than the sea around them. The target is the zonal mean of NCEP;
a field of one's own on the columns would take its place as ``target`` of the task.

Train it with ``fedrain train --env examples/lat_lon.py:task``.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from fedrain import climate, envs

SHAPE = 24, 48
GRID, COLUMNS = climate.Grid(SHAPE[0]), climate.Columns.lat_lon(*SHAPE)
LAND = (np.abs(COLUMNS.latitude - 15) < 50) & (np.sin(np.deg2rad(2 * COLUMNS.longitude)) > 0.5)
ALBEDO = 0.34 + 0.25 * np.repeat(GRID.p2, SHAPE[1]) + 0.06 * LAND
ABSORBED = (1 - ALBEDO) * climate.annual_insolation(COLUMNS.latitude)  # W m⁻²
STEP = 4 * 86_400.0  # s
PACE = STEP / 4.2e7  # Δt/C in K m² W⁻¹, for 10 m of water
WAVES = (np.arange(SHAPE[1] // 2 + 1) / GRID.weights[:, None]) ** 2  # −∂²/∂λ² / cos² φ of each
PARAMETERS = (
    climate.Parameter("A", "outgoing longwave radiation at 0 degC", "W m-2", 210.0, 140.0, 420.0,
                      scope="column", action_unit=100.0),
    climate.Parameter("B", "longwave feedback", "W m-2 K-1", 2.0, 1.95, 2.05),
    climate.Parameter("D", "heat diffusivity", "W m-2 K-1", 0.6, 0.4, 0.8),
)  # fmt: skip


@dataclass(frozen=True)
class LatLon:
    """Surface temperature in °C of every column."""

    table: climate.ParameterTable = climate.ParameterTable(PARAMETERS)
    columns, fields, days_per_step = COLUMNS, (climate.SURFACE_TEMPERATURE,), STEP / 86_400
    forcings = (climate.Forcing("longwave", "W m-2", 0.0, "change of the outgoing radiation"),)

    def init(self, key, temperature=20.0):
        """The same temperature everywhere."""
        return jnp.full(len(COLUMNS), temperature)

    def observe(self, state):
        """The temperature is all that there is to see."""
        return {"surface_temperature": state}

    def step(self, state, parameters, forcing, key):
        """Radiation forward in time; diffusion backward, north to south and then west to east."""
        longwave = parameters["A"] + parameters["B"] * state + forcing["longwave"]
        heated = (state + PACE * (ABSORBED - longwave)).reshape(SHAPE)
        (rates, vectors, inverse), far = GRID.modes, PACE * parameters["D"]
        along = vectors @ (inverse @ heated / (1 - far * rates[:, None]))
        return jnp.fft.irfft(jnp.fft.rfft(along) / (1 + far * WAVES), SHAPE[1]).ravel()


task = envs.Task(LatLon(), agents=8, tiles=(2, 4), forcing={"longwave": (-4.0, 4.0)})
