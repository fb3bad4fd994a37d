"""A general circulation model of the atmosphere that learns the parameters of its own schemes.

jcm (Apache licence) solves the primitive equations on a sphere with spherical harmonics, on layers
of σ = p/pₛ, with the physics of SPEEDY: convection, condensation, clouds, radiation in two
shortwave and four longwave bands, surface fluxes and vertical diffusion. The sea's temperature is
given. A step of the model here is a day, or several; parameters are constant through it.

A column is a latitude: jcm's arrays end with the latitude, so that a parameter of a scheme has one
value for each. Fields are means over a circle of latitude and over the day that led to the state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Key

from fedrain.climate.columns import Columns, is_integer
from fedrain.climate.fields import ABSORBED_SHORTWAVE, OUTGOING_LONGWAVE, Field, Forcing
from fedrain.climate.insolation import DAYS_PER_YEAR
from fedrain.climate.models.gcm_parameters import HELD_SUAREZ_PARAMETERS, speedy_table, with_units
from fedrain.climate.models.jcm_internals import (
    CO2_ABSORPTIVITY,
    HELD_SUAREZ,
    LAYER_EDGES,
    PHYSICS,
    SECONDS_PER_DAY,
    SPEEDY,
    SURFACES,
    TRUNCATIONS,
    Machine,
    machine,
)
from fedrain.climate.parameters import Parameters, ParameterTable
from fedrain.errors import InputError, unknown

FREEZING = 273.15  # K
#: ``air`` and ``memory``, of the model's inside; ``shown``, by field; ``day`` since the start.
CirculationState = dict[str, Any]

PRECIPITATION = Field(
    "precipitation",
    "mm d-1",
    scale=3.0,
    low=0.0,
    high=100.0,
    standard_name="lwe_precipitation_rate",
)
SURFACE_PRESSURE = Field(
    "surface_pressure", "hPa", scale=20.0, low=300.0, high=1200.0,
    standard_name="surface_air_pressure",
)  # fmt: skip
#: Of SPEEDY, with what jcm's numbers are multiplied by.
_SURFACE = (
    (SURFACE_PRESSURE, 1000.0),
    (PRECIPITATION, float(SECONDS_PER_DAY)),
    (Field("sensible_heat_flux", "W m-2", scale=20.0, low=-500.0, high=1000.0,
           standard_name="surface_upward_sensible_heat_flux"), 1.0),
    (Field("latent_heat_flux", "W m-2", scale=50.0, low=-500.0, high=1000.0,
           standard_name="surface_upward_latent_heat_flux"), 1.0),
    (Field("cloud_cover", "1", scale=0.2, low=0.0, high=1.0,
           standard_name="cloud_area_fraction"), 1.0),
)  # fmt: skip


@dataclass(frozen=True)
class GeneralCirculationModel:
    """jcm behind the contract of :class:`ClimateModel`. It needs the extra ``gcm``.

    Args:
        truncation: Of the spherical harmonics: 21 has 64 × 32 cells, 31 has 96 × 48.
        layers: Of air, 7 or 8.
        physics: ``"speedy"``; ``"held-suarez"``, dry air that relaxes to a given temperature; or a
            function that makes a jcm ``ComposablePhysics`` of one's own.
        surface: ``"aquaplanet"``: sea everywhere, 27 °C at the equator and 0 °C from 60° on (Neale
            and Hoskins 2000); or ``"earth"``: land, mountains, and sea and ice through the year.
        start: The date of the first day.
        perpetual: Whether the sun stays where it is on that day; otherwise there are seasons.
        days_per_step: Days in a step.
        spin_up: Days from rest to where episodes start, with jcm's own parameters. They are
            computed once and kept in the cache folder.
        table: What may be set; all that there is of the physics, if it is left out.
    """

    truncation: int = 21
    layers: int = 8
    physics: Any = SPEEDY
    surface: str = "aquaplanet"
    start: str = "2001-03-21"
    perpetual: bool = True
    days_per_step: int = 1
    spin_up: int = 300
    table: ParameterTable = None  # type: ignore[assignment]

    #: A step costs far more than learning from it: climates are computed one after the other.
    costly = True
    #: It computes in float32, whatever JAX is set to.
    single_precision = True
    #: Its gradient over an episode is that of chaos.
    differentiable = False

    def __post_init__(self) -> None:
        if self.truncation not in TRUNCATIONS:
            known = ", ".join(map(str, TRUNCATIONS))
            raise InputError(f"jcm has no truncation {self.truncation!r}: use one of {known}")
        if self.layers not in LAYER_EDGES:
            known = " or ".join(map(str, LAYER_EDGES))
            raise InputError(f"layers must be {known}, not {self.layers!r}")
        if not callable(self.physics) and self.physics not in PHYSICS:
            raise unknown("physics of jcm", self.physics, PHYSICS)
        if self.surface not in SURFACES:
            raise unknown("surface", self.surface, SURFACES)
        for name, least in (("days_per_step", 1), ("spin_up", 0)):
            if not is_integer(value := getattr(self, name)) or value < least:
                raise InputError(f"{name} must be an integer from {least}, not {value!r}")
        try:
            np.datetime64(self.start, "D")
        except ValueError:
            raise InputError(
                f"start must be a date such as 2001-03-21, not {self.start!r}"
            ) from None
        if getattr(self, "table", None) is None:
            if callable(self.physics):
                raise InputError("a physics of your own needs a table of its parameters")
            own = HELD_SUAREZ_PARAMETERS if self.is_dry else speedy_table(self.surface)
            object.__setattr__(self, "table", own)

    # ---------------------------------------------------------------- what never changes

    @property
    def is_dry(self) -> bool:
        """Whether the physics is that of Held and Suarez, or one of your own without SPEEDY."""
        own = callable(self.physics)
        return not self.machine.is_speedy if own else bool(self.physics == HELD_SUAREZ)

    @cached_property
    def columns(self) -> Columns:
        """The Gaussian latitudes, weighted by area."""
        sines, weights = np.polynomial.legendre.leggauss(TRUNCATIONS[self.truncation])
        return Columns(np.rad2deg(np.arcsin(sines)), weights=weights)

    @cached_property
    def sigma(self) -> tuple[float, ...]:
        """The middle of each layer, from the ground up."""
        edges = np.array(LAYER_EDGES[self.layers])
        return tuple(np.round((edges[1:] + edges[:-1]) / 2, 6)[::-1].tolist())

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Air on the layers; and of SPEEDY fluxes at top and surface, precipitation and clouds."""

        def air(name: str, unit: str, scale: float, low: float, high: float) -> Field:
            return Field(name, unit, scale, self.sigma, "1", low, high, standard_name=name)

        dry = (
            air("air_temperature", "degC", 30.0, -150.0, 100.0),
            air("eastward_wind", "m s-1", 15.0, -200.0, 200.0),
            air("northward_wind", "m s-1", 3.0, -100.0, 100.0),
        )
        if self.is_dry:
            return dry
        moist = air("specific_humidity", "g kg-1", 5.0, -1.0, 50.0)
        surface = Field("surface_temperature", "degC", 30.0, low=-90.0, high=90.0)
        fluxes = OUTGOING_LONGWAVE, ABSORBED_SHORTWAVE
        return (*fluxes, *(one for one, _ in _SURFACE), surface, *dry, moist)

    @cached_property
    def forcings(self) -> tuple[Forcing, ...]:
        """What acts from outside; nothing on dry air."""
        if self.is_dry:
            return ()
        return (
            Forcing("sst", "K", 0.0, "change of the temperature of sea and land"),
            Forcing("solar", "W m-2", 0.0, "change of the solar constant"),
            Forcing("co2_absorptivity", "1", CO2_ABSORPTIVITY, "longwave absorptivity of CO2"),
        )

    @property
    def machine(self) -> Machine:
        """Jcm itself."""
        made = machine(self.truncation, self.layers, self.physics, self.surface, self.start)
        made.check([row.symbol for row in self.table])
        return made

    # ---------------------------------------------------------------- the contract

    def init(self, key: Key[Array, ""] | None = None) -> CirculationState:
        """The climate that jcm has with its own parameters, spun up."""
        del key
        from fedrain.climate.models.gcm_store import spun_up

        return {
            name: {k: jnp.asarray(v) for k, v in part.items()} if isinstance(part, Mapping)
            else jnp.asarray(part)
            for name, part in spun_up(self).items()
        }  # fmt: skip

    def rest(self) -> CirculationState:
        """Air at rest: where the spin-up begins."""
        columns = len(self.columns)
        shown = {f.name: np.zeros(f.shape(columns), np.float32) for f in self.fields}
        return {**self.machine.rest(), "shown": shown, "day": np.zeros((), np.int32)}

    def step(
        self,
        state: CirculationState,
        parameters: Parameters,
        forcing: Mapping[str, ArrayLike] | None = None,
        key: Key[Array, ""] | None = None,
    ) -> CirculationState:
        """The state a step later."""
        del key
        values = {
            row.symbol: jnp.asarray(parameters[row.symbol], jnp.float32) * with_units(row)
            for row in self.table
            if row.symbol in parameters
        }
        today = jnp.zeros((), jnp.int32) if self.perpetual else state["day"]
        after, seen = self.machine.advance(
            state, values, forcing or {}, today, self.days_per_step, self.perpetual
        )
        shown = {one.name: self._shown(one, seen[one.name]) for one in self.fields}
        return {**after, "shown": shown, "day": state["day"] + self.days_per_step}

    def _shown(self, field: Field, values: Float[Array, "..."]) -> Float[Array, "..."]:
        """What jcm gives of a field, in its unit, and by column and level from the ground up."""
        if field.levels:
            values = jnp.swapaxes(values, 0, 1)[:, ::-1]
        factor = {one.name: by for one, by in _SURFACE}.get(field.name, 1.0)
        if field.unit == "degC":
            return values - FREEZING
        return values * (1000.0 if field.unit == "g kg-1" else factor)

    def observe(self, state: CirculationState) -> dict[str, Float[Array, "lat ..."]]:
        """Zonal means over the step that led to the state."""
        return dict(state["shown"])

    def season(self, state: CirculationState) -> Float[Array, ""]:
        """The fraction of the year that has passed; of a perpetual day always the same."""
        first = np.datetime64(self.start, "D")
        passed = int((first - first.astype("datetime64[Y]").astype("datetime64[D]")).astype(int))
        days = jnp.asarray(passed, jnp.float32) + (0 if self.perpetual else state["day"])
        return (days / DAYS_PER_YEAR) % 1.0
