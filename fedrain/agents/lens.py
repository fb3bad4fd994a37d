"""Between an environment and a learner: the one place where what is seen is transformed.

Algorithms, memories and networks know the learner's side alone. An option that is off passes its
array through untouched.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fedrain.agents.algorithm import Spaces
from fedrain.agents.options import Options
from fedrain.climate.grid import frozen


@dataclass(frozen=True)
class Lens:
    """How a learner with these options sees agents with these spaces."""

    options: Options
    outside: Spaces

    @cached_property
    def spaces(self) -> Spaces:
        """What the learner sees and sets."""
        low, high = self.outside.low, self.outside.high
        if self.options.unit_actions:
            low, high = tuple(-1.0 for _ in low), tuple(1.0 for _ in high)
        size = self.outside.observation_size + self._latitude
        return replace(self.outside, observation_size=size, low=low, high=high)

    def observation(
        self, observation: Float[Array, "agent obs"], regions: tuple[int, ...]
    ) -> Float[Array, "agent seen"]:
        """Temperatures, scaled, and where the agent of each region is."""
        if self.options.observation_scale != 1:
            observation = observation / self.options.observation_scale
        if self._latitude:
            place = jnp.asarray(self._places[np.array(regions)], observation.dtype)
            observation = jnp.concatenate([observation, place], axis=-1)
        return observation

    def action(self, action: Float[Array, "*batch action"]) -> Float[Array, "*batch action"]:
        """The environment's action for the learner's."""
        if not self.options.unit_actions:
            return action
        return self.outside.centre + self.outside.half_range * action

    def reward(self, reward: Float[Array, " agent"]) -> Float[Array, " agent"]:
        """What is learnt from, for the environment's reward, which is − mean square error."""
        if self.options.team and self.outside.common:
            own, team = self._transformed(reward), self._transformed(reward.mean())
            reward = own + self.options.team * (team - own)
        else:
            reward = self._transformed(reward)
        if self.options.reward_scale != 1:
            reward = reward * self.options.reward_scale
        return reward

    def _transformed(self, reward: Float[Array, "*agent"]) -> Float[Array, "*agent"]:
        if self.options.log_reward:
            return -jnp.log1p(jnp.sqrt(-reward))
        if self.options.root_reward:
            return -jnp.sqrt(-reward)
        return reward

    @property
    def _latitude(self) -> int:
        """Numbers that tell an agent where it is; none where nobody knows."""
        return self.options.latitude if self.outside.latitudes else 0

    @cached_property
    def _places(self) -> Float[np.ndarray, "region latitude"]:
        x = np.array(self.outside.latitudes) / 90
        waves = [wave(k * np.pi * x) for k in range(1, 1 + self._latitude // 2)
                 for wave in (np.sin, np.cos)]  # fmt: skip
        return frozen(np.stack([x, *waves], axis=-1)[:, : self._latitude])
