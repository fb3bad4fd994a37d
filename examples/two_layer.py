"""Surface and atmosphere: a state of two parts, two fields, and agents judged by both.

    C_s ∂T_s/∂t = (1 − α) Q + ε σ T_a⁴ − σ T_s⁴ − H (T_s − T_a)
    C_a ∂T_a/∂t = ε σ T_s⁴ − 2 ε σ T_a⁴ + H (T_s − T_a) + D/cos φ ∂/∂φ (cos φ ∂T_a/∂φ)

Train it with ``fedrain train --env examples/two_layer.py:task``.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from fedrain import climate, envs
from fedrain.climate.climatology import ncep_table

SIGMA, ZERO = 5.67e-8, 273.15  # W m⁻² K⁻⁴; 0 °C in K
STEP, C_SURFACE, C_AIR = 4 * 86_400.0, 4.2e7, 1.0e7  # s; J m⁻² K⁻¹: 10 m of water, and all air
GRID = climate.Grid(96)
SUN = (1 - 0.354 - 0.25 * GRID.p2) * climate.annual_insolation(GRID.centres)  # W m⁻², absorbed
NAMES = "surface_temperature", "air_temperature"
PARAMETERS = (
    climate.Parameter("eps", "emissivity of the air", "1", 0.9, 0.5, 1.0, scope="column"),
    climate.Parameter("H", "heat exchange of surface and air", "W m-2 K-1", 1.0, 0.5, 5.0),
    climate.Parameter("D", "heat diffusivity of the air", "W m-2 K-1", 1.2, 0.5, 2.0),
)


@dataclass(frozen=True)
class TwoLayers:
    """Zonal mean temperatures in °C."""

    table: climate.ParameterTable = climate.ParameterTable(PARAMETERS)
    columns, forcings, days_per_step = GRID.columns, (), STEP / 86_400
    fields = climate.SURFACE_TEMPERATURE, climate.Field(NAMES[1], "degC", scale=20.0)

    def init(self, key, surface=20.0, air=-10.0):
        """The same temperatures at all latitudes; a task may say others."""
        return {NAMES[0]: jnp.full(96, surface), NAMES[1]: jnp.full(96, air)}

    def observe(self, state):
        """The state holds both fields under their names."""
        return state

    def step(self, state, parameters, forcing, key):
        """Radiation and exchange forward in time; diffusion, which is faster, backward."""
        surface, air = (state[name] for name in NAMES)
        up, layer = (SIGMA * (T + ZERO) ** 4 for T in (surface, air))
        eps, exchange = parameters["eps"], parameters["H"] * (surface - air)
        surface = surface + STEP / C_SURFACE * (SUN + eps * layer - up - exchange)
        air = air + STEP / C_AIR * (eps * (up - 2 * layer) + exchange)
        rates, vectors, inverse = GRID.modes
        air = vectors @ (inverse @ air / (1 - STEP / C_AIR * parameters["D"] * rates))
        return {NAMES[0]: surface, NAMES[1]: air}


# No analysis has one layer of air: its target is what would emit NCEP's longwave, with ε of 0.9.
lat, skin, olr = (ncep_table()[name] for name in ("lat", "skt_annual", "toa_outgoing_longwave"))
air = ((olr - 0.1 * SIGMA * (skin + ZERO) ** 4) / (0.9 * SIGMA)) ** 0.25 - ZERO
task = envs.Task(TwoLayers(), judge=NAMES, target={NAMES[1]: np.interp(GRID.centres, lat, air)})
