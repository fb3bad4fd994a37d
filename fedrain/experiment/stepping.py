"""The two halves of a training step of one seed, for the fused loop and the host loop alike.

Between them the environment moves: compiled along with them, or on the host. Arrays have one
leading axis, the agents. Random numbers are derived from (seed, step, agent, purpose), so that they
do not depend on how a run is cut into pieces.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt32

from fedrain.agents import Agent, Algorithm, Batch, Losses, Spaces
from fedrain.agents.algorithm import repeat
from fedrain.agents.replay import pack, row_size, take, unpack
from fedrain.envs import Environment

HEALTHY = -1
# In place of a step, in the keys of what comes before the first and after the last.
INIT_CRITIC, INIT_ACTOR, EVALUATION = 2**32 - 1, 2**32 - 2, 2**32 - 3
OPEN_INTERVAL = float(np.nextafter(np.float32(-1), np.float32(0)))


class Training(NamedTuple):
    """What goes from one episode to the next. The leading axis is the agents."""

    agents: Agent
    rows: Float[Array, "agent capacity row"]
    broken_at: Int[Array, " agent"]  # first step with a number that is not finite, or HEALTHY


class Draws(NamedTuple):
    """What is random in one step."""

    action: Float[Array, "agent action"]  # uniform in (−1, 1): a random action, or the exploration
    rows: UInt32[Array, "agent batch"]  # which transitions are learnt from
    update: Key[Array, " agent"]  # for what the algorithm draws


def spaces_of(environment: Environment) -> Spaces:
    """What one agent of the environment sees and sets."""
    low, high = environment.action_bounds
    return Spaces(environment.observation_size, tuple(low.tolist()), tuple(high.tolist()))


def agent_keys(
    seed: UInt32[Array, ""], step: Int[Array, ""] | int, regions: tuple[int, ...]
) -> Key[Array, " agent"]:
    """A key for the agent of every region at one step, whether the others are here or elsewhere."""
    key = jax.random.fold_in(jax.random.key(seed), step)
    return jax.vmap(partial(jax.random.fold_in, key))(jnp.asarray(regions))


def draw(
    algorithm: Algorithm,
    spaces: Spaces,
    regions: tuple[int, ...],
    seed: UInt32[Array, ""],
    step: Int[Array, ""],
) -> Draws:
    """The random numbers of one step."""

    def of_agent(key: Key[Array, ""]) -> Draws:
        action, rows, update = jax.random.split(key, 3)
        return Draws(
            jax.random.uniform(action, (spaces.action_size,), minval=OPEN_INTERVAL),
            jax.random.bits(rows, (algorithm.batch_size,)),
            update,
        )

    return jax.vmap(of_agent)(agent_keys(seed, step, regions))


@partial(jax.jit, static_argnames=("algorithm", "spaces", "regions", "steps"))
def start_training(
    algorithm: Algorithm,
    spaces: Spaces,
    regions: tuple[int, ...],
    seed: UInt32[Array, ""],
    steps: int,
) -> Training:
    """New agents, the same actor for all, and an empty memory."""
    critic_keys = agent_keys(seed, INIT_CRITIC, regions)
    actor_key = agent_keys(seed, INIT_ACTOR, (0,))[0]
    stack = jax.vmap(lambda key: algorithm.init(actor_key, key, spaces))(critic_keys)
    row = row_size(spaces.observation_size, spaces.action_size)
    broken_at = jnp.full(len(regions), HEALTHY, jnp.int32)
    return Training(stack, jnp.zeros((len(regions), steps, row)), broken_at)


def choose_actions(
    algorithm: Algorithm,
    spaces: Spaces,
    agents: Agent,
    observation: Float[Array, "agent obs"],
    uniform: Float[Array, "agent action"],
    step: Int[Array, ""],
) -> Float[Array, "agent action"]:
    """Uniform random actions at first, then the policy with its exploration."""
    random = spaces.centre + spaces.half_range * uniform
    normal = np.sqrt(2) * jax.lax.erf_inv(uniform)
    learnt = jax.vmap(lambda a, o, n: algorithm.explore(a, o, n, spaces))(
        agents, observation, normal
    )
    return jnp.where(step < algorithm.warmup_steps, random, learnt)


def learn(
    algorithm: Algorithm,
    spaces: Spaces,
    training: Training,
    transition: Batch,
    draws: Draws,
    step: Int[Array, ""],
) -> tuple[Training, Losses]:
    """Remember a transition of every agent, and update them all once learning has started."""
    row = pack(transition)
    rows = jax.lax.dynamic_update_slice_in_dim(training.rows, row[:, None], step, axis=1)
    batch = unpack(take(rows, draws.rows, step + 1), spaces.observation_size)

    def update(_: Any, carry: tuple[Agent, Losses]) -> tuple[Agent, Losses]:
        return jax.vmap(algorithm.update, in_axes=(0, 0, 0, None, None))(
            carry[0], batch, draws.update, step, spaces
        )

    nothing = Losses(*(jnp.zeros(len(row)) for _ in Losses._fields))
    learning = jnp.where(step >= algorithm.warmup_steps, 1, 0)
    agents, losses = repeat(learning, update, (training.agents, nothing))
    finite = jnp.isfinite(transition.reward) & jnp.isfinite(losses.q)
    breaks = (training.broken_at == HEALTHY) & ~finite
    return Training(agents, rows, jnp.where(breaks, step, training.broken_at)), losses
