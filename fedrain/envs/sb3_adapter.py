"""A batch of a task for stable-baselines3, which is imported when it is asked for."""

import importlib
from functools import cache
from typing import Any

import numpy as np

from fedrain.envs.adapter import Adapter
from fedrain.envs.gymnasium_adapter import check_actions
from fedrain.envs.vector import batch_adapter
from fedrain.errors import InputError


def sb3_env(name: Any = "ebm-v1", num_envs: int = 1, actions: str = "unit", **options: Any) -> Any:
    """A ``VecEnv`` of stable-baselines3 over the compiled batch.

    Every agent of every copy is one of its environments: with several agents they learn one policy
    from what each of them sees and is rewarded for. They come copy by copy.

    Args:
        name: A task, as of :func:`fedrain.envs.make`.
        num_envs: Copies of the task; times the agents, there are so many environments.
        actions: ``"unit"``: scaled to [−1, 1], which its algorithms need; or ``"physical"``.
        options: Those of :func:`fedrain.envs.make`.

    Returns:
        A ``VecEnv`` of ``num_envs`` × agents environments; the last axis of what it gives and takes
        is that of one agent.
    """
    check_actions(actions)
    made = _vec_env_class()
    if name == "ebm-v2":
        options.setdefault("region", 0)
    return made(batch_adapter(name, num_envs, options), actions == "unit")


@cache
def _vec_env_class() -> Any:
    """The class, which inherits from one of a package that need not be there."""
    try:
        vec_env = importlib.import_module("stable_baselines3.common.vec_env")
    except ImportError:
        raise InputError(
            "stable-baselines3 is not installed: pip install stable-baselines3"
        ) from None

    class BatchVecEnv(vec_env.VecEnv):  # type: ignore[name-defined]
        """The batch, with a new episode in the step that ends one."""

        def __init__(self, adapter: Adapter, unit: bool) -> None:
            self.adapter, self.unit_actions = adapter, unit
            self.agents = len(adapter.environment.regions)
            space = adapter.unit_space() if unit else adapter.action_space()
            number = (adapter.batch or 1) * self.agents
            super().__init__(number, adapter.observation_space(), space)

        def reset(self) -> np.ndarray:
            """Start an episode everywhere, with the seeds and options that were set for it."""
            first = self._options[0]
            if len(self._options) != self.num_envs or any(one != first for one in self._options):
                raise InputError("the environments of a batch have the same options")
            observation = self.adapter.reset(self._seeds[:: self.agents], first)
            self._reset_seeds()
            self._reset_options()
            self.reset_infos = [{"step": 0} for _ in range(self.num_envs)]
            return self._flat(observation)

        def step_async(self, actions: np.ndarray) -> None:
            """Take the actions; :meth:`step_wait` does the work."""
            self.actions = actions

        def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
            """What the step gives; after an end, the observation is of the next episode."""
            checked = self.adapter.checked(self.actions, self.num_envs)
            physical = self.adapter.from_unit(checked) if self.unit_actions else checked
            shape = (-1, self.agents, physical.shape[-1])
            after, reward, ended = self.adapter.step(physical.reshape(shape))
            observation = self._flat(after)
            step = self.adapter.time
            infos: list[dict[str, Any]] = [
                {"step": step, "TimeLimit.truncated": ended} for _ in range(self.num_envs)
            ]
            if ended:
                for info, last in zip(infos, observation, strict=True):
                    info["terminal_observation"] = last
                observation = self.reset()
            dones = np.full(self.num_envs, ended)
            return observation, reward.reshape(-1).astype(np.float32), dones, infos

        def _flat(self, values: np.ndarray) -> np.ndarray:
            return values.reshape(self.num_envs, values.shape[-1])

        def close(self) -> None:
            """There is nothing to close."""

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            """An attribute of the batch, for each of the environments asked for."""
            found = getattr(self.adapter, attr_name)
            return [found for _ in self._get_indices(indices)]

        def set_attr(self, attr_name: str, *_: Any, **__: Any) -> None:
            """Refused: the environments are one compiled batch."""
            raise InputError(f"{attr_name} cannot be set: the environments are one compiled batch")

        def env_method(self, method_name: str, *_: Any, **__: Any) -> list[Any]:
            """Refused, likewise."""
            raise InputError(f"{method_name}: the environments are one compiled batch")

        def env_is_wrapped(self, _: Any, indices: Any = None) -> list[bool]:
            """No environment has a wrapper of its own."""
            return [False for _ in self._get_indices(indices)]

    return BatchVecEnv
