"""The Budyko–Sellers energy balance model of the zonal mean surface temperature T(φ) in °C.

    C ∂T/∂t = (1 − α(φ)) Q(φ) − (A + B T) + D/cos φ ∂/∂φ (cos φ ∂T/∂φ),   α = a0 + a2 P2(sin φ)

One step is explicit in the radiation and then implicit in the diffusion, as climlab integrates it:

    T* = T + Δt/C ((1 − α) Q − (A + B T)),   (I − Δt/C D L) T' = T*

L is fixed and D a scalar, so the implicit solve is two products with the eigenvectors of L.
All functions are pure, take any leading batch axes and compute in the dtype of the temperature:
float32 to learn, float64 (under ``jax.enable_x64``) to verify.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from fedrain.climate.climatology import ncep_profiles
from fedrain.climate.columns import Columns, frozen
from fedrain.climate.fields import (
    ABSORBED_SHORTWAVE,
    OUTGOING_LONGWAVE,
    SURFACE_TEMPERATURE,
    Field,
    Forcing,
)
from fedrain.climate.grid import Grid
from fedrain.climate.insolation import DAYS_PER_YEAR, SOLAR_CONSTANT, Orbit, annual_insolation
from fedrain.climate.model import Forcings
from fedrain.climate.parameters import ENERGY_BALANCE_PARAMETERS, Parameters, ParameterTable
from fedrain.errors import InputError

WATER_HEAT_CAPACITY = 4181.3e3  # J m⁻³ K⁻¹: 1000 kg m⁻³ × 4181.3 J kg⁻¹ K⁻¹
SECONDS_PER_DAY = 86_400.0


#: What acts on the energy budget from outside.
FORCINGS = (
    Forcing("longwave", "W m-2", 0.0, "change of the outgoing longwave radiation"),
    Forcing("solar", "W m-2", 0.0, "change of the solar constant"),
)


class OnLatitudes:
    """What every model on a grid of latitudes has, whatever its state is."""

    grid: Grid

    @property
    def columns(self) -> Columns:
        """The latitudes of the model."""
        return self.grid.columns

    @property
    def forcings(self) -> tuple[Forcing, ...]:
        """Longwave and solar."""
        return FORCINGS

    def _check_positive(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"{name} must be a positive number, not {value!r}")


@dataclass(frozen=True)
class EnergyBalance(OnLatitudes):
    """What every energy balance model on a grid of latitudes has: all that never changes in a run.

    Subclasses say what the state is, and how it moves.
    """

    grid: Grid = Grid()
    table: ParameterTable = ENERGY_BALANCE_PARAMETERS
    orbit: Orbit = Orbit()
    solar_constant: float = SOLAR_CONSTANT  # W m⁻²
    water_depth: float = 10.0  # m
    steps_per_year: int = 90

    def __post_init__(self) -> None:
        self._check_positive("solar_constant", "water_depth", "steps_per_year")

    @property
    def days_per_step(self) -> float:
        """Length of a time step."""
        return DAYS_PER_YEAR / self.steps_per_year

    @cached_property
    def target(self) -> dict[str, Float[np.ndarray, " lat"]]:
        """Temperature and fluxes of the reanalysis, the fluxes in balance."""
        return ncep_profiles(self.columns)

    @property
    def heat_capacity(self) -> float:
        """C in J m⁻² K⁻¹."""
        return self.water_depth * WATER_HEAT_CAPACITY

    @property
    def time_step(self) -> float:
        """Δt in seconds."""
        return DAYS_PER_YEAR * SECONDS_PER_DAY / self.steps_per_year

    @cached_property
    def insolation(self) -> Float[np.ndarray, " lat"]:
        """Q, the annual mean insolation in W m⁻²."""
        return frozen(
            annual_insolation(
                self.grid.centres, self.orbit, self.solar_constant, self.steps_per_year
            )
        )

    def forced_insolation(self, dtype: Any, forcing: Forcings | None) -> Float[Array, " lat"]:
        """Q with the change of the solar constant, in W m⁻²."""
        insolation = jnp.asarray(self.insolation, dtype)
        if forcing is not None and "solar" in forcing:
            change = jnp.asarray(forcing["solar"], dtype) / self.solar_constant
            insolation = insolation * (1 + change)
        return insolation

    def outgoing_longwave(
        self,
        temperature: Float[Array, "*batch lat"],
        parameters: Parameters,
        forcing: Forcings | None = None,
    ) -> Float[Array, "*batch lat"]:
        """A + B T, and what forces it, in W m⁻²."""
        A, B = (jnp.asarray(parameters[symbol], temperature.dtype) for symbol in ("A", "B"))
        longwave = A + B * temperature
        if forcing is not None and "longwave" in forcing:
            longwave = longwave + jnp.asarray(forcing["longwave"], temperature.dtype)
        return longwave

    def net_radiation(
        self,
        temperature: Float[Array, "*batch lat"],
        parameters: Parameters,
        forcing: Forcings | None = None,
    ) -> Float[Array, "*batch lat"]:
        """Absorbed shortwave minus outgoing longwave, in W m⁻²."""
        shortwave = self.absorbed_shortwave(temperature, parameters, forcing)
        return shortwave - self.outgoing_longwave(temperature, parameters, forcing)

    def absorbed_shortwave(
        self,
        temperature: Float[Array, "*batch lat"],
        parameters: Parameters,
        forcing: Forcings | None = None,
    ) -> Float[Array, "*#batch lat"]:
        """(1 − α) Q in W m⁻²."""
        raise NotImplementedError


@dataclass(frozen=True)
class EnergyBalanceModel(EnergyBalance):
    """The energy balance model on one grid, with one orbit. Everything that never changes in a run.

    Its state is the temperature in °C, ``[..., lat]``. What may change at every step, A, B, D, a0
    and a2, is passed to :meth:`step`; so is what forces it: ``longwave``, W m⁻² added to the
    outgoing radiation (−3.7 for a doubling of CO₂), and ``solar``, W m⁻² added to the solar
    constant.

    Args:
        grid: The latitudes.
        table: Parameters with bounds and static values.
        orbit: Orbital elements, for the sun.
        solar_constant: In W m⁻².
        water_depth: Depth, in m, of the water that has the heat capacity of a column.
        steps_per_year: Time steps in a year.
    """

    @property
    def fields(self) -> tuple[Field, ...]:
        """The surface temperature."""
        return (SURFACE_TEMPERATURE,)

    def init(
        self, key: Key[Array, ""] | None = None, temperature: float | Float[Array, "..."] = 50.0
    ) -> Float[Array, " lat"]:
        """The same temperature everywhere, or a profile, in °C."""
        del key
        start = jnp.asarray(temperature, jnp.result_type(float))
        return jnp.broadcast_to(start, (self.grid.latitudes,))

    def observe(self, state: Float[Array, "*batch lat"]) -> dict[str, Float[Array, "*batch lat"]]:
        """The temperature is all that there is to see."""
        return {SURFACE_TEMPERATURE.name: state}

    def fluxes(
        self,
        state: Float[Array, "*batch lat"],
        parameters: Parameters,
        forcing: Forcings | None = None,
    ) -> dict[str, Float[Array, "*batch lat"]]:
        """What leaves and enters at the top of the atmosphere with these parameters, in W m⁻²."""
        shortwave = self.absorbed_shortwave(state, parameters, forcing)
        return {
            OUTGOING_LONGWAVE.name: self.outgoing_longwave(state, parameters, forcing),
            ABSORBED_SHORTWAVE.name: jnp.broadcast_to(shortwave, state.shape),
        }

    def absorbed_shortwave(
        self,
        temperature: Float[Array, "*batch lat"],
        parameters: Parameters,
        forcing: Forcings | None = None,
    ) -> Float[Array, "*#batch lat"]:
        """(1 − α) Q in W m⁻²."""
        constant = partial(jnp.asarray, dtype=temperature.dtype)
        a0, a2 = (constant(parameters[symbol])[..., None] for symbol in ("a0", "a2"))
        insolation = self.forced_insolation(temperature.dtype, forcing)
        return (1 - a0 - a2 * constant(self.grid.p2)) * insolation

    def diffuse(
        self, temperature: Float[Array, "*batch lat"], diffusivity: Float[Array, "*#batch"]
    ) -> Float[Array, "*batch lat"]:
        """Solve (I − Δt/C D L) T' = T for T', in the eigenvectors of L."""
        eigenvalues, vectors, inverse = (jnp.asarray(a, temperature.dtype) for a in self.grid.modes)
        damping = 1 - self.time_step / self.heat_capacity * diffusivity[..., None] * eigenvalues
        return (temperature @ inverse.T / damping) @ vectors.T

    def step(
        self,
        state: Float[Array, "*batch lat"],
        parameters: Parameters,
        forcing: Forcings | None = None,
        key: Key[Array, ""] | None = None,
    ) -> Float[Array, "*batch lat"]:
        """The temperature one time step later."""
        del key
        heating = self.net_radiation(state, parameters, forcing)
        heated = state + self.time_step / self.heat_capacity * heating
        return self.diffuse(heated, jnp.asarray(parameters["D"], state.dtype))
