"""Between an environment and a learner: the one place where what is seen is transformed.

Algorithms, memories and networks know the learner's side alone. A transform that is off passes its
array through untouched. Skill is always measured on the environment as it is.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, ArrayLike, Bool, Float

from fedrain.agents.networks import Number
from fedrain.climate.columns import closeness, frozen
from fedrain.envs.spec import AgentSpec
from fedrain.errors import InputError

#: What is learnt from a reward that is − a mean square error.
REWARDS = ("square", "root", "log")


@dataclass(frozen=True, kw_only=True)
class Transforms:
    """Options of what a learner sees of observations, actions and rewards; all off by default.

    Args:
        scaled_observations: Fields are divided by their typical scale.
        place: How many numbers tell an agent where it is; 0: none.
        unit_actions: Networks see and set actions in [−1, 1].
        knots: Most values of a profile that an agent sets, linear between; 0: no limit.
        reward: ``"square"``, as it is; ``"root"``: −√(−r); ``"log"``: −log(1 + √(−r)).
        reward_scale: Times the learnt reward.
        shaping: Share of it that is its change since the last step, over 1 − discount.
        team: Share of the error of others, for agents of one climate.
        reach: Degrees over which others count e times less in ``team``; 0: all alike.
    """

    # Temperatures of tens of °C saturate a new network's tanh at once; inputs of order one do not.
    scaled_observations: bool = False  # divided by the typical scale of their field
    # Agents that share a network can only differ by what they see.
    place: int = 0  # numbers that tell an agent where it is: x = φ/90°, sin πx, cos πx, …
    # The range of A is 28 times that of D: seen as they are, critics are blind to all but A.
    unit_actions: bool = False  # networks see and set actions in [−1, 1]
    # Neighbours want nearly the same, and every number that is set must be found out about.
    knots: int = 0  # most values of a profile that an agent sets, linear between; 0: no limit
    # The square is ruled by the first steps from 50 °C, and flat where the error is small; the
    # root still spans 50 K to 0.1 K: next to the first steps critics do not see the last.
    reward: str = "square"  # as it is; "root": −√(−r); "log": −log(1 + √(−r))
    # Values of order one suit networks that start near zero.
    reward_scale: float = 1.0  # times the learnt reward
    # Most of a value is known from the state alone; what an action changes shows in what is left.
    shaping: float = 0.0  # share of the learnt reward that is its change, over 1 − discount
    # What all set together is good or bad for all: an agent that thinks of its own region alone
    # sets it at the others' cost.
    team: float = 0.0  # share of the error of others in what the agents of one climate learn from
    # An agent warms and cools its neighbours most: to its critic, who is far away is mostly noise.
    reach: float = 0.0  # degrees over which others count e times less; 0: all alike, wherever

    def __post_init__(self) -> None:
        if self.reward not in REWARDS:
            raise InputError(f"reward must be one of {', '.join(REWARDS)}, not {self.reward!r}")

    def check(self, spec: AgentSpec) -> None:
        """Refuse what cannot apply to agents like these."""
        for name, known, what in (
            ("scaled_observations", spec.scale, "the scale of observations"),
            ("place", spec.places, "the place of the agents"),
            ("team", spec.places, "the place of the agents"),
        ):
            if getattr(self, name) and known is None:
                raise InputError(f"{name} cannot apply: {what} is not known")
        if self.knots and not spec.profiles:
            raise InputError("knots cannot apply: no agent sets a parameter of each column")
        for name in ("team", "reach"):
            if getattr(self, name) and not spec.shared:
                raise InputError(f"{name} cannot apply: the agents do not share a climate")
        if self.reach and not self.team:
            raise InputError("reach cannot apply: it needs a team above 0")


@dataclass(frozen=True)
class View:
    """How a learner with these transforms sees agents with this spec.

    Args:
        transforms: What is on.
        outside: The agents as their environment has them.
    """

    transforms: Transforms
    outside: AgentSpec

    @cached_property
    def spec(self) -> AgentSpec:
        """What the learner sees and sets."""
        seen = self.outside
        if self._has_knots:
            # Where in the environment's action each number that is set counts most.
            kept = self._knots.argmax(1)
            common = self._knots[:, list(seen.common or ())].argmax(0)
            low, high = (tuple(bound[kept].tolist()) for bound in seen.bounds)
            seen = replace(seen, low=low, high=high, common=tuple(common.tolist()), profiles=())
        if self.transforms.unit_actions:
            low, high = tuple(-1.0 for _ in seen.low), tuple(1.0 for _ in seen.high)
            seen = replace(seen, low=low, high=high)
        more = self._places.shape[1] if self.transforms.place else 0
        size = seen.observation_size + more
        return replace(seen, observation_size=size, place_size=more, scale=None)

    def observation(
        self, observation: Float[Array, "agent obs"], regions: tuple[int, ...]
    ) -> Float[Array, "agent seen"]:
        """What was seen, scaled, and where the agent of each region is."""
        if self.transforms.scaled_observations:
            observation = observation / jnp.asarray(self.outside.scale, observation.dtype)
        if self.transforms.place:
            place = jnp.asarray(self._places[np.array(regions)], observation.dtype)
            observation = jnp.concatenate([observation, place], axis=-1)
        return observation

    def action(self, action: Float[Array, "*batch set"]) -> Float[Array, "*batch action"]:
        """The environment's action for the learner's."""
        if self._has_knots:
            action = action @ jnp.asarray(self._knots, action.dtype)
        if not self.transforms.unit_actions:
            return action
        return self.outside.centre + self.outside.half_range * action

    def reward(
        self,
        reward: Float[Array, " agent"],
        regions: tuple[int, ...],
        of_all: Float[np.ndarray, " region"] | None = None,
    ) -> Float[Array, " agent"]:
        """What is learnt from, for the environment's reward.

        ``of_all`` are the rewards of all regions, where some agents are elsewhere.
        """
        if self.transforms.team:
            everyone = reward if of_all is None else of_all
            if len(everyone) != len(self.outside.places or ()):
                raise InputError(
                    "team cannot apply: the rewards of the other regions are not available"
                )
            closeness = jnp.asarray(self._closeness[np.array(regions)], reward.dtype)
            around = closeness @ jnp.asarray(everyone, reward.dtype)
            own, team = self._transformed(reward), self._transformed(around)
            reward = own + self.transforms.team * (team - own)
        else:
            reward = self._transformed(reward)
        if self.transforms.reward_scale != 1:
            reward = reward * self.transforms.reward_scale
        return reward

    def shaped(
        self,
        reward: Float[Array, " agent"],
        before: Float[Array, " agent"],
        first: Bool[ArrayLike, ""],
        discount: Number,
    ) -> Float[Array, " agent"]:
        """What is remembered, for the learner's reward of this step and of the one before.

        A share p = ``shaping`` is the reward's change: r' = (1 − p) r + p (r − r₋₁) / (1 − γ). That
        is r + γΦ − Φ₋₁ with the potential Φ = p r / (1 − γ), which leaves the best policy as it is
        (Ng et al. 1999): the values lose the part of them that is known from the state alone. The
        first step of an episode has no change.
        """
        share = self.transforms.shaping
        if not share:
            return reward
        change = jnp.where(first, 0, reward - before) / (1 - discount)
        return (1 - share) * reward + share * change

    @cached_property
    def _closeness(self) -> Float[np.ndarray, "region region"]:
        """How much the error of each region counts for the team of each."""
        return closeness(np.array(self.outside.places), self.transforms.reach)

    def _transformed(self, reward: Float[Array, "*agent"]) -> Float[Array, "*agent"]:
        """A reward above zero, which only other environments have, is transformed likewise."""
        if self.transforms.reward == "square":
            return reward
        root = jnp.sqrt(jnp.abs(reward))
        size = jnp.log1p(root) if self.transforms.reward == "log" else root
        return jnp.where(reward > 0, size, -size)

    @property
    def _has_knots(self) -> bool:
        most = self.transforms.knots
        profiles = self.outside.profiles or ()
        return most > 0 and any(stop - start > most for start, stop in profiles)

    @cached_property
    def _knots(self) -> Float[np.ndarray, "set action"]:
        """How much each number that the learner sets counts in each of the environment's."""
        blocks, end = [], 0
        for start, stop in self.outside.profiles or ():
            blocks += [np.eye(start - end), hats(stop - start, self.transforms.knots)]
            end = stop
        blocks.append(np.eye(self.outside.action_size - end))
        return frozen(scipy.linalg.block_diag(*blocks))

    @cached_property
    def _places(self) -> Float[np.ndarray, "region number"]:
        """Latitude and its waves; and sine and cosine of the longitude, where it differs."""
        latitude, longitude = np.array(self.outside.places).T
        x, most = latitude / 90, self.transforms.place
        waves = [wave(k * np.pi * x) for k in range(1, 1 + most // 2)
                 for wave in (np.sin, np.cos)]  # fmt: skip
        numbers = np.stack([x, *waves], axis=-1)[:, :most]
        if np.ptp(longitude) > 0:
            around = np.deg2rad(longitude)
            numbers = np.column_stack([numbers, np.sin(around), np.cos(around)])
        return frozen(numbers)


def hats(size: int, most: int) -> Float[np.ndarray, "knot size"]:
    """Weights of knots, ``most`` or fewer, in values that are linear between them.

    Knots stand in the middle of equal parts; beyond the first and the last, values stay the same.
    """
    number = min(size, most)
    knots = (np.arange(number) + 0.5) * size / number - 0.5
    return np.stack([np.interp(np.arange(size), knots, weight) for weight in np.eye(number)])
