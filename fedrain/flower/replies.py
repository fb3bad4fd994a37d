"""What regions send after a round, read with care: a peer may send anything."""

from collections.abc import Sequence
from functools import reduce
from operator import itemgetter
from typing import NamedTuple

import jax
import numpy as np
from flwr.app import Message, MetricRecord, RecordDict
from jaxtyping import Bool

from fedrain.flower.payload import Payload
from fedrain.flower.records import (
    ARRAYS,
    METRICS,
    WEIGHT,
    from_arrays,
    read_metrics,
    to_arrays,
)


class Reply(NamedTuple):
    """A reply that can be used."""

    message: Message
    payload: Payload
    metrics: dict[str, np.ndarray]
    weight: float
    whole: Bool[np.ndarray, " seed"]  # whether all numbers of a seed are finite


def read_reply(message: Message, like: Payload, episodes: int, weight: float) -> Reply | str:
    """A reply after that many episodes, or what is wrong with it."""
    try:
        payload = from_arrays(message.content.array_records[ARRAYS], like, "the reply")
        metrics = read_metrics(message.content)
    except Exception as error:
        why = str(error).partition("\n")[0] or type(error).__name__
        return f"it does not fit ({why})"
    whole = reduce(np.logical_and, map(_finite_seeds, jax.tree.leaves(payload)))
    if not whole.any():
        return "a number in it is not finite"
    expected = {(episodes,), (episodes, len(whole))}
    if {values.shape for values in metrics.values()} != expected:
        return "it tells of other episodes than those of the round"
    return Reply(message, payload, metrics, weight, whole)


def mend(replies: Sequence[Reply], sent: Payload) -> list[Reply]:
    """Replies in which a seed that has broken stands at the mean of the others.

    So it counts for nothing, whatever mean is taken. If it has broken everywhere, it is as sent.
    """
    whole = np.stack([reply.whole for reply in replies])
    weights = np.array([reply.weight for reply in replies])
    if whole.all():
        return list(replies)

    def fill(before: np.ndarray, *leaves: np.ndarray) -> np.ndarray:
        stack = np.stack(leaves)
        for seed in np.flatnonzero(~whole.all(axis=0)):
            sound = whole[:, seed] & (weights > 0)
            mean = before[seed]
            if sound.any():
                mean = np.average(stack[sound, seed], axis=0, weights=weights[sound])
            stack[~whole[:, seed], seed] = mean
        return stack

    filled = jax.tree.map(fill, sent, *(reply.payload for reply in replies))
    return [
        reply._replace(payload=jax.tree.map(itemgetter(region), filled))
        for region, reply in enumerate(replies)
    ]


def rewrite(reply: Reply) -> Message:
    """The reply with what Flower's strategies need, and nothing else that came with it."""
    metrics = MetricRecord({WEIGHT: reply.weight})
    reply.message.content = RecordDict({ARRAYS: to_arrays(reply.payload), METRICS: metrics})
    return reply.message


def step_length(reply: Reply, sent: Payload) -> float:
    """How far the seeds that have not broken are from what was sent."""
    steps = jax.tree.map(lambda new, old: (new - old)[reply.whole], reply.payload, sent)
    return size(steps)


def size(payload: Payload) -> float:
    """Root mean square of all numbers."""
    leaves = jax.tree.leaves(payload)
    total = sum(float(np.linalg.norm(leaf)) ** 2 for leaf in leaves)
    return float(np.sqrt(total / sum(leaf.size for leaf in leaves)))


def _finite_seeds(leaf: np.ndarray) -> Bool[np.ndarray, " seed"]:
    return np.asarray(np.isfinite(leaf).reshape(len(leaf), -1).all(axis=1))
