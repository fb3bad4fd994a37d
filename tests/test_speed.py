"""The bars of speed, on the benchmark itself."""

import importlib.util
import resource
import sys
from pathlib import Path

import pytest

from fedrain.experiment import configure
from fedrain.experiment.training import Session


def load_benchmark(name: str):
    path = Path(__file__).parent.parent / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_model_speed():
    result = load_benchmark("model_speed").measure(rounds=9)
    assert result["single_times_climlab"] >= 5_000
    assert result["batch_times_climlab"] >= 20_000
    noise = 1.1  # the ratios of one run scatter by some per cent
    for row in result["latitudes"].values():
        assert row["single"] <= noise * row["square"]
        assert row["batch of 64"] <= noise * row["square"]
    for row in result["batches"].values():
        assert row["cost"] <= noise * row["linear"]


@pytest.mark.slow
def test_matrix_products_run_near_the_machines_rate():
    row = load_benchmark("training_speed").measure(5, ["v1"], ["ddpg"], [])["v1 ddpg"]
    assert row["share_of_matrix_rate"] >= 0.65


@pytest.mark.slow
def test_cost_grows_no_faster_than_the_work_of_the_agents():
    load_benchmark("training_speed")
    result = load_benchmark("agents_cost").measure(rounds=3)
    first_time, first_work = result[1]
    for duration, work in result.values():
        assert duration / first_time <= 1.1 * work / first_work


@pytest.mark.slow
def test_memory_of_the_largest_run(tmp_path):
    """Ten seeds of the six agents of ebm-v2, whole memory allocated, learning begun, saved."""
    configuration = configure(env="ebm-v2", seeds=10, episodes=100)
    session = Session(configuration, tmp_path / "run", say=print)
    for _ in range(6):
        session.trainer.play(False)
    session._save()
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    assert used < 6  # GiB
