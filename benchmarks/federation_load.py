"""What a federation costs as its regions grow: ``python benchmarks/federation_load.py``.

Few processes, many regions. Two things are loaded, each as it is on several machines:

- the shared climate, a process of its own behind gRPC and TLS, by every region's agent with a
  certificate of its own (threads of this process): requests a core-second of both ends, its memory;
- the server app with its strategy, by every region's client app (the engine ``local``): messages a
  core-second, what a message weighs, memory of this process.

Costs are processor time, which says the same on a machine that others use, too. Nothing is learnt
but what a round needs; the agents are small, so that the machinery shows.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from fedrain.experiment import configure
from fedrain.flower.climate import Episode
from fedrain.flower.coupling import RemoteClimate
from fedrain.flower.credentials import Credentials, make_credentials
from fedrain.flower.local import run_local
from fedrain.flower.messages import to_arrays
from fedrain.flower.programs import HERE, free_port
from fedrain.flower.running import prepare
from fedrain.flower.server import Federation, first_payload
from fedrain.tables import Table

PRESET = """
[ddpg]
learning_rate = 1e-3
tau = 0.02
batch_size = 16
width = 32
exploration_noise = 0.2
policy_frequency = 2
warmup_steps = 10
"""
MIB = 1024**2


def memory(pid):
    """Bytes of a process that are in memory, and not shared with others."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def core_seconds(pid):
    """Processor time of another process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load_climate(folder, regions, steps):
    """Core-seconds of a request to a climate over TLS, at its end and ours, and its memory."""
    keys, address = folder / "keys", f"{HERE}:{free_port()}"
    make_credentials(keys, regions)
    command = [sys.executable, "-m", "fedrain", "federate", "climate", "--agents", str(regions)]
    command += ["--episode-length", str(steps + 1), "--listen", address, "--until-input-ends"]
    command += ["--credentials", str(keys / "climate"), "--folder", str(folder / "climate")]
    climate = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    environment = configure(
        "ebm-v3", agents=regions, episode_length=steps + 1, preset=folder / "load.toml"
    ).make_environment()
    try:
        agents = [
            RemoteClimate(address, Credentials(keys / f"region-{r}"), lambda _: None)
            for r in range(regions)
        ]
        agents[0].check(environment)
        episode = Episode(0, 0, "load")
        actions = environment.static_actions

        def play(region):
            for step in range(steps):
                agents[region].step(region, episode, step, actions[region])

        with ThreadPoolExecutor(regions) as threads:
            list(threads.map(lambda r: agents[r].begin(r, episode), range(regions)))
            list(threads.map(lambda r: agents[r].step(r, episode, 0, actions[r]), range(regions)))
            before = core_seconds(climate.pid), time.process_time()
            list(threads.map(play, range(regions)))
            after = core_seconds(climate.pid), time.process_time()
        held = memory(climate.pid)
        for agent in agents:
            agent.close()
    finally:
        climate.stdin.close()
        climate.wait(30)
    requests = regions * (steps - 1)
    return (after[0] - before[0]) / requests, (after[1] - before[1]) / requests, held


def load_server(folder, regions, rounds):
    """Core-seconds of a message of the server app, its bytes, and memory."""
    configuration = configure(
        "ebm-v3", agents=regions, episodes=rounds + 1, sync_every=1, episode_length=10,
        preset=folder / "load.toml",
    )  # fmt: skip
    weight = sum(len(array.data) for array in to_arrays(first_payload(configuration)).values())
    before = memory(os.getpid())
    federation = Federation(configuration, folder / "run", False, lambda _: None)
    times, keep = [], federation._done

    def done(learnt, arrays):
        keep(learnt, arrays)
        times.append(time.process_time())

    federation._done = done
    run_local(federation)
    seconds = float(np.median(np.diff(times)))  # the first compiles
    return seconds / (2 * regions), weight, memory(os.getpid()) - before


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--regions", type=int, nargs="+", default=[2, 6, 24, 96])
    parser.add_argument("--steps", type=int, default=100, help="of the climate")
    parser.add_argument("--rounds", type=int, default=10, help="of the server")
    parser.add_argument("--one", type=int, help="one number of regions, in this process")
    options = parser.parse_args()
    if options.one is None:  # each in a process of its own, for the memory
        rows = []
        for number in options.regions:
            command = [sys.executable, __file__, "--one", str(number)]
            command += ["--steps", str(options.steps), "--rounds", str(options.rounds)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(done.stdout.splitlines()[-1].split("|"))
        header = [
            "regions", "climate: core-ms a request", "its agent: core-ms", "climate: MiB",
            "server: core-ms a message", "kB a message", "MiB a region",
        ]  # fmt: skip
        print(Table("", header, rows).markdown())
        return 0
    prepare()
    with tempfile.TemporaryDirectory() as name:
        folder, number = Path(name), options.one
        (folder / "load.toml").write_text(PRESET, encoding="utf-8")
        there, here, held = load_climate(folder, number, options.steps)
        message, weight, grown = load_server(folder, number, options.rounds)
        figures = (
            f"{number}", f"{1e3 * there:.2f}", f"{1e3 * here:.2f}", f"{held / MIB:.0f}",
            f"{1e3 * message:.1f}", f"{weight / 1000:.1f}", f"{grown / MIB / number:.1f}",
        )  # fmt: skip
        print("|".join(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
