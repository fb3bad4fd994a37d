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
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fedrain.climate.grid import Grid, frozen
from fedrain.climate.insolation import DAYS_PER_YEAR, SOLAR_CONSTANT, Orbit, annual_insolation
from fedrain.climate.parameters import ENERGY_BALANCE_PARAMETERS, Parameters, ParameterTable
from fedrain.errors import InputError

WATER_HEAT_CAPACITY = 4181.3e3  # J m⁻³ K⁻¹: 1000 kg m⁻³ × 4181.3 J kg⁻¹ K⁻¹
SECONDS_PER_DAY = 86_400.0


@runtime_checkable
class ClimateModel(Protocol):
    """What an environment needs of a climate model.

    Implementations are hashable, so that a compiled function can be reused for an equal model. One
    that computes on the host in double precision says so with an attribute ``dtype = "float64"``.
    """

    @property
    def grid(self) -> Grid:
        """The latitudes of the model."""

    @property
    def table(self) -> ParameterTable:
        """The parameters that can be set at every step."""

    def step(
        self, temperature: Float[Array, "*batch lat"], parameters: Parameters
    ) -> Float[Array, "*batch lat"]:
        """The temperature one time step later."""


@dataclass(frozen=True)
class EnergyBalanceModel:
    """The energy balance model on one grid, with one orbit. Everything that never changes in a run.

    What may change at every step, A, B, D, a0 and a2, is passed to :meth:`step`.
    """

    grid: Grid = Grid()
    table: ParameterTable = ENERGY_BALANCE_PARAMETERS
    orbit: Orbit = Orbit()
    solar_constant: float = SOLAR_CONSTANT  # W m⁻²
    water_depth: float = 10.0  # m
    steps_per_year: int = 90

    def __post_init__(self) -> None:
        for name in ("solar_constant", "water_depth", "steps_per_year"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"{name} must be a positive number, not {value!r}")

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

    def absorbed_shortwave(
        self, temperature: Float[Array, "*batch lat"], parameters: Parameters
    ) -> Float[Array, "*#batch lat"]:
        """(1 − α) Q in W m⁻²."""
        constant = partial(jnp.asarray, dtype=temperature.dtype)
        a0, a2 = (constant(parameters[symbol])[..., None] for symbol in ("a0", "a2"))
        return (1 - a0 - a2 * constant(self.grid.p2)) * constant(self.insolation)

    def outgoing_longwave(
        self, temperature: Float[Array, "*batch lat"], parameters: Parameters
    ) -> Float[Array, "*batch lat"]:
        """A + B T in W m⁻²."""
        A, B = (jnp.asarray(parameters[symbol], temperature.dtype) for symbol in ("A", "B"))
        return A + B * temperature

    def net_radiation(
        self, temperature: Float[Array, "*batch lat"], parameters: Parameters
    ) -> Float[Array, "*batch lat"]:
        """Absorbed shortwave minus outgoing longwave, in W m⁻²."""
        return self.absorbed_shortwave(temperature, parameters) - self.outgoing_longwave(
            temperature, parameters
        )

    def diffuse(
        self, temperature: Float[Array, "*batch lat"], diffusivity: Float[Array, "*#batch"]
    ) -> Float[Array, "*batch lat"]:
        """Solve (I − Δt/C D L) T' = T for T', in the eigenvectors of L."""
        eigenvalues, vectors, inverse = (jnp.asarray(a, temperature.dtype) for a in self.grid.modes)
        damping = 1 - self.time_step / self.heat_capacity * diffusivity[..., None] * eigenvalues
        return (temperature @ inverse.T / damping) @ vectors.T

    def step(
        self, temperature: Float[Array, "*batch lat"], parameters: Parameters
    ) -> Float[Array, "*batch lat"]:
        """The temperature one time step later."""
        heating = self.net_radiation(temperature, parameters)
        heated = temperature + self.time_step / self.heat_capacity * heating
        return self.diffuse(heated, jnp.asarray(parameters["D"], temperature.dtype))


@partial(jax.jit, static_argnames=("model", "steps"))
def integrate(
    model: ClimateModel,
    temperature: Float[Array, "*batch lat"],
    parameters: Parameters,
    steps: int,
) -> Float[Array, "*batch lat"]:
    """The temperature after ``steps`` steps with constant parameters."""
    return jax.lax.fori_loop(0, steps, lambda _, t: model.step(t, parameters), temperature)


@partial(jax.jit, static_argnames=("model", "steps"))
def trajectory(
    model: ClimateModel,
    temperature: Float[Array, "*batch lat"],
    parameters: Parameters,
    steps: int,
) -> Float[Array, "step *batch lat"]:
    """The temperature after each of ``steps`` steps with constant parameters."""

    def advance(
        before: Float[Array, "*batch lat"], _: None
    ) -> tuple[Float[Array, "*batch lat"], Float[Array, "*batch lat"]]:
        after = model.step(before, parameters)
        return after, after

    return jax.lax.scan(advance, temperature, None, length=steps)[1]
