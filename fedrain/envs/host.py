"""What the Gymnasium and PettingZoo adapters share: the compiled environment in NumPy terms.

Arrays keep the leading agent axis of the functional environment, behind a leading batch axis
where many copies run at once.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Array, Float, UInt8

from fedrain.envs.environment import OBSERVATION_BOUND, Environment, State, Transition
from fedrain.envs.render import RENDER_MODES, Renderer
from fedrain.errors import InputError


class Compiled(NamedTuple):
    """The compiled functions of an environment."""

    reset: "jax.stages.Wrapped"
    step: "jax.stages.Wrapped"


@cache
def compiled(environment: Environment, batch: int | None, dtype: str) -> Compiled:
    """Compiled once for equal environments, however many adapters there are."""

    def reset() -> tuple[State, Float[Array, "*batch agent obs"]]:
        start = environment.reset(jnp.dtype(dtype))
        if batch is None:
            return start
        return jax.tree.map(lambda a: jnp.broadcast_to(a, (batch, *a.shape)), start)

    def step(state: State, action: Float[Array, "*batch agent action"]) -> Transition:
        function = environment.step if batch is None else jax.vmap(environment.step)
        return function(state, action)

    return Compiled(jax.jit(reset), jax.jit(step))


class Host:
    """An environment that holds its state, takes and gives NumPy arrays, and draws itself."""

    def __init__(
        self, environment: Environment, batch: int | None = None, render_mode: str | None = None
    ) -> None:
        self.environment = environment
        self.render_mode = render_mode
        self._renderer = None if render_mode is None else Renderer(environment, render_mode)
        # A model that computes on the host in float64, as climlab does, keeps its state in it.
        self.dtype = str(getattr(environment.model, "dtype", "float32"))
        self._functions = compiled(environment, batch, self.dtype)
        self._state: State | None = None
        self.time = 0

    def observation_space(self) -> Box:
        """The space of one agent's observation, in °C."""
        size = self.environment.observation_size
        return Box(-OBSERVATION_BOUND, OBSERVATION_BOUND, (size,), np.float32)

    def action_space(self) -> Box:
        """The space of one agent's action, in action units."""
        low, high = self.environment.action_bounds
        return Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def reset(self) -> Float[np.ndarray, "*batch agent obs"]:
        """Start an episode."""
        with self._precision():
            self._state, observation = self._functions.reset()
        self.time = 0
        return np.array(observation, np.float32)

    def step(
        self, action: Float[np.ndarray, "*batch agent action"]
    ) -> tuple[Float[np.ndarray, "*batch agent obs"], Float[np.ndarray, "*batch agent"], bool]:
        """Observation, reward and whether the episode ends, after one step."""
        if self._state is None:
            raise InputError("reset the environment before its first step")
        with self._precision():
            transition = self._functions.step(self._state, action.astype(self.dtype))
        self._state = transition.state
        self.time += 1  # counted here too: fetching it would cost as much as the step itself
        observation, reward = jax.device_get((transition.observation, transition.reward))
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
        """Temperature of each climate and the step, as the environment keeps them."""
        if self._state is None:
            raise InputError("reset the environment before you ask for its state")
        return self._state

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """The picture at the present step, as pixels or on the screen."""
        if self._renderer is None:
            raise InputError(
                f"choose a render mode when the environment is made: {', '.join(RENDER_MODES)}"
            )
        return self._renderer.draw(self.state)

    def show(self) -> None:
        """Keep the screen up to date, if there is one to keep."""
        if self.render_mode == "human":
            self.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._renderer is not None:
            self._renderer.close()
