"""Many copies of a task, stepped as one compiled batch."""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float

from fedrain.climate.columns import is_integer
from fedrain.envs.adapter import Adapter
from fedrain.envs.gymnasium_adapter import check_actions, check_length
from fedrain.envs.tasks import make
from fedrain.errors import InputError
from fedrain.registration import EPISODE_LENGTHS

#: When a new episode starts by itself; all copies end at the same step.
AUTORESET_MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)


class EnergyBalanceVector(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Copies of one environment in lock step: all episodes end together.

    Each copy is what ``gymnasium.make`` gives, with several agents too: observations are ``[env,
    obs]``, or ``[env, agent, obs]``; a copy's reward is the mean over its agents, and
    ``info["rewards"]`` has that of each.

    Args:
        adapter: The batch.
        num_envs: How many copies it has.
        actions: ``"physical"``, or ``"unit"`` for actions scaled to [−1, 1]; either are clipped.
        autoreset_mode: Of Gymnasium. With its next-step mode the step after the end of an episode
            starts a new one, and gives no reward; with its same-step mode the last step gives the
            first observation of the new one, and its own last as ``info["final_obs"]``.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}

    def __init__(
        self,
        adapter: Adapter,
        num_envs: int,
        actions: str = "physical",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        check_actions(actions)
        self.adapter = adapter
        self.num_envs = num_envs
        self.agents = adapter.together
        self.metadata = {**self.metadata, "autoreset_mode": _mode(autoreset_mode)}
        self.unit_actions = actions == "unit"
        space = adapter.unit_space if self.unit_actions else adapter.action_space
        self.single_observation_space = adapter.observation_space(*self.agents)
        self.single_action_space = space(*self.agents)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._ended = False

    def reset(
        self, *, seed: Any = None, options: Any = None
    ) -> tuple[Float[np.ndarray, "env *agent obs"], dict[str, Any]]:
        """Start an episode in every copy; ``options`` are of this episode alone.

        With one seed for each copy, or the first of a row of seeds, every copy draws what it would
        draw alone.
        """
        observation = self.adapter.reset(seed, options)
        super().reset(seed=seed if isinstance(seed, int) else None)
        self._ended = False
        return self._one(observation), self._info()

    def step(
        self, actions: np.ndarray
    ) -> tuple[
        Float[np.ndarray, "env *agent obs"],
        Float[np.ndarray, " env"],
        Bool[np.ndarray, " env"],
        Bool[np.ndarray, " env"],
        dict[str, Any],
    ]:
        """Advance every copy, or start again after an end."""
        never = np.zeros(self.num_envs, bool)
        if self._ended:
            observation, info = self.reset()
            return observation, np.zeros(self.num_envs), never, never.copy(), info
        checked = self.adapter.checked(actions, self.num_envs, *self.agents)
        physical = self.adapter.from_unit(checked) if self.unit_actions else checked
        every = physical.reshape(self.num_envs, -1, physical.shape[-1])
        after, reward, ended = self.adapter.step(every)
        observation, info = self._one(after), self._info(reward)
        if ended and self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP:
            last, infos = np.empty(self.num_envs, object), info
            last[:] = list(observation)
            observation, info = self.reset()
            info |= {"final_obs": last, "_final_obs": ~never}
            info |= {"final_info": infos, "_final_info": ~never}
        else:
            self._ended = ended
        truncated = np.full(self.num_envs, ended)
        return observation, reward.mean(axis=-1, dtype=float), never, truncated, info

    def _one(
        self, values: Float[np.ndarray, "env agent obs"]
    ) -> Float[np.ndarray, "env *agent obs"]:
        return values if self.agents else values[:, 0]

    def _info(self, reward: Float[np.ndarray, "env agent"] | None = None) -> dict[str, Any]:
        """As Gymnasium has it: of each copy, with a mark at those that say something."""
        every = np.ones(self.num_envs, bool)
        info = {"step": np.full(self.num_envs, self.adapter.time), "_step": every}
        if reward is not None and self.agents:
            info |= {"rewards": reward, "_rewards": every.copy()}
        return info


def _mode(mode: AutoresetMode | str) -> AutoresetMode:
    for known in AUTORESET_MODES:
        if mode in (known, known.value, known.name):
            return known
    listed = " or ".join(known.value for known in AUTORESET_MODES)
    raise InputError(f"a batch starts new episodes by itself: autoreset_mode must be {listed}")


def vector_env(
    name: Any,
    num_envs: int,
    actions: str = "physical",
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    **options: Any,
) -> EnergyBalanceVector:
    """``num_envs`` copies of a task; of ``ebm-v2`` those of the agent of one region.

    Args:
        name: As of :func:`fedrain.envs.make`.
        num_envs: How many copies.
        actions: See :class:`EnergyBalanceVector`.
        autoreset_mode: Likewise.
        options: Those of :func:`fedrain.envs.make`; the region of ``ebm-v2`` is 0 unless it is
            given.

    Returns:
        Gymnasium's vector environment, stepped as one compiled program.
    """
    if name == "ebm-v2":
        options.setdefault("region", 0)
    adapter = batch_adapter(name, num_envs, options)
    return EnergyBalanceVector(adapter, num_envs, actions, autoreset_mode)


def batch_adapter(name: Any, num_envs: Any, options: dict[str, Any]) -> Adapter:
    """A batch that can be run."""
    if not is_integer(num_envs) or num_envs < 1:
        raise InputError(f"num_envs must be an integer from 1, not {num_envs!r}")
    if options.pop("render_mode", None) is not None:
        raise InputError("a batch cannot be rendered: leave out render_mode")
    return Adapter(make(name, **options), batch=int(num_envs))


def registered_vector(
    task: str, num_envs: int = 1, max_episode_steps: int | None = None, **options: Any
) -> EnergyBalanceVector:
    """What ``gymnasium.make_vec`` gives for the ids of the package."""
    longest = EPISODE_LENGTHS[task] if max_episode_steps is None else max_episode_steps
    if options.get("episode_length") is None:
        options["episode_length"] = min(EPISODE_LENGTHS[task], longest)
    check_length(task, options["episode_length"], longest)
    return vector_env(task, num_envs, **options)
