"""The two halves of a training step of one seed, for the fused loop and the host loop alike.

Between them the environment moves: compiled along with them, or on the host. Here everything is as
the learner sees it (:class:`fedrain.agents.View`). Arrays have one leading axis, the agents; those
of what is learnt, too, or of length one where all agents share one policy. Random numbers are
derived from (seed, step, agent, purpose), so that they do not depend on how a run is cut into
pieces.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt32

from fedrain.agents.agent import Agent, Losses
from fedrain.agents.algorithm import Algorithm, repeat
from fedrain.agents.replay import Batch, pack, row_size, take, unpack
from fedrain.agents.schedule import are_common
from fedrain.agents.transforms import View
from fedrain.climate.columns import degrees_apart
from fedrain.envs.spec import AgentSpec

HEALTHY = -1
# In place of a step, in the keys of what comes before the first and after the last.
INIT_CRITIC, INIT_ACTOR, EVALUATION, PROMPT = (2**32 - i for i in range(1, 5))
# In place of a region, in the keys of what all agents draw together, and of the environment.
TOGETHER, ENVIRONMENT = 2**32 - 1, 2**32 - 2
OPEN_INTERVAL = float(np.nextafter(np.float32(-1), np.float32(0)))


class Training(NamedTuple):
    """What goes from one episode to the next. The leading axis is the agents."""

    agents: Agent
    rows: Float[Array, "learner capacity row"]
    diverged_at: Int[Array, " agent"]  # first step with a non-finite value, or HEALTHY


class Draws(NamedTuple):
    """What is random in one step."""

    action: Float[Array, "agent action"]  # uniform in (−1, 1): a random action, or the exploration
    rows: UInt32[Array, "agent batch"]  # which transitions are learnt from
    update: Key[Array, " agent"]  # for what the algorithm draws


def agent_keys(
    seed: UInt32[Array, ""], step: Int[Array, ""] | int, regions: tuple[int, ...]
) -> Key[Array, " agent"]:
    """A key for the agent of every region at one step, whether the others are here or elsewhere."""
    key = jax.random.fold_in(jax.random.key(seed), step)
    return jax.vmap(partial(jax.random.fold_in, key))(jnp.asarray(regions, jnp.uint32))


def environment_key(seed: UInt32[Array, ""], step: Int[Array, ""] | int) -> Key[Array, ""]:
    """A key for what is random in the environment at one step, or at the start of an episode."""
    return agent_keys(seed, step, (ENVIRONMENT,))[0]


def start_key(seed: UInt32[Array, ""], step: Int[Array, ""] | int) -> Key[Array, ""]:
    """A key for the start of an episode whose first step is this one."""
    return jax.random.fold_in(environment_key(seed, step), 0)


def step_key(seed: UInt32[Array, ""], step: Int[Array, ""] | int) -> Key[Array, ""]:
    """A key for one step of the environment."""
    return jax.random.fold_in(environment_key(seed, step), 1)


def draw(
    algorithm: Algorithm,
    spec: AgentSpec,
    regions: tuple[int, ...],
    seed: UInt32[Array, ""],
    step: Int[Array, ""],
    learners: int | None = None,
) -> Draws:
    """The random numbers of one step; rows for the first ``learners`` alone, where they are fewer.

    Where 96 agents share one policy, drawing rows for all would take as long as learning does.
    """
    schedule = algorithm.schedule

    def explored(key: Key[Array, ""]) -> Float[Array, " action"]:
        return jax.random.uniform(key, (spec.action_size,), minval=OPEN_INTERVAL)

    def keys(step: Int[Array, ""], regions: tuple[int, ...]) -> Key[Array, "agent 3"]:
        every = agent_keys(seed, step, schedule.streams(regions))
        return jax.vmap(lambda key: jax.random.split(key, 3))(every)

    def actions(step: Int[Array, ""], regions: tuple[int, ...]) -> Float[Array, "agent action"]:
        return jax.vmap(explored)(keys(step, regions)[:, 0])

    number = schedule.updates * algorithm.batch_size
    _, for_rows, update = keys(step, regions).T
    rows = jax.vmap(lambda key: jax.random.bits(key, (number,)))(for_rows[:learners])
    draws = Draws(actions(step, regions), rows, update)
    begin = step - step % schedule.hold
    if schedule.hold > 1:
        draws = draws._replace(action=actions(begin, regions))
    if schedule.noise_reach:
        # Agents that are elsewhere are drawn here too: each number is of its seed, step and region.
        whole = actions(begin, tuple(range(len(spec.places or ()))))
        own = alike(whole, spec, schedule.noise_reach)[np.array(regions)]
        draws = draws._replace(action=own)
    if not schedule.common_noise:
        return draws
    begin = step if schedule.common_hold == 1 else step - step % schedule.common_hold
    together = explored(jax.random.split(agent_keys(seed, begin, (TOGETHER,))[0], 3)[0])
    action = jnp.where(are_common(spec, spec.action_size), together, draws.action)
    return draws._replace(action=action)


def alike(
    uniform: Float[Array, "region action"], spec: AgentSpec, reach: float
) -> Float[Array, "region action"]:
    """Uniform numbers in (−1, 1) that regions near each other have in common: a smooth field."""
    near = np.exp(-((degrees_apart(np.array(spec.places)) / reach) ** 2) / 2)
    mix = near / np.sqrt((near**2).sum(axis=1, keepdims=True))
    normal = jnp.asarray(mix, uniform.dtype) @ jax.lax.erf_inv(uniform)
    return jnp.clip(jax.lax.erf(normal), OPEN_INTERVAL, -OPEN_INTERVAL)


@partial(jax.jit, static_argnames=("algorithm", "spec", "regions", "steps", "one_policy"))
def start_training(
    algorithm: Algorithm,
    spec: AgentSpec,
    regions: tuple[int, ...],
    seed: UInt32[Array, ""],
    steps: int,
    one_policy: bool = False,
) -> Training:
    """New agents, the same actor for all, and an empty memory. ``spec`` is the environment's."""
    seen = View(algorithm.transforms, spec).spec
    learners = regions[:1] if one_policy else regions
    critic_keys = agent_keys(seed, INIT_CRITIC, algorithm.schedule.streams(learners))
    actor_key = agent_keys(seed, INIT_ACTOR, (0,))[0]
    stack = jax.vmap(lambda key: algorithm.init(actor_key, key, seen))(critic_keys)
    stack = algorithm.schedule.start(stack, seen, agent_keys(seed, PROMPT, (0,))[0])
    row = row_size(seen.observation_size, seen.action_size)
    rows = jnp.zeros((len(learners), steps * len(regions) // len(learners), row))
    return Training(stack, rows, jnp.full(len(regions), HEALTHY, jnp.int32))


def memory_needed(algorithm: Algorithm, spec: AgentSpec, regions: int, steps: int) -> int:
    """Bytes of the memory of all agents of one seed, which holds the whole run."""
    seen = View(algorithm.transforms, spec).spec
    return 4 * regions * steps * row_size(seen.observation_size, seen.action_size)


def steps_held(training: Training) -> int:
    """Steps that the memory has room for: those of the whole run."""
    learners, capacity, _ = training.rows.shape
    return learners * capacity // len(training.diverged_at)


def progress(training: Training, step: Int[Array, ""]) -> Float[Array, ""]:
    """How much of the run has passed, from 0 to 1."""
    return step / steps_held(training)


def choose_actions(
    algorithm: Algorithm,
    spec: AgentSpec,
    training: Training,
    observation: Float[Array, "agent obs"],
    uniform: Float[Array, "agent action"],
    step: Int[Array, ""],
) -> Float[Array, "agent action"]:
    """Uniform random actions at first, then the policy with its exploration."""
    random = spec.centre + spec.half_range * uniform
    normal = np.sqrt(2) * jax.lax.erf_inv(uniform)
    normal = algorithm.schedule.noise(normal, progress(training, step))

    def explore(agent: Agent, seen: Array, noise: Array) -> Array:
        return algorithm.explore(agent, seen, noise, spec)

    if len(training.rows) < len(observation):  # one policy for all
        only = jax.tree.map(lambda leaf: leaf[0], training.agents)
        learnt = jax.vmap(partial(explore, only))(observation, normal)
    else:
        learnt = jax.vmap(explore)(training.agents, observation, normal)
    return jnp.where(step < algorithm.schedule.warmup_steps, random, learnt)


def learn(
    algorithm: Algorithm,
    spec: AgentSpec,
    training: Training,
    transition: Batch,
    draws: Draws,
    step: Int[Array, ""],
) -> tuple[Training, Losses]:
    """Remember a transition of every agent, and update them all once learning has started."""
    schedule = algorithm.schedule
    learners, number = len(training.rows), len(transition.reward)
    new = pack(transition).reshape(learners, number // learners, -1)
    at_once = new.shape[1]  # rows that a step adds to a memory: of all agents where it is one
    rows = jax.lax.dynamic_update_slice_in_dim(training.rows, new, step * at_once, axis=1)
    drawn = take(rows, draws.rows[:learners], (step + 1) * at_once, schedule.memory * at_once)
    keys = draws.update[:learners]

    def update(i: Int[Array, ""], carry: tuple[Agent, Losses]) -> tuple[Agent, Losses]:
        batch, key, count = drawn, keys, step
        if schedule.updates > 1:
            size = algorithm.batch_size
            batch = jax.lax.dynamic_slice_in_dim(drawn, i * size, size, axis=1)
            key = jax.vmap(lambda key: jax.random.fold_in(key, i))(keys)
            count = step * schedule.updates + i
        agents, losses = jax.vmap(algorithm.update, in_axes=(0, 0, 0, None, None))(
            carry[0], unpack(batch, spec.observation_size), key, count, spec
        )
        agents = schedule.limit(carry[0], agents, spec, progress(training, step))
        return agents, losses if schedule.updates == 1 else latest_losses(carry[1], losses)

    nothing = Losses(*(jnp.zeros(learners) for _ in Losses._fields))
    learning = jnp.where(step >= schedule.warmup_steps, schedule.updates, 0)
    agents, losses = repeat(learning, update, (training.agents, nothing))
    losses = Losses(*(jnp.broadcast_to(loss, number) for loss in losses))
    finite = jnp.isfinite(transition.reward) & jnp.isfinite(losses.q)
    diverges = (training.diverged_at == HEALTHY) & ~finite
    return Training(agents, rows, jnp.where(diverges, step, training.diverged_at)), losses


def latest_losses(old: Losses, new: Losses) -> Losses:
    """The last losses that there were, and the last value."""

    def latest(old: Array, new: Array) -> Array:
        return jnp.where(jnp.isnan(new), old, new)

    return Losses(
        latest(old.critic_loss, new.critic_loss), latest(old.actor_loss, new.actor_loss), new.q
    )
