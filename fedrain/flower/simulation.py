"""The engine ``simulation``: Flower's own, on Ray.

Any of Ray's workers may get the next message for a region, so an agent lives on disk: it is written
after every round and read at the start of the next.
"""

import logging
import os
import shutil
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedrain.experiment.configuration import Configuration, references
from fedrain.experiment.cores import count_cores
from fedrain.flower.client import make_client_app
from fedrain.flower.climate import SharedClimate
from fedrain.flower.coupling import RemoteClimate, serve_climate
from fedrain.flower.messages import Payload
from fedrain.flower.programs import HERE
from fedrain.flower.region import RegionHome, keep_compiled
from fedrain.flower.server import Federation, make_server_app

PATIENCE = 600.0  # workers start one after the other


def run_simulation(federation: Federation) -> None:
    """Play a whole federation."""
    # Read as Ray is imported, here and in the workers.
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")
    import ray
    from flwr.simulation import run_simulation as simulate

    configuration = federation.configuration
    environment = configuration.make_environment()
    homes = (federation.out / "federation" / "homes").absolute()
    server, address = None, None
    if environment.shared_climate:
        climate = SharedClimate(environment, PATIENCE, federation.say)
        server, port = serve_climate(climate, f"{HERE}:0", None)
        address = f"{HERE}:{port}"
    # Agents of one climate wait for each other: there must be a worker for each at the same time.
    cores, agents = count_cores(), configuration.agents
    backend: dict[str, Any] = {
        "init_args": {"num_cpus": cores, "logging_level": logging.ERROR, "log_to_driver": False},
        "client_resources": {"num_cpus": cores / max(agents, cores), "num_gpus": 0.0},
    }
    # Workers are processes of their own: they import what is not of the package by its reference.
    app = make_client_app(partial(FromDisk, homes, address), references(configuration))
    try:
        with warnings.catch_warnings():
            # Ray starts its programs with fork and exec, which does no harm.
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
            simulate(make_server_app(federation), app, agents, backend_config=backend)
    except RuntimeError:
        if federation.failure is not None:  # Flower says that it failed, not why
            raise federation.failure from None
        raise
    finally:
        ray.shutdown()
        if server is not None:
            server.stop(grace=None)
    shutil.rmtree(homes)


class FromDisk:
    """The home of all regions, each read when it is asked for."""

    def __init__(
        self, folder: Path, climate: str | None, configuration: Configuration, federation_id: str
    ) -> None:
        keep_compiled(folder)
        self.configuration, self.federation_id, self.folder = configuration, federation_id, folder
        self.climate = None if climate is None else RemoteClimate(climate, None, lambda _: None)
        self._homes: dict[int, RegionHome] = {}

    def _home(self, region: int) -> RegionHome:
        if region not in self._homes:
            folder = self.folder / self.federation_id / str(region)
            self._homes[region] = RegionHome(
                self.configuration, region, folder, self.climate, self.federation_id, lambda _: None
            )
        return self._homes[region]

    def train(self, region: int, payload: Payload | None, first: int, episodes: int) -> None:
        """Play a round, once."""
        self._home(region).train(region, payload, first, episodes)

    def payload(self, region: int) -> Payload:
        """What the region has to send."""
        return self._home(region).payload(region)

    def history(self, region: int) -> dict[str, np.ndarray]:
        """What the region has done."""
        return self._home(region).history(region)
