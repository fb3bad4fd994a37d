"""Train what is missing of the matrix, in one process or several; stop and resume at will.

Each cell is a run of its own, which resumes from its checkpoint. A process that works on a cell
holds a lock, which the operating system releases when the process dies, so that several processes
may share the matrix. What remains of a finished cell is one small NetCDF file.
"""

import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, redirect_stderr
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import xarray as xr

from fedrain.baselines import limit
from fedrain.envs import make
from fedrain.errors import FailureError, InputError
from fedrain.experiment import Configuration, train
from fedrain.experiment.cores import count_cores
from fedrain.experiment.folder import checkpoints_of
from fedrain.io import claim
from fedrain.paper.matrix import EPISODES, SEEDS, Cell
from fedrain.paper.results import REFERENCES, read_result, write_reference, write_result

Say = Callable[[str], None]

WARMUP_EPISODES, MEASURED_EPISODES = 5, 3


class Store:
    """Where results are kept, and where cells are trained meanwhile.

    Args:
        results: Folder of finished cells, one NetCDF file each.
        work: Folder of locks and of runs that are not finished.
        seeds: Seeds of each cell; fewer than the paper's ten are for tests.
        episodes: Episodes of each seed; fewer than the paper's 100 are for tests.

    Example:
        >>> store = Store("results/paper", "runs/benchmark")
        >>> store.read(cells("ebm-v1-ddpg-paper")[0]).sizes["seed"]
        10
    """

    def __init__(
        self,
        results: str | Path,
        work: str | Path,
        seeds: int = SEEDS,
        episodes: int = EPISODES,
    ) -> None:
        self.results, self.work = Path(results), Path(work)
        self.seeds, self.episodes = seeds, episodes

    def configuration(self, cell: Cell) -> Configuration:
        """The experiment to train."""
        return cell.configuration(self.seeds, self.episodes)

    def result(self, cell: Cell) -> Path:
        """The file of a finished cell."""
        return self.results / f"{cell.name}.nc"

    def read(self, cell: Cell) -> xr.Dataset | None:
        """The result of a cell; None if it is not finished, an error if the file is not valid."""
        path = self.result(cell)
        return read_result(path, self.configuration(cell)) if path.exists() else None

    def share_trained(self, cell: Cell) -> float:
        """Share of an unfinished cell's episodes that its checkpoint holds, from 0 to 1."""
        found = checkpoints_of(self.configuration(cell), self.work / cell.name)
        return found.episode / self.episodes

    def claim(self, name: str) -> AbstractContextManager[bool]:
        """Lock a file of the store; the context is False if another process holds the lock."""
        return claim(self.work / f"{name}.lock")

    def is_running(self, cell: Cell) -> bool:
        """Whether a process is working on a cell."""
        if not (self.work / f"{cell.name}.lock").exists():
            return False
        with self.claim(cell.name) as free:
            return not free


def make_references(store: Store, say: Say) -> None:
    """Compute the optimal control that cells are measured by, where it is missing.

    Args:
        store: Keeps it as ``limit-*.nc`` beside the cells. What another process is computing is
            left to that process.
        say: Called with a line of progress.
    """
    for name in REFERENCES:
        path = store.results / f"{name}.nc"
        with store.claim(name) as mine:
            if mine and not path.exists():
                say(f"{name}: begins")
                make_reference(name, path)


def make_reference(name: str, path: Path) -> None:
    """Compute one of the episodes under optimal control."""
    env, agents = REFERENCES[name]
    environment = make(env, agents=agents)
    write_reference(path, environment, limit(environment))


def run_missing(store: Store, matrix: list[Cell], say: Say) -> int:
    """Train, in this process, every cell that is missing and that no other process works on.

    A cell that another process gives up meanwhile is taken over. A cell that fails does not stop
    the others.

    Args:
        store: Where results go.
        matrix: The cells, in the order of training.
        say: Called with a line of progress.

    Returns:
        How many cells were trained.

    Raises:
        FailureError: At the end, if a cell failed.
    """
    done, failed = 0, list[str]()
    while True:
        before = done
        for cell in matrix:
            if cell.name in failed:
                continue
            try:
                done += train_cell(store, cell, say)
            except (InputError, FailureError) as error:
                failed.append(cell.name)
                say(f"{cell.name}: {error}")
        if done == before:
            break
    if failed:
        raise FailureError(f"{len(failed)} of {len(matrix)} cells failed: {', '.join(failed)}")
    return done


