"""What the Gymnasium and PettingZoo adapters share: the compiled environment in NumPy terms.

Arrays keep the leading agent axis of the functional environment, behind a leading batch axis
where many copies run at once.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Array, Float, Key, UInt8, UInt32

from fedrain.climate.models.host import clear_failures
from fedrain.envs.environment import Environment
from fedrain.envs.episode import EnvParams, State, Transition
from fedrain.envs.options import changed_params
from fedrain.envs.render import RENDER_MODES, Renderer
from fedrain.errors import InputError


class Compiled(NamedTuple):
    """The compiled functions of an environment."""

    reset: "jax.stages.Wrapped"
    step: "jax.stages.Wrapped"


@cache
def compiled(environment: Environment, batch: int | None) -> Compiled:
    """Compiled once for equal environments, however many adapters there are."""

    def reset(
        key: Key[Array, ""], params: EnvParams
    ) -> tuple[State, Float[Array, "*batch agent obs"]]:
        if batch is None:
            return environment.reset(jax.random.fold_in(key, 0), params)
        keys = jax.random.split(jax.random.fold_in(key, 0), batch)
        return jax.vmap(environment.reset, in_axes=(0, None))(keys, params)

    def step(
        key: Key[Array, ""],
        time: UInt32[Array, ""],
        state: State,
        action: Float[Array, "*batch agent action"],
        params: EnvParams,
    ) -> Transition:
        key = jax.random.fold_in(key, time)
        if batch is None:
            return environment.step(key, state, action, params)
        keys = jax.random.split(key, batch)
        return jax.vmap(environment.step, in_axes=(0, 0, 0, None))(keys, state, action, params)

    return Compiled(jax.jit(reset), jax.jit(step))


class Adapter:
    """An environment that holds its state, takes and gives NumPy arrays, and draws itself."""

    def __init__(
        self, environment: Environment, batch: int | None = None, render_mode: str | None = None
    ) -> None:
        self.environment = environment
        self.render_mode = render_mode
        self._renderer = None if render_mode is None else Renderer(environment, render_mode)
        # A model that computes on the host in float64, as climlab does, keeps its state in it.
        self.dtype = str(getattr(environment.model, "dtype", "float32"))
        self._functions = compiled(environment, batch)
        self._state: State | None = None
        self.params = environment.params
        self.time = 0
        self._random = np.random.default_rng()

    def observation_space(self) -> Box:
        """The space of one agent's observation, in the units of the fields."""
        low, high = self.environment.observation_bounds
        return Box(low, high, dtype=np.float32)

    def action_space(self) -> Box:
        """The space of one agent's action, in action units."""
        low, high = self.environment.action_bounds
        return Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def reset(
        self, seed: int | Sequence[int] | None = None, options: Mapping[str, Any] | None = None
    ) -> Float[np.ndarray, "*batch agent obs"]:
        """Start an episode; ``options`` change its start, target, forcing or noise."""
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self.params = changed_params(self.environment, options)
        with self._precision(), clear_failures():
            self._key = jax.random.key(int(self._random.integers(2**32)))
            self._state, observation = self._functions.reset(self._key, self.params)
            seen = np.array(observation, np.float32)
        self.time = 0
        return seen

    def step(
        self, action: Float[np.ndarray, "*batch agent action"]
    ) -> tuple[Float[np.ndarray, "*batch agent obs"], Float[np.ndarray, "*batch agent"], bool]:
        """Observation, reward and whether the episode ends, after one step."""
        if self._state is None:
            raise InputError("reset the environment before its first step")
        with self._precision(), clear_failures():
            transition = self._functions.step(
                self._key, np.uint32(self.time + 1), self._state, action.astype(self.dtype),
                self.params,
            )  # fmt: skip
            observation, reward = jax.device_get((transition.observation, transition.reward))
        self._state = transition.state
        self.time += 1  # counted here too: fetching it would cost as much as the step itself
        ends = self.time >= self.environment.episode_length
        return np.array(observation, np.float32), reward, ends

    def checked(self, action: object, *leading: int) -> Float[np.ndarray, "*batch action"]:
        """An action that has the right shape and no NaN; otherwise an InputError."""
        shape = (*leading, self.environment.action_size)
        try:
            array = np.asarray(action, dtype=float)
        except (TypeError, ValueError):
            raise InputError("an action must be an array of numbers") from None
        if array.shape != shape:
            raise InputError(f"an action has shape {array.shape}, but {shape} is asked for")
        if np.isnan(array).any():
            raise InputError("an action is NaN")
        return array

    def _precision(self) -> AbstractContextManager[None]:
        return jax.enable_x64(True) if self.dtype == "float64" else nullcontext()

    @property
    def state(self) -> State:
        """The state of each climate and the step, as the environment keeps them."""
        if self._state is None:
            raise InputError("reset the environment before you ask for its state")
        return self._state

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """The figure at the present step, as pixels or on the screen."""
        if self._renderer is None:
            raise InputError(
                f"choose a render mode when the environment is made: {', '.join(RENDER_MODES)}"
            )
        with self._precision(), clear_failures():
            return self._renderer.draw(self.state, self.params, self._key)

    def show(self) -> None:
        """Keep the screen up to date, if there is one to keep."""
        if self.render_mode == "human":
            self.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._renderer is not None:
            self._renderer.close()
