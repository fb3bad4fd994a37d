"""The host loop: the same algorithms on any Gymnasium or PettingZoo environment.

For models that JAX cannot compile: climlab, a Fortran code. Only the environment is stepped from
Python; choosing actions and learning are the compiled halves of a step that the fused loop has.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from pettingzoo import ParallelEnv

from fedrain.agents import Algorithm, Batch, Lens, Losses, Spaces
from fedrain.agents.step import (
    Training,
    choose_actions,
    draw,
    learn,
    shape,
    start_training,
    steps_held,
)
from fedrain.errors import InputError
from fedrain.experiment.fused import EpisodeLog, gather_losses
from fedrain.federation import Sharing, actor_distance, average


class MissedStepError(Exception):
    """A world has moved on without its agents: their episode ends here, without a return."""


class Outcome(NamedTuple):
    """What a step of a world gives."""

    observation: Float[np.ndarray, "agent obs"]
    reward: Float[np.ndarray, " agent"]
    ended: bool
    of_all: Float[np.ndarray, " region"] | None = None  # rewards, where some agents are elsewhere


@runtime_checkable
class World(Protocol):
    """Environments of several agents that move in step."""

    spaces: Spaces
    agents: int

    def reset(self, seed: int) -> Float[np.ndarray, "agent obs"]:
        """Start an episode."""

    def step(self, actions: Float[np.ndarray, "agent action"]) -> Outcome:
        """One step of all agents that are here."""


class Separate:
    """One Gymnasium environment for each agent; ``latitudes`` are theirs, if they may know them."""

    def __init__(
        self, environments: Sequence[gymnasium.Env[Any, Any]], latitudes: Sequence[float] = ()
    ) -> None:
        self.environments = list(environments)
        self.agents = len(self.environments)
        first = self.environments[0]
        self.spaces = _spaces(first.observation_space, first.action_space, latitudes)

    def reset(self, seed: int) -> Float[np.ndarray, "agent obs"]:
        """Start an episode in each."""
        pairs = enumerate(self.environments)
        return np.stack([env.reset(seed=_derive(seed, i))[0] for i, env in pairs])

    def step(self, actions: Float[np.ndarray, "agent action"]) -> Outcome:
        """One step of each; all end together."""
        results = [env.step(a) for env, a in zip(self.environments, actions, strict=True)]
        observations, rewards, terminated, truncated, _ = zip(*results, strict=True)
        if any(terminated):
            raise InputError("an environment has a terminal state; the agents always bootstrap")
        if len(set(truncated)) > 1:
            raise InputError("the environments of a federation must have episodes of one length")
        return Outcome(np.stack(observations), np.array(rewards, np.float32), bool(truncated[0]))


class Shared:
    """One PettingZoo environment for all agents; ``latitudes`` as of :class:`Separate`."""

    def __init__(
        self, environment: ParallelEnv[str, Any, Any], latitudes: Sequence[float] = ()
    ) -> None:
        self.environment = environment
        self.names = list(environment.possible_agents)
        self.agents = len(self.names)
        first = self.names[0]
        self.spaces = _spaces(
            environment.observation_space(first), environment.action_space(first), latitudes
        )

    def reset(self, seed: int) -> Float[np.ndarray, "agent obs"]:
        """Start an episode."""
        observations, _ = self.environment.reset(seed=seed)
        return np.stack([observations[name] for name in self.names])

    def step(self, actions: Float[np.ndarray, "agent action"]) -> Outcome:
        """One step of all."""
        chosen = dict(zip(self.names, actions, strict=True))
        observations, rewards, terminated, truncated, _ = self.environment.step(chosen)
        if any(terminated.values()):
            raise InputError("an environment has a terminal state; the agents always bootstrap")
        return Outcome(
            np.stack([observations[name] for name in self.names]),
            np.array([rewards[name] for name in self.names], np.float32),
            bool(truncated[self.names[0]]),
        )


def train_on_host(
    world: World,
    algorithm: Algorithm,
    episodes: int,
    seed: int = 0,
    sync_every: int = 0,
    capacity: int | None = None,
    sharing: Sharing | None = None,
) -> tuple[Training, Float[np.ndarray, "episode agent"]]:
    """Train one seed; what is learnt, and the returns.

    ``capacity`` is the number of steps of the whole run, over which schedules such as
    ``final_noise`` fall: 200 for each episode unless it is given.
    """
    number = jnp.asarray(seed, jnp.uint32)
    capacity = 200 * episodes if capacity is None else capacity
    regions = tuple(range(world.agents))
    sharing = sharing or Sharing()
    training = start_training(
        algorithm, world.spaces, regions, number, capacity, sharing.one_policy
    )
    returns: list[Float[np.ndarray, " agent"]] = []
    step = 0
    for episode in range(episodes):
        training, log, step = host_episode(world, algorithm, regions, training, seed, step)
        returns.append(np.asarray(log.returns))
        if sync_every and (episode + 1) % sync_every == 0 and episode + 1 < episodes:
            agents = _average(training.agents, sharing, jnp.asarray(True))
            training = training._replace(agents=agents)
    return training, np.array(returns)


def host_episode(
    world: World,
    algorithm: Algorithm,
    regions: tuple[int, ...],
    training: Training,
    seed: int,
    step: int,
) -> tuple[Training, EpisodeLog, int]:
    """One episode from this step on; what it leaves, and the step after it."""
    number, lens = jnp.asarray(seed, jnp.uint32), Lens(algorithm, world.spaces)
    returns, ended = np.zeros(world.agents, np.float32), False
    losses, first = Losses(*(jnp.zeros(world.agents) for _ in Losses._fields)), step
    before = jnp.zeros(world.agents)
    try:
        begin = world.reset(_derive(seed, step))
        seen = lens.observation(jnp.asarray(begin, jnp.float32), regions)
    except MissedStepError:
        returns, ended = np.full(world.agents, np.nan, np.float32), True
    while not ended:
        if step >= steps_held(training):
            raise InputError(f"more than {steps_held(training)} steps: set the capacity")
        draws = _draw(algorithm, lens.spaces, regions, number, jnp.asarray(step))
        action = _choose(algorithm, lens.spaces, training, seen, draws.action, step)
        try:
            observation, reward, ended, of_all = world.step(np.asarray(lens.action(action)))
        except MissedStepError:
            returns = np.full(world.agents, np.nan, np.float32)
            break
        after = lens.observation(jnp.asarray(observation, jnp.float32), regions)
        own = lens.reward(jnp.asarray(reward), regions, of_all)
        transition = Batch(seen, action, _shape(algorithm, own, before, step == first), after)
        training, new = _learn(algorithm, lens.spaces, training, transition, draws, step)
        losses = _gather(losses, new, 1)
        seen, before, returns, step = after, own, returns + reward, step + 1
    losses = losses._replace(q=losses.q / max(step - first, 1))
    log = EpisodeLog(jnp.asarray(returns), losses, _distance(training.agents.actor))
    return training, log, step


def _derive(*numbers: int) -> int:
    """A seed for a world, its own for each seed of the run, episode and agent."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


_draw = jax.jit(draw, static_argnums=(0, 1, 2))
_gather = jax.jit(gather_losses, static_argnums=2)
_distance = jax.jit(actor_distance)
_choose = jax.jit(choose_actions, static_argnums=(0, 1))
_shape = jax.jit(shape, static_argnums=0)
_learn = partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)(learn)
_average = jax.jit(average, static_argnums=1)


def _spaces(
    observation: gymnasium.spaces.Space[Any],
    action: gymnasium.spaces.Space[Any],
    latitudes: Sequence[float],
) -> Spaces:
    for name, space in (("observations", observation), ("actions", action)):
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
            raise InputError(f"{name} must be a one-dimensional Box")
    assert isinstance(action, gymnasium.spaces.Box)
    if not np.isfinite([action.low, action.high]).all():
        raise InputError("actions must have finite bounds")
    size = int(np.prod(observation.shape or (0,)))
    low, high, places = (tuple(map(float, v)) for v in (action.low, action.high, latitudes))
    return Spaces(size, low, high, places)
