"""A task in the form that gymnax has: pure functions, with a new episode after the end of one.

    env, params = make_functional("ebm-v1", unit=True)
    obs, state = env.reset(key, params)
    obs, state, reward, done, info = env.step(key, state, action, params)

Learners written for gymnax take it as it is. Everything works under ``jit``, ``vmap`` (over keys,
states and params) and ``lax.scan``. ``step`` gives one ``done``, as gymnax did before its version 1
and as its learners expect; which of ``terminated`` and ``truncated`` that was stands in ``info``,
under the names that version 1 has.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from fedrain.envs.environment import Environment
from fedrain.envs.episode import EnvParams, State
from fedrain.envs.tasks import make

Stepped = tuple[
    Float[Array, "*agent obs"], State, Float[Array, "*agent"], Bool[Array, ""], dict[str, Any]
]


@cache
def _params_class(steps: int) -> type[EnvParams]:
    """:class:`EnvParams` that say how long an episode is, as learners ask those of gymnax.

    A constant of the class: the length is no part of what may differ from episode to episode.
    """
    return type("EnvParams", (EnvParams,), {"__slots__": (), "max_steps_in_episode": steps})


@dataclass(frozen=True)
class Box:
    """Arrays between bounds, drawn by JAX."""

    low: Float[np.ndarray, "*agent number"]
    high: Float[np.ndarray, "*agent number"]
    dtype: Any = jnp.float32

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an array."""
        return self.low.shape

    def sample(self, key: Key[Array, ""]) -> Float[Array, "*agent number"]:
        """Uniform between the bounds."""
        low, high = jnp.asarray(self.low, self.dtype), jnp.asarray(self.high, self.dtype)
        return jax.random.uniform(key, self.shape, self.dtype, low, high)

    def contains(self, x: Float[Array, "*agent number"]) -> Bool[Array, ""]:
        """Whether an array is within the bounds."""
        return jnp.all((x >= self.low) & (x <= self.high))


@dataclass(frozen=True)
class FunctionalEnv:
    """A task in gymnax's form. :func:`make_functional` makes one.

    With one agent observations and actions are ``[number]`` and the reward is a number; with
    several, all three have a leading axis of agents. No state is terminal: ``done`` says that the
    episode was truncated, and ``info["discount"]`` is 1 all the same.

    Args:
        environment: Of :func:`fedrain.envs.make`.
        unit: Whether actions are scaled to [−1, 1]; they are clipped to their bounds either way.
    """

    environment: Environment
    unit: bool = False

    @property
    def default_params(self) -> EnvParams:
        """What the task says of start, target, forcing and noise.

        And ``max_steps_in_episode``, which cannot be changed here: make another environment, with
        another ``episode_length``.
        """
        return _params_class(self.environment.episode_length)(*self.environment.params)

    @property
    def name(self) -> str:
        """Of the model that is learnt."""
        return type(self.environment.model).__name__

    @property
    def num_actions(self) -> int:
        """Numbers that one agent sets."""
        return self.environment.action_size

    def observation_space(self, params: EnvParams | None = None) -> Box:  # noqa: ARG002
        """What is seen; the same whatever the params."""
        low, high = self.environment.observation_bounds
        return Box(self._for_agents(low), self._for_agents(high))

    def action_space(self, params: EnvParams | None = None) -> Box:  # noqa: ARG002
        """What is set; the same whatever the params."""
        low, high = self.environment.action_bounds
        if self.unit:
            low, high = -np.ones_like(low), np.ones_like(high)
        return Box(self._for_agents(low), self._for_agents(high))

    def reset(
        self, key: Key[Array, ""], params: EnvParams | None = None
    ) -> tuple[Float[Array, "*agent obs"], State]:
        """The start of an episode."""
        state, observation = self.environment.reset(key, params)
        return self._of_agents(observation), state

    def step(
        self,
        key: Key[Array, ""],
        state: State,
        action: Float[Array, "*agent action"],
        params: EnvParams | None = None,
    ) -> Stepped:
        """One step; after the end of an episode, state and observation are those of a new one.

        The last observation of the one that ended is ``info["final_observation"]``.
        """
        key, again = jax.random.split(key)
        last, after, reward, done, info = self.step_env(key, state, action, params)
        observation, following = jax.lax.cond(
            done, lambda: self.reset(again, params), lambda: (last, after)
        )
        return observation, following, reward, done, {**info, "final_observation": last}

    def step_env(
        self,
        key: Key[Array, ""],
        state: State,
        action: Float[Array, "*agent action"],
        params: EnvParams | None = None,
    ) -> Stepped:
        """One step, without a new episode."""
        every = jnp.asarray(action).reshape(-1, self.num_actions)
        if self.unit:
            low, high = (jnp.asarray(end, every.dtype) for end in self.environment.action_bounds)
            every = low + (every + 1) / 2 * (high - low)
        after = self.environment.step(key, state, every, params)
        return (
            self._of_agents(after.observation),
            after.state,
            self._of_agents(after.reward),
            after.truncated,
            {
                "step": after.state.time,
                "discount": jnp.ones(()),
                "terminated": jnp.zeros_like(after.truncated),
                "truncated": after.truncated,
            },
        )

    def _of_agents(self, values: Float[Array, "agent *rest"]) -> Float[Array, "*all"]:
        return values[0] if len(self.environment.regions) == 1 else values

    def _for_agents(self, values: Float[np.ndarray, " number"]) -> Float[np.ndarray, "*all"]:
        agents = len(self.environment.regions)
        return values if agents == 1 else np.broadcast_to(values, (agents, len(values)))


def make_functional(
    name: Any = "ebm-v3", unit: bool = False, **options: Any
) -> tuple[FunctionalEnv, EnvParams]:
    """A task in gymnax's form, and its own params.

    Args:
        name: As of :func:`fedrain.envs.make`.
        unit: Whether actions are scaled to [−1, 1].
        options: Those of :func:`fedrain.envs.make`.

    Returns:
        The environment, with ``reset(key, params)`` and ``step(key, state, action, params)``, and
        the params to give to both.
    """
    env = FunctionalEnv(make(name, **options), unit)
    return env, env.default_params
