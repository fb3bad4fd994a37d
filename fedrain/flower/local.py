"""The engine ``local``: Flower's apps and strategy in one process, without a server.

Each region's client app hands in what it was sent and waits; the last one to come plays the round
for all, as one compiled program, so that a federation within a process costs what ``fedrain train``
does and gives the same bits.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid as FlowerGrid

from fedrain.experiment.checkpoint import Checkpoints
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.folder import Say
from fedrain.experiment.trainer import Trainer
from fedrain.experiment.training import CHECKPOINT_SECONDS
from fedrain.flower.client import make_client_app
from fedrain.flower.internals import FlowerRun, identify
from fedrain.flower.messages import Payload, adopt_all, take_payload
from fedrain.flower.server import Federation, Kept, make_server_app

#: Numbers that Flower wants: of the task, of its run, of the server, of the first region's node.
TASK, RUN, SERVER, FIRST_NODE = 1, 1, 1, 2
KEPT_BY_SERVER = "server/"  # before the names of what the server keeps

#: A client app, or what stands in for one.
Client = Callable[[Message, Context], Message]


class Fleet:
    """The home of all regions: the fused loop behind the client app.

    It saves the server's state in the same checkpoints as its own, so that neither is ever ahead.
    """

    def __init__(self, configuration: Configuration, out: Path, say: Say) -> None:
        self.configuration, self.say = configuration, say
        self.trainer = Trainer(configuration, configuration.make_environment())
        self._checkpoints = Checkpoints(out / "checkpoint", f"{configuration.identity}-local")
        self._saved = time.monotonic()
        self._server: Kept | None = None
        if (found := self._checkpoints.load(self.trainer.trainings)) is not None:
            self.trainer.restore(*found)
            history = self.trainer.history
            names = [name for name in history if name.startswith(KEPT_BY_SERVER)]
            arrays = {name.removeprefix(KEPT_BY_SERVER): history.pop(name) for name in names}
            self._server = arrays, json.loads(arrays.pop("note").tobytes())
        self.trainer.begin()
        self._received: dict[int, Payload | None] = {}
        self._episodes = 0
        self._failure: Exception | None = None
        self._barrier = threading.Barrier(configuration.agents, action=self._play)

    def train(self, region: int, payload: Payload | None, first: int, episodes: int) -> None:
        """Play a round along with all other regions, from what was sent, if anything was."""
        if first < self.trainer.episode:
            return  # played before; no reply could be used
        assert first == self.trainer.episode
        self._received[region] = payload
        self._episodes = episodes
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            if self._failure is None:
                raise
            raise self._failure from None

    def _play(self) -> None:
        try:
            self._play_round()
        except Exception as error:  # one region's thread plays for all: all say what it met
            self._failure = error
            raise

    def _play_round(self) -> None:
        sent = [self._received[region] for region in range(self.configuration.agents)]
        payloads = [payload for payload in sent if payload is not None]
        if payloads:
            adopt_all(self.trainer, payloads)
        for _ in range(self._episodes):
            self.trainer.play(synchronise=False)
            for message in self.trainer.newly_diverged():
                self.say(message)

    def save(self, arrays: dict[str, np.ndarray], note: dict[str, Any]) -> None:
        """Write a checkpoint of everything, if it is time to."""
        if time.monotonic() - self._saved > CHECKPOINT_SECONDS:
            text = np.frombuffer(json.dumps(note).encode(), np.uint8)
            kept = {f"{KEPT_BY_SERVER}{name}": array for name, array in arrays.items()}
            self.trainer.save(self._checkpoints, **kept, **{f"{KEPT_BY_SERVER}note": text})
            self._saved = time.monotonic()

    def load(self) -> Kept | None:
        """What the server had saved."""
        return self._server

    def remove(self) -> None:
        """The checkpoints of a federation that has finished."""
        self._checkpoints.remove()

    def payload(self, region: int) -> Payload:
        """What a region has to send."""
        return take_payload(self.trainer.trainings, region, self.trainer.sharing)

    def history(self, region: int) -> dict[str, np.ndarray]:
        """What a region has done: returns and losses of its own, and the time of all."""
        return {
            name: values[..., region] if values.ndim == 3 else values
            for name, values in self.trainer.history.items()
        }


class LocalNetwork(FlowerGrid):
    """A network whose nodes are calls of the client app, one thread for each region."""

    def __init__(self, app: Client, regions: int) -> None:
        self._app = app
        self._contexts = {
            FIRST_NODE + region: Context(
                RUN, FIRST_NODE + region, {"region": region}, RecordDict(), {}
            )
            for region in range(regions)
        }
        self._workers = ThreadPoolExecutor(regions)
        self._replies: dict[str, Message] = {}

    def set_run(self, run: FlowerRun) -> None:
        """There is only one."""

    @property
    def run(self) -> FlowerRun:
        """There is only one."""
        return FlowerRun.create_empty(RUN)

    def create_message(self, *_: object, **__: object) -> Message:
        """Messages are made by their own constructor."""
        raise NotImplementedError("use flwr.app.Message")

    def get_node_ids(self) -> Iterable[int]:
        """Every region's."""
        return list(self._contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Deliver, and keep the replies."""
        replies = self.send_and_receive(messages)
        self._replies |= {reply.metadata.reply_to_message_id: reply for reply in replies}
        return list(self._replies)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Replies that were kept."""
        return [self._replies.pop(name) for name in message_ids if name in self._replies]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Deliver all at once: regions of one climate wait for each other."""
        return list(self._workers.map(self._deliver, messages, timeout=timeout))

    def _deliver(self, message: Message) -> Message:
        return self._app(message, self._contexts[message.metadata.dst_node_id])


def run_local(federation: Federation, wrap: Callable[[ClientApp], Client] | None = None) -> None:
    """Play a whole federation. ``wrap`` puts something between the network and the client app."""
    configuration = federation.configuration
    fleet = Fleet(configuration, federation.out, federation.say)
    federation.store, federation.course = fleet, fleet.trainer.course
    app = make_client_app(lambda *_: fleet, configuration.named)
    serve(federation, LocalNetwork(app if wrap is None else wrap(app), configuration.agents))


def serve(federation: Federation, network: FlowerGrid) -> None:
    """Run the server app on a network of this process."""
    identify(TASK, RUN, SERVER)
    make_server_app(federation)(network, Context(RUN, SERVER, {}, RecordDict(), {}))
