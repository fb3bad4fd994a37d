"""The matrix, trained by one process or several, some of which are killed."""

import json
import multiprocessing
import random
import subprocess
import sys
import time
from contextlib import ExitStack

import numpy as np
import pytest
import xarray as xr

from fedrain.cli import main
from fedrain.errors import FailureError, InputError
from fedrain.experiment.cores import count_cores
from fedrain.experiment.folder import checkpoints_of
from fedrain.experiment.trainer import Trainer
from fedrain.paper import Store, cells, jobs_for, run_jobs, run_missing, status

PATTERN = "ebm-v3-a2-fed??-td3-paper"
RUN = f"""
import sys
from fedrain.paper import Store, cells, run_missing
from fedrain.experiment import training
training.CHECKPOINT_SECONDS = 0.0
run_missing(Store(*sys.argv[1:], seeds=2, episodes=20), cells("{PATTERN}"), print)
"""
TIMES = ["seconds", "core_seconds"]


def test_the_matrix_has_104_cells():
    found = cells()
    assert len(found) == len({cell.name for cell in found}) == 104
    assert [len(cells(f"*-{preset}")) for preset in ("published", "paper", "corrected")] == [
        39, 39, 26,
    ]  # fmt: skip
    assert len(cells("*ddpg*")) == 26
    assert [cell.cost for cell in found] == sorted(cell.cost for cell in found)
    with pytest.raises(InputError, match="no cell"):
        cells("*moon*")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results", tmp_path / "work", seeds=2, episodes=2)


def test_a_cell_is_run_once(store):
    (cell,) = cells("ebm-v3-a2-fed05-td3-paper")
    assert run_missing(store, [cell], print) == 1
    data = xr.load_dataset(store.result(cell))
    assert data.returns.shape == (2, 2, 2)
    assert json.loads(data.attrs["configuration"])["algo"] == "td3"
    assert np.isfinite(data.areawrmse).all()
    assert data.episode_A.shape == (200, 96)
    assert store.result(cell).stat().st_size < 300_000
    assert not (store.work / cell.name).exists()
    assert run_missing(store, [cell], print) == 0
    (other,) = cells("ebm-v3-a6-fed05-td3-paper")
    row, missing = status(store, [cell, other])
    assert row["state"] == "done"
    assert row["seconds"] > 0
    expected = float(data.core_seconds.sum()) / count_cores() * other.cost / cell.cost
    assert missing["expected_seconds"] == pytest.approx(expected)
    training = Trainer(store.configuration(other), store.configuration(other).make_environment())
    training.begin()
    training.play(False)
    training.save(checkpoints_of(store.configuration(other), store.work / other.name))
    (missing,) = [row for row in status(store, [cell, other]) if row["state"] == "missing"]
    assert missing["expected_seconds"] == pytest.approx(expected / 2)


def test_one_bad_cell_does_not_stop_the_others(store):
    bad, good = (cells(f"ebm-v3-a2-fed{n}-td3-paper")[0] for n in ("05", "10"))
    (store.work / bad.name).mkdir(parents=True)
    (store.work / bad.name / "holiday.jpg").touch()
    (store.work / good.name).mkdir()
    (store.work / good.name / ".configuration.json.partial").touch()  # killed there
    heard = []
    with pytest.raises(FailureError, match=f"1 of 2 cells failed: {bad.name}"):
        run_missing(store, [bad, good], heard.append)
    assert any("not empty" in text for text in heard)
    assert store.read(good) is not None


HOLD = """
import sys, time
from fedrain.paper import Store, cells
(cell,) = cells("ebm-v1-td3-paper")
with Store(sys.argv[1], sys.argv[2]).claim(cell.name) as mine:
    print(mine, flush=True)
    time.sleep(60)
"""


def test_a_cell_belongs_to_one_process_until_it_dies(store):
    (cell,) = cells("ebm-v1-td3-paper")
    command = [sys.executable, "-c", HOLD, str(store.results), str(store.work)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "True\n"
    assert status(store, [cell])[0]["state"] == "running"
    assert run_missing(store, [cell], print) == 0
    process.kill()
    process.wait()
    process.stdout.close()
    assert status(store, [cell])[0]["state"] == "missing"
    with store.claim(cell.name) as mine:
        assert mine


def test_a_look_keeps_no_one_from_a_cell(store, monkeypatch):
    """Who looks has let go of the lock by the second time that it is tried."""
    look = ExitStack()
    assert look.enter_context(store.claim("cell"))
    monkeypatch.setattr("fedrain.io.sleep", lambda _: look.close())
    with store.claim("cell") as mine:
        assert mine


def test_status_command(capsys, tmp_path):
    places = ["--results", str(tmp_path / "r"), "--work", str(tmp_path / "w")]
    assert main(["benchmark", "status", "--json", *places]) == 0
    rows = json.loads(capsys.readouterr().out)["cells"]
    assert {row["state"] for row in rows} == {"missing"}
    assert main(["benchmark", "status", *places, "--only", "*v1*"]) == 0
    assert f"0 of {len(cells('*v1*'))} cells" in capsys.readouterr().out


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

    monkeypatch.setattr("fedrain.paper.runner.run_missing", interrupted)
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
