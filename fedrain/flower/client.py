"""The client app: one region of a federation.

It holds no state: a :class:`Host` does, which stays from message to message.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedrain.errors import InputError
from fedrain.experiment.configuration import Configuration
from fedrain.flower.payload import Payload
from fedrain.flower.records import (
    ARRAYS,
    CONFIG,
    METRICS,
    from_arrays,
    read_configuration,
    reply_metrics,
    to_arrays,
)


@runtime_checkable
class Host(Protocol):
    """Where the agent of a region lives: its networks, its memory, its optimiser."""

    def train(self, region: int, payload: Payload | None, first: int, episodes: int) -> None:
        """Play a round from what was sent, or from where it is.

        A round that was played before, whose reply the server has lost, is not played again.
        """

    def payload(self, region: int) -> Payload:
        """What the region has to send."""

    def history(self, region: int) -> dict[str, np.ndarray]:
        """What the region has done."""


#: Where the regions of an experiment live. The name of the run differs from federation to
#: federation, also of one experiment.
FindHost = Callable[[Configuration, str], Host]


def make_client_app(find_host: FindHost) -> ClientApp:
    """The app of all regions that live at a host."""
    app = ClientApp()

    @app.query()
    def introduce(message: Message, context: Context) -> Message:
        """Say which region this is."""
        metrics = MetricRecord({"region": region_of(context)})
        return Message(content=RecordDict({METRICS: metrics}), reply_to=message)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        """Play the episodes of a round and send back what was learnt."""
        region = region_of(context)
        config = message.content.config_records[CONFIG]
        configuration = read_configuration(config)
        host = find_host(configuration, str(config["run"]))
        payload = None
        if config["adopt"]:
            sent = message.content.array_records[ARRAYS]
            payload = from_arrays(sent, host.payload(region), "the server")
        first, episodes = (int(str(config[key])) for key in ("first-episode", "episodes"))
        host.train(region, payload, first, episodes)
        content = RecordDict(
            {
                ARRAYS: to_arrays(host.payload(region)),
                METRICS: reply_metrics(region, host.history(region), episodes),
            }
        )
        return Message(content=content, reply_to=message)

    return app


def region_of(context: Context) -> int:
    """The region of the node that this runs on, by the node's configuration."""
    for key in ("region", "partition-id"):
        if key in context.node_config:
            return int(str(context.node_config[key]))
    raise InputError("this node has no region: start it with --node-config region=0, 1, …")
