"""Several cells at once, and processes that are killed."""

import multiprocessing
import random
import subprocess
import sys
import time

import pytest
import xarray as xr

from fedrain.cli import main
from fedrain.errors import FailureError
from fedrain.experiment.cores import count_cores
from fedrain.paper import Store, cells
from fedrain.paper.jobs import jobs_for, run_jobs

PATTERN = "ebm-v3-a2-fed??-td3-paper"
RUN = f"""
import sys
from fedrain.paper import Store, cells, run_missing
from fedrain.experiment import training
training.CHECKPOINT_SECONDS = 0.0
run_missing(Store(*sys.argv[1:], seeds=2, episodes=20), cells("{PATTERN}"), print)
"""
TIMES = ["seconds", "core_seconds"]


def test_as_many_jobs_as_fill_the_cores():
    assert jobs_for(float(count_cores())) == 1
    assert jobs_for(count_cores() / 3) == min(count_cores(), 3)
    assert jobs_for(0.0) == count_cores()


def test_bad_number_of_jobs(capsys, tmp_path):
    assert main(["benchmark", "run", "--jobs", "0", "--results", str(tmp_path)]) == 2
    assert "--jobs" in capsys.readouterr().err


def start(store):
    command = [sys.executable, "-c", RUN, str(store.results), str(store.work)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.slow
def test_killed_at_random_and_two_at_once(tmp_path):
    """The same bits as a run that was left alone; no finished cell is made again."""
    matrix = cells(PATTERN)
    alone, killed = (Store(tmp_path / name / "r", tmp_path / name / "w") for name in "ab")
    begin = time.monotonic()
    assert start(alone).wait() == 0
    whole = time.monotonic() - begin
    made: dict[str, int] = {}
    moment = random.Random(3)
    killed_in_the_middle = 0
    for _ in range(100):
        processes = [start(killed), start(killed)]
        time.sleep(moment.uniform(0.2, 0.9) * whole)
        killed_in_the_middle += sum(process.poll() is None for process in processes)
        for process in processes:
            process.kill()
            process.wait()
        for cell in matrix:
            path = killed.result(cell)
            if path.exists():
                assert (
                    made.setdefault(cell.name, path.stat().st_mtime_ns) == path.stat().st_mtime_ns
                )
        if len(made) == len(matrix):
            break
    assert len(made) == len(matrix)
    assert killed_in_the_middle >= 2
    for cell in matrix:
        ours, theirs = (xr.load_dataset(s.result(cell)).drop_vars(TIMES) for s in (alone, killed))
        xr.testing.assert_identical(ours, theirs)


@pytest.mark.slow
def test_two_jobs_one_of_which_fails(tmp_path):
    """All that can be trained is, and no process is left."""
    store = Store(tmp_path / "results", tmp_path / "work", seeds=2, episodes=1)
    bad, good = cells(PATTERN)
    (store.work / bad.name).mkdir(parents=True)
    (store.work / bad.name / "holiday.jpg").touch()
    with pytest.raises(FailureError, match=bad.name):
        run_jobs(store, [bad, good], 2, print)
    assert store.result(good).exists()
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_an_interrupt_ends_the_others(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("fedrain.paper.jobs.run_missing", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_jobs(Store(tmp_path / "r", tmp_path / "w"), cells("*v2-a6*tqc*"), 3, print)
    assert not multiprocessing.active_children()
    assert not list((tmp_path / "r").glob("*"))


@pytest.mark.slow
def test_two_jobs(tmp_path):
    store = Store(tmp_path / "results", tmp_path / "work", seeds=2, episodes=1)
    matrix = cells(PATTERN)
    run_jobs(store, matrix, 2, print)
    assert all(store.result(cell).exists() for cell in matrix)
