"""The client app: one region of a federation.

It holds no state: the region's :class:`Home` does, which stays from message to message.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedrain.errors import InputError
from fedrain.experiment.configuration import Configuration, Named
from fedrain.flower.messages import (
    ARRAYS,
    CONFIG,
    METRICS,
    Payload,
    from_arrays,
    read_configuration,
    reply_metrics,
    to_arrays,
)


@runtime_checkable
class Home(Protocol):
    """Where the agent of a region lives: its networks, its memory, its optimiser."""

    def train(self, region: int, payload: Payload | None, first: int, episodes: int) -> None:
        """Play a round from what was sent, or from where the agent is.

        It is idempotent: a round whose reply the server has lost is not played again.
        """

    def payload(self, region: int) -> Payload:
        """What the region has to send."""

    def history(self, region: int) -> dict[str, np.ndarray]:
        """What the region has done."""


#: Finds the home of an experiment's regions by the experiment and the id of the federation, which
#: differs between federations of one experiment.
FindHome = Callable[[Configuration, str], Home]


def make_client_app(find_home: FindHome, named: Named) -> ClientApp:
    """The app of all regions of a home; ``named`` is what may be taken from outside the package."""
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
        home = find_home(read_configuration(config, named), str(config["federation-id"]))
        payload = None
        if config["adopt"]:
            sent = message.content.array_records[ARRAYS]
            payload = from_arrays(sent, home.payload(region), "the server")
        first, episodes = (int(str(config[key])) for key in ("first-episode", "episodes"))
        home.train(region, payload, first, episodes)
        content = RecordDict(
            {
                ARRAYS: to_arrays(home.payload(region)),
                METRICS: reply_metrics(
                    region, home.history(region), episodes, getattr(home, "foreign", False)
                ),
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
