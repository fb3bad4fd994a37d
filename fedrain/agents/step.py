"""The two halves of a training step of one seed, for the fused loop and the host loop alike.

Between them the environment moves: compiled along with them, or on the host. Here everything is as
the learner sees it (:class:`fedrain.agents.Lens`). Arrays have one leading axis, the agents; those
of what is learnt, too, or of length one where all agents share one policy. Random numbers are
derived from (seed, step, agent, purpose), so that they do not depend on how a run is cut into
pieces.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Key, UInt32

from fedrain.agents import Agent, Algorithm, Batch, Lens, Losses, Spaces
from fedrain.agents.algorithm import repeat
from fedrain.agents.networks import Network, Number, soft_update
from fedrain.agents.replay import pack, row_size, take, unpack
from fedrain.envs import Environment

HEALTHY = -1
# In place of a step, in the keys of what comes before the first and after the last.
INIT_CRITIC, INIT_ACTOR, EVALUATION = 2**32 - 1, 2**32 - 2, 2**32 - 3
TOGETHER = 2**32 - 1  # in place of a region, in the key of what all agents draw together
OPEN_INTERVAL = float(np.nextafter(np.float32(-1), np.float32(0)))


class Training(NamedTuple):
    """What goes from one episode to the next. The leading axis is the agents."""

    agents: Agent
    rows: Float[Array, "learner capacity row"]
    broken_at: Int[Array, " agent"]  # first step with a number that is not finite, or HEALTHY


class Draws(NamedTuple):
    """What is random in one step."""

    action: Float[Array, "agent action"]  # uniform in (−1, 1): a random action, or the exploration
    rows: UInt32[Array, "agent batch"]  # which transitions are learnt from
    update: Key[Array, " agent"]  # for what the algorithm draws


def spaces_of(environment: Environment) -> Spaces:
    """What one agent of the environment sees and sets."""
    low, high = environment.action_bounds
    centres = environment.model.grid.centres.reshape(environment.agents, -1).mean(axis=1)
    return Spaces(
        environment.observation_size,
        tuple(low.tolist()),
        tuple(high.tolist()),
        tuple(centres.tolist()),
        environment.common_actions,
        environment.profile_actions,
    )


def agent_keys(
    seed: UInt32[Array, ""], step: Int[Array, ""] | int, regions: tuple[int, ...]
) -> Key[Array, " agent"]:
    """A key for the agent of every region at one step, whether the others are here or elsewhere."""
    key = jax.random.fold_in(jax.random.key(seed), step)
    return jax.vmap(partial(jax.random.fold_in, key))(jnp.asarray(regions, jnp.uint32))


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
            jax.random.bits(rows, (algorithm.updates * algorithm.batch_size,)),
            update,
        )

    draws = jax.vmap(of_agent)(agent_keys(seed, step, regions))
    if not algorithm.common_noise or not spaces.common:
        return draws
    begin = step if algorithm.common_hold == 1 else step - step % algorithm.common_hold
    together = of_agent(agent_keys(seed, begin, (TOGETHER,))[0]).action
    action = jnp.where(are_common(spaces, spaces.action_size), together, draws.action)
    return draws._replace(action=action)


@partial(jax.jit, static_argnames=("algorithm", "spaces", "regions", "steps", "one_policy"))
def start_training(
    algorithm: Algorithm,
    spaces: Spaces,
    regions: tuple[int, ...],
    seed: UInt32[Array, ""],
    steps: int,
    one_policy: bool = False,
) -> Training:
    """New agents, the same actor for all, and an empty memory. ``spaces`` are the environment's."""
    seen = Lens(algorithm, spaces).spaces
    learners = regions[:1] if one_policy else regions
    critic_keys = agent_keys(seed, INIT_CRITIC, learners)
    actor_key = agent_keys(seed, INIT_ACTOR, (0,))[0]
    stack = jax.vmap(lambda key: algorithm.init(actor_key, key, seen))(critic_keys)
    if algorithm.common_constant and seen.common:
        stack = blind(stack, seen)
    if algorithm.proximal:
        stack = stack._replace(anchor=stack.actor)
    row = row_size(seen.observation_size, seen.action_size)
    rows = jnp.zeros((len(learners), steps * len(regions) // len(learners), row))
    return Training(stack, rows, jnp.full(len(regions), HEALTHY, jnp.int32))


def steps_held(training: Training) -> int:
    """Steps that the memory has room for: those of the whole run."""
    learners, capacity, _ = training.rows.shape
    return learners * capacity // len(training.broken_at)


def progress(training: Training, step: Int[Array, ""]) -> Float[Array, ""]:
    """How much of the run has passed, from 0 to 1."""
    return step / steps_held(training)


def choose_actions(
    algorithm: Algorithm,
    spaces: Spaces,
    training: Training,
    observation: Float[Array, "agent obs"],
    uniform: Float[Array, "agent action"],
    step: Int[Array, ""],
) -> Float[Array, "agent action"]:
    """Uniform random actions at first, then the policy with its exploration."""
    random = spaces.centre + spaces.half_range * uniform
    normal = np.sqrt(2) * jax.lax.erf_inv(uniform)
    if algorithm.final_noise != 1:
        normal = normal * (1 - (1 - algorithm.final_noise) * progress(training, step))

    def explore(agent: Agent, seen: Array, noise: Array) -> Array:
        return algorithm.explore(agent, seen, noise, spaces)

    if len(training.rows) < len(observation):  # one policy for all
        only = jax.tree.map(lambda leaf: leaf[0], training.agents)
        learnt = jax.vmap(partial(explore, only))(observation, normal)
    else:
        learnt = jax.vmap(explore)(training.agents, observation, normal)
    return jnp.where(step < algorithm.warmup_steps, random, learnt)


def shape(
    algorithm: Algorithm,
    reward: Float[Array, " agent"],
    before: Float[Array, " agent"],
    first: Bool[ArrayLike, ""],
) -> Float[Array, " agent"]:
    """What is learnt, for the learner's reward of this step and of the one before.

    A share p = ``shaping`` is the reward's change: r' = (1 − p) r + p (r − r₋₁) / (1 − γ). That is
    r + γΦ − Φ₋₁ with the potential Φ = p r / (1 − γ), which leaves the best policy as it is (Ng et
    al. 1999): the values lose the part of them that is known from the state alone. The first step
    of an episode has no change.
    """
    share = algorithm.shaping
    if not share:
        return reward
    change = jnp.where(first, 0, reward - before) / (1 - algorithm.discount)
    return (1 - share) * reward + share * change


def learn(
    algorithm: Algorithm,
    spaces: Spaces,
    training: Training,
    transition: Batch,
    draws: Draws,
    step: Int[Array, ""],
) -> tuple[Training, Losses]:
    """Remember a transition of every agent, and update them all once learning has started."""
    learners, number = len(training.rows), len(transition.reward)
    new = pack(transition).reshape(learners, number // learners, -1)
    at_once = new.shape[1]  # rows that a step adds to a memory: of all agents where it is one
    rows = jax.lax.dynamic_update_slice_in_dim(training.rows, new, step * at_once, axis=1)
    drawn = take(rows, draws.rows[:learners], (step + 1) * at_once)
    keys = draws.update[:learners]

    def update(i: Int[Array, ""], carry: tuple[Agent, Losses]) -> tuple[Agent, Losses]:
        batch, key, count = drawn, keys, step
        if algorithm.updates > 1:
            size = algorithm.batch_size
            batch = jax.lax.dynamic_slice_in_dim(drawn, i * size, size, axis=1)
            key = jax.vmap(lambda key: jax.random.fold_in(key, i))(keys)
            count = step * algorithm.updates + i
        agents, losses = jax.vmap(algorithm.update, in_axes=(0, 0, 0, None, None))(
            carry[0], unpack(batch, spaces.observation_size), key, count, spaces
        )
        full = agents.actor
        if algorithm.final_rate != 1:
            pace = 1 - (1 - algorithm.final_rate) * progress(training, step)
            agents = shorten(carry[0], agents, pace)
        if algorithm.common_constant and spaces.common:
            agents = blind(agents, spaces)
            if algorithm.common_rate != 1:
                actor = slow(carry[0].actor, full, agents.actor, algorithm.common_rate, spaces)
                agents = agents._replace(actor=actor)
        if algorithm.proximal:
            assert agents.anchor is not None
            actor = soft_update(agents.actor, agents.anchor, algorithm.proximal)
            agents = agents._replace(actor=actor)
        return agents, losses if algorithm.updates == 1 else latest_losses(carry[1], losses)

    nothing = Losses(*(jnp.zeros(learners) for _ in Losses._fields))
    learning = jnp.where(step >= algorithm.warmup_steps, algorithm.updates, 0)
    agents, losses = repeat(learning, update, (training.agents, nothing))
    losses = Losses(*(jnp.broadcast_to(loss, number) for loss in losses))
    finite = jnp.isfinite(transition.reward) & jnp.isfinite(losses.q)
    breaks = (training.broken_at == HEALTHY) & ~finite
    return Training(agents, rows, jnp.where(breaks, step, training.broken_at)), losses


def shorten(before: Agent, after: Agent, pace: Float[Array, ""]) -> Agent:
    """Steps of actor and critics cut to a share of their length, as a smaller rate would.

    A step of Adam is proportional to its rate, so no algorithm need know of the schedule. Targets
    have by then moved towards the whole step, and an entropy coefficient takes all of its own.
    """

    def cut(old: Network, new: Network) -> Network:
        return jax.tree.map(lambda o, n: o + pace * (n - o), old, new)

    return after._replace(
        actor=cut(before.actor, after.actor), critic=cut(before.critic, after.critic)
    )


def are_common(spaces: Spaces, outputs: int) -> Bool[np.ndarray, " output"]:
    """Which outputs of an actor set what all set together."""
    return np.isin(np.arange(outputs), spaces.common)


def blind(agents: Agent, spaces: Spaces) -> Agent:
    """Actors whose outputs for what all set together are their last biases, and nothing else."""

    def cut(network: Network) -> Network:
        *hidden, last = network
        weight = jnp.where(are_common(spaces, last.weight.shape[-1]), 0, last.weight)
        return (*hidden, last._replace(weight=weight))

    target = None if agents.target_actor is None else cut(agents.target_actor)
    return agents._replace(actor=cut(agents.actor), target_actor=target)


def slow(before: Network, full: Network, after: Network, rate: Number, spaces: Spaces) -> Network:
    """The actor ``after``, with a share of the full step in the biases of what all set together."""
    old, new = before[-1].bias, full[-1].bias
    *hidden, last = after
    bias = jnp.where(are_common(spaces, old.shape[-1]), old + rate * (new - old), last.bias)
    return (*hidden, last._replace(bias=bias))


def latest_losses(old: Losses, new: Losses) -> Losses:
    """The last losses that there were, and the last value."""

    def latest(old: Array, new: Array) -> Array:
        return jnp.where(jnp.isnan(new), old, new)

    return Losses(
        latest(old.critic_loss, new.critic_loss), latest(old.actor_loss, new.actor_loss), new.q
    )
