"""All regions in one process: the fused loop behind the client app.

Each region's client app hands in what it was sent and waits; the last one to come plays the round
for all, as one compiled program, so that a federation within a process costs what ``fedrain train``
does and gives the same bits.
"""

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from fedrain.experiment.checkpoint import Checkpoints
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.trainer import Trainer
from fedrain.experiment.training import CHECKPOINT_SECONDS, Say, identity
from fedrain.flower.payload import Payload, adopt_all, take_payload
from fedrain.flower.server import Kept

SERVER = "server/"  # before the names of what the server keeps


class Fleet:
    """The agents of every region and seed, round by round.

    It keeps what the server has to keep along with its own, as one: neither is ever ahead.
    """

    def __init__(self, configuration: Configuration, out: Path, say: Say) -> None:
        self.configuration, self.say = configuration, say
        self.trainer = Trainer(configuration, configuration.make_environment())
        self._checkpoints = Checkpoints(out / "checkpoint", f"{identity(configuration)}-local")
        self._saved = time.monotonic()
        self._server: Kept | None = None
        if (found := self._checkpoints.load(self.trainer.trainings)) is not None:
            self.trainer.restore(*found)
            history = self.trainer.history
            names = [name for name in history if name.startswith(SERVER)]
            arrays = {name.removeprefix(SERVER): history.pop(name) for name in names}
            self._server = arrays, json.loads(arrays.pop("note").tobytes())
        self.trainer.begin()
        self._received: dict[int, Payload | None] = {}
        self._episodes = 0
        self._barrier = threading.Barrier(configuration.agents, action=self._play)

    def train(self, region: int, payload: Payload | None, first: int, episodes: int) -> None:
        """Play a round along with all other regions, from what was sent, if anything was."""
        assert first == self.trainer.episode
        self._received[region] = payload
        self._episodes = episodes
        self._barrier.wait()

    def _play(self) -> None:
        sent = [self._received[region] for region in range(self.configuration.agents)]
        payloads = [payload for payload in sent if payload is not None]
        if payloads:
            adopt_all(self.trainer, payloads)
        for _ in range(self._episodes):
            self.trainer.play(synchronise=False)
            for message in self.trainer.newly_broken():
                self.say(message)

    def save(self, arrays: dict[str, np.ndarray], note: dict[str, Any]) -> None:
        """Keep everything, if it is time to."""
        if time.monotonic() - self._saved > CHECKPOINT_SECONDS:
            text = np.frombuffer(json.dumps(note).encode(), np.uint8)
            kept = {f"{SERVER}{name}": array for name, array in arrays.items()}
            self.trainer.save(self._checkpoints, **kept, **{f"{SERVER}note": text})
            self._saved = time.monotonic()

    def load(self) -> Kept | None:
        """What the server had kept."""
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
