"""The functional environment: a task seen by n agents, as pure functions of arrays.

An agent is judged by the fields of its own region: its reward is

    − Σ over the judged fields of weight × mean over its columns (and levels) of (field − target)²,

not area weighted. With one agent its region is the globe. In a shared climate the agents'
parameters of each column are laid side by side, and each other parameter is the mean of the
agents' proposals. No state is terminal; episodes are truncated.

What tells tasks apart in kind (the model, what is learnt, how the globe is divided) is static;
what may differ from episode to episode (start, target, forcing, sensor noise) is an argument,
:class:`EnvParams`: one compilation serves all of it, and ``jax.vmap`` works over it.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Key

from fedrain.climate.columns import Regions, frozen
from fedrain.climate.fields import Field
from fedrain.climate.model import ClimateModel, ModelState, check_start
from fedrain.climate.parameters import ParameterTable
from fedrain.envs.checks import check_environment
from fedrain.envs.episode import EnvParams, State, Transition, draw, in_force
from fedrain.envs.observation import Observation
from fedrain.envs.spec import AgentSpec
from fedrain.errors import InputError, unknown


@dataclass(frozen=True)
class Environment:
    """A climate model seen by ``agents`` agents. :func:`fedrain.envs.make` makes them.

    Args:
        model: Any climate model (:class:`fedrain.climate.ClimateModel`).
        params: The task's own start, target, forcing and noise. They are no part of what makes
            two environments equal: functions take them as an argument.
        agents: Number of agents, a divisor of the columns.
        shared_climate: One climate for all agents, or one for each.
        local_observation: Whether an agent sees its own region only.
        episode_length: Steps in an episode.
        learn: Symbols of the parameters that agents set; all, unless they are named.
        judged: Judged fields with their weights.
        observed: Names of fields, and of ``target``, ``error`` and ``season``, that agents see.
        tiles: Rows and columns of regions, on a latitude–longitude grid.
        unapplied: Symbols of parameters that agents set and the model does not get, as in the
            published runs: it keeps their static values.
        unclipped: Whether observations may leave their bounds.
        judged_early: Steps before the end of an episode at which an evaluation is judged.
        only_region: Keep one agent of an environment without a shared climate: its climate does not
            depend on the others, so theirs need not be run.
    """

    model: ClimateModel
    params: EnvParams = field(repr=False, compare=False)
    agents: int = 1
    shared_climate: bool = False
    local_observation: bool = False
    episode_length: int = 200
    learn: tuple[str, ...] | None = None
    judged: tuple[tuple[str, float], ...] = ()
    observed: tuple[str, ...] = ()
    tiles: tuple[int, int] | None = None
    unapplied: tuple[str, ...] = ()
    unclipped: bool = False
    judged_early: int = 0
    only_region: int | None = None

    def __post_init__(self) -> None:
        check_environment(self)

    @property
    def last_judged(self) -> int:
        """The step of an episode, counted from 0, whose fields an evaluation is judged by."""
        return self.episode_length - 1 - self.judged_early

    # ---------------------------------------------------------------- who, where, what

    @cached_property
    def division(self) -> Regions:
        """How the columns are divided among the agents."""
        return Regions(self.model.columns, self.agents, self.tiles)

    @cached_property
    def learnt(self) -> ParameterTable:
        """The rows of the table that agents set."""
        return self.model.table.learnt(self.learn)

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
        """Columns in one region."""
        return self.division.size

    @property
    def columns_set(self) -> int:
        """Columns whose parameters one agent sets."""
        return self.region_size if self.shared_climate else len(self.model.columns)

    @property
    def columns_seen(self) -> int:
        """Columns that one agent sees."""
        return self.region_size if self.local_observation else len(self.model.columns)

    def field(self, name: str) -> Field:
        """A field of the model."""
        for one in self.model.fields:
            if one.name == name:
                return one
        raise unknown("field", name, [one.name for one in self.model.fields])

    @cached_property
    def judged_fields(self) -> tuple[Field, ...]:
        """The fields that agents are judged by, the first of which stands in skill tables."""
        return tuple(self.field(name) for name, _ in self.judged)

    @cached_property
    def observation(self) -> Observation:
        """What one agent is shown, part by part."""
        return Observation.of(
            self.observed, self.model.fields, self.judged_fields, self.columns_seen
        )

    @property
    def observation_bounds(self) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, " obs"]]:
        """Lowest and highest observation."""
        return self.observation.bounds

    @property
    def observation_size(self) -> int:
        """Numbers that one agent sees."""
        return len(self.observation_bounds[0])

    @cached_property
    def action_bounds(self) -> tuple[Float[np.ndarray, " action"], Float[np.ndarray, " action"]]:
        """Lowest and highest action of one agent."""
        low, high = self.learnt.action_bounds(self.columns_set)
        return frozen(low), frozen(high)

    @property
    def action_size(self) -> int:
        """Numbers that one agent sets."""
        return len(self.action_bounds[0])

    @cached_property
    def action_slices(self) -> dict[str, slice]:
        """Where in an action each parameter stands."""
        return self.learnt.action_slices(self.columns_set)

    @cached_property
    def static_actions(self) -> Float[np.ndarray, "agent action"]:
        """The actions that set the static values."""
        columns = len(self.model.columns)
        cells = self.division.cells if self.shared_climate else np.arange(columns)[None]
        every = [self.learnt.static_action(columns, own) for own in cells]
        return frozen(np.stack([every[region % len(every)] for region in self.regions]))

    @cached_property
    def spec(self) -> AgentSpec:
        """What one agent sees and sets."""
        low, high = self.action_bounds
        slices = self.action_slices
        common = [
            slices[row.symbol].start
            for row in self.learnt
            if self.shared_climate and not row.by_column
        ]
        # Latitude by latitude they are curves, which knots can describe; tiles are none.
        curves = self.model.columns.longitude is None
        profiles = [slices[r.symbol] for r in self.learnt if curves and r.scope == "column"]
        return AgentSpec(
            observation_size=self.observation_size,
            low=tuple(low.tolist()),
            high=tuple(high.tolist()),
            scale=self.observation.scale,
            places=tuple((float(a), float(b)) for a, b in self.division.centres),
            common=tuple(common),
            profiles=tuple((part.start, part.stop) for part in profiles),
            shared=self.shared_climate and self.agents > 1,
        )

    # ---------------------------------------------------------------- what happens

    def reset(
        self, key: Key[Array, ""] | None = None, params: EnvParams | None = None
    ) -> tuple[State, Float[Array, "agent obs"]]:
        """The start of an episode: its state, and what every agent sees.

        Args:
            key: What is random in it is drawn from this.
            params: Start, target, forcing and noise; the task's own if they are left out.
        """
        key = jax.random.key(0) if key is None else key
        params = self.params if params is None else params
        keys, every = self._climate_keys(key, 3), 1 if self.shared_climate else self.agents

        def start(keys: Key[Array, "3"], bounds: Any) -> tuple[ModelState, Any]:
            drawn = draw(keys[0], params.start)
            return self.model.init(keys[1], **drawn), draw(keys[2], bounds)

        spread = {
            name: self._here(jnp.broadcast_to(jnp.asarray(bounds), (every, 2)))
            for name, bounds in params.forcing.items()
        }
        climate, forcing = jax.vmap(start)(keys, spread)
        state = State(climate, forcing, jnp.zeros((), jnp.int32))
        return state, self.observe(state, params, key)

    def step(
        self,
        key: Key[Array, ""],
        state: State,
        action: ArrayLike,
        params: EnvParams | None = None,
    ) -> Transition:
        """Clip the actions to their bounds, advance every climate by one step, and reward.

        Args:
            key: What is random in the step is drawn from this.
            state: Where the environment is.
            action: ``[agent, action]``, in action units.
            params: As of :meth:`reset`.
        """
        params = self.params if params is None else params
        after = self.advance(key, state, self.parameters(action), params)
        return Transition(
            after,
            self.observe(after, params, key),
            self.reward(after, params),
            after.time >= self.episode_length,
        )

    def advance(
        self,
        key: Key[Array, ""],
        state: State,
        parameters: dict[str, Float[Array, "climate ..."]],
        params: EnvParams,
    ) -> State:
        """Every climate one step later, with these parameters."""
        keys = self._climate_keys(key, 1)[:, 0]
        forcing = in_force(state, params, self.model.forcings)
        climate = jax.vmap(self.model.step)(state.climate, parameters, forcing, keys)
        return State(climate, state.forcing, state.time + 1)

    def _here(self, values: Any) -> Any:
        """What is here of something that the climate of every agent has."""
        return values if self.only_region is None else values[np.array(self.regions)]

    def _climate_keys(self, key: Key[Array, ""], each: int) -> Key[Array, "climate each"]:
        """Keys of the climates that are here, the same whether or not the others are."""
        every = 1 if self.shared_climate else self.agents
        return self._here(jax.random.split(key, each * every).reshape(every, each))

    def reward(self, state: State, params: EnvParams) -> Float[Array, " agent"]:
        """How well each agent's own region fits the target."""
        errors = self.errors(state, params)
        total: Any = 0.0
        for name, weight in self.judged:
            squares = errors[name] ** 2
            mean = squares.reshape(squares.shape[0], -1).mean(axis=-1)
            total = total - (mean if weight == 1 else weight * mean)
        return total

    def parameters(self, action: ArrayLike) -> dict[str, Float[Array, "climate ..."]]:
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
        columns = len(self.model.columns)
        parameters = {}
        for row in self.model.table:
            if row.symbol not in self.action_slices or row.symbol in self.unapplied:
                default = jnp.asarray(row.static(columns), values.dtype)
                parameters[row.symbol] = jnp.broadcast_to(default, (self.climates, *default.shape))
                continue
            value = clipped[:, self.action_slices[row.symbol]] * row.action_unit
            value = value.reshape(len(value), *row.shape(self.columns_set))
            if self.shared_climate:
                value = (self.division.lay(value) if row.by_column else value.mean(0))[None]
            parameters[row.symbol] = value
        return parameters

    def own_parameters(self, action: ArrayLike) -> dict[str, Float[Array, "..."]]:
        """What the agents set, as one set of parameters for the globe that they are judged by.

        Of each column its own agent's value; of the others the mean over the climates.
        """
        values = self.parameters(action)
        for row in self.model.table:
            value = values[row.symbol]
            own = self._lay(self.own(value)) if row.by_column else value.mean(0)
            values[row.symbol] = own
        return values

    # ---------------------------------------------------------------- what is seen of it

    def observe(
        self, state: State, params: EnvParams | None = None, key: Key[Array, ""] | None = None
    ) -> Float[Array, "agent obs"]:
        """What each agent sees, kept within the bounds of the observation."""
        params = self.params if params is None else params
        seen = jax.vmap(self.model.observe)(state.climate)
        observation, agents = self.observation, len(self.regions)
        shown = {one.name: self._shown(seen[one.name]) for one in observation.sensed}
        if params.noise is not None and key is not None:
            shown = observation.measured(shown, jnp.asarray(params.noise), key, self.regions)
        target = {}
        if observation.shows("target") or observation.shows("error"):
            for name, _ in self.judged:
                values = jnp.asarray(params.target[name], seen[name].dtype)
                target[name] = self._shown(jnp.broadcast_to(values, seen[name].shape))
        season = self._season(state) if observation.shows("season") else None
        whole = observation.put_together(agents, shown, target, season)
        return whole if self.unclipped else jnp.clip(whole, *observation.bounds)

    def _shown(self, values: Float[Array, "climate column ..."]) -> Float[Array, "agent seen ..."]:
        if self.local_observation:
            return self.own(values)
        return jnp.broadcast_to(values, (len(self.regions), *values.shape[1:]))

    def _season(self, state: State) -> Float[Array, "agent 2"]:
        season = jax.vmap(self.model.season)(state.climate)  # type: ignore[attr-defined]
        angle = jnp.broadcast_to(2 * jnp.pi * season, (len(self.regions),))
        return jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=-1)

    def own(self, values: Float[Array, "climate column ..."]) -> Float[Array, "agent cell ..."]:
        """The values of each agent's own region, in its own climate."""
        if self.shared_climate:
            return self.division.take(values[0])
        by_region = jax.vmap(self.division.take)(values)
        return by_region[np.arange(self.climates), np.array(self.regions)]

    def _lay(self, values: Float[Array, "agent cell ..."]) -> Float[Array, "column ..."]:
        if self.only_region is not None:
            raise InputError("one region alone has no global profile")
        return self.division.lay(values)

    def own_fields(self, state: State) -> dict[str, Float[Array, "agent cell ..."]]:
        """Every field of each agent's own region, in its own climate."""
        seen = jax.vmap(self.model.observe)(state.climate)
        return {one.name: self.own(seen[one.name]) for one in self.model.fields}

    def fields(self, state: State) -> dict[str, Float[Array, "column ..."]]:
        """Every field of the one globe that the agents are judged by: each agent's own columns."""
        return {name: self._lay(values) for name, values in self.own_fields(state).items()}

    def errors(self, state: State, params: EnvParams) -> dict[str, Float[Array, "agent cell ..."]]:
        """Field minus target of each agent's own region, for the judged fields."""
        seen = jax.vmap(self.model.observe)(state.climate)
        return {
            name: self.own(seen[name]) - self.own_target(params)[name].astype(seen[name].dtype)
            for name, _ in self.judged
        }

    def own_target(self, params: EnvParams) -> dict[str, Float[Array, "agent cell ..."]]:
        """The target of each agent's own region."""
        every = {
            name: self.division.take(jnp.asarray(params.target[name])) for name, _ in self.judged
        }
        if self.only_region is None:
            return every
        return {name: values[np.array(self.regions)] for name, values in every.items()}

    def check_start(self, params: EnvParams | None = None) -> None:
        """Refuse a start that the model cannot show."""
        check_start(self.model, (self.params if params is None else params).start)
