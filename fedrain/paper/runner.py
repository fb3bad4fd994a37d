"""Run what is missing of the matrix; stop and go on at will.

Each cell is a run of its own, which goes on from its checkpoint. While a process works on a cell
it holds a lock that the system lets go of when the process dies, so that several may work at once.
What remains of a finished cell is one small NetCDF file.
"""

import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import xarray as xr

from fedrain.baselines import limit
from fedrain.baselines.records import sequence_dataset
from fedrain.envs import make
from fedrain.errors import FailureError, InputError
from fedrain.experiment import Configuration, Run, train
from fedrain.experiment.cores import count_cores
from fedrain.experiment.training import checkpoints_of
from fedrain.io import claim, read_json, write_dataset
from fedrain.paper.episode import REFERENCES, pack_episode
from fedrain.paper.matrix import EPISODES, SEEDS, Cell
from fedrain.paper.results import read_result


class Store:
    """Where results are kept, and where cells are trained meanwhile."""

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
        """What is trained."""
        return cell.configuration(self.seeds, self.episodes)

    def result(self, cell: Cell) -> Path:
        """The file of a finished cell."""
        return self.results / f"{cell.name}.nc"

    def read(self, cell: Cell) -> xr.Dataset | None:
        """The result of a cell, if it is finished; an error if it is not that of this cell."""
        path = self.result(cell)
        return read_result(path, self.configuration(cell)) if path.exists() else None

    def share_trained(self, cell: Cell) -> float:
        """How much of a cell that is not finished has been trained, by its checkpoint."""
        found = checkpoints_of(self.configuration(cell), self.work / cell.name)
        return found.episode / self.episodes

    def claim(self, name: str) -> AbstractContextManager[bool]:
        """Whether this process may make something; no other may until it is done, or dead."""
        return claim(self.work / f"{name}.lock")

    def is_running(self, cell: Cell) -> bool:
        """Whether a process works on a cell."""
        if not (self.work / f"{cell.name}.lock").exists():
            return False
        with self.claim(cell.name) as free:
            return not free


def make_references(store: Store, say: Callable[[str], None]) -> None:
    """Work out the optimal control that is missing and that no other process works out."""
    for name, (env, agents) in REFERENCES.items():
        path = store.results / f"{name}.nc"
        with store.claim(name) as mine:
            if not mine or path.exists():
                continue
            say(f"{name}: begins")
            environment = make(env, agents=agents)
            sequence = sequence_dataset(environment, limit(environment))
            packed = pack_episode(sequence, environment.model.table)
            write_dataset(path, sequence.assign(packed))


def run_missing(store: Store, matrix: list[Cell], say: Callable[[str], None]) -> int:
    """Train every cell that has no result and that no other process works on; how many.

    What another process has let go of meanwhile is taken up. A cell that cannot be trained does not
    keep the others from it.
    """
    done, failed = 0, list[str]()
    while True:
        before = done
        for cell in matrix:
            if cell.name in failed:
                continue
            try:
                done += _run(store, cell, say)
            except (InputError, FailureError) as error:
                failed.append(cell.name)
                say(f"{cell.name}: {error}")
        if done == before:
            break
    if failed:
        raise FailureError(f"{len(failed)} of {len(matrix)} cells failed: {', '.join(failed)}")
    return done


def _run(store: Store, cell: Cell, say: Callable[[str], None]) -> bool:
    """Train a cell, unless it is done or another process is at it; whether it was trained."""
    with store.claim(cell.name) as mine:
        if not mine:
            return False
        folder = store.work / cell.name
        if store.read(cell) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            return False
        say(f"{cell.name}: begins")
        run = train(store.configuration(cell), folder, resume=True, say=say)
        write_dataset(store.result(cell), summarise(run))
        shutil.rmtree(folder)
        say(f"{cell.name}: finished")
        return True


def status(store: Store, matrix: list[Cell]) -> list[dict[str, Any]]:
    """What is done, what runs, and how long the rest will take, by the cells that are done.

    Processor time is what tells: cells may have shared the cores with other work. Of an algorithm's
    cells the middle one does, since a few may be of a slower version or machine.
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


def summarise(run: Run) -> xr.Dataset:
    """What is kept of a run: returns, skill, final profiles, and the mean episode of its seeds."""
    results, returns = run.results, run.returns
    episode = results.sel(policy="local").mean("seed", keep_attrs=True)
    note = "mean over the seeds, local policy, one episode without exploration"
    stored = read_json(run.folder / "configuration.json")
    kept = xr.Dataset(
        {
            "returns": returns.returns.astype(np.float32),
            "seconds": returns.seconds,
            "core_seconds": returns.core_seconds,
            "areawrmse": results.areawrmse,
            "areawrmse_global": results.areawrmse_global,
            "evaluation_return": results.returns,
            "final_temperature": results.surface_temperature.isel(step=-1, drop=True),
            "target": results.target,
        }
    )
    table = run.configuration.make_environment().model.table
    for name, values in pack_episode(episode, table).items():
        kept[f"episode_{name}"] = values.assign_attrs(comment=note)
    kept.attrs = {
        "Conventions": "CF-1.11",
        "title": f"FedRAIN benchmark {run.configuration.name}",
        "configuration": json.dumps({k: v for k, v in stored.items() if k != "versions"}),
        "versions": json.dumps(stored["versions"]),
    }
    return kept
