"""Where the time of a training step goes, by JAX's profiler, on one thread.

Usage: ``NPROC=1 python benchmarks/profile_step.py ebm-v1 ddpg``
"""

import gzip
import json
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from fedrain.agents import load_algorithm
from fedrain.agents.step import start_training
from fedrain.envs import make
from fedrain.experiment.fused import run_episode
from fedrain.federation import Sharing

#: Pattern of an operation's name in the compiler's listing or of its origin, and what it is.
KINDS = (
    (r"^(while|cond|call|conditional)", None),  # contain others
    (r"ynn_fusion|^dot|bitcast_dot", "matrix products"),
    (r"^copy|transpose_copy", "copies"),
    (r"_uniform|_normal|threefry|erf_inv", "random numbers"),
    (r"jvp\(\)\)/while|branch_1_fun/while", "quantile sums"),
    (r"gather", "gather from memory"),
    (r"multiply_add|add_add", "Adam and moving targets"),
)


def main() -> None:
    """Trace one episode and add up its operations by kind."""
    name, algo = sys.argv[1:3]
    environment, algorithm = make(name), load_algorithm(algo, "paper")
    agents, seed = len(environment.regions), jnp.asarray(0, jnp.uint32)
    params = jax.tree.map(jnp.asarray, environment.params)
    training = start_training(algorithm, environment.spec, environment.regions, seed, 20_000)

    def play(episode: int) -> None:
        nonlocal training
        training, _ = jax.block_until_ready(run_episode(*arguments(episode)))

    def arguments(episode: int) -> tuple[Any, ...]:
        number, synchronise = jnp.asarray(episode), jnp.asarray(False)
        return environment, algorithm, Sharing(), params, training, seed, number, synchronise

    listing = run_episode.lower(*arguments(5)).compile().as_text() or ""
    origin = dict(re.findall(r'%?([\w.\-]+) = [^\n]*?op_name="([^"]*)"', listing))
    play(5)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            play(6)
        (path,) = Path(folder).rglob("*.trace.json.gz")
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    total: Counter[str] = Counter()
    for event in events:
        if event.get("ph") == "X" and "hlo_op" in event.get("args", {}):
            text = f"{event['name']} {origin.get(event['name'], '')}"
            kind = next((k for pattern, k in KINDS if re.search(pattern, text)), "the rest")
            if kind is not None:
                total[kind] += event["dur"]
    whole = sum(total.values())
    steps = environment.episode_length * agents
    print(f"{name} {algo}: {whole / steps / 1e3:.2f} ms an agent step")
    for kind, duration in total.most_common():
        print(f"{100 * duration / whole:5.1f} %  {kind}")


if __name__ == "__main__":
    main()
