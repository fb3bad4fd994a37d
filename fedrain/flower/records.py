"""Between our pytrees and Flower's records."""

import json
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

from fedrain.errors import InputError
from fedrain.experiment.configuration import Configuration, from_dict
from fedrain.flower.payload import Payload
from fedrain.io import flatten, unflatten

ARRAYS, CONFIG, METRICS = "arrays", "config", "metrics"
WEIGHT = "num-examples"  # Flower's name of how much a reply counts
LOGGED = ("returns", "critic_loss", "actor_loss", "q", "seconds", "core_seconds")


def to_arrays(payload: Payload) -> ArrayRecord:
    """What a region sends, by name."""
    return ArrayRecord({name: Array(leaf) for name, leaf in flatten(payload).items()})


def from_arrays(record: ArrayRecord, like: Payload, sender: str) -> Payload:
    """The same again; what does not fit is refused."""
    if set(record) - set(flatten(like)):
        raise InputError(f"{sender}: has more than the networks that are shared")
    return unflatten(like, {name: array.numpy() for name, array in record.items()}, sender)


def round_config(
    configuration: Configuration, run: str, first: int, episodes: int, adopt: bool
) -> ConfigRecord:
    """What a region is told beside the weights."""
    return ConfigRecord(
        {
            "configuration": json.dumps(configuration.as_dict()),
            "run": run,
            "first-episode": first,
            "episodes": episodes,
            "adopt": adopt,
        }
    )


def read_configuration(config: ConfigRecord) -> Configuration:
    """The experiment that a message belongs to."""
    return from_dict(json.loads(str(config["configuration"])))


def reply_metrics(region: int, history: dict[str, np.ndarray], episodes: int) -> MetricRecord:
    """What a region tells beside its weights: the last episodes, one number after the other."""
    numbers: dict[str, Any] = {"region": region}
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


def region_of(message: Message) -> int | None:
    """The region that a reply says it is from; None if it does not say."""
    try:
        region = message.content.metric_records[METRICS]["region"]
    except (KeyError, ValueError):
        return None
    return region if isinstance(region, int) else None
