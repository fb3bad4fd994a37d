"""The energy balance model with transport and albedo that vary with latitude, and its fluxes.

    C ∂T/∂t = (1 − α) Q − (A + B T) + 1/cos φ ∂/∂φ (D cos φ ∂T/∂φ)

D, A, B and α have a value in each column; D on the edge between two cells is the mean of theirs.
One step is explicit in the radiation and then implicit in the diffusion, a tridiagonal system.
Where D is the same everywhere and α = a0 + a2 P2(sin φ), this is
:class:`fedrain.climate.EnergyBalanceModel`.

What leaves and enters at the top of the atmosphere can be seen and judged: a model that has the
right temperature for the wrong reasons shows it there.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from fedrain.climate.diffusion import diffuse
from fedrain.climate.fields import ABSORBED_SHORTWAVE, OUTGOING_LONGWAVE, SURFACE_TEMPERATURE, Field
from fedrain.climate.grid import Grid
from fedrain.climate.model import Forcings
from fedrain.climate.models.energy_balance import EnergyBalance
from fedrain.climate.parameters import ENERGY_BALANCE_PARAMETERS, Parameter, Parameters
from fedrain.climate.parameters import ParameterTable as Table
from fedrain.errors import InputError


class BudgetState(NamedTuple):
    """Temperature in °C, and the fluxes with the parameters that were last in force, in W m⁻²."""

    temperature: Float[Array, " lat"]
    outgoing_longwave: Float[Array, " lat"]
    absorbed_shortwave: Float[Array, " lat"]


def budget_parameters(grid: Grid | None = None) -> Table:
    """Bounds with room for every plausible climate; the static values are the paper's."""
    paper, p2 = ENERGY_BALANCE_PARAMETERS, (grid or Grid()).p2
    albedo = paper["a0"].static(1) + paper["a2"].static(1) * p2
    A = Parameter(
        "A", paper["A"].name, "W m-2", 210.0, 150.0, 270.0, scope="column", action_unit=100.0
    )
    return Table(
        (
            Parameter("D", paper["D"].name, "W m-2 K-1", 0.6, 0.05, 1.5, scope="column"),
            A,
            paper["B"],
            Parameter("albedo", "planetary albedo", "1", albedo, 0.1, 0.9, scope="column"),
        )
    )


@dataclass(frozen=True)
class EnergyBudgetModel(EnergyBalance):
    """The energy balance model with D, A, B and albedo by latitude, seen with its fluxes.

    Args:
        grid: The latitudes.
        table: Parameters with bounds and static values.
        orbit: Orbital elements, for the sun.
        solar_constant: In W m⁻².
        water_depth: Depth, in m, of the water that has the heat capacity of a column.
        steps_per_year: Time steps in a year.
        weather: Standard deviation, in K, of the noise that each step adds to the temperature of
            each column. Two models that step with the same key have the same weather.
    """

    table: Table = budget_parameters()
    weather: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.weather) and self.weather >= 0):
            raise InputError(f"weather must be a number from 0, not {self.weather!r}")

    @property
    def fields(self) -> tuple[Field, ...]:
        """Temperature and the two fluxes at the top of the atmosphere."""
        return (SURFACE_TEMPERATURE, OUTGOING_LONGWAVE, ABSORBED_SHORTWAVE)

    @property
    def calm(self) -> "EnergyBudgetModel":
        """The same without weather."""
        return replace(self, weather=0.0)

    @property
    def present(self) -> Float[np.ndarray, " lat"]:
        """The climate that a start is drawn around, in °C."""
        return self.target[SURFACE_TEMPERATURE.name]

    def init(
        self,
        key: Key[Array, ""] | None = None,
        offset: float | Float[Array, "..."] = 0.0,
    ) -> BudgetState:
        """The present climate, and so many K more in every column."""
        del key
        shift = jnp.asarray(offset, jnp.result_type(float))
        temperature = jnp.asarray(self.present, shift.dtype) + shift
        return self._state(temperature, self.table.static(self.grid.latitudes), None)

    def analyse(self, state: BudgetState, fields: dict[str, Float[Array, " lat"]]) -> BudgetState:
        """The state with the temperature that was observed."""
        return state._replace(temperature=fields[SURFACE_TEMPERATURE.name])

    def _state(
        self,
        temperature: Float[Array, " lat"],
        parameters: Parameters,
        forcing: Forcings | None,
    ) -> BudgetState:
        longwave = self.outgoing_longwave(temperature, parameters, forcing)
        shortwave = self.absorbed_shortwave(temperature, parameters, forcing)
        return BudgetState(temperature, longwave, jnp.broadcast_to(shortwave, temperature.shape))

    def observe(self, state: BudgetState) -> dict[str, Float[Array, " lat"]]:
        """Temperature and fluxes."""
        names = (field.name for field in self.fields)
        return dict(zip(names, state, strict=True))

    def albedo(
        self, temperature: Float[Array, " lat"], parameters: Parameters
    ) -> Float[Array, " lat"]:
        """α: here what was set."""
        return jnp.asarray(parameters["albedo"], temperature.dtype)

    def absorbed_shortwave(
        self,
        temperature: Float[Array, " lat"],
        parameters: Parameters,
        forcing: Forcings | None = None,
    ) -> Float[Array, " lat"]:
        """(1 − α) Q in W m⁻²."""
        insolation = self.forced_insolation(temperature.dtype, forcing)
        return (1 - self.albedo(temperature, parameters)) * insolation

    def diffuse(
        self, temperature: Float[Array, " lat"], diffusivity: Float[Array, " lat"]
    ) -> Float[Array, " lat"]:
        """What transport makes of the temperature in one step."""
        pace = jnp.full(temperature.shape, self.time_step / self.heat_capacity, temperature.dtype)
        return diffuse(self.grid, temperature, diffusivity, pace)

    def step(
        self,
        state: BudgetState,
        parameters: Parameters,
        forcing: Forcings | None = None,
        key: Key[Array, ""] | None = None,
    ) -> BudgetState:
        """Temperature and fluxes one time step later."""
        before = state.temperature
        heating = self.net_radiation(before, parameters, forcing)
        heated = before + self.time_step / self.heat_capacity * heating
        after = self.diffuse(heated, jnp.asarray(parameters["D"], before.dtype))
        if self.weather:
            noise_key = jax.random.key(0) if key is None else key
            after = after + self.weather * jax.random.normal(noise_key, after.shape, after.dtype)
        return self._state(after, parameters, forcing)
