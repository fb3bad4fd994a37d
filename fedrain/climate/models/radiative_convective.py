"""Radiation, convection and transport at each latitude, on 17 pressure levels.

Each column has a surface and 17 layers of air. In one time step

1. radiation heats them, explicit in time. Layers absorb and emit longwave as grey bodies with
   absorptivity ε = 2x/(2 + x), x = κ × the mass of absorber, except for a window through which the
   surface radiates to space. They absorb shortwave on its way down and, after reflection at the
   ground, on its way up;
2. heat diffuses between neighbouring latitudes, at the same rate in each layer, implicit in time;
3. convection mixes each column where its temperature falls faster with height than the lapse rate
   Γ. Enthalpy is conserved and what is stable already is left alone (Akmaev 1991, Monthly Weather
   Review 119, 2499–2504).

Without transport, without a window and with a well-mixed absorber each column is climlab's
``GreyRadiationModel`` with ``ConvectiveAdjustment``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Key

from fedrain.climate.climatology import ncep_profiles
from fedrain.climate.columns import frozen
from fedrain.climate.diffusion import diffuse
from fedrain.climate.fields import (
    ABSORBED_SHORTWAVE,
    OUTGOING_LONGWAVE,
    SURFACE_TEMPERATURE,
    Field,
)
from fedrain.climate.grid import Grid
from fedrain.climate.insolation import SOLAR_CONSTANT, Orbit, annual_insolation
from fedrain.climate.model import Forcings
from fedrain.climate.models.energy_balance import (
    FORCINGS,
    SECONDS_PER_DAY,
    WATER_HEAT_CAPACITY,
    OnLatitudes,
)
from fedrain.climate.parameters import Parameter, Parameters, ParameterTable
from fedrain.climate.reanalysis import air_table, on_columns
from fedrain.errors import InputError

#: hPa, from the ground up: those of the reanalysis.
LEVELS = (
    *(1000.0, 925.0, 850.0, 700.0, 600.0, 500.0, 400.0, 300.0, 250.0),
    *(200.0, 150.0, 100.0, 70.0, 50.0, 30.0, 20.0, 10.0),
)
SURFACE_PRESSURE = 1000.0  # hPa
GRAVITY = 9.8  # m s⁻², this and the following as climlab
GAS_CONSTANT = 287.0  # J kg⁻¹ K⁻¹, of dry air
AIR_HEAT_CAPACITY = 1004.0  # J kg⁻¹ K⁻¹, at constant pressure
STEFAN_BOLTZMANN = 5.67037262259e-8  # W m⁻² K⁻⁴
FREEZING = 273.15  # K

AIR_TEMPERATURE = Field(
    "air_temperature",
    "degC",
    scale=30.0,
    levels=LEVELS,
    low=-150.0,
    high=100.0,
    standard_name="air_temperature",
)

#: ``air`` [lat, level] and ``surface`` in K; ``longwave`` and ``shortwave``, the fluxes at the top
#: in the last step, in W m⁻².
ColumnState = dict[str, Any]

PRESSURE = frozen(np.array(LEVELS))
#: Edges of the layers half way between the levels; from the ground to the top of the atmosphere.
LAYER_EDGES = frozen(
    np.concatenate([[SURFACE_PRESSURE], (PRESSURE[1:] + PRESSURE[:-1]) / 2, [0.0]])
)
#: kg m⁻² of air in each layer.
LAYER_MASS = frozen(-np.diff(LAYER_EDGES) * 100 / GRAVITY)

#: Share of sunlight that each layer absorbs, from the ground up: water vapour and clouds below,
#: ozone above.
SHORTWAVE_ABSORPTIVITY = (
    *(0.023, 0.038, 0.042, 0.029, 0.014, 0.008, 0.004, 0.0015, 0.0005, 0.0005),  # to 200 hPa
    *(0.0, 0.0, 0.0, 0.0025, 0.0045, 0.0045, 0.01),
)


def beams(
    absorptivity: Float[Array, "lat level"],
    emission: Float[Array, "lat level"],
    from_space: Float[Array, " lat"],
    surface_emission: Float[Array, " lat"],
    surface_albedo: Float[Array, " lat"],
) -> tuple[Float[Array, "lat level"], Float[Array, " lat"], Float[Array, " lat"]]:
    """What radiation leaves in the layers and at the surface, and what goes to space, in W m⁻².

    Levels are counted from the ground up.
    """
    through = 1 - absorptivity
    down = _passed_on(from_space, through[:, ::-1], emission[:, ::-1])[:, ::-1]
    up = _passed_on(surface_emission + surface_albedo * down[:, 0], through, emission)
    net = up - down
    return -jnp.diff(net, axis=-1), -net[:, 0], up[:, -1]


def _passed_on(
    start: Float[Array, " lat"],
    through: Float[Array, "lat level"],
    emission: Float[Array, "lat level"],
) -> Float[Array, "lat edge"]:
    """A beam before and after each layer, which lets a share through and adds its emission."""

    def after(first: Any, second: Any) -> Any:
        return first[0] * second[0], first[1] * second[0] + second[1]

    share, added = jax.lax.associative_scan(after, (through, emission), axis=1)
    return jnp.concatenate([start[:, None], share * start[:, None] + added], axis=-1)


def pool(
    values: Float[Array, "lat level"], weights: Float[Array, "lat level"]
) -> Float[Array, "lat level"]:
    """The nearest values that nowhere fall with the level, in the mean square by weight.

    Neighbours that fall are replaced by their weighted mean, and so on until none falls.
    """
    level = pool_search(jax.lax.stop_gradient(values), jax.lax.stop_gradient(weights))
    # Which levels form a layer is now known; the rest is linear, and so is its gradient.
    layer = jnp.cumsum(jnp.diff(level, axis=-1, prepend=level[:, :1]) > 0, axis=-1)
    together = (layer[:, :, None] == layer[:, None, :]).astype(values.dtype)
    return jnp.einsum("cij,cj->ci", together, weights * values) / jnp.einsum(
        "cij,cj->ci", together, weights
    )


def pool_search(
    values: Float[Array, "lat level"], weights: Float[Array, "lat level"]
) -> Float[Array, "lat level"]:
    """What :func:`pool` gives, without a loop that has to know when it is done.

    It is the largest, over the levels j at or below i, of the smallest, over the levels k at or
    above i, of the means from j to k.
    """
    n = values.shape[-1]
    i = np.arange(n)
    spans = (i[:, None, None] >= i[:, None]) & (i[:, None, None] <= i)  # [i, j, k]: i in j to k
    sums = jnp.stack([weights, weights * values]) @ jnp.asarray(spans.reshape(n, -1), values.dtype)
    weight, total = sums.reshape(2, -1, n, n)
    below = i[:, None] <= i  # [j, i]: j at or below i
    means = jnp.where(below, total / jnp.where(below, weight, 1), jnp.inf)
    smallest = [means[:, :, -1]]
    for k in reversed(range(n - 1)):
        smallest.insert(0, jnp.minimum(means[:, :, k], smallest[0]))
    return jnp.where(below, jnp.stack(smallest, axis=-1), -jnp.inf).max(axis=1)


def adjust(
    air: Float[Array, "lat level"],
    surface: Float[Array, " lat"],
    lapse_rate: Float[Array, " lat"],
    surface_capacity: float,
) -> tuple[Float[Array, "lat level"], Float[Array, " lat"]]:
    """Air and surface after convection has removed lapse rates above the critical one.

    Args:
        air: In K, from the ground up.
        surface: In K.
        lapse_rate: In K km⁻¹.
        surface_capacity: In J m⁻² K⁻¹.
    """
    dtype = air.dtype
    pressure = jnp.asarray(np.insert(PRESSURE, 0, SURFACE_PRESSURE) / SURFACE_PRESSURE, dtype)
    capacity = np.insert(LAYER_MASS * AIR_HEAT_CAPACITY, 0, surface_capacity)
    exponent = lapse_rate[:, None] * (GAS_CONSTANT / GRAVITY / 1000)
    neutral = pressure**exponent  # temperature of a column at the critical lapse rate, over T(ps)
    column = jnp.concatenate([surface[:, None], air], axis=-1)
    # In units of the column, so that single precision suffices.
    share = jnp.asarray(capacity / capacity.sum(), dtype)
    mixed = neutral * pool(column / neutral, neutral * share)
    return mixed[:, 1:], mixed[:, 0]


def column_parameters(grid: Grid) -> ParameterTable:
    """What may be set.

    The static κ gives the atmosphere an optical depth of 4.1, between the 1.5 at the poles and the
    6 at the equator of Frierson et al. (2006, Journal of the Atmospheric Sciences 63, 2548–2566).
    With the static surface albedo a column absorbs as much sunlight as in the reanalysis.
    """
    absorbed = ncep_profiles(grid.columns)[ABSORBED_SHORTWAVE.name]
    sunlight = annual_insolation(grid.centres)
    through = np.prod(1 - np.array(SHORTWAVE_ABSORPTIVITY)) ** 2  # down and up again
    albedo = np.clip((1 - absorbed / sunlight) / through, 0.0, 1.0)
    return ParameterTable(
        (
            Parameter(
                "kappa",
                "longwave absorption coefficient",
                "m2 kg-1",
                4e-4,
                0.2e-4,
                8e-4,
                scope="column",
                action_unit=1e-4,
            ),
            Parameter("lapse", "critical lapse rate", "K km-1", 6.5, 2.0, 10.0, scope="column"),
            Parameter(
                "D", "meridional heat diffusivity", "W m-2 K-1", 0.6, 0.0, 3.0, scope="column"
            ),
            Parameter("albedo", "surface albedo", "1", albedo, 0.0, 1.0, scope="column"),
        )
    )


@dataclass(frozen=True)
class RadiativeConvectiveModel(OnLatitudes):
    """Columns of a surface and 17 layers of air at each latitude, in the annual mean.

    Args:
        grid: The latitudes.
        table: What may be set; :func:`column_parameters`, if it is left out.
        orbit: That of the Earth.
        solar_constant: In W m⁻².
        water_depth: Depth of water with the heat capacity of the surface, in m.
        days_per_step: Length of a time step.
        well_mixed: Share of the longwave absorber that is mixed evenly through the column. The rest
            falls with height as water vapour does: its optical depth goes with the fourth power of
            pressure. With 1 all of it is, as in climlab.
        window: Share of the longwave spectrum in which air is transparent; 0 in climlab. Without a
            window the stratosphere of a grey atmosphere is too warm.
        shortwave_absorptivity: Of each layer, from the ground up.
    """

    grid: Grid = Grid(36)
    table: ParameterTable = None  # type: ignore[assignment]
    orbit: Orbit = Orbit()
    solar_constant: float = SOLAR_CONSTANT
    water_depth: float = 1.0
    days_per_step: float = 1.0
    well_mixed: float = 0.45
    window: float = 0.25
    shortwave_absorptivity: Sequence[float] = SHORTWAVE_ABSORPTIVITY

    def __post_init__(self) -> None:
        self._check_positive("solar_constant", "water_depth", "days_per_step")
        for name in ("well_mixed", "window"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InputError(f"{name} is a share between 0 and 1, not {value!r}")
        layers = tuple(float(one) for one in self.shortwave_absorptivity)
        if len(layers) != len(LEVELS) or not all(0 <= one <= 1 for one in layers):
            raise InputError(f"shortwave_absorptivity: {len(LEVELS)} numbers between 0 and 1")
        object.__setattr__(self, "shortwave_absorptivity", layers)
        object.__setattr__(self, "table", self.table or column_parameters(self.grid))
        most = 2 / self.absorber.max()  # ε = 1
        if self.table["kappa"].high > most:
            raise InputError(
                f"kappa: above {most:.3g} m2 kg-1 a layer would absorb more than all radiation"
            )

    # ---------------------------------------------------------------- what never changes

    @property
    def fields(self) -> tuple[Field, ...]:
        """Temperatures of air and surface, and the fluxes at the top."""
        return (AIR_TEMPERATURE, SURFACE_TEMPERATURE, OUTGOING_LONGWAVE, ABSORBED_SHORTWAVE)

    @property
    def time_step(self) -> float:
        """Δt in seconds."""
        return self.days_per_step * SECONDS_PER_DAY

    @property
    def surface_capacity(self) -> float:
        """Heat capacity of the surface in J m⁻² K⁻¹."""
        return self.water_depth * WATER_HEAT_CAPACITY

    @cached_property
    def insolation(self) -> Float[np.ndarray, " lat"]:
        """Annual mean insolation in W m⁻²."""
        return frozen(annual_insolation(self.grid.centres, self.orbit, self.solar_constant))

    @cached_property
    def absorber(self) -> Float[np.ndarray, " level"]:
        """Absorber in each layer for κ = 1, in kg m⁻²: mass of the air, redistributed."""
        sigma = LAYER_EDGES / SURFACE_PRESSURE
        depth = self.well_mixed * sigma + (1 - self.well_mixed) * sigma**4
        return frozen(-np.diff(depth) * LAYER_MASS.sum())

    @cached_property
    def target(self) -> dict[str, Float[np.ndarray, "lat ..."]]:
        """The annual mean of the reanalysis, its fluxes in balance."""
        table = air_table()
        air = on_columns(table["latitude"], table["annual"], self.columns).T
        return {AIR_TEMPERATURE.name: frozen(air.copy()), **ncep_profiles(self.columns)}

    # ---------------------------------------------------------------- the contract

    def init(self, key: Key[Array, ""] | None = None, offset: ArrayLike = 0.0) -> ColumnState:
        """The reanalysis, and an offset of all temperatures in K."""
        del key
        shift = jnp.asarray(offset, jnp.result_type(float))
        start = {name: jnp.asarray(one, shift.dtype) for name, one in self.target.items()}
        return {
            "air": start[AIR_TEMPERATURE.name] + (FREEZING + shift),
            "surface": start[SURFACE_TEMPERATURE.name] + (FREEZING + shift),
            "longwave": start[OUTGOING_LONGWAVE.name],
            "shortwave": start[ABSORBED_SHORTWAVE.name],
        }

    def observe(self, state: ColumnState) -> dict[str, Float[Array, "lat ..."]]:
        """Temperatures in °C, and the fluxes of the last step."""
        return {
            AIR_TEMPERATURE.name: state["air"] - FREEZING,
            SURFACE_TEMPERATURE.name: state["surface"] - FREEZING,
            OUTGOING_LONGWAVE.name: state["longwave"],
            ABSORBED_SHORTWAVE.name: state["shortwave"],
        }

    def analyse(
        self, state: ColumnState, fields: Mapping[str, Float[Array, "lat ..."]]
    ) -> ColumnState:
        """The state with the temperatures that were observed."""
        names = {"air": AIR_TEMPERATURE.name, "surface": SURFACE_TEMPERATURE.name}
        seen = {part: fields[name] + FREEZING for part, name in names.items() if name in fields}
        return {**state, **seen}

    def longwave_absorptivity(self, kappa: Float[Array, " lat"]) -> Float[Array, "lat level"]:
        """ε of each layer for absorption coefficients in m² kg⁻¹."""
        depth = kappa[:, None] * jnp.asarray(self.absorber, kappa.dtype)
        return 2 * depth / (2 + depth)

    def step(
        self,
        state: ColumnState,
        parameters: Parameters,
        forcing: Forcings | None = None,
        key: Key[Array, ""] | None = None,
    ) -> ColumnState:
        """The state one time step later."""
        del key
        air, surface = state["air"], state["surface"]
        constant = partial(jnp.asarray, dtype=air.dtype)
        forced = {one.name: constant(one.default) for one in FORCINGS} | dict(forcing or {})
        kappa, lapse, D, albedo = (
            constant(parameters[symbol]) for symbol in ("kappa", "lapse", "D", "albedo")
        )
        nothing = jnp.zeros_like(surface)
        absorptivity = self.longwave_absorptivity(kappa)
        black_air, black_ground = (STEFAN_BOLTZMANN * one**4 for one in (air, surface))
        emission = (1 - self.window) * absorptivity * black_air
        ground = (1 - self.window) * black_ground
        heat, surface_heat, longwave = beams(absorptivity, emission, nothing, ground, nothing)
        escaped = self.window * black_ground

        sunlight = constant(self.insolation) * (1 + constant(forced["solar"]) / self.solar_constant)
        layers = jnp.broadcast_to(constant(self.shortwave_absorptivity), air.shape)
        sun, surface_sun, reflected = beams(layers, layers * 0, sunlight, nothing, albedo)

        # What forces the outgoing longwave is kept, or lost, at the surface.
        extra = constant(forced["longwave"])
        paces = constant(self.time_step / (LAYER_MASS * AIR_HEAT_CAPACITY))
        air = air + paces * (heat + sun)
        surface_pace = self.time_step / self.surface_capacity
        surface = surface + surface_pace * (surface_heat + surface_sun - escaped - extra)

        # D is that of the whole atmosphere; each layer has its share by mass.
        pace = self.time_step / (LAYER_MASS.sum() * AIR_HEAT_CAPACITY)
        air = diffuse(self.grid, air, D, jnp.full_like(surface, pace))
        air, surface = adjust(air, surface, lapse, self.surface_capacity)
        return {
            "air": air,
            "surface": surface,
            "longwave": longwave + escaped + extra,
            "shortwave": sunlight - reflected,
        }
