"""Many copies of ebm-v1, or of one agent of ebm-v2, stepped as one compiled batch."""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float

from fedrain.climate.columns import is_integer
from fedrain.envs.adapter import Adapter
from fedrain.envs.tasks import make
from fedrain.errors import InputError


class EnergyBalanceVector(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Copies of one environment in lock step: all episodes end together.

    Actions are physical, as those of ``gymnasium.make``. After the end of an episode the next
    step starts a new one and gives no reward (Gymnasium's next-step autoreset).
    """

    metadata: dict[str, Any] = {
        "autoreset_mode": AutoresetMode.NEXT_STEP,
        "render_modes": [],
    }

    def __init__(self, adapter: Adapter, num_envs: int) -> None:
        self.adapter = adapter
        self.num_envs = num_envs
        self.single_observation_space = adapter.observation_space()
        self.single_action_space = adapter.action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._ended = False

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Float[np.ndarray, "env obs"], dict[str, Any]]:
        """Start an episode in every copy."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        self._ended = False
        several = seed if isinstance(seed, list) else [seed]  # one for each copy: one all the same
        known = [one for one in several if one is not None]
        return self.adapter.reset(known or None, options)[:, 0], {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[
        Float[np.ndarray, "env obs"],
        Float[np.ndarray, " env"],
        Bool[np.ndarray, " env"],
        Bool[np.ndarray, " env"],
        dict[str, Any],
    ]:
        """Advance every copy; after an end, start again and give no reward."""
        never = np.zeros(self.num_envs, bool)
        if self._ended:
            observation, _ = self.reset()
            return observation, np.zeros(self.num_envs), never, never.copy(), {}
        checked = self.adapter.checked(actions, self.num_envs)
        observation, reward, self._ended = self.adapter.step(checked[:, None])
        truncated = np.full(self.num_envs, self._ended)
        return observation[:, 0], reward[:, 0].astype(float), never, truncated, {}


def vector_env(name: str, num_envs: int, **options: Any) -> EnergyBalanceVector:
    """``num_envs`` copies of ``ebm-v1``, or of the agent of one region of ``ebm-v2``.

    ``options`` are those of :func:`fedrain.envs.make`; the region is 0 unless it is given.
    """
    if name not in ("ebm-v1", "ebm-v2"):
        raise InputError(f"{name!r} has no vector form: use ebm-v1 or ebm-v2")
    if name == "ebm-v2":
        options.setdefault("region", 0)
    if not is_integer(num_envs) or num_envs < 1:
        raise InputError(f"num_envs must be an integer from 1, not {num_envs!r}")
    return EnergyBalanceVector(Adapter(make(name, **options), batch=num_envs), num_envs)