def train_cell(store: Store, cell: Cell, say: Say, progress: bool = True) -> bool:
    """Train a cell unless it is done or taken; whether it was trained."""
    with store.claim(cell.name) as mine:
        if not mine:
            return False
        folder = store.work / cell.name
        if store.read(cell) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            return False
        say(f"{cell.name}: begins")
        run = train(
            store.configuration(cell),
            folder,
            resume=True,
            say=say,
            figures=False,
            progress=progress,
        )
        write_result(store.result(cell), run)
        shutil.rmtree(folder)
        say(f"{cell.name}: finished")
        return True


def run_jobs(store: Store, matrix: list[Cell], jobs: int, say: Say) -> None:
    """Train what is missing, several cells at once.

    Args:
        store: Where results go.
        matrix: The cells, in the order of training.
        jobs: Processes, this one included; each trains one cell at a time.
        say: Called with a line of progress.

    Raises:
        FailureError: At the end, if a cell failed or a process died.
    """
    others = [
        multiprocessing.get_context("spawn").Process(target=_work, args=(store, matrix))
        for _ in range(jobs - 1)
    ]
    for process in others:
        process.start()
    try:
        run_missing(store, matrix, say)
    except FailureError:
        raise  # the others still train what they can
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
    """What each further process does, until its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it and ends this process
    Thread(target=_follow_parent, daemon=True).start()
    terminal = sys.stderr
    with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere):  # no mixed progress
        try:
            run_missing(store, matrix, lambda text: print(text, file=terminal, flush=True))
        except FailureError as error:
            print(error, file=terminal)
            sys.exit(1)


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def cores_used(cell: Cell, seeds: int = SEEDS) -> float:
    """Measure how many cores one cell keeps busy while it learns.

    Args:
        cell: Trained for a few episodes in a temporary folder.
        seeds: Seeds that are trained together.

    Returns:
        Processor time by wall-clock time: the highest of three episodes, since other work on the
        machine can only lower it.
    """
    configuration = cell.configuration(seeds, WARMUP_EPISODES + MEASURED_EPISODES)
    with tempfile.TemporaryDirectory() as folder:
        run = train(configuration, Path(folder) / "run", say=lambda _: None, figures=False)
        last = run.returns.isel(episode=slice(-MEASURED_EPISODES, None))
        return float((last.core_seconds / last.seconds).max())


def jobs_for(used: float) -> int:
    """How many cells to train at once so that they fill the cores of this machine.

    Args:
        used: Cores that one cell keeps busy, as :func:`cores_used` measures them.

    Returns:
        1 or more.
    """
    return max(1, round(count_cores() / max(used, 1.0)))


def status(store: Store, matrix: list[Cell]) -> list[dict[str, Any]]:
    """The state of each cell, and how long those that are not done will take.

    Times are extrapolated from the processor time of finished cells, since their wall-clock time
    may include other work: the median over those of the same algorithm, which a few cells trained
    by a slower version or machine do not move.

    Args:
        store: Where the cells are.
        matrix: Which to tell of.

    Returns:
        For each cell ``cell``, its name; ``state``, one of ``done``, ``running``, ``missing`` and
        ``damaged``; ``seconds``, the wall-clock time that it took, or None; and, unless it is done,
        ``expected_seconds``.
    """
    rows = []
    paces: dict[str, list[float]] = {}
    for cell in matrix:
        row: dict[str, Any] = {"cell": cell.name, "state": "missing", "seconds": None}
        try:
            data = store.read(cell)
        except InputError:
            row["state"] = "damaged"
        else:
            if data is not None:
                row |= {"state": "done", "seconds": float(data.seconds.sum())}
                pace = float(data.core_seconds.sum()) / cell.cost
                paces.setdefault(cell.algo, []).append(pace)
            elif store.is_running(cell):
                row["state"] = "running"
        rows.append(row)
    everywhere = [pace for found in paces.values() for pace in found] or [1.0]
    for cell, row in zip(matrix, rows, strict=True):
        if row["state"] != "done":
            pace = median(paces.get(cell.algo, everywhere))
            left = 1 - store.share_trained(cell)
            row["expected_seconds"] = left * pace * cell.cost / count_cores()
    return rows
