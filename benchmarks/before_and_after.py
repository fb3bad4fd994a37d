"""Speed of training at two commits, as ratios measured in one run.

Each version runs in a process of its own, with the same interpreter and packages: it compiles once,
plays past its random first steps, and then plays some episodes whenever it is asked to. The rounds
are taken in turn (before, now; now, before; …), so that what else the machine does falls on both.
A ratio is the median over the rounds of now / before. It is taken of wall clock and of processor
time, and a cell is judged by the one that scatters less, which a star marks. Exit status 1: a ratio
is above 1.05. Usage:

    python benchmarks/before_and_after.py [--before COMMIT] [--now COMMIT] [--rounds N]
                                          [--cells PATTERN] [--seeds N] [--whole]

``--whole`` times the whole command that ``make run`` runs, from its start to its last figure.
"""

import argparse
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BEFORE = "ff4f8ba"  # before the rooms were rebuilt
ENVIRONMENTS = {"ebm-v1": None, "ebm-v2-a6": 6, "ebm-v3-a6": 6}
CELLS = [f"{env}-{algo}" for env in ENVIRONMENTS for algo in ("ddpg", "td3", "tqc")]
RANDOM_EPISODES = 5  # a thousand random steps
EPISODES = 60  # that the memory has room for
ROUND_SECONDS = 1.0  # that a round takes at least
LIMIT = 1.05
COLUMNS = "{:16s} {:>9s} {:>9s} {:>15s}   {:>9s} {:>9s} {:>15s}   {:>8s} {:>8s}"


class Times(NamedTuple):
    """Seconds of one round."""

    wall: float
    core: float  # of the processor, all cores counted


Round = Callable[[int], Times]  # of so many episodes


class Ratio(NamedTuple):
    """Now / before: the median over the rounds, and the scatter of one round's about it."""

    value: float
    scatter: float

    @classmethod
    def of(cls, before: list[float], now: list[float]) -> "Ratio":
        """Of the rounds, pair by pair."""
        ratios = [b / a for a, b in zip(before, now, strict=True)]
        value = statistics.median(ratios)
        return cls(value, statistics.median(abs(r - value) for r in ratios))


# ------------------------------------------------------------------------- one version of the code


def work(cell: str, seeds: int) -> None:
    """Play episodes as often as standard input asks for some, in whatever version is imported."""
    from fedrain.experiment import configure
    from fedrain.experiment.trainer import Trainer

    env, _, algo = cell.rpartition("-")
    configuration = configure(
        env=env.removesuffix("-a6"),
        agents=ENVIRONMENTS[env],
        algo=algo,
        preset="paper",
        seeds=seeds,
        episodes=EPISODES,
    )
    begin = time.perf_counter()
    trainer = Trainer(configuration, configuration.make_environment())
    trainer.begin()
    trainer.play(False)
    compilation = time.perf_counter() - begin
    for _ in range(RANDOM_EPISODES):
        trainer.play(False)
    print(json.dumps(compilation), flush=True)
    for line in sys.stdin:
        begin, core = time.perf_counter(), time.process_time()
        for _ in range(int(line)):
            if trainer.episode == EPISODES:  # the memory is full: fill it again
                trainer.episode = RANDOM_EPISODES
            trainer.play(False)
        took = Times(time.perf_counter() - begin, time.process_time() - core)
        print(json.dumps(took), flush=True)


@contextmanager
def worker(source: Path, cell: str, seeds: int) -> Iterator[tuple[Round, float]]:
    """A process that plays episodes of a cell, and the seconds that it took to compile."""
    command = [sys.executable, __file__, "--work", cell, "--seeds", str(seeds)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, env=using(source)
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def answer() -> str:
            assert process.stdout is not None
            if not (line := process.stdout.readline()):
                sys.exit(f"{cell}: {source} stopped with status {process.wait()}")
            return line

        def play(episodes: int) -> Times:
            assert process.stdin is not None
            print(episodes, file=process.stdin, flush=True)
            return Times(*json.loads(answer()))

        yield play, json.loads(answer())


def using(source: Path) -> dict[str, str]:
    """The environment of a process that imports the package from a folder."""
    return {**os.environ, "PYTHONPATH": str(source), "JAX_PLATFORMS": "cpu"}


def unpack(commit: str, folder: Path) -> Path:
    """The package as it was at a commit, or, if none is named, as it is in the working tree.

    That is copied, too: it may be edited while the comparison runs.
    """
    if not commit:
        no_caches = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "fedrain", folder / "fedrain", ignore=no_caches)
        return folder
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", commit, "fedrain"]
    archive = subprocess.run(command, capture_output=True)
    if archive.returncode:
        print(f"{commit}: {archive.stderr.decode().strip()}", file=sys.stderr)
        sys.exit(2)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
        packed.extractall(folder, filter="data")
    return folder


