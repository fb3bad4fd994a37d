"""What the Gymnasium and PettingZoo adapters share: the compiled environment in NumPy terms.

Arrays keep the leading agent axis of the functional environment, behind a leading batch axis
where many copies run at once.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Array, Float, Key, UInt8, UInt32

from fedrain.climate.columns import is_integer
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
    """Compiled once for equal environments, however many adapters there are.

    A copy in a batch draws from its own key what it would draw alone.
    """

    def reset(key: Key[Array, ""], params: EnvParams) -> tuple[State, Float[Array, "agent obs"]]:
        return environment.reset(jax.random.fold_in(key, 0), params)

    def step(
        key: Key[Array, ""],
        time: UInt32[Array, ""],
        state: State,
        action: Float[Array, "agent action"],
        params: EnvParams,
    ) -> Transition:
        return environment.step(jax.random.fold_in(key, time), state, action, params)

    if batch is None:
        return Compiled(jax.jit(reset), jax.jit(step))
    return Compiled(
        jax.jit(jax.vmap(reset, in_axes=(0, None))),
        jax.jit(jax.vmap(step, in_axes=(0, None, 0, 0, None))),
    )


#: Keys of many seeds at once, the same as those of each alone.
_keys = jax.jit(jax.vmap(jax.random.key))


def _box(
    bounds: tuple[Float[np.ndarray, " number"], Float[np.ndarray, " number"]],
    leading: tuple[int, ...],
) -> Box:
    low, high = (np.broadcast_to(end.astype(np.float32), (*leading, len(end))) for end in bounds)
    return Box(low, high, dtype=np.float32)


def _is_seed(seed: Any) -> bool:
    return is_integer(seed) and seed >= 0


class Adapter:
    """An environment that holds its state, takes and gives NumPy arrays, and draws itself."""

    def __init__(
        self, environment: Environment, batch: int | None = None, render_mode: str | None = None
    ) -> None:
        self.environment = environment
        self.batch = batch
        self.render_mode = render_mode
        self._renderer = None if render_mode is None else Renderer(environment, render_mode)
        # A model that computes on the host in float64, as climlab does, keeps its state in it.
        self.dtype = str(getattr(environment.model, "dtype", "float32"))
        self._functions = compiled(environment, batch)
        self._state: State | None = None
        self.params = environment.params
        self.time = 0
        self._random: list[np.random.Generator] = []  # of each copy

    def __getstate__(self) -> dict[str, Any]:
        """All but what is compiled, which a copy shares or compiles for itself."""
        return {name: value for name, value in vars(self).items() if name != "_functions"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The counterpart."""
        vars(self).update(state)
        self._functions = compiled(self.environment, self.batch)

    @property
    def together(self) -> tuple[int, ...]:
        """The axis of agents in what one controller of all of them sees; none if there is one."""
        agents = len(self.environment.regions)
        return () if agents == 1 else (agents,)

    def observation_space(self, *leading: int) -> Box:
        """The space of one agent's observation, in the units of the fields."""
        return _box(self.environment.observation_bounds, leading)

    def action_space(self, *leading: int) -> Box:
        """The space of one agent's action, in action units."""
        return _box(self.environment.action_bounds, leading)

    def unit_space(self, *leading: int) -> Box:
        """The space of one agent's action, scaled to [−1, 1]."""
        return Box(-1.0, 1.0, (*leading, self.environment.action_size), np.float32)

    def from_unit(self, scaled: Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "*batch"]:
        """Actions in action units, of actions scaled to [−1, 1]; what is beyond is clipped."""
        low, high = self.environment.action_bounds
        return low + (np.clip(scaled, -1, 1) + 1) / 2 * (high - low)

    def to_unit(self, action: Float[np.ndarray, "*batch"]) -> Float[np.ndarray, "*batch"]:
        """Actions scaled to [−1, 1], of actions in action units, which are clipped to bounds."""
        low, high = self.environment.action_bounds
        return np.clip((action - low) / (high - low) * 2 - 1, -1, 1)

    def reset(self, seed: Any = None, options: Any = None) -> Float[np.ndarray, "*batch agent obs"]:
        """Start an episode; ``options`` change its start, target, forcing or noise.

        Args:
            seed: What is random is drawn from it, in this episode and those after it. A batch
                takes one for each copy (None: go on drawing), or the first of a row of seeds.
            options: Of this episode alone; see :func:`fedrain.envs.options.changed_params`.
        """
        if not isinstance(options, Mapping | None):
            raise InputError("options of an episode are given by name, as {'start': 20.0}")
        self.params = changed_params(self.environment, options)
        seeds = self._draw(seed)
        with self._precision(), clear_failures():
            self._key = jax.random.key(int(seeds[0])) if self.batch is None else _keys(seeds)
            self._state, observation = self._functions.reset(self._key, self.params)
            seen = np.array(observation, np.float32)
        self.time = 0
        return seen

    def _draw(self, seed: Any) -> UInt32[np.ndarray, " copy"]:
        """The seed of each copy's next episode."""
        copies = 1 if self.batch is None else self.batch
        if isinstance(seed, int | np.integer) and is_integer(seed):
            given: list[Any] = [int(seed) + i for i in range(copies)]
        else:
            given = list(seed) if isinstance(seed, list | tuple) else [seed] * copies
        if len(given) != copies:
            raise InputError(f"there are {len(given)} seeds for {copies} environments")
        if wrong := [one for one in given if one is not None and not _is_seed(one)]:
            raise InputError(f"a seed is an integer from 0, not {wrong[0]!r}")
        if not self._random:
            self._random = [np.random.default_rng(one) for one in given]
        else:
            for i, one in enumerate(given):
                if one is not None:
                    self._random[i] = np.random.default_rng(one)
        return np.array([one.integers(2**32) for one in self._random], np.uint32)

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
            raise InputError(f"an action has shape {array.shape} instead of {shape}")
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
