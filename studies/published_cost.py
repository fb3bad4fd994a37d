"""Measure what an agent step costs in the published way of working (``peers.py``).

The core-milliseconds are kept as data of the package, for ``fedrain benchmark tables``. Usage, in
the environment that ``make bench-training`` makes:

    python studies/published_cost.py [--rounds N]
"""

import argparse
import statistics
import time
from pathlib import Path

from peers import published
from training_speed import PEER_STEPS

import fedrain.paper
from fedrain.agents import load_algorithm
from fedrain.io import write_json
from fedrain.paper.cost import kind
from fedrain.paper.matrix import cells

KEPT = Path(fedrain.paper.__file__).parent / "data" / "published_cost.json"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", default=5, type=int)
    options = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in sorted({kind(cell) for cell in cells()})}
    ways = {}
    for name in times:
        algo, latitudes = name.split()
        ways[name] = published(load_algorithm(algo, "paper"), int(latitudes))
    for _ in range(options.rounds):
        for name, train in ways.items():
            core = time.process_time()
            train(PEER_STEPS)
            times[name].append(1e3 * (time.process_time() - core) / PEER_STEPS)
    write_json(KEPT, {name: statistics.median(found) for name, found in times.items()})
    print(KEPT.read_text("utf-8"))


if __name__ == "__main__":
    main()
