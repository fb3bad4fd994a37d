"""Replay memory as pure functions: one row for each transition, appended and drawn at random.

It holds a whole run, so nothing is ever overwritten. Observation, action, reward and next
observation lie side by side in one row, so that a draw is one gather.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32


class Batch(NamedTuple):
    """Transitions (s, a, r, s'). No state is terminal, so there is no end to mark.

    Args:
        observation: s, ``[batch, obs]``.
        action: a, ``[batch, action]``.
        reward: r, ``[batch]``: transformed and shaped.
        next_observation: s', ``[batch, obs]``.
    """

    observation: Float[Array, "*batch obs"]
    action: Float[Array, "*batch action"]
    reward: Float[Array, "*batch"]
    next_observation: Float[Array, "*batch obs"]


def row_size(observation_size: int, action_size: int) -> int:
    """Numbers in one row."""
    return 2 * observation_size + action_size + 1


def pack(transition: Batch) -> Float[Array, "*batch row"]:
    """One row."""
    reward = transition.reward[..., None]
    parts = (transition.observation, transition.action, reward, transition.next_observation)
    return jnp.concatenate(parts, axis=-1)


def unpack(rows: Float[Array, "*batch row"], observation_size: int) -> Batch:
    """The transitions of rows."""
    size = observation_size
    return Batch(
        rows[..., :size], rows[..., size : -size - 1], rows[..., -size - 1], rows[..., -size:]
    )


def take(
    rows: Float[Array, "agent capacity row"],
    bits: UInt32[Array, "agent batch"],
    filled: Int[Array, ""],
    last: int = 0,
) -> Float[Array, "agent batch row"]:
    """A random choice, with replacement, of the first ``filled`` rows of every agent.

    Where ``last`` is given, of that many of them at most, the latest.
    """
    index = bits % (jnp.minimum(filled, last) if last else filled).astype(bits.dtype)
    if last:
        index = index + jnp.maximum(filled - last, 0).astype(bits.dtype)
    return jax.vmap(lambda r, i: r.at[i].get(mode="promise_in_bounds"))(rows, index)
