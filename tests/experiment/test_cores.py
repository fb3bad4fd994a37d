"""Agents shared out among the cores learn what they learn side by side on one."""

import os
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from fedrain.experiment.cores import Cores, count_cores
from tests.experiment.small import small_preset

TRAIN = """
import sys
from pathlib import Path
from fedrain.experiment import configure
from fedrain.experiment.training import Session
configuration = configure(
    env="ebm-v3", agents=12, sync_every=3, algo="td3", episodes=6, latitudes=12,
    episode_length=10, preset=sys.argv[1], seeds=2,
)
for folder in sys.argv[2:]:
    session = Session(configuration, Path(folder), say=print)
    session.run()
    print(session.trainer.cores.shares)
"""


def train_elsewhere(preset, *folders, devices=None):
    """Into how many shares the agents were divided, in a process with so many devices."""
    chosen = {} if devices is None else {"JAX_NUM_CPU_DEVICES": str(devices)}
    command = [sys.executable, "-c", TRAIN, str(preset), *map(str, folders)]
    done = subprocess.run(
        command, env=os.environ | chosen, stdout=subprocess.PIPE, text=True, check=True
    )
    return int(done.stdout.split()[-1])


@pytest.mark.slow
@pytest.mark.skipif(count_cores() < 2, reason="needs two cores")
def test_shared_out_agents_learn_the_same(tmp_path):
    preset = small_preset(tmp_path)
    folders = [tmp_path / name for name in ("several", "again", "one")]
    assert train_elsewhere(preset, *folders[:2]) > 1
    assert train_elsewhere(preset, folders[2], devices=1) == 1
    several, again, one = (xr.load_dataset(folder / "returns.nc") for folder in folders)
    xr.testing.assert_identical(again.drop_vars(TIMES), several.drop_vars(TIMES))
    assert len(several.seed) == 2
    np.testing.assert_allclose(several.returns, one.returns, rtol=1e-4)
    np.testing.assert_allclose(several.actor_distance, one.actor_distance, rtol=1e-2, atol=1e-6)


TIMES = ["seconds", "core_seconds"]


def test_few_agents_stay_together():
    cores = Cores(agents=6)
    assert cores.shares == 1
    assert cores.map(lambda x: x * x, range(5)) == [0, 1, 4, 9, 16]
