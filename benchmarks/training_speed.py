"""Speed of the fused training loop against peers, as ratios measured in one run.

Agent steps per core-second, all cores counted: processor time of the whole process, whatever the
number of threads. The compared things train in turn, round after round, and each figure is the
median over the rounds: what else the machine does falls on all of them. Usage:

    python benchmarks/training_speed.py [--rounds N] [--cells v1,v2,v3] [--algos ddpg,td3,tqc]
                                        [--peers sbx,stable-baselines3,published way] [--json]
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from fedrain.agents import DDPG, Algorithm, load_algorithm
from fedrain.agents.step import start_training
from fedrain.envs import Environment, make
from fedrain.experiment.cores import Cores, open_cores
from fedrain.experiment.fused import run_episode
from fedrain.federation import Sharing

CELLS = {"v1": ("ebm-v1", 1, 10), "v2": ("ebm-v2", 6, 2), "v3": ("ebm-v3", 6, 10)}
PEER_LATITUDES = {"v1": 96, "v2": 96, "v3": 16}
PEER_STEPS = 120  # of agents, six or one
FIRST_EPISODE = 5  # the first one that learns
SIZE = 2048  # of the matrices that give the machine's rate


def fused(environment: Environment, algorithm: Algorithm, seeds: int) -> Callable[[], int]:
    """Episodes of the fused loop on all cores; each call gives the number of agent steps."""
    agents = len(environment.regions)
    cores = Cores(agents)
    numbers = jnp.arange(seeds, dtype=jnp.uint32)
    params = jax.tree.map(jnp.asarray, environment.params)
    trainings = [
        cores.place(start_training(algorithm, environment.spec, environment.regions, n, 20_000))
        for n in numbers
    ]
    episode = FIRST_EPISODE

    def one(index: int) -> None:
        trainings[index], log = run_episode(
            environment,
            algorithm,
            Sharing(),
            params,
            trainings[index],
            numbers[index],
            jnp.asarray(episode),
            jnp.asarray(False),
        )
        log.returns.block_until_ready()

    def episodes() -> int:
        nonlocal episode
        cores.map(one, range(seeds))
        episode += 1
        return environment.episode_length * seeds * agents

    one(0)  # compiles
    return episodes


def matrix_rate() -> float:
    """Floating-point operations a second of a large float32 matrix product, on all cores."""
    square = jnp.ones((SIZE, SIZE))
    times = []
    for _ in range(6):
        begin = time.perf_counter()
        _product(square).block_until_ready()
        times.append(time.perf_counter() - begin)
    return 2 * SIZE**3 / statistics.median(times[1:])


_product = jax.jit(lambda x: x @ x)


def update_work(algorithm: DDPG, observation: int, action: int) -> float:
    """Floating-point operations of DDPG's matrix products in one step."""
    width, batch = algorithm.width, algorithm.batch_size
    pair = observation + action
    critic = pair * width + width * width + width
    actor = observation * width + width * width + width * action
    # Forward through both targets and the critic; back to every weight and hidden layer.
    critics = actor + 2 * critic + critic + (width * width + width)
    # Forward through actor and critic; back to the action, then to the actor's weights.
    policy = actor + critic + critic + actor + (width * width + width * action)
    return 2 * batch * (critics + policy / algorithm.policy_frequency)


def measure(
    rounds: int, cells: list[str], algorithms: list[str], peers: list[str]
) -> dict[str, Any]:
    """All cells, one after the other; within a cell all peers in turn."""
    open_cores()  # before an environment sets JAX to work
    result: dict[str, Any] = {}
    for cell in cells:
        name, agents, seeds = CELLS[cell]
        environment = make(name, agents=agents if agents > 1 else None)
        for algorithm_name in algorithms:
            algorithm = load_algorithm(algorithm_name, "paper")
            row = measure_cell(rounds, environment, algorithm, seeds, PEER_LATITUDES[cell], peers)
            result[f"{cell} {algorithm_name}"] = row
            show(cell, algorithm_name, row)
    return result


def measure_cell(
    rounds: int,
    environment: Environment,
    algorithm: Algorithm,
    seeds: int,
    latitudes: int,
    peers: list[str],
) -> dict[str, Any]:
    """Core-milliseconds a step of the fused loop and of each peer, and ratios."""
    ours = fused(environment, algorithm, seeds)
    others: dict[str, Callable[[int], object]] = {}
    if peers:
        from peers import PEERS

        others = {peer: PEERS[peer](algorithm, latitudes) for peer in peers}
    times: dict[str, list[float]] = {peer: [] for peer in ("fused", *others)}
    wall, shares = [], []
    work = 0.0
    if isinstance(algorithm, DDPG):
        spec = environment.spec
        work = update_work(algorithm, spec.observation_size, spec.action_size)
    for _ in range(rounds):
        rate = matrix_rate()
        begin, core = time.perf_counter(), time.process_time()
        steps = ours()
        wall.append((time.perf_counter() - begin) / steps)
        times["fused"].append((time.process_time() - core) / steps)
        shares.append(work / wall[-1] / ((rate + matrix_rate()) / 2))
        for peer, train in others.items():
            core = time.process_time()
            train(PEER_STEPS)
            times[peer].append((time.process_time() - core) / PEER_STEPS)
    row: dict[str, Any] = {
        "core_ms": {peer: 1e3 * statistics.median(t) for peer, t in times.items()},
        "wall_ms": 1e3 * statistics.median(wall),
        "times": {
            peer: statistics.median(t / f for t, f in zip(times[peer], times["fused"], strict=True))
            for peer in others
        },
    }
    if work:
        row["share_of_matrix_rate"] = statistics.median(shares)
    return row


def show(cell: str, algorithm: str, row: dict[str, Any]) -> None:
    """One line for people."""
    parts = [f"{cell} {algorithm:5s} fused {row['core_ms']['fused']:7.3f} core-ms an agent step"]
    parts += [
        f"{peer} {row['core_ms'][peer]:.2f} ({ratio:.1f} times)"
        for peer, ratio in row["times"].items()
    ]
    if "share_of_matrix_rate" in row:
        parts.append(f"{100 * row['share_of_matrix_rate']:.0f} % of the large-matrix rate")
    print("; ".join(parts), flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cells", default=",".join(CELLS))
    parser.add_argument("--algos", default="ddpg,td3,tqc")
    parser.add_argument("--peers", default="sbx,stable-baselines3,published way")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    peers = [peer for peer in options.peers.split(",") if peer]
    result = measure(options.rounds, options.cells.split(","), options.algos.split(","), peers)
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
