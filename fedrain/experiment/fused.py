"""The fused loop: environment, replay, updates and federation of one episode, compiled as one.

All seeds and agents run side by side. A run is this function called for one episode after another,
so that progress, logs and checkpoints happen in between.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from fedrain.agents import Algorithm, Batch, Losses
from fedrain.envs import Environment, State
from fedrain.experiment.stepping import Training, choose_actions, learn, spaces_of, step_keys
from fedrain.federation import Sharing, actor_distance, average


class EpisodeLog(NamedTuple):
    """What one episode leaves behind for people.

    Critic loss and values are means over its steps; the actor's loss is the last of the episode.
    """

    returns: Float[Array, "seed agent"]
    losses: Losses
    distance: Float[Array, " seed"]  # between the agents' actors, before they are averaged


class _Carry(NamedTuple):
    training: Training
    state: State
    observation: Float[Array, "stack obs"]
    returns: Float[Array, " stack"]
    losses: Losses


@partial(
    jax.jit,
    static_argnames=("environment", "algorithm", "sharing"),
    donate_argnames="training",
)
def run_episode(
    environment: Environment,
    algorithm: Algorithm,
    sharing: Sharing,
    training: Training,
    seeds: UInt32[Array, " seed"],
    episode: Int[Array, ""],
    synchronise: Bool[Array, ""],
) -> tuple[Training, EpisodeLog]:
    """One episode of every seed; at its end the agents are averaged if they are to be."""
    spaces = spaces_of(environment)
    number = len(environment.regions)

    def advance(carry: _Carry, index: Int[Array, ""]) -> tuple[_Carry, None]:
        step = episode * environment.episode_length + index
        keys = step_keys(seeds, step, number)
        action = choose_actions(
            algorithm, spaces, carry.training.agents, carry.observation, keys, step
        )
        by_seed = action.reshape(len(seeds), number, -1)
        state, observation, reward, _ = jax.vmap(environment.step)(carry.state, by_seed)
        transition = Batch(carry.observation, action, reward.reshape(-1), _stacked(observation))
        training, losses = learn(algorithm, spaces, carry.training, transition, keys, step)
        return (
            _Carry(
                training,
                state,
                transition.next_observation,
                carry.returns + transition.reward,
                gather_losses(carry.losses, losses, environment.episode_length),
            ),
            None,
        )

    state, observation = jax.vmap(lambda _: environment.reset())(seeds)
    zeros = jnp.zeros(len(seeds) * number)
    begin = _Carry(training, state, _stacked(observation), zeros, Losses(zeros, zeros, zeros))
    end, _ = jax.lax.scan(advance, begin, jnp.arange(environment.episode_length))
    agents = end.training.agents
    log = EpisodeLog(
        end.returns.reshape(len(seeds), number),
        jax.tree.map(lambda x: x.reshape(len(seeds), number), end.losses),
        actor_distance(agents.actor, len(seeds)),
    )
    return end.training._replace(agents=average(agents, len(seeds), sharing, synchronise)), log


def gather_losses(gathered: Losses, losses: Losses, steps: int) -> Losses:
    """The means over ``steps`` steps, so far; and the last loss that the actor had."""
    latest = jnp.where(jnp.isnan(losses.actor_loss), gathered.actor_loss, losses.actor_loss)
    return Losses(
        gathered.critic_loss + losses.critic_loss / steps, latest, gathered.q + losses.q / steps
    )


def _stacked(array: Float[Array, "seed agent size"]) -> Float[Array, "stack size"]:
    return array.reshape(-1, array.shape[-1])
