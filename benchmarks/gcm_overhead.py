"""Cost of learning in a general circulation model: agents, the bare model, and jcm's own run.

Core-seconds per simulated day of three programs, timed in turn in one process: the whole learning
loop of ``gcm-twin`` (one episode of one seed), the model with constant parameters, and jcm's own
``Model.run`` with means over a day. Needs the extra ``gcm``. Usage:

    python benchmarks/gcm_overhead.py [--rounds N] [--sharing shared|all]
"""

import argparse
import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

from fedrain.climate import integrate
from fedrain.climate.models.gcm_store import keep_compiled
from fedrain.experiment import configure
from fedrain.experiment.trainer import Trainer


def programs(sharing: str) -> tuple[dict[str, Callable[[], None]], int]:
    """Each compiled already, and the days that each simulates."""
    keep_compiled()
    experiment = configure(
        env="gcm-twin", preset="forecast", sharing=sharing, episodes=1000,
        settings={"warmup_steps": 30},
    )  # fmt: skip
    trainer = Trainer(experiment, experiment.make_environment())
    trainer.begin()
    model, days = trainer.environment.model, trainer.environment.episode_length
    static = {k: jnp.asarray(v, jnp.float32) for k, v in model.table.static(32).items()}
    start = model.init()
    jcm = model.machine.model
    jcm.run(total_time=days, save_interval=1, output_averages=True)

    def learn() -> None:
        trainer.play(synchronise=True)

    def bare() -> None:
        jax.block_until_ready(integrate(model, start, static, days))

    def own() -> None:
        jcm.resume(total_time=days, save_interval=1, output_averages=True)
        jax.block_until_ready(jcm.dycore_state)

    found = {"learning": learn, "bare model": bare, "jcm's own run": own}
    for program in (*found.values(), learn):  # once more, for after the random actions
        program()
    return found, days


def measure(rounds: int, sharing: str) -> dict[str, float]:
    """Core-seconds per simulated day, the median over the rounds."""
    found, days = programs(sharing)
    times: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(rounds):
        for name, program in found.items():
            begin = time.process_time()
            program()
            times[name].append((time.process_time() - begin) / days)
    return {name: statistics.median(every) for name, every in times.items()}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sharing", default="shared")
    options = parser.parse_args()
    found = measure(options.rounds, options.sharing)
    for name, seconds in found.items():
        print(f"{name:14s} {seconds:.4f} core-seconds a day, {1 / seconds:.1f} days a core-second")
    bare = found["bare model"]
    print(f"learning over bare model: {found['learning'] / bare:.2f} (bar: at most 1.25)")
    own = found["jcm's own run"]
    print(f"days per core-second, bare model over jcm: {own / bare:.2f} (bar: at least 0.9)")


if __name__ == "__main__":
    main()
