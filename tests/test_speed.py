"""The bars of speed, on the benchmark itself."""

import importlib.util
from pathlib import Path

import pytest


def load_benchmark(name: str):
    path = Path(__file__).parent.parent / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
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
