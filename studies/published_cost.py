"""Measure what an agent step costs in the reference implementation (``benchmarks/peers.py``).

The core-milliseconds are stored as data of the package, for ``fedrain benchmark tables``. Usage, in
the environment that ``make bench-training`` makes:

    python studies/published_cost.py [--rounds N]
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import fedrain.paper
from fedrain.agents import load_algorithm
from fedrain.io import write_json
from fedrain.paper import cells
from fedrain.paper.published import cost_kind

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from peers import published
from training_speed import PEER_STEPS

STORED = Path(fedrain.paper.__file__).parent / "data" / "published_cost.json"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", default=5, type=int)
    options = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in sorted(set(map(cost_kind, cells())))}
    peers = {}
    for name in times:
        algo, latitudes = name.split()
        peers[name] = published(load_algorithm(algo, "paper"), int(latitudes))
    for _ in range(options.rounds):
        for name, train in peers.items():
            core = time.process_time()
            train(PEER_STEPS)
            times[name].append(1e3 * (time.process_time() - core) / PEER_STEPS)
    write_json(STORED, {name: statistics.median(found) for name, found in times.items()})
    print(STORED.read_text("utf-8"))


if __name__ == "__main__":
    main()
