"""The host loop: the same algorithms on any Gymnasium or PettingZoo environment.

For environments from elsewhere. Only the environment is stepped from Python; choosing actions and
learning are the compiled halves of a step that the fused loop has. Of an environment of this
package it knows all that the fused loop does, and gives the same returns; of another it knows its
spaces alone, and options that need more are refused.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from pettingzoo import ParallelEnv

from fedrain.agents import Algorithm, Batch, Losses, View
from fedrain.agents.step import (
    Training,
    choose_actions,
    draw,
    learn,
    start_training,
    steps_held,
)
from fedrain.envs import AgentSpec
from fedrain.envs.adapter import Adapter
from fedrain.errors import InputError
from fedrain.experiment.configuration import averages_after
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

    spec: AgentSpec
    agents: int

    def reset(self, seed: int) -> Float[np.ndarray, "agent obs"]:
        """Start an episode."""

    def step(self, actions: Float[np.ndarray, "agent action"]) -> Outcome:
        """One step of all agents that are here."""


class Separate:
    """One Gymnasium environment for each agent."""

    def __init__(self, environments: Sequence[gymnasium.Env[Any, Any]]) -> None:
        self.environments = list(environments)
        self.agents = len(self.environments)
        specs = [_spec(env, env.observation_space, env.action_space) for env in self.environments]
        places = [_own_place(env) for env in self.environments]
        known = tuple(place for place in places if place is not None)
        self.spec = replace(specs[0], places=known if len(known) == len(places) else None)
        if any(replace(one, places=None) != replace(self.spec, places=None) for one in specs):
            raise InputError("the environments of a federation must have the same spaces")

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
    """One PettingZoo environment for all agents."""

    def __init__(self, environment: ParallelEnv[str, Any, Any]) -> None:
        self.environment = environment
        self.names = list(environment.possible_agents)
        self.agents = len(self.names)
        spaces = [
            (environment.observation_space(n), environment.action_space(n)) for n in self.names
        ]
        if any(one != spaces[0] for one in spaces):
            raise InputError("the agents of a federation must have the same spaces")
        self.spec = _spec(environment, *spaces[0])

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

    Args:
        world: Environments of several agents: :class:`Separate`, :class:`Shared`, or your own.
        algorithm: What learns; options of it that cannot apply to the world are refused.
        episodes: How many.
        seed: Everything random is derived from it.
        sync_every: Average the agents every so many episodes; 0: never.
        capacity: Steps of the whole run, over which schedules such as ``final_noise`` fall: 200
            for each episode unless it is given.
        sharing: What is averaged, and with whom.
    """
    algorithm.check(world.spec)
    number = jnp.asarray(seed, jnp.uint32)
    capacity = 200 * episodes if capacity is None else capacity
    regions = tuple(range(world.agents))
    sharing = sharing or Sharing()
    training = start_training(algorithm, world.spec, regions, number, capacity, sharing.one_policy)
    returns: list[Float[np.ndarray, " agent"]] = []
    step = 0
    for episode in range(episodes):
        training, log, step = host_episode(world, algorithm, regions, training, seed, step)
        returns.append(np.asarray(log.returns))
        if averages_after(episode, episodes, sync_every):
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
    number, view = jnp.asarray(seed, jnp.uint32), View(algorithm.transforms, world.spec)
    returns, ended = np.zeros(world.agents, np.float32), False
    losses, first = Losses(*(jnp.zeros(world.agents) for _ in Losses._fields)), step
    before = jnp.zeros(world.agents)
    try:
        begin = world.reset(_derive(seed, step))
        seen = view.observation(jnp.asarray(begin, jnp.float32), regions)
    except MissedStepError:
        returns, ended = np.full(world.agents, np.nan, np.float32), True
    while not ended:
        if step >= steps_held(training):
            raise InputError(f"more than {steps_held(training)} steps: set the capacity")
        draws = _draw(algorithm, view.spec, regions, number, jnp.asarray(step))
        action = _choose(algorithm, view.spec, training, seen, draws.action, step)
        try:
            observation, reward, ended, of_all = world.step(np.asarray(view.action(action)))
        except MissedStepError:
            returns = np.full(world.agents, np.nan, np.float32)
            break
        after = view.observation(jnp.asarray(observation, jnp.float32), regions)
        own = view.reward(jnp.asarray(reward), regions, of_all)
        learnt = view.shaped(own, before, step == first, algorithm.discount)
        transition = Batch(seen, action, learnt, after)
        training, new = _learn(algorithm, view.spec, training, transition, draws, step)
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
_learn = partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)(learn)
_average = jax.jit(average, static_argnums=1)


def _spec(environment: Any, observation: Any, action: Any) -> AgentSpec:
    """What is known of an agent: all, of an environment of this package; else its spaces."""
    for name, space in (("observations", observation), ("actions", action)):
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
            raise InputError(f"{name} must be a one-dimensional Box")
    if not np.isfinite([action.low, action.high]).all():
        raise InputError("actions must have finite bounds")
    low, high = (tuple(map(float, bound)) for bound in (action.low, action.high))
    adapter = _adapter(environment)
    if adapter is None:
        return AgentSpec(int(np.prod(observation.shape)), low, high)
    return replace(adapter.environment.spec, low=low, high=high)


def _adapter(environment: Any) -> Adapter | None:
    inner = getattr(environment, "unwrapped", environment)
    adapter = getattr(inner, "adapter", None)
    return adapter if isinstance(adapter, Adapter) else None


def _own_place(environment: Any) -> tuple[float, float] | None:
    """Latitude and longitude of the region of an environment's one agent."""
    adapter = _adapter(environment)
    if adapter is None or adapter.environment.spec.places is None:
        return None
    return adapter.environment.spec.places[adapter.environment.regions[0]]
