"""The two halves of a training step, for the fused loop and the host loop alike.

Between them the environment moves: compiled along with them, or on the host. Arrays have one
leading axis, seed × agent; random keys are derived from (seed, step, agent, purpose).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, UInt32

from fedrain.agents import Agent, Algorithm, Batch, Losses, Spaces
from fedrain.agents.algorithm import repeat
from fedrain.agents.replay import pack, row_size, sample, unpack
from fedrain.envs import Environment

HEALTHY = -1
# In place of a step, in the keys of what comes before the first and after the last.
INIT_CRITIC, INIT_ACTOR, EVALUATION = 2**32 - 1, 2**32 - 2, 2**32 - 3


class Training(NamedTuple):
    """What goes from one episode to the next. The leading axis is seed × agent."""

    agents: Agent
    rows: Float[Array, "stack capacity row"]
    broken_at: Int[Array, " stack"]  # first step with a number that is not finite, or HEALTHY


class StepKeys(NamedTuple):
    """What is random in one step, a key for each."""

    warmup: Key[Array, " stack"]
    explore: Key[Array, " stack"]
    draw: Key[Array, " stack"]
    update: Key[Array, " stack"]


def spaces_of(environment: Environment) -> Spaces:
    """What one agent of the environment sees and sets."""
    low, high = environment.action_bounds
    return Spaces(environment.observation_size, tuple(low.tolist()), tuple(high.tolist()))


def agent_keys(
    seeds: UInt32[Array, " seed"], step: Int[Array, ""] | int, agents: int
) -> Key[Array, " stack"]:
    """A key for every agent of every seed at one step."""

    def of_seed(seed: UInt32[Array, ""]) -> Key[Array, " agent"]:
        key = jax.random.fold_in(jax.random.key(seed), step)
        return jax.vmap(partial(jax.random.fold_in, key))(jnp.arange(agents))

    return jax.vmap(of_seed)(seeds).reshape(-1)


def step_keys(seeds: UInt32[Array, " seed"], step: Int[Array, ""], agents: int) -> StepKeys:
    """The keys of one step."""
    keys = agent_keys(seeds, step, agents)
    split = jax.vmap(partial(jax.random.split, num=len(StepKeys._fields)))(keys)
    return StepKeys(*(split[:, i] for i in range(len(StepKeys._fields))))


@partial(jax.jit, static_argnames=("algorithm", "spaces", "agents", "steps"))
def start_training(
    algorithm: Algorithm, spaces: Spaces, agents: int, seeds: UInt32[Array, " seed"], steps: int
) -> Training:
    """New agents, the same actor for all agents of a seed, and an empty memory."""
    critic_keys = agent_keys(seeds, INIT_CRITIC, agents)
    actor_keys = jnp.repeat(agent_keys(seeds, INIT_ACTOR, 1), agents)
    stack = jax.vmap(lambda a, c: algorithm.init(a, c, spaces))(actor_keys, critic_keys)
    number = len(seeds) * agents
    row = row_size(spaces.observation_size, spaces.action_size)
    broken_at = jnp.full(number, HEALTHY, jnp.int32)
    return Training(stack, jnp.zeros((number, steps, row)), broken_at)


def choose_actions(
    algorithm: Algorithm,
    spaces: Spaces,
    agents: Agent,
    observation: Float[Array, "stack obs"],
    keys: StepKeys,
    step: Int[Array, ""],
) -> Float[Array, "stack action"]:
    """Uniform random actions at first, then the policy with its exploration."""
    random = jax.vmap(spaces.uniform)(keys.warmup)
    learnt = jax.vmap(lambda a, o, k: algorithm.explore(a, o, k, spaces))(
        agents, observation, keys.explore
    )
    return jnp.where(step < algorithm.warmup_steps, random, learnt)


def learn(
    algorithm: Algorithm,
    spaces: Spaces,
    training: Training,
    transition: Batch,
    keys: StepKeys,
    step: Int[Array, ""],
) -> tuple[Training, Losses]:
    """Remember a transition of every agent, and update them all once learning has started."""
    row = pack(transition)
    rows = jax.lax.dynamic_update_slice_in_dim(training.rows, row[:, None], step, axis=1)
    drawn = jax.vmap(lambda r, k: sample(r, step + 1, k, algorithm.batch_size))(rows, keys.draw)
    batch = unpack(drawn, spaces.observation_size)

    def update(_: Any, carry: tuple[Agent, Losses]) -> tuple[Agent, Losses]:
        return jax.vmap(algorithm.update, in_axes=(0, 0, 0, None, None))(
            carry[0], batch, keys.update, step, spaces
        )

    nothing = Losses(*(jnp.zeros(len(row)) for _ in Losses._fields))
    learning = jnp.where(step >= algorithm.warmup_steps, 1, 0)
    agents, losses = repeat(learning, update, (training.agents, nothing))
    finite = jnp.isfinite(transition.reward) & jnp.isfinite(losses.critic_loss)
    breaks = (training.broken_at == HEALTHY) & ~finite
    return Training(agents, rows, jnp.where(breaks, step, training.broken_at)), losses
