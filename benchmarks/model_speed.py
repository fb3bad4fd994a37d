"""Speed of the energy balance model against climlab, as ratios measured in one run.

The compared things are timed in turn, round after round, and each ratio is the median over the
rounds: what else the machine does falls on all of them. Usage:

    python benchmarks/model_speed.py [--rounds N] [--json]
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fedrain.climate import EnergyBalanceModel, Grid, integrate
from fedrain.climate.models.climlab import import_climlab

STEPS = 200
SAMPLE = 0.1  # seconds that one sample is to take
LATITUDES = (96, 192, 384, 768)
BATCHES = (64, 256, 1024, 4096)


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Mean time of one call."""
    begin = time.perf_counter()
    for _ in range(repeats):
        jax.block_until_ready(work())
    return (time.perf_counter() - begin) / repeats


def climlab_step() -> Callable[[], object]:
    """Climlab's own step_forward, as anybody calls it."""
    model = import_climlab().EBM_annual(num_lat=96, D=0.6, a0=0.354, a2=0.25)
    return model.step_forward


def episode(latitudes: int, batch: int | None) -> Callable[[], jax.Array]:
    """A compiled trajectory of 200 steps, or a batch of them with parameters of their own."""
    model = EnergyBalanceModel(grid=Grid(latitudes))
    rng = np.random.default_rng(0)
    leading = () if batch is None else (batch,)
    parameters = {
        row.symbol: jnp.asarray(
            rng.uniform(row.low, row.high, (*leading, latitudes) if row.by_column else leading),
            jnp.float32,
        )
        for row in model.table
    }
    start = jnp.full((*leading, latitudes), 50.0)
    return lambda: integrate(model, start, parameters, STEPS)


def measure(rounds: int) -> dict[str, Any]:
    oracle = climlab_step()
    work: dict[str, tuple[Callable[[], object], int]] = {"climlab": (oracle, 1)}
    work["single"] = (episode(96, None), STEPS)
    for n in LATITUDES:
        work[f"latitudes {n}"] = (episode(n, None), STEPS)
        work[f"latitudes {n} x 64"] = (episode(n, 64), STEPS)
    for b in BATCHES:
        work[f"batch {b}"] = (episode(96, b), STEPS)
    repeats = {}
    for name, (function, _) in work.items():
        seconds(function, 1)  # compiles
        repeats[name] = max(1, round(SAMPLE / seconds(function, 1)))
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, (function, steps) in work.items():
            times[name].append(seconds(function, repeats[name]) / steps)

    def ratio(over: str, under: str) -> float:
        pairs = zip(times[over], times[under], strict=True)
        return statistics.median(a / b for a, b in pairs)

    return {
        "climlab_ms_per_step": 1e3 * statistics.median(times["climlab"]),
        "single_us_per_step": 1e6 * statistics.median(times["single"]),
        "batch_us_per_step_and_trajectory": 1e6 * statistics.median(times["batch 1024"]) / 1024,
        "single_times_climlab": ratio("climlab", "single"),
        "batch_times_climlab": 1024 * ratio("climlab", "batch 1024"),
        "latitudes": {
            n: {
                "single": ratio(f"latitudes {n}", "latitudes 96"),
                "batch of 64": ratio(f"latitudes {n} x 64", "latitudes 96 x 64"),
                "square": (n / 96) ** 2,
            }
            for n in LATITUDES
        },
        "batches": {
            b: {"cost": ratio(f"batch {b}", "batch 64"), "linear": b / 64} for b in BATCHES
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = measure(options.rounds)
    if options.json:
        print(json.dumps(result))
        return
    print(f"climlab step_forward        {result['climlab_ms_per_step']:8.2f} ms a step")
    print(
        f"one trajectory              {result['single_us_per_step']:8.2f} µs a step: "
        f"{result['single_times_climlab']:,.0f} times climlab"
    )
    print(
        f"1024 trajectories, for each {result['batch_us_per_step_and_trajectory']:8.2f} µs a step: "
        f"{result['batch_times_climlab']:,.0f} times climlab"
    )
    print("\ncost a step against latitudes, relative to 96")
    print("latitudes     single  batch of 64   square law")
    for n, row in result["latitudes"].items():
        print(f"{n:9d} {row['single']:10.1f} {row['batch of 64']:12.1f} {row['square']:12.0f}")
    print("\ncost a step against batch, relative to 64")
    print("batch           cost       linear")
    for b, row in result["batches"].items():
        print(f"{b:9d} {row['cost']:10.1f} {row['linear']:12.0f}")


if __name__ == "__main__":
    main()
