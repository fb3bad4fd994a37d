"""Learn the planetary albedo of every latitude, and nothing else.

    C ∂T/∂t = (1 − α(φ)) Q − (A + B T) + D/cos φ ∂/∂φ (cos φ ∂T/∂φ)

Train it with ``fedrain train --env examples/albedo.py:task``.

The energy balance model has α = a0 + a2 P2(sin φ); here α has a value of its own at every latitude.
"""

from dataclasses import dataclass

import jax.numpy as jnp

from fedrain.climate import (
    ENERGY_BALANCE_PARAMETERS,
    EnergyBalanceModel,
    Grid,
    Parameter,
    ParameterTable,
)
from fedrain.envs import Task

GRID = Grid(96)
# A parameter of scope "column" may have a default for each column. The bounds leave room for clear
# subtropical ocean (some 0.2) and for snow under a low sun (some 0.7).
ALBEDO = Parameter(
    "albedo", "planetary albedo", "1", 0.354 + 0.25 * GRID.p2, 0.1, 0.75, scope="column"
)
KEPT = tuple(row for row in ENERGY_BALANCE_PARAMETERS if row.symbol in ("D", "A", "B"))


@dataclass(frozen=True)
class AlbedoModel(EnergyBalanceModel):
    """The energy balance model with an albedo that is set at every latitude."""

    grid: Grid = GRID
    table: ParameterTable = ParameterTable((*KEPT, ALBEDO))

    def absorbed_shortwave(self, temperature, parameters, forcing=None):
        """(1 − α) Q in W m⁻²."""
        solar = 0.0 if forcing is None else forcing["solar"]
        insolation = jnp.asarray(self.insolation, temperature.dtype)
        return (1 - parameters["albedo"]) * insolation * (1 + solar / self.solar_constant)


# Longwave and diffusion keep their static values: the albedo alone must explain the climate.
task = Task(model=AlbedoModel(), learn=("albedo",), summary="learns the albedo of every latitude")
