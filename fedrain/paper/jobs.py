"""How many cells are trained at once: as many as the cores can take, by measurement."""

import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from threading import Thread

from fedrain.errors import FailureError
from fedrain.experiment import train
from fedrain.experiment.cores import count_cores
from fedrain.paper.matrix import SEEDS, Cell
from fedrain.paper.runner import Store, run_missing

Say = Callable[[str], None]

WARMUP_EPISODES, MEASURED_EPISODES = 5, 3


def cores_used(cell: Cell, seeds: int = SEEDS) -> float:
    """Cores that one cell keeps busy while it learns: the most of a few episodes.

    In the others it may have waited for other work.
    """
    configuration = cell.configuration(seeds, WARMUP_EPISODES + MEASURED_EPISODES)
    with tempfile.TemporaryDirectory() as folder:
        run = train(configuration, Path(folder) / "run", say=_silence)
        last = run.returns.isel(episode=slice(-MEASURED_EPISODES, None))
        return float((last.core_seconds / last.seconds).max())


def jobs_for(used: float) -> int:
    """As many cells at once as fill the cores, if each uses so many."""
    return max(1, round(count_cores() / max(used, 1.0)))


def run_jobs(store: Store, matrix: list[Cell], jobs: int, say: Say) -> None:
    """Train what is missing, so many cells at once, each in a process of its own."""
    others = [
        multiprocessing.get_context("spawn").Process(target=_work, args=(store, matrix))
        for _ in range(jobs - 1)
    ]
    for process in others:
        process.start()
    try:
        run_missing(store, matrix, say)
    except FailureError:
        raise  # the others go on to the end with what can be trained
    except BaseException:
        for process in others:
            process.terminate()
        raise
    finally:
        for process in others:
            process.join()
    if any(process.exitcode for process in others):
        raise FailureError("a process ended before its cells were done: run it again")


def _work(store: Store, matrix: list[Cell]) -> None:
    """What another process does, until its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which the parent hears, and ends this one
    Thread(target=_follow_parent, daemon=True).start()
    heard = sys.stderr
    with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere):  # no mixed progress
        try:
            run_missing(store, matrix, lambda text: print(text, file=heard, flush=True))
        except FailureError as error:
            print(error, file=heard)
            sys.exit(1)


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _silence(_: str) -> None:
    """A measurement has nothing to say."""
