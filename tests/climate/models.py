"""A climate with everything that the contract knows, in JAX and the same in NumPy."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from fedrain.climate import Columns, Field, Forcing, HostModel, Parameter, ParameterTable

SURFACE, AIR = "surface_temperature", "air_temperature"
TABLE = ParameterTable(
    (
        Parameter("k", "exchange with the air", "1", 0.1, 0.0, 0.5),
        Parameter("q", "heating", "K", 0.5, -2.0, 3.0, scope="column", action_unit=2.0),
        Parameter("g", "relaxation", "1", 0.2, 0.0, 1.0, scope="level", levels=3),
    )
)
FIELDS = (
    Field(SURFACE, "degC", scale=30.0, low=-90.0, high=90.0),
    Field(AIR, "K", scale=10.0, levels=(1000.0, 500.0, 200.0)),
)
FORCINGS = (Forcing("co2", "ppm", 280.0), Forcing("longwave", "W m-2"))
STEPS_PER_YEAR = 8


def advance(state: Any, parameters: Any, forcing: Any, weather: Any) -> Any:
    """One step in whatever kind of array it is given."""
    surface, air = state[SURFACE], state[AIR]
    warming = 0.01 * (forcing["co2"] - 280.0) - forcing["longwave"]
    exchange = parameters["k"] * (air.mean(-1) - 250.0 - surface)
    return {
        SURFACE: surface + exchange + parameters["q"] + warming + weather,
        AIR: air + parameters["g"] * (surface[:, None] + 240.0 - air),
        "clock": state["clock"] + 1.0,
    }


def start(columns: int, surface: Any, air: Any, xp: Any) -> Any:
    return {
        SURFACE: xp.zeros(columns) + surface,
        AIR: xp.zeros((columns, 3)) + air,
        "clock": xp.zeros(()),
    }


@dataclass(frozen=True)
class Layered:
    """Surface and three layers of air, with a clock; ``weather`` makes it noisy."""

    columns: Columns = Columns.zonal(6)
    table: ParameterTable = TABLE
    weather: float = 0.0
    fields: ClassVar[tuple[Field, ...]] = FIELDS
    forcings: ClassVar[tuple[Forcing, ...]] = FORCINGS
    target: ClassVar[dict[str, Any]] = {AIR: np.full((6, 3), 260.0)}

    def init(self, key, surface=10.0, air=250.0):
        made = start(len(self.columns), surface, air, jnp)
        drawn = self.weather * jax.random.normal(key, (len(self.columns),)) if self.weather else 0
        return {**made, SURFACE: made[SURFACE] + drawn}

    def step(self, state, parameters, forcing, key):
        drawn = self.weather * jax.random.normal(key, state[SURFACE].shape) if self.weather else 0
        return advance(state, parameters, forcing, drawn)

    def observe(self, state):
        return {SURFACE: state[SURFACE], AIR: state[AIR]}

    def season(self, state):
        return (state["clock"] % STEPS_PER_YEAR) / STEPS_PER_YEAR


@dataclass(frozen=True)
class HostLayered(HostModel):
    """The same on the host, in double precision."""

    columns: Columns = Columns.zonal(6)
    table: ParameterTable = TABLE
    fields: tuple[Field, ...] = FIELDS
    forcings: tuple[Forcing, ...] = FORCINGS
    weather: float = 0.0
    target: ClassVar[dict[str, Any]] = Layered.target

    def init_host(self, rng, surface=10.0, air=250.0):
        return start(len(self.columns), surface, air, np)

    def step_host(self, state, parameters, forcing, rng):
        drawn = self.weather * rng.normal(size=len(self.columns))
        return advance(state, parameters, forcing, drawn)


def random_parameters(rng: np.random.Generator, model: Any) -> dict[str, np.ndarray]:
    columns = len(model.columns)
    return {r.symbol: rng.uniform(r.low, r.high, r.shape(columns)) for r in model.table}
