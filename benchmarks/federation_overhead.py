"""What Flower's engines cost beside the training: a table for 2, 6 and 12 nodes.

Rounds of ebm-v2 with the networks of the ``paper`` preset, five steps long and before learning
starts, so that all that takes time is the exchange. Needs the extra ``simulation``. Usage:

    python benchmarks/federation_overhead.py [--engines local,deployment] [--nodes 2,6,12]
"""

import argparse
import logging
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from fedrain.experiment import configure
from fedrain.flower.deployment import run_whole
from fedrain.flower.local import run_local
from fedrain.flower.server import Federation
from fedrain.flower.simulation import run_simulation

ENGINES: dict[str, Callable[[Federation], None]] = {
    "local": run_local,
    "simulation": run_simulation,
    "deployment": run_whole,
}


class Timed(Federation):
    """Notes when every round has ended."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.ends: list[float] = []

    def _done(self, *arguments: Any) -> None:
        super()._done(*arguments)
        self.ends.append(time.perf_counter())


def measure(engine: str, nodes: int, rounds: int) -> tuple[float, float, float]:
    """Seconds until the first round has ended, milliseconds a round, seconds to stop."""
    configuration = configure(
        env="ebm-v2", agents=nodes, sync_every=1, episodes=rounds, episode_length=5, preset="paper"
    )
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        federation = Timed(
            configuration, Path(folder) / "run", False, lambda _: None, wait_seconds=600.0
        )
        ENGINES[engine](federation)
        end = time.perf_counter()
    ends = federation.ends
    gaps = [1e3 * (b - a) for a, b in pairwise(ends[1:])]
    training = 1e3 * statistics.median(federation.history["seconds"][2:])
    return ends[0] - begin, statistics.median(gaps) - training, end - ends[-1]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", default="local,simulation,deployment")
    parser.add_argument("--nodes", default="2,6,12")
    options = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    print("| engine | nodes | start, s | ms a round | stop, s |\n|---|---|---|---|---|", flush=True)
    for engine in options.engines.split(","):
        for nodes in map(int, options.nodes.split(",")):
            rounds = 32 if engine == "local" else 10
            start, each, stop = measure(engine, nodes, rounds)
            print(f"| {engine} | {nodes} | {start:.1f} | {each:.0f} | {stop:.1f} |", flush=True)


if __name__ == "__main__":
    main()
