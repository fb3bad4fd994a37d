"""A climate whose albedo depends on its temperature, and a model of it that does not know so.

The truth is :class:`EnergyBudgetModel` with

    α(T, φ) = αf + (αi − αf) ½ (1 − tanh((T − Ti) / ΔT)),   αf = 0.3 + 0.078 P2(sin φ)

ice-free αf, ice αi = 0.62, Ti = −10 °C and ΔT = 5 K. The model of the agents is the same without
ice: they set its albedo in every column, and find the missing physics if they learn how it depends
on what they see.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fedrain.climate.columns import frozen
from fedrain.climate.fields import SURFACE_TEMPERATURE
from fedrain.climate.grid import Grid
from fedrain.climate.model import integrate
from fedrain.climate.models.energy_budget import EnergyBudgetModel
from fedrain.climate.parameters import ENERGY_BALANCE_PARAMETERS, Parameter, Parameters
from fedrain.climate.parameters import ParameterTable as Table

ICE_ALBEDO = 0.62
ICE_TEMPERATURE = -10.0  # °C, where half of a column is ice
ICE_WIDTH = 5.0  # K
#: Steps after which the truth is in equilibrium.
EQUILIBRIUM = 4000


def ice_free_albedo(grid: Grid) -> Float[np.ndarray, " lat"]:
    """The albedo without ice."""
    return 0.3 + 0.078 * grid.p2


def _known() -> tuple[Parameter, ...]:
    """What truth and model have in common."""
    paper = ENERGY_BALANCE_PARAMETERS
    values = {"D": 0.555, "A": 210.0, "B": 2.0}
    return tuple(
        Parameter(symbol, paper[symbol].name, paper[symbol].unit, value, value, value, "column")
        for symbol, value in values.items()
    )


def twin_parameters(grid: Grid | None = None) -> Table:
    """Of the model without ice: the albedo can be set, all else is right."""
    albedo = ice_free_albedo(grid or Grid())
    return Table(
        (*_known(), Parameter("albedo", "planetary albedo", "1", albedo, 0.2, 0.7, "column"))
    )


@dataclass(frozen=True)
class IceAlbedoModel(EnergyBudgetModel):
    """The truth: the colder, the more ice, and the less it absorbs."""

    table: Table = Table(_known())

    def albedo(
        self, temperature: Float[Array, "*batch lat"], parameters: Parameters
    ) -> Float[Array, "*batch lat"]:
        """α, by the temperature of the column."""
        del parameters
        free = jnp.asarray(ice_free_albedo(self.grid), temperature.dtype)
        ice = (1 - jnp.tanh((temperature - ICE_TEMPERATURE) / ICE_WIDTH)) / 2
        return free + (ICE_ALBEDO - free) * ice

    @cached_property
    def target(self) -> dict[str, Float[np.ndarray, " lat"]]:
        """Its own climate, without weather, in equilibrium."""
        calm = replace(self, weather=0.0)
        reanalysis = super().target
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            values = {k: jnp.asarray(v) for k, v in self.table.static(len(self.columns)).items()}
            start = calm._state(jnp.asarray(reanalysis[SURFACE_TEMPERATURE.name]), values, None)
            end = integrate(calm, start, values, EQUILIBRIUM)
            return {name: frozen(np.array(field)) for name, field in calm.observe(end).items()}


@dataclass(frozen=True)
class TwinModel(EnergyBudgetModel):
    """The truth's climate without ice: what of the albedo is missing is for agents to find."""

    table: Table = twin_parameters()

    @cached_property
    def target(self) -> dict[str, Float[np.ndarray, " lat"]]:
        """The climate of the truth."""
        truth = IceAlbedoModel(
            grid=self.grid, orbit=self.orbit, solar_constant=self.solar_constant,
            water_depth=self.water_depth, steps_per_year=self.steps_per_year,
        )  # fmt: skip
        return truth.target
