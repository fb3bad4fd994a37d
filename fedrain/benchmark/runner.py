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
from typing import Any

import numpy as np
import xarray as xr

from fedrain.baselines import limit
from fedrain.baselines.records import sequence_dataset
from fedrain.benchmark.episode import REFERENCES, pack_episode
from fedrain.benchmark.matrix import EPISODES, SEEDS, Cell
from fedrain.envs import make
from fedrain.experiment import Run, train
from fedrain.experiment.cores import count_cores
from fedrain.experiment.storage import read_json
from fedrain.files import claim, write_dataset


class Store:
    """Where results are kept, and where cells are trained meanwhile."""

    def __init__(self, results: str | Path, work: str | Path) -> None:
        self.results, self.work = Path(results), Path(work)

    def result(self, cell: Cell) -> Path:
        """The file of a finished cell."""
        return self.results / f"{cell.name}.nc"

    def claim(self, cell: Cell) -> AbstractContextManager[bool]:
        """Whether this process may work on a cell; no other may until it is done, or dead."""
        return claim(self.work / f"{cell.name}.lock")

    def is_running(self, cell: Cell) -> bool:
        """Whether a process works on a cell."""
        if not (self.work / f"{cell.name}.lock").exists():
            return False
        with self.claim(cell) as free:
            return not free


def make_references(store: Store, say: Callable[[str], None]) -> None:
    """Work out the optimal control that is missing."""
    for name, (env, agents) in REFERENCES.items():
        path = store.results / f"{name}.nc"
        if not path.exists():
            say(f"{name}: begins")
            environment = make(env, agents=agents)
            sequence = sequence_dataset(environment, limit(environment))
            packed = pack_episode(sequence, environment.model.table)
            write_dataset(path, sequence.assign(packed))


def run_missing(
    store: Store,
    matrix: list[Cell],
    say: Callable[[str], None],
    seeds: int = SEEDS,
    episodes: int = EPISODES,
) -> int:
    """Train every cell that has no result and that no other process works on; how many."""
    done = 0
    for cell in matrix:
        with store.claim(cell) as mine:
            if not mine:
                continue
            if store.result(cell).exists():
                shutil.rmtree(store.work / cell.name, ignore_errors=True)
                continue
            say(f"{cell.name}: begins")
            configuration = cell.configuration(seeds, episodes)
            run = train(configuration, store.work / cell.name, resume=True, say=say)
            write_dataset(store.result(cell), summarise(run))
            shutil.rmtree(store.work / cell.name)
            done += 1
            say(f"{cell.name}: finished")
    return done


def status(store: Store, matrix: list[Cell]) -> list[dict[str, Any]]:
    """What is done, what runs, and how long the rest will take, by the cells that are done.

    Processor time is what tells: cells may have shared the cores with other work.
    """
    rows, done = [], []
    for cell in matrix:
        row: dict[str, Any] = {"cell": cell.name, "state": "missing", "seconds": None}
        if store.result(cell).exists():
            with xr.open_dataset(store.result(cell)) as data:
                row |= {"state": "done", "seconds": float(data.seconds.sum())}
                done.append((cell.cost, float(data.core_seconds.sum())))
        elif store.is_running(cell):
            row["state"] = "running"
        rows.append(row)
    if done:
        pace = sum(spent for _, spent in done) / sum(cost for cost, _ in done) / count_cores()
        for cell, row in zip(matrix, rows, strict=True):
            if row["state"] != "done":
                row["expected_seconds"] = pace * cell.cost
    return rows


def summarise(run: Run) -> xr.Dataset:
    """What is kept of a run: returns, skill, final profiles, and one episode of the mean agent."""
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
