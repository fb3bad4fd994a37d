"""A policy in climates that it has not seen."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from fedrain.baselines import constant, known_limit, static
from fedrain.cli import main
from fedrain.climate import band_skill
from fedrain.envs.options import changed_params
from fedrain.experiment import configure, train
from fedrain.experiment.resolve import from_dict
from fedrain.experiment.scenarios import SCENARIOS, evaluate_forced
from fedrain.io import read_json
from tests.experiment.small import SMALL, small_preset

NAME = "surface_temperature"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forcing")
    preset = small_preset(folder)
    configuration = configure(preset=preset, seeds=2, episodes=4, **{**SMALL, "episode_length": 60})
    return train(configuration, folder / "run")


@pytest.fixture(scope="module")
def results(run):
    return evaluate_forced(run)


def test_the_standard_climate_gives_the_skill_of_the_run(run, results):
    found = [skill.globe for skill in results["standard"].policy]
    np.testing.assert_allclose(found, [skill.globe for skill in run.skills()], rtol=1e-4)
    environment = run.configuration.make_environment()
    assert results["standard"].static.globe == pytest.approx(
        static(environment).skill.globe, rel=1e-4
    )
    tuned = constant(environment).skill.globe
    assert results["standard"].constant.globe == pytest.approx(tuned, abs=1e-3)


def test_forcings_do_what_physics_says(run, results):
    """Static values, forced, against the model run by hand."""
    environment = run.configuration.make_environment()
    colder = replace(environment, model=replace(environment.model, solar_constant=0.98 * 1365.2))
    target, columns = environment.params.target[NAME], environment.model.columns
    expected = band_skill(columns, static(colder).final[NAME], target)
    assert results["sun -2%"].static.globe == pytest.approx(expected.globe, rel=1e-3)
    params = changed_params(environment, {"start": 0.0})
    cold_start = replace(environment, params=params)
    expected = band_skill(columns, static(cold_start).final[NAME], target)
    assert results["start 0"].static.globe == pytest.approx(expected.globe, rel=1e-3)
    warmer = band_skill(columns, static(environment).final[NAME], target + 3.0)
    assert results["warmer target"].static.globe == pytest.approx(warmer.globe, rel=1e-3)
    assert results["co2 step"].static.globe != pytest.approx(results["co2 ramp"].static.globe)


def test_command(capsys, run):
    assert main(["evaluate", str(run.folder), "--forcing", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["scenarios"]
    assert set(found) == set(SCENARIOS)
    assert (run.folder / "forcing.png").read_bytes().startswith(b"\x89PNG")
    assert main(["evaluate", str(run.folder), "--forcing"]) == 0
    assert "2 × CO₂ at once" in capsys.readouterr().out


@pytest.mark.slow
def test_no_agent_beats_optimal_control(tmp_path):
    """A run of the standard environment made here, and every run that lies in ``runs``."""
    preset = small_preset(tmp_path)
    train(configure(preset=preset, episodes=2), tmp_path / "run")
    folders = [tmp_path / "run", *Path("runs").glob("*/")]
    checked = 0
    for folder in folders:
        if not (folder / "skill.nc").is_file():
            continue
        environment = from_dict(read_json(folder / "configuration.json")).make_environment()
        best = known_limit(environment)
        if best is None:
            continue
        for name in ("returns.nc", "skill.nc"):
            returns = xr.load_dataset(folder / name).returns.mean("agent").values
            assert not (returns > best).any(), folder
        checked += 1
    assert checked >= 1
