"""What travels between a region and the server: the shared networks of all seeds, and numbers.

A payload is what our code works with; Flower's messages have its arrays by name.
"""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

from fedrain.agents import Agent
from fedrain.agents.networks import Network
from fedrain.agents.step import Training
from fedrain.errors import InputError
from fedrain.experiment.configuration import KINDS, Configuration, Named
from fedrain.experiment.outside import NO_EXPERIMENT
from fedrain.experiment.resolve import from_dict
from fedrain.experiment.trainer import Trainer
from fedrain.federation import Sharing, mean_network
from fedrain.io import flatten, unflatten
from fedrain.reading import parse_json

#: By name, ``actor`` and perhaps ``critic``; leaves have the leading axis seed.
Payload = dict[str, Network]

ARRAYS, CONFIG, METRICS = "arrays", "config", "metrics"
FOREIGN = "foreign"
WEIGHT = "num-examples"  # Flower's name of how much a reply counts
LOGGED = ("returns", "critic_loss", "actor_loss", "q", "seconds", "core_seconds")


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
    """Agents that continue from what was sent to each of them; personal layers stay."""
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
        networks["anchor"] = jax.tree.map(jnp.copy, networks["actor"])  # both are donated
    return training._replace(agents=agents._replace(**networks))


def adopt_all(trainer: Trainer, payloads: Sequence[Payload]) -> None:
    """Let every seed that has not diverged continue from what was sent to each of its agents."""
    trainer.trainings = [
        training if seed in trainer.diverged else adopt(training, seed, payloads, trainer.sharing)
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


def to_arrays(payload: Payload) -> ArrayRecord:
    """A payload as Flower sends it."""
    return ArrayRecord({name: Array(leaf) for name, leaf in flatten(payload).items()})


def from_arrays(arrays: ArrayRecord, like: Payload, sender: str) -> Payload:
    """The payload that was sent; one without the structure of ``like`` is refused."""
    if set(arrays) - set(flatten(like)):
        raise InputError(f"{sender}: has more than the networks that are shared")
    return unflatten(like, {name: array.numpy() for name, array in arrays.items()}, sender)


def round_config(
    configuration: Configuration, federation_id: str, first: int, episodes: int, adopt: bool
) -> ConfigRecord:
    """What a region receives with the weights."""
    return ConfigRecord(
        {
            "configuration": json.dumps(configuration.as_dict()),
            "federation-id": federation_id,
            "first-episode": first,
            "episodes": episodes,
            "adopt": adopt,
        }
    )


def read_configuration(config: ConfigRecord, named: Named) -> Configuration:
    """The experiment that a message belongs to.

    Nothing is imported on the sender's word: a model, task or algorithm from outside the package
    has to be among those that the person who started this node has named.
    """
    try:
        values = parse_json(str(config["configuration"]), "what was sent")
    except InputError as error:
        raise InputError(f"{NO_EXPERIMENT} ({error})") from None
    return from_dict(values, needed(values, named))


def needed(values: Any, named: Named) -> Named:
    """Of what was named, what an experiment takes from outside: a node may serve others, too."""
    if not isinstance(values, dict):
        raise InputError(NO_EXPERIMENT)
    taken = {
        kind: getattr(named, kind)
        for kind, registry in KINDS.items()
        if isinstance(stored := values.get(kind), str) and not registry.is_known(stored)
    }
    return Named(**taken)


def reply_metrics(
    region: int, history: dict[str, np.ndarray], episodes: int, foreign: bool = False
) -> MetricRecord:
    """What a region reports beside its weights: its last episodes, as flat lists.

    ``foreign`` says that it has learnt in a climate which is not known to be the experiment's.
    """
    numbers: dict[str, Any] = {"region": region, FOREIGN: int(foreign)}
    for name in LOGGED:
        numbers[name] = np.asarray(history[name][-episodes:], float).ravel().tolist()
    return MetricRecord(numbers)


def read_metrics(content: RecordDict) -> dict[str, np.ndarray]:
    """The episodes of a region: episode × seed, or episode alone for times."""
    metrics = content.metric_records[METRICS]
    found = {name: np.asarray(metrics[name], float) for name in LOGGED}
    for name in ("returns", "critic_loss", "actor_loss", "q"):
        found[name] = found[name].reshape(len(found["seconds"]), -1)
    return found


def claimed_region(message: Message) -> int | None:
    """The region that a reply says it is from; None if it does not say."""
    try:
        region = message.content.metric_records[METRICS]["region"]
    except (KeyError, ValueError):
        return None
    return region if isinstance(region, int) else None
