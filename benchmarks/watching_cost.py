"""What it costs a run to be watched, as ratios of processor time measured in one run.

Three processes train the same experiment: one that tells nobody, one that writes its progress, as
every run does, and one that serves the page as well (``--watch``), which is asked for once a second
all along. The rounds are taken in turn, so that what else the machine does falls on all. A ratio is
the median over the rounds, of the processor time of all threads of the process. Exit status 1: a
ratio is above 1.01. Usage:

    python benchmarks/watching_cost.py [--rounds N] [--seconds S]
"""

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from before_and_after import RANDOM_EPISODES, Ratio

LIMIT = 1.01
EPISODES = 80  # as of `make run`
WAYS = ("silent", "told", "watched")


def work(way: str) -> None:
    """Train episodes for as long as standard input says; processor seconds of an episode."""
    from fedrain.experiment import configure
    from fedrain.experiment.live import Live
    from fedrain.experiment.trainer import Trainer
    from fedrain.experiment.watching import Server

    configuration = configure(episodes=EPISODES)
    trainer = Trainer(configuration, configuration.make_environment())
    trainer.begin()
    folder = Path(tempfile.mkdtemp())
    live = Live(configuration, folder)
    live.hold_static()
    port = 0
    if way == "watched":
        server = Server(folder, 0)
        threading.Thread(target=server.serve_forever, args=(0.5,), daemon=True).start()
        port = server.server_port

    def play() -> None:
        if trainer.episode == EPISODES:  # the memory is full: fill it again
            trainer.episode = RANDOM_EPISODES
            trainer.history = {n: v[:RANDOM_EPISODES] for n, v in trainer.history.items()}
            trainer.course.episodes = trainer.course.episodes[:RANDOM_EPISODES]
            trainer.course.records = trainer.course.records[:RANDOM_EPISODES]
        trainer.play(configuration.averages_after(trainer.episode))
        if way != "silent":
            live.tell(trainer.episode, trainer.history, trainer.course)

    for _ in range(RANDOM_EPISODES + 1):
        play()
    print(json.dumps(port), flush=True)
    for line in sys.stdin:
        seconds, begin, core, played = float(line), time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - begin < seconds:
            play()
            played += 1
        print(json.dumps((time.process_time() - core) / played), flush=True)


def poll(port: int, over: threading.Event) -> None:
    """Ask as the page does."""
    while not over.wait(1.0):
        with suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/state.json")
            connection.getresponse().read()
            connection.close()


def main() -> None:
    """Measure, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a round")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work)
        return
    pipe, over = subprocess.PIPE, threading.Event()
    with ExitStack() as stack:
        processes: dict[str, Any] = {}
        for way in WAYS:
            command = [sys.executable, __file__, "--work", way]
            processes[way] = stack.enter_context(
                subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
            )
            port = json.loads(processes[way].stdout.readline())
        threading.Thread(target=poll, args=(port, over), daemon=True).start()
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for number in range(options.rounds):
            for way in WAYS[:: 1 if number % 2 else -1]:
                processes[way].stdin.write(f"{options.seconds}\n")
                processes[way].stdin.flush()
                found[way].append(json.loads(processes[way].stdout.readline()))
            told = "  ".join(f"{way} {found[way][-1]:.4f}" for way in WAYS)
            print(f"round {number + 1}: {told} s of processor an episode", flush=True)
        over.set()
        for process in processes.values():
            process.stdin.close()
    ratios = {way: Ratio.of(found["silent"], found[way]) for way in WAYS[1:]}
    for way, ratio in ratios.items():
        print(f"{way} / silent: {ratio.value:.4f} ± {ratio.scatter:.4f}")
    sys.exit(any(ratio.value > LIMIT for ratio in ratios.values()))


if __name__ == "__main__":
    main()
