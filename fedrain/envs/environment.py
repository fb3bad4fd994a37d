"""The functional environment: a climate model seen by n agents, as pure functions of arrays.

The reward is − mean (T − target)² over the agent's own region (with one agent the globe), not
area weighted. Regions are contiguous, south to north, of equal numbers of cells. In a shared
climate the agents' parameters of each latitude are laid end to end, and each other parameter is
the mean of the agents' proposals. No state is terminal; episodes are truncated.

All arrays have a leading agent (or climate) axis; compile and map the functions as you like.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from fedrain.climate import ClimateModel
from fedrain.climate.grid import frozen
from fedrain.errors import InputError

OBSERVATION_BOUND = 90.0  # °C, either side of zero


class State(NamedTuple):
    """Temperature of each climate in °C, and the number of steps since the start."""

    temperature: Float[Array, "climate lat"]
    time: Int[Array, ""]


class Transition(NamedTuple):
    """What one step gives: arrays with a leading agent axis, and one end for all agents."""

    state: State
    observation: Float[Array, "agent obs"]
    reward: Float[Array, " agent"]
    truncated: Bool[Array, ""]


@dataclass(frozen=True)
class Environment:
    """A climate model seen by ``agents`` agents.

    ``only_region`` keeps one agent of an environment without a shared climate: its climate does
    not depend on the others, so theirs need not be run.
    """

    model: ClimateModel
    target: tuple[float, ...] = field(repr=False)  # °C; a tuple, so that environments are hashable
    agents: int = 1
    shared_climate: bool = False
    local_observation: bool = False
    start_temperature: float = 50.0  # °C
    episode_length: int = 200
    only_region: int | None = None

    def __post_init__(self) -> None:
        _check_model(self.model)
        latitudes = self.model.grid.latitudes
        if len(self.target) != latitudes:
            raise InputError(f"a target of {len(self.target)} for {latitudes} latitudes")
        if not is_whole(self.agents) or self.agents < 1 or latitudes % self.agents:
            raise InputError(
                f"{self.agents!r} agents do not divide {latitudes} latitudes: "
                f"use one of {', '.join(map(str, divisors(latitudes)))}"
            )
        if not is_whole(self.episode_length) or self.episode_length < 1:
            raise InputError(
                f"episode length must be a whole number from 1, not {self.episode_length!r}"
            )
        if not _is_number(self.start_temperature) or (
            abs(self.start_temperature) > OBSERVATION_BOUND
        ):
            raise InputError(
                f"start temperature must be within ±{OBSERVATION_BOUND:g} °C, "
                f"not {self.start_temperature!r}"
            )
        if self.only_region is not None and (
            not is_whole(self.only_region) or not 0 <= self.only_region < self.agents
        ):
            raise InputError(
                f"region must be a whole number from 0 to {self.agents - 1}, "
                f"not {self.only_region!r}"
            )
        if self.only_region is not None and self.shared_climate:
            raise InputError("one region of a shared climate cannot be run without the others")

    @property
    def regions(self) -> tuple[int, ...]:
        """The region of each agent that acts."""
        return tuple(range(self.agents)) if self.only_region is None else (self.only_region,)

    @property
    def climates(self) -> int:
        """How many climates are integrated."""
        return 1 if self.shared_climate else len(self.regions)

    @property
    def region_size(self) -> int:
        """Latitudes in one region."""
        return self.model.grid.latitudes // self.agents

    @property
    def latitudes_set(self) -> int:
        """Latitudes whose parameters one agent sets."""
        return self.region_size if self.shared_climate else self.model.grid.latitudes

    @property
    def observation_size(self) -> int:
        """Temperatures that one agent sees."""
        return self.region_size if self.local_observation else self.model.grid.latitudes

    @cached_property
    def action_bounds(self) -> tuple[Float[np.ndarray, " action"], Float[np.ndarray, " action"]]:
        """Lowest and highest action of one agent."""
        low, high = self.model.table.action_bounds(self.latitudes_set)
        return frozen(low), frozen(high)

    @property
    def action_size(self) -> int:
        """Parameters that one agent sets."""
        return len(self.action_bounds[0])

    @cached_property
    def common_actions(self) -> tuple[int, ...]:
        """Where in an action stands what the agents of a shared climate set together."""
        slices = self.model.table.action_slices(self.latitudes_set)
        rows = [row for row in self.model.table if not row.per_latitude and self.shared_climate]
        return tuple(slices[row.symbol].start for row in rows)

    @cached_property
    def profile_actions(self) -> tuple[tuple[int, int], ...]:
        """Where in an action the parameters of each latitude stand: from, and up to."""
        slices = self.model.table.action_slices(self.latitudes_set)
        rows = [slices[row.symbol] for row in self.model.table if row.per_latitude]
        return tuple((row.start, row.stop) for row in rows)

    @cached_property
    def static_action(self) -> Float[np.ndarray, " action"]:
        """The action of one agent that sets the static values."""
        return frozen(self.model.table.static_action(self.latitudes_set))

    def reset(
        self, dtype: jnp.dtype | type = jnp.float32
    ) -> tuple[State, Float[Array, "agent obs"]]:
        """The start: the same temperature everywhere."""
        shape = (self.climates, self.model.grid.latitudes)
        state = State(jnp.full(shape, self.start_temperature, dtype), jnp.zeros((), jnp.int32))
        return state, self.observe(state)

    def step(self, state: State, action: ArrayLike) -> Transition:
        """Clip the actions to their bounds, advance every climate by one step, and reward."""
        temperature = self.model.step(state.temperature, self.parameters(action))
        after = State(temperature, state.time + 1)
        return Transition(
            after,
            self.observe(after),
            -jnp.mean(self.own_error(temperature) ** 2, axis=-1),
            after.time >= self.episode_length,
        )

    def parameters(self, action: ArrayLike) -> dict[str, Float[Array, "..."]]:
        """The model's parameters, a row for each climate, that the agents' actions set."""
        values = jnp.asarray(action)
        expected = (len(self.regions), self.action_size)
        if values.shape != expected or not jnp.issubdtype(values.dtype, jnp.floating):
            raise InputError(
                f"actions are floating-point numbers of shape {expected}, "
                f"not {values.dtype} of shape {values.shape}"
            )
        low, high = (jnp.asarray(bound, values.dtype) for bound in self.action_bounds)
        clipped = jnp.clip(values, low, high)
        slices = self.model.table.action_slices(self.latitudes_set)
        parameters = {}
        for row in self.model.table:
            value = clipped[:, slices[row.symbol]] * row.action_unit
            if self.shared_climate:
                value = value.reshape(1, -1) if row.per_latitude else value.mean(0, keepdims=True)
            parameters[row.symbol] = value if row.per_latitude else value[:, 0]
        return parameters

    def own_parameters(self, action: ArrayLike) -> dict[str, Float[Array, "..."]]:
        """What the agents set, as one set of parameters for the profile that they are judged by.

        Of each latitude its own agent's value; of the others the mean over the climates.
        """
        values = self.parameters(action)
        for row in self.model.table:
            value = values[row.symbol]
            if row.per_latitude:
                state = State(value, jnp.zeros((), jnp.int32))
                values[row.symbol] = self.own_cells(state).reshape(-1)
            else:
                values[row.symbol] = value.mean()
        return values

    def observe(self, state: State) -> Float[Array, "agent obs"]:
        """What each agent sees, kept within the bounds of the observation."""
        if self.local_observation:
            seen = self.own_cells(state)
        else:
            shape = (len(self.regions), self.model.grid.latitudes)
            seen = jnp.broadcast_to(state.temperature, shape)
        return jnp.clip(seen, -OBSERVATION_BOUND, OBSERVATION_BOUND)

    def own_cells(self, state: State) -> Float[Array, "agent cell"]:
        """The temperature of each agent's own region, in its own climate."""
        by_region = state.temperature.reshape(self.climates, self.agents, self.region_size)
        climate = (
            np.zeros(len(self.regions), int) if self.shared_climate else np.arange(self.climates)
        )
        return by_region[climate, np.array(self.regions)]

    def own_error(self, temperature: Float[Array, "climate lat"]) -> Float[Array, "agent cell"]:
        """Temperature minus target of each agent's own region."""
        state = State(temperature, jnp.zeros((), jnp.int32))
        return self.own_cells(state) - self.own_target.astype(temperature.dtype)

    @property
    def own_target(self) -> Float[Array, "agent cell"]:
        """The target of each agent's own region."""
        return jnp.asarray(self.target).reshape(self.agents, -1)[np.array(self.regions)]

    def profile(self, state: State) -> Float[Array, " lat"]:
        """The one profile that the agents are judged by: each agent's own cells, end to end."""
        if self.only_region is not None:
            raise InputError("one region alone has no global profile")
        return self.own_cells(state).reshape(-1)


def divisors(number: int) -> list[int]:
    """The numbers of agents that divide the latitudes equally."""
    return [d for d in range(1, number + 1) if number % d == 0]


def _check_model(model: object) -> None:
    if isinstance(model, type) or not isinstance(model, ClimateModel):
        raise InputError("a model is an object with grid, table and step (fedrain.climate)")
    try:
        hash(model)
    except TypeError:
        raise InputError("a model must be hashable: make it a frozen dataclass") from None


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, and not a truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return math.isfinite(value)