# ------------------------------------------------------------------------- the comparison


def in_turn(
    before: Round, now: Round, rounds: int, episodes: int
) -> tuple[list[Times], list[Times]]:
    """The times of both, taken in turn, each as often the first as the other."""
    times: tuple[list[Times], list[Times]] = ([], [])
    for number in range(rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            times[which].append((before, now)[which](episodes))
    return times


def compare(
    name: str,
    before: list[Times],
    now: list[Times],
    compilation: tuple[str, str] = ("", ""),
    episodes: int = 1,
) -> bool:
    """Print a line, of the seconds of one episode; whether now is slower than it may be."""
    ratios, texts = [], []
    for part in range(2):
        first, second = [t[part] / episodes for t in before], [t[part] / episodes for t in now]
        ratios.append(Ratio.of(first, second))
        texts.append([f"{statistics.median(first):.3f}", f"{statistics.median(second):.3f}"])
    judge = min((0, 1), key=lambda part: ratios[part].scatter)
    for part, (value, scatter) in enumerate(ratios):
        texts[part].append(f"{value:.3f} ± {scatter:.3f}{'*' if part == judge else ' '}")
    print(COLUMNS.format(name, *texts[0], *texts[1], *compilation), flush=True)
    return ratios[judge].value > LIMIT


def compare_cell(cell: str, sources: tuple[Path, Path], rounds: int, seeds: int) -> bool:
    """Both versions of one cell; whether now is slower than it may be."""
    with ExitStack() as stack:
        pair = [stack.enter_context(worker(source, cell, seeds)) for source in sources]
        (before, first), (now, second) = pair
        now(1)
        episodes = max(1, round(ROUND_SECONDS / before(1).wall + 0.5))
        times = in_turn(before, now, rounds, episodes)
    return compare(cell, *times, (f"{first:.1f}", f"{second:.1f}"), episodes)


def whole(source: Path) -> Round:
    """The command that ``make run`` runs, in a process of its own."""

    def run(_: int) -> Times:
        with tempfile.TemporaryDirectory() as folder:
            options = ["train", "--episodes", "80", "--out", str(Path(folder) / "run")]
            begin = time.perf_counter()
            process = subprocess.Popen(
                [sys.executable, "-m", "fedrain", *options],
                stdout=subprocess.DEVNULL,
                env=using(source),
                cwd=folder,
            )
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                sys.exit(f"fedrain train: {source} stopped with status {process.returncode}")
            return Times(time.perf_counter() - begin, used.ru_utime + used.ru_stime)

    return run


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--before", metavar="COMMIT", default=BEFORE, help=f"default {BEFORE}")
    parser.add_argument("--now", metavar="COMMIT", default="", help="default: the working tree")
    parser.add_argument("--rounds", metavar="N", type=int, default=12)
    parser.add_argument("--cells", metavar="PATTERN", default="*", help="such as 'ebm-v1-*'")
    parser.add_argument("--seeds", metavar="N", type=int, default=1)
    parser.add_argument("--whole", action="store_true", help="the command of make run instead")
    parser.add_argument("--work", metavar="CELL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.seeds)
        return 0
    cells = [cell for cell in CELLS if fnmatch(cell, options.cells)]
    if not cells:
        parser.error(f"no cell is called {options.cells!r}; there are {', '.join(CELLS)}")
    if min(options.rounds, options.seeds) < 1:
        parser.error("rounds and seeds are integers from 1")
    with tempfile.TemporaryDirectory() as folder:
        sources = (
            unpack(options.before, Path(folder) / "before"),
            unpack(options.now, Path(folder) / "now"),
        )
        what = "the command" if options.whole else "an episode"
        heads = f"wall clock, s {what}", f"processor, s {what}"
        print(f"{'':16s} {heads[0]:35s}   {heads[1]:35s}   compile, s", flush=True)
        print(COLUMNS.format("", *["before", "now", "now / before "] * 2, "before", "now"))
        if options.whole:
            times = in_turn(whole(sources[0]), whole(sources[1]), options.rounds, 1)
            return int(compare("fedrain train", *times))
        slower = [c for c in cells if compare_cell(c, sources, options.rounds, options.seeds)]
    if slower:
        print(f"slower by more than {LIMIT - 1:.0%}: {', '.join(slower)}")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
