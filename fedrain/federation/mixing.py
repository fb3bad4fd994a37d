"""Averages along the agent axis, as pure functions.

An average is a matrix: row i says how much of each agent's network agent i starts again from. Only
what is shared travels, the actor by default: critics, target networks, optimiser states and replay
stay with the agent.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from fedrain.agents.agent import Agent
from fedrain.agents.networks import Layer, Network
from fedrain.errors import InputError, unknown

#: Who is averaged with whom.
SCHEMES = {
    "all": "all agents",
    "zones": "the agents of a 30° band",
    "neighbours": "each agent with its two neighbours, at half weight",
    "shared": "nobody: there is one network and one memory for all agents",
}
ZONES = 6


@dataclass(frozen=True)
class Sharing:
    """What the agents of a federation share, with whom, and how much each counts.

    ``layers`` names the layers of a network, from 0, that are averaged; the others stay personal.
    All are, if it is None. ``weights`` has a number for each agent; all count alike, if it is None.
    ``scheme`` is one of :data:`SCHEMES`.

    Args:
        critics: Whether the critics are averaged, too.
        layers: Which layers of a network, from 0.
        weights: A number for each agent.
        scheme: With whom: ``"all"``, ``"zones"``, ``"neighbours"``, ``"shared"``.
    """

    critics: bool = False
    layers: tuple[int, ...] | None = None
    weights: tuple[float, ...] | None = None
    scheme: str = "all"

    def __post_init__(self) -> None:
        if self.scheme not in SCHEMES:
            raise unknown("scheme of sharing", self.scheme, list(SCHEMES))
        if self.weights is not None and (
            not np.isfinite(self.weights).all() or min(self.weights) < 0 or sum(self.weights) <= 0
        ):
            raise InputError("weights of agents are finite, not negative and not all zero")
        if self.layers is not None and min(self.layers, default=0) < 0:
            raise InputError("layers are numbered from 0")

    def check(self, agents: int, layers: int) -> None:
        """Refuse what does not fit that many agents with networks of that many layers."""
        if self.weights is not None and len(self.weights) != agents:
            raise InputError(f"{len(self.weights)} weights for {agents} agents")
        if self.layers is not None and max(self.layers, default=0) >= layers:
            raise InputError(f"layers are numbered from 0 to {layers - 1}")
        if not np.isfinite(self.matrix(agents)).all():
            raise InputError("the weights leave an agent without others to average with")

    @property
    def one_policy(self) -> bool:
        """Whether there is one network for all agents, and nothing to average."""
        return self.scheme == "shared"

    def matrix(self, agents: int) -> Float[np.ndarray, "agent agent"]:
        """How much of each agent's network (column) an agent (row) starts again from."""
        place = np.arange(agents)
        zone = place * ZONES // agents
        near = {
            "zones": zone[:, None] == zone,
            "neighbours": np.maximum(1 - abs(place[:, None] - place) / 2, 0),
            "shared": np.eye(agents),
        }.get(self.scheme, np.ones((agents, agents)))
        share = near * (np.ones(agents) if self.weights is None else np.asarray(self.weights))
        with np.errstate(invalid="ignore"):
            return share / share.sum(axis=1, keepdims=True)


def mean_network(network: Network, sharing: Sharing) -> Network:
    """The weighted mean over the agents, given back to each of them.

    Args:
        network: Arrays with a leading axis of agents.
        sharing: What is averaged, and with whom.

    Returns:
        Arrays of the same shapes: for each agent its mean; layers that stay personal as they were.
    """
    keep = range(len(network)) if sharing.layers is None else sharing.layers
    return tuple(
        Layer(*(_mean(leaf, sharing) for leaf in layer)) if i in keep else layer
        for i, layer in enumerate(network)
    )


def _mean(leaf: Float[Array, "agent ..."], sharing: Sharing) -> Float[Array, "agent ..."]:
    matrix = sharing.matrix(len(leaf))
    if (matrix == matrix[0]).all():  # one mean for all, worked out once
        mean = jnp.tensordot(jnp.asarray(matrix[0], leaf.dtype), leaf, axes=1)
        return jnp.broadcast_to(mean, leaf.shape)
    return jnp.tensordot(jnp.asarray(matrix, leaf.dtype), leaf, axes=1)


def average(agents: Agent, sharing: Sharing, synchronise: Bool[Array, ""]) -> Agent:
    """Agents that start again from the average, if they are to; otherwise as they are.

    Args:
        agents: Of one seed, stacked: arrays with a leading axis of agents.
        sharing: What is averaged, and with whom.
        synchronise: Whether they are to be averaged now.

    Returns:
        Agents of the same shapes.
    """
    if sharing.one_policy:
        return agents

    def choose(new: Network, old: Network) -> Network:
        return jax.tree.map(lambda n, o: jnp.where(synchronise, n, o), new, old)

    given = agents.actor
    if agents.sent is not None:
        assert agents.prompt is not None
        given = jax.tree.map(partial(_of_now, agents.prompt), agents.actor, agents.sent)
        agents = agents._replace(sent=choose(agents.actor, agents.sent))
    agents = agents._replace(actor=choose(mean_network(given, sharing), agents.actor))
    if agents.anchor is not None:
        agents = agents._replace(anchor=choose(agents.actor, agents.anchor))
    if sharing.critics:
        critic = choose(mean_network(agents.critic, sharing), agents.critic)
        agents = agents._replace(critic=critic)
    return agents


def _of_now(prompt: Bool[Array, " agent"], new: Array, old: Array) -> Float[Array, "agent ..."]:
    """What goes into a stale average: of one agent what it has now, of the others what it was."""
    return jnp.where(prompt.reshape(-1, *(1,) * (new.ndim - 1)), new, old)


def actor_distance(actor: Network) -> Float[Array, ""]:
    """Root mean square distance of the agents' actors from their mean, in weight space.

    Args:
        actor: Arrays with a leading axis of agents.

    Returns:
        One number.
    """
    leaves = jax.tree.leaves(actor)
    total = sum(((leaf - leaf.mean(0)) ** 2).sum() for leaf in leaves)
    return jnp.sqrt(total / sum(leaf.size for leaf in leaves))
