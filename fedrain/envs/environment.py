"""The functional environment: a task seen by n agents, as pure functions of arrays.

An agent is judged by the fields of its own region: its reward is

    − Σ over the judged fields of weight × mean over its columns (and levels) of (field − target)²,

not area weighted (or, with ``reward_shape`` "log", − Σ log(1 + √(weight × mean)): then a field that
is far off does not drown the others), and less a penalty on rough parameters where there is one
(:attr:`EnvParams.smooth`). Of a field that is judged ``around`` a column the squares of all columns
count, those near it more. With one agent its region is the globe. In a shared climate the
agents' parameters of each column are laid side by side, and each other parameter is the mean of the
agents' proposals. No state is terminal; episodes are truncated.

The target is that of the task, that of the moment where the model knows one
(``target_at``), or what another model shows that runs beside it (``truth``).

How kinds of task differ (the model, what is learnt, how the globe is divided) is static;
what may differ from episode to episode (start, target, forcing, sensor noise) is an argument,
:class:`EnvParams`: one compilation serves all of it, and ``jax.vmap`` works over it.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Key

from fedrain.climate.model import ModelState, check_start, over_climates
from fedrain.envs.episode import EnvParams, State, Transition, draw, in_force
from fedrain.envs.setup import FLUXES, Setup
from fedrain.errors import InputError


@dataclass(frozen=True)
class Environment(Setup):
    """A task as pure functions. :func:`fedrain.envs.make` makes them.

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
        reward_shape: ``"square"``: minus the weighted mean squares; ``"log"``: of each judged field
            minus log(1 + the weighted root mean square).
        around: Judged fields of which errors nearby count too, e times less every so many degrees.
        observed: What agents see: fields, and ``target``, ``error``, ``season``, ``place``.
        tiles: Rows and columns of regions, of latitude–longitude columns.
        overlap: Whether bands may share latitudes, where they do not divide them equally.
        unapplied: Symbols of parameters that agents set and the model does not get, as in the
            published runs: it keeps their static values.
        unclipped: Whether observations may leave their bounds.
        judged_early: Steps before the end of an episode at which an evaluation is judged.
        judged_over: Steps up to then over whose mean it is judged: where there is weather, a
            single one tells little.
        truth: A second model that runs beside the first, under the same forcing and the same
            random numbers, and is the target: its own parameters never change.
        only_region: Keep one agent of an environment without a shared climate: its climate does not
            depend on the others, so theirs need not be run.
    """

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

        def start(keys: Key[Array, "3"], bounds: Any) -> tuple[ModelState, Any, ModelState]:
            if params.record is not None:
                record = jax.tree.map(jnp.asarray, params.record)
                first = jax.random.randint(keys[1], (), *record.training)
                return record.at(first), draw(keys[2], bounds), first
            drawn = draw(keys[0], params.start)
            truth = None if self.truth is None else self.truth.init(keys[1], **drawn)
            return self.model.init(keys[1], **drawn), draw(keys[2], bounds), truth

        spread = {
            name: self._here(jnp.broadcast_to(jnp.asarray(bounds), (every, 2)))
            for name, bounds in params.forcing.items()
        }
        climate, forcing, truth = jax.vmap(start)(keys, spread)
        state = State(climate, forcing, jnp.zeros((), jnp.int32), truth)
        if params.analysis_every is not None:  # the first forecast starts from an analysis, too
            state = self._analysed(state, params)
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
        parameters = self.parameters(action)
        after = self.advance(key, state, parameters, params)
        reward = self.reward(after, params)
        if params.smooth is not None:
            reward = reward - params.smooth * self.roughness(parameters)
        if params.analysis_every is not None:
            after = self._analysed(after, params)
        return Transition(
            after, self.observe(after, params, key), reward, after.time >= self.episode_length
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
        step = over_climates(self.model, self.model.step)
        climate = step(state.climate, parameters, forcing, keys)
        truth = None if params.record is None else state.truth + 1
        if self.truth is not None:
            own = jax.tree.map(jnp.asarray, self.truth.table.static(len(self.truth.columns)))
            move = jax.vmap(self.truth.step, in_axes=(0, None, 0, 0))
            truth = move(state.truth, own, forcing, keys)
        return State(climate, state.forcing, state.time + 1, truth)

    def _analysed(self, state: State, params: EnvParams) -> State:
        """The state after a step, set to what is observed if an analysis is due."""
        assert params.analysis_every is not None
        due = state.time % params.analysis_every == 0
        if params.record is not None:
            new = jax.vmap(jax.tree.map(jnp.asarray, params.record).at)(state.truth)
        else:
            observed = self.targets(state, params)
            new = jax.vmap(self.model.analyse)(state.climate, observed)  # type: ignore[attr-defined]
        climate = jax.tree.map(partial(jnp.where, due), new, state.climate)
        return state._replace(climate=climate)

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
        nearby = self._squares_nearby(state, params) if self.around else {}
        total: Any = 0.0
        for name, weight in self.judged:
            squares = nearby[name] if name in nearby else errors[name] ** 2
            mean = squares.reshape(squares.shape[0], -1).mean(axis=-1)
            score = mean if weight == 1 else weight * mean
            if self.reward_shape == "log":
                # The slope of the root is infinite at zero.
                score = jnp.log1p(jnp.sqrt(score + jnp.finfo(score.dtype).tiny))
            total = total - score
        return total

    def _squares_nearby(
        self, state: State, params: EnvParams
    ) -> dict[str, Float[Array, "agent cell ..."]]:
        """Squared errors of each agent's own region, with those around each column."""
        seen = jax.vmap(self.model.observe)(state.climate)
        targets, found = self.targets(state, params), {}
        for name, near in self.closeness.items():
            squares = (seen[name] - targets[name].astype(seen[name].dtype)) ** 2
            mixed = jnp.tensordot(squares, jnp.asarray(near, squares.dtype), ((1,), (1,)))
            found[name] = self.own(jnp.moveaxis(mixed, -1, 1))  # levels come after the columns
        return found

    def roughness(
        self, parameters: dict[str, Float[Array, "climate ..."]]
    ) -> Float[Array, " agent"]:
        """Mean square difference between neighbouring columns, in units of each one's range.

        Of all learnt parameters of columns; each agent has the borders around its own columns too.
        """
        rows = [row for row in self.learnt if row.by_column]
        first, second = self.model.columns.neighbours.T
        sides = np.zeros((len(self.model.columns), len(first)))
        for ends in (first, second):
            sides[ends, np.arange(len(first))] = 1
        shares = sides / np.maximum(sides.sum(axis=1, keepdims=True), 1)
        total: Any = jnp.zeros(len(self.regions))
        for row in rows:
            values = parameters[row.symbol] / (row.high - row.low)
            squares = (values[:, first] - values[:, second]) ** 2
            by_column = jnp.tensordot(squares, jnp.asarray(shares, squares.dtype), ((1,), (1,)))
            by_column = jnp.moveaxis(by_column, -1, 1)  # levels come after the columns
            own = self.own(by_column).reshape(len(self.regions), -1)
            total = total + own.mean(-1) / len(rows)
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
            for name, values in self.targets(state, params).items():
                target[name] = self._shown(values.astype(seen[name].dtype))
        others = {}
        if observation.shows("season"):
            others["season"] = self._season(state)
        if observation.shows("place"):
            dtype = jnp.result_type(float)
            others["place"] = jnp.asarray(self.places_seen, dtype).reshape(agents, -1)
        whole = observation.put_together(agents, shown, target, others)
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

    def fluxes(
        self,
        state: State,
        parameters: dict[str, Float[Array, "climate ..."]],
        params: EnvParams | None = None,
    ) -> dict[str, Float[Array, " column"]]:
        """Outgoing longwave and absorbed shortwave of the globe, as far as the model has them.

        Args:
            state: After a step.
            parameters: Those that were in force, of :meth:`parameters`.
            params: As of :meth:`reset`.
        """
        fields = {one.name for one in self.model.fields}
        if set(FLUXES) <= fields:
            shown = jax.vmap(self.model.observe)(state.climate)
        elif hasattr(self.model, "fluxes"):
            given = self.params if params is None else params
            forcing = in_force(state, given, self.model.forcings)
            shown = jax.vmap(self.model.fluxes)(state.climate, parameters, forcing)
        else:
            return {}
        return {name: self._lay(self.own(shown[name])) for name in FLUXES}

    def judged_against(
        self, state: State, action: ArrayLike, params: EnvParams
    ) -> tuple[dict[str, Float[Array, "column ..."]], dict[str, Float[Array, " column"]]]:
        """Target and fluxes after a step with these actions."""
        return self.target(state, params), self.fluxes(state, self.parameters(action), params)

    def targets(
        self, state: State, params: EnvParams | None = None
    ) -> dict[str, Float[Array, "climate column ..."]]:
        """What the judged fields of every climate should be now."""
        params = self.params if params is None else params
        if params.record is not None and params.analysis_every is not None:
            record = jax.tree.map(jnp.asarray, params.record)
            shown = jax.vmap(lambda step: self.model.observe(record.at(step)))(state.truth)
        elif self.truth is not None:
            shown = jax.vmap(self.truth.observe)(state.truth)
        elif hasattr(self.model, "target_at"):
            shown = jax.vmap(self.model.target_at)(state.climate)
        else:
            shown = {
                name: jnp.broadcast_to(jnp.asarray(v), (self.climates, *np.shape(v)))
                for name, v in params.target.items()
            }
        return {name: shown[name] for name, _ in self.judged}

    def target(
        self, state: State, params: EnvParams | None = None
    ) -> dict[str, Float[Array, "column ..."]]:
        """What the judged fields of the globe should be now, of each agent its own columns."""
        return {n: self._lay(self.own(v)) for n, v in self.targets(state, params).items()}

    def errors(self, state: State, params: EnvParams) -> dict[str, Float[Array, "agent cell ..."]]:
        """Field minus target of each agent's own region, for the judged fields."""
        seen = jax.vmap(self.model.observe)(state.climate)
        targets = self.targets(state, params)
        return {
            name: self.own(seen[name]) - self.own(targets[name]).astype(seen[name].dtype)
            for name, _ in self.judged
        }

    def check_start(self, params: EnvParams | None = None) -> None:
        """Refuse a start that the model cannot show."""
        given = self.params if params is None else params
        if given.record is None:
            check_start(self.model, given.start)
