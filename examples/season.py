"""A model with a clock: the sun follows the seasons, and agents are told the time of year.

    C ∂T/∂t = (1 − α) Q(φ, t) − (A + B T) + D/cos φ ∂/∂φ (cos φ ∂T/∂φ)

Judged is the difference from the NCEP temperature of the same time of year: best would be 0 K.

Train it with ``fedrain train --env examples/season.py:task``.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from fedrain import climate, envs
from fedrain.climate.climatology import ncep_table

STEPS, YEAR = 90, 365.2422  # steps in a year; days
PACE = YEAR / STEPS * 86_400 / 6.3e7  # Δt/C in K m² W⁻¹, for 15 m of water
GRID, DAYS = climate.Grid(96), np.arange(STEPS) * YEAR / STEPS
SUN = climate.daily_insolation(GRID.centres, DAYS, climate.Orbit()).T  # W m⁻², [step, latitude]
MONTHS = np.array([ncep_table()[f"skt_{month:02}"] for month in range(1, 13)])
DAILY = [np.interp(DAYS * 12 / YEAR, np.arange(0.5, 12), one, period=12) for one in MONTHS.T]
NCEP = np.array([np.interp(GRID.centres, ncep_table()["lat"], one) for one in np.transpose(DAILY)])


@dataclass(frozen=True)
class Seasons:
    """Zonal mean surface temperature in °C, and the step of the year."""

    table: climate.ParameterTable = climate.ENERGY_BALANCE_PARAMETERS
    columns, forcings, days_per_step = GRID.columns, (), YEAR / STEPS
    fields = climate.Field("temperature_anomaly", "K", scale=10.0), climate.SURFACE_TEMPERATURE

    def init(self, key, day=0.0):
        """The NCEP temperature of that day of the year."""
        step = jnp.int32(day * STEPS / YEAR) % STEPS
        return {"temperature": jnp.asarray(NCEP)[step], "step": step}

    def observe(self, state):
        """What is judged, and the temperature itself."""
        anomaly = state["temperature"] - jnp.asarray(NCEP)[state["step"]]
        return {"temperature_anomaly": anomaly, "surface_temperature": state["temperature"]}

    def season(self, state):
        """The part of the year that has passed: agents see its sine and cosine."""
        return state["step"] / STEPS

    def step(self, state, parameters, forcing, key):
        """Radiation forward in time, diffusion backward; and the clock."""
        sun = (1 - parameters["a0"] - parameters["a2"] * GRID.p2) * jnp.asarray(SUN)[state["step"]]
        longwave = parameters["A"] + parameters["B"] * state["temperature"]
        heated = state["temperature"] + PACE * (sun - longwave)
        rates, vectors, inverse = GRID.modes
        spread = vectors @ (inverse @ heated / (1 - PACE * parameters["D"] * rates))
        return {"temperature": spread, "step": (state["step"] + 1) % STEPS}


SEEN, START = ("surface_temperature", "season"), {"day": (0, YEAR)}  # any day of the year
task = envs.Task(Seasons(), target=np.zeros(96), observe=SEEN, start=START, episode_length=180)
