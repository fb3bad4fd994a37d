"""Between an environment and a learner: the one place where what is seen is transformed.

Algorithms, memories and networks know the learner's side alone. An option that is off passes its
array through untouched.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import jax.numpy as jnp
import numpy as np
import scipy.linalg
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
        seen = self.outside
        if self._has_knots:
            # Where in the environment's action each number that is set counts most.
            kept, common = self._knots.argmax(1), self._knots[:, list(seen.common)].argmax(0)
            low, high = (tuple(bound[kept].tolist()) for bound in seen.bounds)
            seen = replace(seen, low=low, high=high, common=tuple(common.tolist()), profiles=())
        if self.options.unit_actions:
            low, high = tuple(-1.0 for _ in seen.low), tuple(1.0 for _ in seen.high)
            seen = replace(seen, low=low, high=high)
        return replace(seen, observation_size=seen.observation_size + self._latitude)

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

    def action(self, action: Float[Array, "*batch set"]) -> Float[Array, "*batch action"]:
        """The environment's action for the learner's."""
        if self._has_knots:
            action = action @ jnp.asarray(self._knots, action.dtype)
        if not self.options.unit_actions:
            return action
        return self.outside.centre + self.outside.half_range * action

    def reward(
        self,
        reward: Float[Array, " agent"],
        regions: tuple[int, ...],
        of_all: Float[np.ndarray, " region"] | None = None,
    ) -> Float[Array, " agent"]:
        """What is learnt from, for the environment's reward, which is − mean square error.

        ``of_all`` are the rewards of all regions, where some agents are elsewhere; an agent that
        is not told them is no team.
        """
        everyone = reward if of_all is None else of_all
        is_team = self.options.team > 0 and bool(self.outside.common)
        if is_team and len(everyone) == len(self.outside.latitudes):
            closeness = jnp.asarray(self._closeness[np.array(regions)], reward.dtype)
            around = closeness @ jnp.asarray(everyone, reward.dtype)
            own, team = self._transformed(reward), self._transformed(around)
            reward = own + self.options.team * (team - own)
        else:
            reward = self._transformed(reward)
        if self.options.reward_scale != 1:
            reward = reward * self.options.reward_scale
        return reward

    @cached_property
    def _closeness(self) -> Float[np.ndarray, "region region"]:
        """How much the error of each region counts for the team of each."""
        latitudes = np.array(self.outside.latitudes)
        apart = np.abs(latitudes[:, None] - latitudes)
        reach = self.options.reach
        weights = np.exp(-apart / reach) if reach else np.ones_like(apart)
        return frozen(weights / weights.sum(axis=1, keepdims=True))

    def _transformed(self, reward: Float[Array, "*agent"]) -> Float[Array, "*agent"]:
        if self.options.log_reward:
            return -jnp.log1p(jnp.sqrt(-reward))
        if self.options.root_reward:
            return -jnp.sqrt(-reward)
        return reward

    @property
    def _has_knots(self) -> bool:
        most = self.options.knots
        return most > 0 and any(stop - start > most for start, stop in self.outside.profiles)

    @cached_property
    def _knots(self) -> Float[np.ndarray, "set action"]:
        """How much each number that the learner sets counts in each of the environment's."""
        blocks, end = [], 0
        for start, stop in self.outside.profiles:
            blocks += [np.eye(start - end), hats(stop - start, self.options.knots)]
            end = stop
        blocks.append(np.eye(self.outside.action_size - end))
        return frozen(scipy.linalg.block_diag(*blocks))

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


def hats(size: int, most: int) -> Float[np.ndarray, "knot size"]:
    """Weights of knots, ``most`` or fewer, in values that are linear between them.

    Knots stand in the middle of equal parts; beyond the first and the last, values stay the same.
    """
    number = min(size, most)
    knots = (np.arange(number) + 0.5) * size / number - 0.5
    return np.stack([np.interp(np.arange(size), knots, weight) for weight in np.eye(number)])
