"""The energy balance model through the year, with land and ocean at each latitude.

At a latitude φ with a share f of land, land has the temperature T_l and the ocean T_o in °C; the
zonal mean is T = f T_l + (1 − f) T_o. With Q(φ, t) the insolation of the day,

    C_l ∂T_l/∂t = (1 − α) Q − (A + B T_l) + H + k (1 − f) (T_o − T_l)
    C_o ∂T_o/∂t = (1 − α) Q − (A + B T_o) + H + k f (T_l − T_o)
    H = 1/cos φ ∂/∂φ (D cos φ ∂T/∂φ)

One step is explicit in the radiation and then implicit in what moves heat about: between land and
ocean (k), and along the meridian (H). With no land, or with one heat capacity for both, this is
``climlab.EBM_seasonal``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, Key

from fedrain.climate.columns import frozen
from fedrain.climate.diffusion import convergence, diffuse
from fedrain.climate.fields import (
    ABSORBED_SHORTWAVE,
    OUTGOING_LONGWAVE,
    SURFACE_TEMPERATURE,
    Field,
)
from fedrain.climate.grid import Grid
from fedrain.climate.insolation import DAYS_PER_YEAR, SOLAR_CONSTANT, Orbit, daily_insolation
from fedrain.climate.model import Forcings
from fedrain.climate.models.energy_balance import (
    FORCINGS,
    SECONDS_PER_DAY,
    WATER_HEAT_CAPACITY,
    OnLatitudes,
)
from fedrain.climate.parameters import Parameter, Parameters, ParameterTable
from fedrain.climate.reanalysis import balanced_months, land_fraction, through_the_year
from fedrain.errors import InputError

#: ``land`` and ``ocean``, °C; ``longwave`` and ``shortwave``, the fluxes of the last step in W m⁻²;
#: ``step``, the step of the year.
SeasonalState = dict[str, Any]


def seasonal_parameters(grid: Grid) -> ParameterTable:
    """What may be set; the static values are the defaults of ``climlab.EBM_seasonal``."""
    albedo = 0.33 + 0.25 * grid.p2
    flux = partial(Parameter, unit="W m-2 K-1", scope="column")
    return ParameterTable(
        (
            flux("D", "meridional heat diffusivity", default=0.555, low=0.05, high=1.5),
            Parameter(
                "A",
                "outgoing longwave radiation at 0 degC",
                "W m-2",
                210.0,
                150.0,
                270.0,
                scope="column",
                action_unit=100.0,
            ),
            flux("B", "longwave feedback", default=2.0, low=1.0, high=3.0),
            Parameter("albedo", "planetary albedo", "1", albedo, 0.05, 0.95, scope="column"),
            flux("k", "exchange of heat of land and ocean", default=10.0, low=0.0, high=50.0),
        )
    )


@dataclass(frozen=True)
class SeasonalModel(OnLatitudes):
    """The seasonal energy balance model on one grid. Everything that never changes in a run.

    Args:
        grid: The latitudes.
        table: What may be set; :func:`seasonal_parameters` of the grid, if it is left out.
        orbit: That of the Earth.
        solar_constant: In W m⁻².
        ocean_depth: Depth of the water that takes part in the seasons, in m.
        land_depth: Depth of water with the heat capacity of land and the air above it, in m.
        ice_edges: Latitudes in the south and north poleward of which ice cuts the sea off from the
            air, so that it has the heat capacity of land.
        land: Share of land everywhere; that of the Earth, if it is None.
        steps_per_year: Time steps in a year.
    """

    grid: Grid = Grid()
    table: ParameterTable = None  # type: ignore[assignment]
    orbit: Orbit = Orbit()
    solar_constant: float = SOLAR_CONSTANT
    ocean_depth: float = 50.0
    land_depth: float = 2.0
    ice_edges: Sequence[float] = (-65.0, 75.0)
    land: float | None = None
    steps_per_year: int = 90

    def __post_init__(self) -> None:
        self._check_positive("solar_constant", "ocean_depth", "land_depth", "steps_per_year")
        if self.land is not None and not 0 <= self.land <= 1:
            raise InputError(f"land is a share between 0 and 1, not {self.land!r}")
        object.__setattr__(self, "ice_edges", tuple(float(edge) for edge in self.ice_edges))
        if len(self.ice_edges) != 2 or not -90 <= self.ice_edges[0] <= self.ice_edges[1] <= 90:
            raise InputError("ice_edges are two latitudes, the southern one first")
        object.__setattr__(self, "table", self.table or seasonal_parameters(self.grid))

    # ---------------------------------------------------------------- what never changes

    @property
    def fields(self) -> tuple[Field, ...]:
        """Zonal mean temperature and fluxes; and the temperatures of land and ocean."""
        surface = partial(Field, unit="degC", scale=30.0, low=-90.0, high=90.0)
        own = surface("land_temperature"), surface("ocean_temperature")
        return (SURFACE_TEMPERATURE, OUTGOING_LONGWAVE, ABSORBED_SHORTWAVE, *own)

    @property
    def days_per_step(self) -> float:
        """Length of a time step."""
        return DAYS_PER_YEAR / self.steps_per_year

    @property
    def time_step(self) -> float:
        """Δt in seconds."""
        return self.days_per_step * SECONDS_PER_DAY

    @cached_property
    def land_share(self) -> Float[np.ndarray, " lat"]:
        """f, the share of land."""
        if self.land is not None:
            return frozen(np.full(self.grid.latitudes, float(self.land)))
        return frozen(land_fraction(self.columns))

    @cached_property
    def heat_capacities(self) -> Float[np.ndarray, "2 lat"]:
        """Of land and ocean, in J m⁻² K⁻¹."""
        south, north = self.ice_edges
        is_open = (self.grid.centres >= south) & (self.grid.centres <= north)
        ocean = np.where(is_open, self.ocean_depth, self.land_depth)
        land = np.full_like(ocean, self.land_depth)
        return frozen(WATER_HEAT_CAPACITY * np.stack([land, ocean]))

    @cached_property
    def insolation(self) -> Float[np.ndarray, "step lat"]:
        """Q in W m⁻² at each step of the year: that of its first day, as in climlab."""
        days = np.arange(self.steps_per_year) * self.days_per_step
        daily = daily_insolation(self.grid.centres, days, self.orbit, self.solar_constant)
        return frozen(daily.T.copy())

    @cached_property
    def year(self) -> dict[str, Float[np.ndarray, "step lat"]]:
        """The reanalysis with balanced fluxes, at the beginning of each step of the year."""
        season = np.arange(self.steps_per_year) / self.steps_per_year
        months = balanced_months(self.columns)
        return {name: frozen(through_the_year(one, season)) for name, one in months.items()}

    @cached_property
    def target(self) -> dict[str, Float[np.ndarray, " lat"]]:
        """The mean over the year of what :meth:`target_at` gives."""
        return {name: frozen(one.mean(0)) for name, one in self.year.items()}

    # ---------------------------------------------------------------- the contract

    def init(
        self,
        key: Key[Array, ""] | None = None,
        offset: ArrayLike = 0.0,
        day: ArrayLike = 0.0,
    ) -> SeasonalState:
        """The climate of the reanalysis on a day of the year, and an offset of temperature in K.

        The reanalysis gives the zonal mean. Land takes the larger part of its departure from the
        annual mean, as far as the two heat capacities tell.
        """
        del key
        dtype = jnp.result_type(float)
        step = (jnp.asarray(day) / self.days_per_step).astype(jnp.int32) % self.steps_per_year
        now = {name: jnp.asarray(one, dtype)[step] for name, one in self.year.items()}
        before = {name: jnp.asarray(one, dtype)[step - 1] for name, one in self.year.items()}
        mean = jnp.asarray(self.target[SURFACE_TEMPERATURE.name], dtype)
        departure = now[SURFACE_TEMPERATURE.name] - mean
        shift = mean + jnp.asarray(offset, dtype)
        land, ocean = (shift + jnp.asarray(one, dtype) * departure for one in self._amplitudes)
        return {
            "land": land,
            "ocean": ocean,
            "longwave": before[OUTGOING_LONGWAVE.name],
            "shortwave": before[ABSORBED_SHORTWAVE.name],
            "step": step,
        }

    @cached_property
    def _amplitudes(self) -> Float[np.ndarray, "2 lat"]:
        """Seasonal cycle of land and ocean over that of their mean, damped at 10 W m⁻² K⁻¹."""
        frequency = 2 * np.pi / (DAYS_PER_YEAR * SECONDS_PER_DAY)
        each = 1 / np.abs(10.0 + 1j * frequency * self.heat_capacities)
        return frozen(each / (self.land_share * each[0] + (1 - self.land_share) * each[1]))

    def observe(self, state: SeasonalState) -> dict[str, Float[Array, " lat"]]:
        """Zonal means, and land and ocean; the fluxes are those of the last step."""
        return {
            SURFACE_TEMPERATURE.name: self.zonal_mean(state["land"], state["ocean"]),
            OUTGOING_LONGWAVE.name: state["longwave"],
            ABSORBED_SHORTWAVE.name: state["shortwave"],
            "land_temperature": state["land"],
            "ocean_temperature": state["ocean"],
        }

    def season(self, state: SeasonalState) -> Float[Array, ""]:
        """The fraction of the year that has passed."""
        return state["step"].astype(state["land"].dtype) / self.steps_per_year

    def target_at(self, state: SeasonalState) -> dict[str, Float[Array, " lat"]]:
        """The reanalysis at the time of what :meth:`observe` shows.

        The fluxes of a state are those that led to it: they are one step older than it is.
        """
        dtype, step = state["land"].dtype, state["step"]
        fluxes = OUTGOING_LONGWAVE.name, ABSORBED_SHORTWAVE.name
        times = {name: (step - 1 if name in fluxes else step) for name in self.year}
        return {name: jnp.asarray(self.year[name], dtype)[times[name]] for name in self.year}

    def analyse(
        self, state: SeasonalState, fields: Mapping[str, Float[Array, " lat"]]
    ) -> SeasonalState:
        """The state with the zonal mean temperature that was observed; land takes most of it."""
        land, ocean = state["land"], state["ocean"]
        missing = fields[SURFACE_TEMPERATURE.name] - self.zonal_mean(land, ocean)
        parts = jnp.asarray(self._amplitudes, land.dtype)
        return {**state, "land": land + parts[0] * missing, "ocean": ocean + parts[1] * missing}

    def zonal_mean(
        self, land: Float[Array, " lat"], ocean: Float[Array, " lat"]
    ) -> Float[Array, " lat"]:
        """Of both, f T_l + (1 − f) T_o."""
        share = jnp.asarray(self.land_share, land.dtype)
        return share * land + (1 - share) * ocean

    def absorbed_shortwave(
        self, step: Int[Array, ""], albedo: Float[Array, " lat"], solar: ArrayLike = 0.0
    ) -> Float[Array, " lat"]:
        """(1 − α) Q in W m⁻², at a step of the year."""
        insolation = jnp.asarray(self.insolation, albedo.dtype)[step]
        change = jnp.asarray(solar, albedo.dtype) / self.solar_constant
        return (1 - albedo) * (insolation * (1 + change))

    def step(
        self,
        state: SeasonalState,
        parameters: Parameters,
        forcing: Forcings | None = None,
        key: Key[Array, ""] | None = None,
    ) -> SeasonalState:
        """The state one time step later."""
        del key
        constant = partial(jnp.asarray, dtype=state["land"].dtype)
        forced = {one.name: constant(one.default) for one in FORCINGS} | dict(forcing or {})
        D, A, B, albedo, k = (constant(parameters[s]) for s in ("D", "A", "B", "albedo", "k"))
        shortwave = self.absorbed_shortwave(state["step"], albedo, forced["solar"])
        offset = A + constant(forced["longwave"])
        paces = constant(self.time_step / self.heat_capacities)  # Δt/C
        land, ocean = (
            temperature + pace * (shortwave - (offset + B * temperature))
            for temperature, pace in zip((state["land"], state["ocean"]), paces, strict=True)
        )
        before = self.zonal_mean(state["land"], state["ocean"])
        land, ocean = self._mix(land, ocean, paces, D, k)
        return {
            "land": land,
            "ocean": ocean,
            "longwave": offset + B * before,
            "shortwave": shortwave,
            "step": (state["step"] + 1) % self.steps_per_year,
        }

    def _mix(
        self,
        land: Float[Array, " lat"],
        ocean: Float[Array, " lat"],
        paces: Float[Array, "2 lat"],
        diffusivity: Float[Array, " lat"],
        exchange: Float[Array, " lat"],
    ) -> tuple[Float[Array, " lat"], Float[Array, " lat"]]:
        """Land and ocean after an implicit step of exchange and diffusion.

        Of the two temperatures at a latitude the exchange alone makes M⁻¹ (T_l, T_o), with
        M = [[1 + a, −a], [−b, 1 + b]]. As H heats both alike, the zonal mean then obeys one
        tridiagonal system, and H follows from it.
        """
        share = jnp.asarray(self.land_share, land.dtype)
        a, b = paces[0] * exchange * (1 - share), paces[1] * exchange * share

        def exchanged(
            one: Float[Array, " lat"], other: Float[Array, " lat"]
        ) -> tuple[Float[Array, " lat"], Float[Array, " lat"]]:
            flow = (other - one) / (1 + a + b)
            return one + a * flow, other - b * flow

        land, ocean = exchanged(land, ocean)
        per_land, per_ocean = exchanged(paces[0], paces[1])  # K for 1 W m⁻² of H
        mean_pace = self.zonal_mean(per_land, per_ocean)
        mean = diffuse(self.grid, self.zonal_mean(land, ocean), diffusivity, mean_pace)
        heat = convergence(self.grid, mean, diffusivity)
        return land + per_land * heat, ocean + per_ocean * heat
