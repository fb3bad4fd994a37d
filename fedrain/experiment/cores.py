"""How the work of a run is shared out among the cores.

Each core trains one seed at a time. With many agents the seeds take turns instead: each core takes
an equal part of the agents of one seed, and they meet at every step of the climate. Which it is
depends on the number of agents alone, so that a seed's result does not depend on other seeds.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from fedrain.agents.step import Training

Item = TypeVar("Item")
Result = TypeVar("Result")

#: With fewer agents on a core than this, meeting at every step costs more than it brings.
AGENTS_PER_CORE = 6


def open_cores() -> None:
    """Let JAX see every core as a device of its own.

    Without effect once JAX has started, or where its user has chosen a number of devices: then
    agents are not shared out.
    """
    if jax.config.values["jax_num_cpu_devices"] < 0:
        with suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", count_cores())


def count_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Cores:
    """The cores as one run uses them; its seeds in turn, if they have to be.

    Args:
        agents: Of one seed.
        in_turn: Whether one seed has to wait for the other.
        divide: Whether the agents of a seed may be shared out among cores.
    """

    def __init__(self, agents: int, in_turn: bool = False, divide: bool = True) -> None:
        devices = jax.local_devices()
        most = min(len(devices), agents // AGENTS_PER_CORE) if divide else 1
        #: Into how many parts the agents are divided.
        self.shares = max((n for n in range(1, most + 1) if agents % n == 0), default=1)
        self._sharding: NamedSharding | None = None
        if self.shares > 1:
            mesh = Mesh(np.array(devices[: self.shares]), ("agent",))
            self._sharding = NamedSharding(mesh, PartitionSpec("agent"))
        # Programs that run on several devices and wait for each other must not overlap.
        in_turn = in_turn or self.shares > 1
        self._workers = ThreadPoolExecutor(1 if in_turn else count_cores())

    def place(self, training: Training) -> Training:
        """Put the agents of a seed where they will be trained."""
        return training if self._sharding is None else jax.device_put(training, self._sharding)

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Work on all items, such as the seeds, and wait for the last."""
        return list(self._workers.map(function, items))
