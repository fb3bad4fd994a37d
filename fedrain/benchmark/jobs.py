"""How many cells are trained at once: as many as the cores can take, by measurement."""

import multiprocessing
import tempfile
from collections.abc import Callable
from pathlib import Path

from fedrain.benchmark.matrix import EPISODES, SEEDS, Cell, cells
from fedrain.benchmark.runner import Store, run_missing
from fedrain.experiment import train
from fedrain.experiment.cores import count_cores

Say = Callable[[str], None]

WARMUP_EPISODES, MEASURED_EPISODES = 5, 2


def cores_used(cell: Cell, seeds: int = SEEDS) -> float:
    """Cores that one cell keeps busy while it learns, measured over two episodes."""
    configuration = cell.configuration(seeds, WARMUP_EPISODES + MEASURED_EPISODES)
    with tempfile.TemporaryDirectory() as folder:
        run = train(configuration, Path(folder) / "run", say=_silence)
        last = run.returns.isel(episode=slice(-MEASURED_EPISODES, None))
        return float(last.core_seconds.sum() / last.seconds.sum())


def jobs_for(used: float) -> int:
    """As many cells at once as fill the cores, if each uses so many."""
    return max(1, round(count_cores() / max(used, 1.0)))


def run_jobs(
    store: Store,
    matrix: list[Cell],
    jobs: int,
    say: Say,
    seeds: int = SEEDS,
    episodes: int = EPISODES,
) -> None:
    """Train what is missing, so many cells at once, each in a process of its own."""
    others = [
        multiprocessing.get_context("spawn").Process(
            target=_work,
            args=(store.results, store.work, [cell.name for cell in matrix], seeds, episodes),
        )
        for _ in range(jobs - 1)
    ]
    for process in others:
        process.start()
    run_missing(store, matrix, say, seeds, episodes)
    for process in others:
        process.join()


def _work(results: Path, work: Path, names: list[str], seeds: int, episodes: int) -> None:
    matrix = [cell for cell in cells() if cell.name in names]
    run_missing(Store(results, work), matrix, _silence, seeds, episodes)


def _silence(_: str) -> None:
    """Several jobs would talk over each other: ``fedrain benchmark status`` tells."""
