"""What the paper's whole benchmark costs here, and what the published way of working would need.

The former is the processor time that is stored with every cell. The latter is the processor time of
an agent step with climlab and PyTorch (``peers.py``), measured once and kept in
``benchmarks/results/published_cost.json``, times the steps of the same cells. Usage:

    python benchmarks/benchmark_cost.py [--results benchmark/results] [--rounds N] [--again]
"""

import argparse
import statistics
import time
from itertools import groupby
from pathlib import Path

from cells import RESULTS, markdown

from fedrain.agents import load_algorithm
from fedrain.benchmark.matrix import EPISODE_STEPS, EPISODES, SEEDS, Cell, cells
from fedrain.benchmark.results import load_results
from fedrain.experiment.storage import read_json, write_json

KEPT = RESULTS / "published_cost.json"
STEPS = 120  # of agents, in one measurement


def latitudes(cell: Cell) -> int:
    """How many an agent sees: all, unless it shares the climate with others."""
    return 96 // cell.agents if cell.env == "ebm-v3" else 96


def published_cost(rounds: int) -> dict[str, float]:
    """Core-milliseconds of an agent step, by algorithm and latitudes."""
    from peers import published

    kinds = sorted({(cell.algo, latitudes(cell)) for cell in cells()})
    ways = {kind: published(load_algorithm(kind[0], "paper"), kind[1]) for kind in kinds}
    times: dict[str, list[float]] = {f"{algo} {number}": [] for algo, number in kinds}
    for _ in range(rounds):
        for (algo, number), train in ways.items():
            core = time.process_time()
            train(STEPS)
            times[f"{algo} {number}"].append(1e3 * (time.process_time() - core) / STEPS)
    return {kind: statistics.median(found) for kind, found in times.items()}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", default=Path("benchmark/results"), type=Path)
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--again", action="store_true", help="measure the published way anew")
    options = parser.parse_args()
    if options.again or not KEPT.exists():
        write_json(KEPT, published_cost(options.rounds))
    published = read_json(KEPT)
    results = load_results(options.results)

    rows, sums = [], [0.0, 0.0, 0.0]
    done = sorted(results, key=lambda cell: (cell.algo, cell.env, cell.agents))
    for (algo, env, agents), group in groupby(done, lambda c: (c.algo, c.env, c.agents)):
        same = list(group)
        hours = sum(results[cell].hours for cell in same)
        here = sum(results[cell].core_hours for cell in same)
        steps = len(same) * agents * SEEDS * EPISODES * EPISODE_STEPS
        there = steps * published[f"{algo} {latitudes(same[0])}"] / 3.6e6
        sums = [a + b for a, b in zip(sums, (hours, here, there), strict=True)]
        rows.append([f"{algo} {env} a{agents}", str(len(same)), f"{hours:.1f}", f"{here:.1f}",
                     f"{there:.1f}", f"{there / here:.1f}"])  # fmt: skip
    hours, here, there = sums
    rows.append(["all", str(len(results)), f"{hours:.1f}", f"{here:.1f}", f"{there:.0f}",
                 f"{there / here:.1f}"])  # fmt: skip
    print(markdown(rows, ["", "cells", "hours", "core-hours", "published way", "times"]))


if __name__ == "__main__":
    main()
