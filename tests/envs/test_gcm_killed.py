"""The moist model itself: a run that is killed, and climates that blow up."""

import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import fedrain
from fedrain.climate import GeneralCirculationModel
from fedrain.climate.models import gcm_store
from fedrain.climate.models.gcm_store import recorded
from fedrain.envs import Task
from fedrain.envs.records import split
from fedrain.reading import read_arrays

pytest.importorskip("jcm", reason="the extra gcm is not installed", exc_type=ImportError)

#: SPEEDY, spun up for two days, and a truth of nine.
SMALL = """
from dataclasses import replace

from fedrain.climate import GeneralCirculationModel
from fedrain.climate.models.gcm_store import recorded
from fedrain.envs import Task
from fedrain.envs.records import split

MODEL = GeneralCirculationModel(spin_up=2)


def record(model, length):
    truth = replace(model, table=model.table.replace(static={"albcl": 0.5}))
    return split(recorded(truth, adjust=1, days=9), length, training=5, between=1)


TASK = Task(
    model=MODEL, record=record, agents=32, episode_length=2, learn=("albcl", "ablwin"),
    judge={"outgoing_longwave": 0.25, "absorbed_shortwave": 0.01}, observe=("place",),
    analysis_every=1, judged_over=2, overlap=True, extra="gcm",
)
"""
#: The command line, with a checkpoint after every episode.
PROGRAM = """
import sys
import fedrain.experiment.training as training
from fedrain.cli import main
training.CHECKPOINT_SECONDS = -1.0
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_killed_run_of_the_moist_model_resumes_to_the_same_bits(tmp_path, monkeypatch):
    """SIGKILL after a checkpoint; the rest is that of a run straight through, to the last bit."""
    monkeypatch.setenv("FEDRAIN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "small.py").write_text(SMALL)
    task = ["--env", str(tmp_path / "small.py:TASK")]
    options = ["--preset", "forecast", "--algo", "ddpg", "--agents", "32", "--sync-every", "1"]
    options += ["--episodes", "4", "--set", "warmup_steps=2", "--set", "batch_size=8"]
    command = [sys.executable, "-c", PROGRAM, "train", *task]

    def start(folder, *more):
        return subprocess.Popen(
            [*command, "--out", str(tmp_path / folder), *more], stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

    assert start("whole", *options).wait(600) == 0
    process = start("cut", *options)
    checkpoints, give_up = tmp_path / "cut" / "checkpoint", time.monotonic() + 600
    while not (checkpoints.is_dir() and any(checkpoints.iterdir())):
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < give_up
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "cut" / "weights.safetensors").exists()
    assert start("cut", "--resume").wait(600) == 0
    one, other = (
        read_arrays(tmp_path / name / "weights.safetensors")[0] for name in ("whole", "cut")
    )
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


@pytest.mark.slow
def test_where_a_climate_blows_up_its_seed_stops_and_the_others_go_on(tmp_path, monkeypatch):
    """Friction up to 400 a day, ten times what steps of 30 minutes bear: some draw it, some not."""
    monkeypatch.setenv("FEDRAIN_CACHE", str(tmp_path / "cache"))
    gcm_store.spun_up.cache_clear()
    model = GeneralCirculationModel(physics="held-suarez", spin_up=2)

    def record(wild, length):
        truth = replace(wild, table=model.table)
        return split(recorded(truth, adjust=1, days=9), length, training=5, between=1)

    task = Task(
        model=replace(model, table=model.table.replace(bounds={"kf": (0.5, 400.0)})),
        record=record, agents=1, episode_length=2, learn=("kf",),
        judge={"air_temperature": 100.0}, analysis_every=1, judged_over=2,
    )  # fmt: skip
    said = []
    run = fedrain.train(
        env=task, preset="forecast", algo="ddpg", episodes=1, seeds=6, out=tmp_path / "run",
        settings={"warmup_steps": 2, "batch_size": 4, "width": 4}, figures=False, say=said.append,
    )  # fmt: skip
    stopped = [text for text in said if " stops: " in text]
    assert 0 < len(stopped) < 6
    assert "not finite" in stopped[0]
    assert stopped[-1].endswith("; the other seeds continue")
    lost = run.summary()["diverged_seeds"]
    assert len(lost) == len(stopped)
    returns = run.returns.returns.isel(episode=-1).values[:, 0]
    assert np.isfinite(returns).sum() == 6 - len(lost)
