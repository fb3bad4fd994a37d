"""A policy in climates that it has not seen."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from fedrain.baselines import constant, known_limit, limit, static
from fedrain.cli import main
from fedrain.climate import band_skill
from fedrain.envs import make
from fedrain.envs.options import changed_params
from fedrain.experiment import configure, train
from fedrain.experiment.report import skill_report
from fedrain.experiment.resolve import from_dict
from fedrain.experiment.scenarios import SCENARIOS, evaluate_forced, forcing_table
from fedrain.reading import read_json
from tests.climate.models import AIR, HostLayered
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


def test_one_other_episode(capsys, run):
    """Both doors: with a value, --forcing is what it is for training."""
    for given, options in (
        (["--forcing", "longwave=-3.7"], {"forcing": {"longwave": -3.7}}),
        (["--forcing=longwave=-3.7", "--ramp", "8"], {"forcing": {"longwave": -3.7}, "ramp": 8}),
        (["--forcing", "longwave=1,solar=-9"], {"forcing": {"longwave": 1.0, "solar": -9.0}}),
    ):
        assert main(["evaluate", *given, str(run.folder), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["global"] == run.evaluate(**options)["global"]
        assert found["global"] != run.summary()["global"]


def test_the_flag_alone_is_all_scenarios(capsys, run):
    """Wherever it stands; it does not take the folder for a value."""
    folder = str(run.folder)
    for arguments in (["--forcing", folder, "--json"], [folder, "--json", "--forcing"]):
        assert main(["evaluate", *arguments]) == 0
        found = json.loads(capsys.readouterr().out)["scenarios"]
    every = {name: one.as_dict() for name, one in run.scenarios().items()}
    assert found == json.loads(json.dumps(every))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--forcing=longwave"], "'longwave' is not name=value"),
        (["--forcing", "longwav=1"], "did you mean 'longwave'"),
        (["--ramp", "3"], "ramp cannot apply: there is no forcing"),
        (
            ["--forcing", "--forcing", "longwave=1"],
            "--forcing has episodes of its own",
        ),
        (["--forcing", "--ramp", "3"], "--forcing has episodes of its own: drop --ramp"),
        (["--response", "--forcing", "longwave=1"], "--response has episodes of its own"),
    ],
)
def test_a_forcing_that_cannot_be(capsys, run, arguments, message):
    assert main(["evaluate", *arguments, str(run.folder)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert message in told


class Lamp(HostLayered):
    """Has longwave, and no sun; its start is not called temperature, and it has no gradient."""


def test_of_another_model_what_it_has(tmp_path):
    """And what it lacks is said once: the forcing of the task stays, and the scenario's comes on
    top of it."""
    own = {"forcing": {"co2": 300.0, "longwave": 1.0}, "ramp": 3}
    options = {"model": Lamp(), "agents": 2, "episode_length": 8, "judge": (AIR, NAME), **own}
    configuration = configure(preset=small_preset(tmp_path), seeds=2, episodes=3, **options)
    run = train(configuration, tmp_path / "run", figures=False)
    said = []
    found = evaluate_forced(run, say=said.append)
    assert list(found) == ["standard", "co2 step", "co2 ramp", "warmer target"]
    (line,) = said
    for text in ("best constant", "start at 0 °C", "no forcing 'solar'", "no gradient"):
        assert text in line
    assert "\n" not in line
    skills = [skill.globe for skill in run.skills()]
    np.testing.assert_allclose([s.globe for s in found["standard"].policy], skills, rtol=1e-5)
    for key, changes in (
        ("standard", {}),
        ("co2 step", {"forcing": {"longwave": 1.0 - 3.7}, "ramp": 0}),
        ("co2 ramp", {"forcing": {"longwave": 1.0 - 3.7}, "ramp": 8}),
        ("warmer target", {"target": {AIR: Lamp.target[AIR] + 3, NAME: target_of(run, NAME) + 3}}),
    ):
        environment = run.configuration.make_environment()
        expected = static(replace(environment, params=changed_params(environment, changes)))
        assert found[key].static.globe == pytest.approx(expected.skill.globe, rel=1e-5), key
        assert found[key].constant is None
    assert "(K)" in forcing_table(found)
    assert json.loads(json.dumps(found["co2 step"].as_dict()))["constant"] is None


def target_of(run, name):
    return np.asarray(run.configuration.make_environment().params.target[name])


def test_the_static_model_starts_where_the_policies_do(tmp_path):
    """With bounds that leave nothing to choose, policies are the static model, seed by seed."""
    bounds = {"learn": "D", "bounds": {"D": [0.6, 0.6 + 1e-6]}, "static": {"D": 0.6}}
    options = {"preset": small_preset(tmp_path), "seeds": 3, "episodes": 2, "agents": 2, **bounds}
    configuration = configure(start=[-30.0, 60.0], **options, **SMALL)
    run = train(configuration, tmp_path / "run", figures=False)
    environment = configuration.make_environment()
    found = [skill.globe for skill in run.static.skill(environment)]
    np.testing.assert_allclose(found, [skill.globe for skill in run.skills()], rtol=1e-4)
    assert np.ptp(found) > 1  # K: the starts differ
    row = skill_report(run).splitlines()[7].split()
    assert row[0] == "global"
    assert float(row[1]) == pytest.approx(float(row[2]), abs=0.01)


def beats_optimal_control(folder):
    """Whether a run was ever better than an agent can be; None where that is not known."""
    environment = from_dict(read_json(folder / "configuration.json")).make_environment()
    if (best := known_limit(environment)) is None:
        return None
    every = (xr.load_dataset(folder / name).returns for name in ("returns.nc", "skill.nc"))
    return any(bool((returns.mean("agent") > best).any()) for returns in every)


@pytest.mark.slow
def test_no_agent_beats_optimal_control(tmp_path):
    """A run of the standard environment made here, and every run that lies in ``runs``.

    One that does is found: agents whose A may leave its bounds, in a run that does not say so.
    """
    preset = small_preset(tmp_path)
    honest, cheating = tmp_path / "honest", tmp_path / "cheating"
    train(configure(preset=preset, episodes=2), honest, figures=False)
    folders = [f.parent for f in Path("runs").glob("*/skill.nc")]
    assert not any(beats_optimal_control(folder) for folder in (honest, *folders))
    assert beats_optimal_control(honest) is False
    bounds = {"A": [-300.0, 700.0]}
    train(configure(preset=preset, episodes=2, bounds=bounds), cheating, figures=False)
    assert beats_optimal_control(cheating) is None
    free = limit(make("ebm-v3", agents=6, bounds=bounds), iterations=60).returns
    for name in ("configuration.json", "skill.nc"):
        shutil.copy(honest / name, cheating / name)
    with xr.load_dataset(cheating / "skill.nc") as data:
        changed = data.assign(returns=data.returns * 0 + free.mean())
    changed.to_netcdf(cheating / "skill.nc")
    assert beats_optimal_control(cheating) is True
