"""What travels between a region and the server: the networks that are shared, of all seeds."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedrain.agents import Agent
from fedrain.agents.networks import Network
from fedrain.agents.step import Training
from fedrain.experiment.trainer import Trainer
from fedrain.federation import Sharing, mean_network

#: By name, ``actor`` and perhaps ``critic``; leaves have the leading axis seed.
Payload = dict[str, Network]


def take_payload(trainings: Sequence[Training], position: int, sharing: Sharing) -> Payload:
    """What the agent at this position of a training has to send."""
    names = ("actor", "critic") if sharing.critics else ("actor",)

    def of_seed(agents: Agent) -> Payload:
        return {
            name: jax.tree.map(lambda leaf: np.asarray(leaf)[position], getattr(agents, name))
            for name in names
        }

    seeds = [of_seed(training.agents) for training in trainings]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *seeds)


def adopt(training: Training, seed: int, payloads: Sequence[Payload], sharing: Sharing) -> Training:
    """Agents that go on from what was sent to each of them; layers that are personal stay."""
    agents = training.agents
    networks: dict[str, Any] = {}
    for name in payloads[0]:
        sent = [jax.tree.map(lambda leaf: leaf[seed], payload[name]) for payload in payloads]
        stacked = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *sent)
        networks[name] = tuple(
            new if sharing.layers is None or layer in sharing.layers else old
            for layer, (new, old) in enumerate(zip(stacked, getattr(agents, name), strict=True))
        )
    if agents.anchor is not None:
        networks["anchor"] = jax.tree.map(jnp.copy, networks["actor"])  # both are given away
    return training._replace(agents=agents._replace(**networks))


def adopt_all(trainer: Trainer, payloads: Sequence[Payload]) -> None:
    """Let every seed that has not broken go on from what was sent to each of its agents."""
    trainer.trainings = [
        training if seed in trainer.broken else adopt(training, seed, payloads, trainer.sharing)
        for seed, training in enumerate(trainer.trainings)
    ]


def mean_payload(payloads: Sequence[Payload], weights: Sequence[float]) -> Payload:
    """The weighted mean, by the same function as in the fused loop."""
    share = None if len(set(weights)) == 1 else tuple(map(float, weights))
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *payloads)
    return {
        name: jax.tree.map(lambda leaf: np.asarray(leaf)[:, 0], _mean(network, share))
        for name, network in stacked.items()
    }


@partial(jax.jit, static_argnums=1)
def _mean(networks: Network, weights: tuple[float, ...] | None) -> Network:
    return jax.vmap(partial(mean_network, sharing=Sharing(weights=weights)))(networks)
