"""Averages along the agent axis, as pure functions.

Only what is shared travels, the actor by default: critics, target networks, optimiser states and
replay stay with the agent.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fedrain.agents.algorithm import Agent
from fedrain.agents.networks import Layer, Network
from fedrain.errors import InputError


@dataclass(frozen=True)
class Sharing:
    """What the agents of a federation share, and how much each counts.

    ``layers`` names the layers of a network, from 0, that are averaged; the others stay personal.
    All are, if it is None. ``weights`` has a number for each agent; all count alike, if it is None.
    """

    critics: bool = False
    layers: tuple[int, ...] | None = None
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.weights is not None and (
            not np.isfinite(self.weights).all() or min(self.weights) < 0 or sum(self.weights) <= 0
        ):
            raise InputError("weights of agents are finite, not negative and not all zero")
        if self.layers is not None and not all(0 <= layer <= 2 for layer in self.layers):
            raise InputError("layers are numbered 0, 1 and 2")

    def check(self, agents: int) -> None:
        """Refuse weights that are not one for each agent."""
        if self.weights is not None and len(self.weights) != agents:
            raise InputError(f"{len(self.weights)} weights for {agents} agents")


def mean_network(network: Network, sharing: Sharing) -> Network:
    """The weighted mean over the agents, given back to each of them."""
    keep = range(len(network)) if sharing.layers is None else sharing.layers
    return tuple(
        Layer(*(_mean(leaf, sharing.weights) for leaf in layer)) if i in keep else layer
        for i, layer in enumerate(network)
    )


def _mean(
    leaf: Float[Array, "agent ..."], weights: tuple[float, ...] | None
) -> Float[Array, "agent ..."]:
    share = np.ones(len(leaf)) if weights is None else np.asarray(weights)
    mean = jnp.tensordot(jnp.asarray(share / share.sum(), leaf.dtype), leaf, axes=1)
    return jnp.broadcast_to(mean, leaf.shape)


def average(agents: Agent, sharing: Sharing, synchronise: Bool[Array, ""]) -> Agent:
    """Agents that go on from the average, if they are to; otherwise as they are."""

    def choose(new: Network, old: Network) -> Network:
        return jax.tree.map(lambda n, o: jnp.where(synchronise, n, o), new, old)

    agents = agents._replace(actor=choose(mean_network(agents.actor, sharing), agents.actor))
    if sharing.critics:
        critic = choose(mean_network(agents.critic, sharing), agents.critic)
        agents = agents._replace(critic=critic)
    return agents


def actor_distance(actor: Network) -> Float[Array, ""]:
    """Root mean square distance of the agents' actors from their mean, in weight space."""
    leaves = jax.tree.leaves(actor)
    total = sum(((leaf - leaf.mean(0)) ** 2).sum() for leaf in leaves)
    return jnp.sqrt(total / sum(leaf.size for leaf in leaves))
