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
from training_speed import PEER_STEPS

from fedrain.agents import load_algorithm
from fedrain.benchmark.matrix import EPISODE_STEPS, EPISODES, SEEDS, Cell, cells
from fedrain.benchmark.results import load_results
from fedrain.experiment.storage import read_json, write_json

KEPT = RESULTS / "published_cost.json"


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
            train(PEER_STEPS)
            times[f"{algo} {number}"].append(1e3 * (time.process_time() - core) / PEER_STEPS)
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

    def row(name: str, same: list[Cell]) -> list[str]:
        hours = sum(results[cell].hours for cell in same)
        here = sum(results[cell].core_hours for cell in same)
        there = sum(
            cell.agents * SEEDS * EPISODES * EPISODE_STEPS
            * published[f"{cell.algo} {latitudes(cell)}"] / 3.6e6
            for cell in same
        )  # fmt: skip
        figures = (f"{x:.1f}" for x in (hours, here, there, there / here))
        return [name, str(len(same)), *figures]

    done = sorted(results, key=lambda cell: (cell.algo, cell.env, cell.agents))
    groups = groupby(done, lambda cell: f"{cell.algo} {cell.env} a{cell.agents}")
    rows = [row(name, list(same)) for name, same in groups]
    rows.append(row("all", done))
    print(markdown(rows, ["", "cells", "hours", "core-hours", "published way", "times"]))


if __name__ == "__main__":
    main()
