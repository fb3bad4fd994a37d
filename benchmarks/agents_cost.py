"""Cost of a training step of ebm-v3 against the number of agents, and against the work in it.

One seed, DDPG of the ``paper`` preset, networks of the same width whatever the number of agents.
All numbers of agents are timed in turn, round after round. Usage:

    python benchmarks/agents_cost.py [--rounds N]
"""

import argparse
import statistics
import time

from training_speed import fused, update_work

from fedrain.agents import DDPG, load_algorithm
from fedrain.envs import make
from fedrain.experiment.cores import open_cores

AGENTS = (1, 2, 6, 12, 24, 48, 96)


def measure(rounds: int) -> dict[int, tuple[float, float]]:
    """Milliseconds a step, and millions of floating-point operations in it, by agents."""
    algorithm = load_algorithm("ddpg", "paper")
    assert isinstance(algorithm, DDPG)
    open_cores()  # before an environment sets JAX to work
    work, flops = {}, {}
    for agents in AGENTS:
        environment = make("ebm-v3", agents=agents)
        spec = environment.spec
        work[agents] = fused(environment, algorithm, seeds=1)
        flops[agents] = agents * update_work(algorithm, spec.observation_size, spec.action_size)
    times: dict[int, list[float]] = {agents: [] for agents in AGENTS}
    for _ in range(rounds):
        for agents in AGENTS:
            begin = time.perf_counter()
            steps = work[agents]() / agents
            times[agents].append((time.perf_counter() - begin) / steps)
    return {n: (1e3 * statistics.median(times[n]), 1e-6 * flops[n]) for n in AGENTS}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    result = measure(parser.parse_args().rounds)
    first_time, first_work = result[1]
    print("agents   ms a step   Mflop a step   time, relative   work, relative   Gflop/s")
    for agents, (duration, work) in result.items():
        print(
            f"{agents:6d} {duration:11.2f} {work:14.0f} {duration / first_time:16.2f} "
            f"{work / first_work:16.2f} {work / duration:9.1f}"
        )


if __name__ == "__main__":
    main()
