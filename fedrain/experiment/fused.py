"""The fused loop: environment, replay, updates and federation of one episode, compiled as one.

One seed, all its agents side by side. A run is this function called for one episode after another,
so that progress, logs and checkpoints happen in between, and for one seed after another on each
core: the networks of one seed stay in its cache, as those of all seeds would not.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from fedrain.agents import Algorithm, Batch, Losses, View
from fedrain.agents.step import (
    Draws,
    Training,
    choose_actions,
    draw,
    latest_losses,
    learn,
    start_key,
    step_key,
)
from fedrain.envs import Environment, EnvParams, State
from fedrain.envs.options import has_own_target
from fedrain.federation import Sharing, actor_distance, average


class EpisodeLog(NamedTuple):
    """What one episode leaves behind for people.

    Losses are those of its last policy update; the critics' value is the mean over its steps.
    ``end`` has the judged fields of the globe, and targets that move, after the last step: None of
    a region alone, and where the last state may be an analysis.
    """

    returns: Float[Array, " agent"]
    losses: Losses
    distance: Float[Array, ""]  # between the agents' actors, before they are averaged
    end: dict[str, Float[Array, "column ..."]] | None = None


class _Carry(NamedTuple):
    training: Training
    state: State
    seen: Float[Array, "agent obs"]  # by the learner
    reward: Float[Array, " agent"]  # the learner's, of the step before
    returns: Float[Array, " agent"]
    losses: Losses


def play_episode(
    environment: Environment,
    algorithm: Algorithm,
    sharing: Sharing,
    params: EnvParams,
    training: Training,
    seed: UInt32[Array, ""],
    episode: Int[Array, ""],
    synchronise: Bool[Array, ""],
) -> tuple[Training, EpisodeLog]:
    """One episode of one seed; at its end the agents are averaged if they are to be."""
    view = View(algorithm.transforms, environment.spec)
    spec, regions = view.spec, environment.regions
    length = environment.episode_length

    def advance(carry: _Carry, now: tuple[Int[Array, ""], Draws]) -> tuple[_Carry, None]:
        step, draws = now
        action = choose_actions(algorithm, spec, carry.training, carry.seen, draws.action, step)
        state, observation, reward, _ = environment.step(
            step_key(seed, step), carry.state, view.action(action), params
        )
        seen = view.observation(observation, regions)
        own = view.reward(reward, regions)
        first = carry.state.time == 0
        learnt = view.shaped(own, carry.reward, first, algorithm.discount)
        transition = Batch(carry.seen, action, learnt, seen)
        training, losses = learn(algorithm, spec, carry.training, transition, draws, step)
        gathered = gather_losses(carry.losses, losses, length)
        return _Carry(training, state, seen, own, carry.returns + reward, gathered), None

    steps = episode * length + jnp.arange(length)
    learners = len(training.rows)
    draws = jax.vmap(lambda step: draw(algorithm, spec, regions, seed, step, learners))(steps)
    zeros = jnp.zeros(len(regions))
    state, observation = environment.reset(start_key(seed, episode * length), params)
    seen = view.observation(observation, regions)
    begin = _Carry(training, state, seen, zeros, zeros, Losses(zeros, zeros, zeros))
    end, _ = jax.lax.scan(advance, begin, (steps, draws))
    agents = end.training.agents
    shown = judged_end(environment, end.state, params)
    log = EpisodeLog(end.returns, end.losses, actor_distance(agents.actor), shown)
    return end.training._replace(agents=average(agents, sharing, synchronise)), log


def judged_end(
    environment: Environment, state: State, params: EnvParams
) -> dict[str, Float[Array, "column ..."]] | None:
    """Judged fields of the globe after the last step, and what they should be if that moves."""
    if environment.only_region is not None or params.analysis_every is not None:
        return None
    fields = environment.fields(state)
    shown = {name: fields[name] for name, _ in environment.judged}
    if has_own_target(environment):
        shown |= {f"target_{n}": v for n, v in environment.target(state, params).items()}
    return shown


run_episode = partial(
    jax.jit, static_argnames=("environment", "algorithm", "sharing"), donate_argnames="training"
)(play_episode)


def gather_losses(gathered: Losses, losses: Losses, steps: int) -> Losses:
    """The last losses that there were, and the mean value over ``steps`` steps so far."""
    return latest_losses(gathered, losses)._replace(q=gathered.q + losses.q / steps)
