import argparse
import inspect
import json
import re

import numpy as np
import pytest
import xarray as xr

from fedrain.baselines import static
from fedrain.cli import _parser, main
from fedrain.cli.messages import print_json
from fedrain.cli.options import (
    ENVIRONMENT,
    EXPERIMENT,
    add_setting,
    chosen_configuration,
    environment_options,
    experiment_options,
)
from fedrain.climate import Grid
from fedrain.envs import make
from fedrain.experiment import configure
from tests.conftest import leave_out_figures
from tests.experiment.small import small_preset


def write_target(path, values=None, name="skt", lat="lat"):
    data = (lat, np.zeros(96) if values is None else values, {"units": "degC"})
    xr.Dataset({name: data}, coords={lat: Grid(96).centres}).to_netcdf(path)
    return str(path)


def final_temperature():
    return static(make("ebm-v1")).final["surface_temperature"]


def test_static_json(capsys):
    assert main(["baseline", "static", "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    bands = [11.453, 7.768, 2.730, 3.746, 6.398, 5.566]
    np.testing.assert_allclose(result["bands"], bands, atol=0.001)
    assert result["global"] == pytest.approx(5.896, abs=0.001)
    assert result["return"] == pytest.approx(-60_358, abs=1)
    assert captured.err == ""


def test_static_table_and_figure(capsys, tmp_path):
    figure = tmp_path / "static.png"
    assert main(["baseline", "static", "--figure", str(figure)]) == 0
    captured = capsys.readouterr()
    assert re.search(r"60°N–90°N +5\.566\n", captured.out)
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert str(figure) in captured.err


def test_static_against_ones_own_target(capsys, tmp_path):
    warmer = final_temperature() + 3
    target = write_target(tmp_path / "own.nc", warmer)
    assert main(["baseline", "static", "--json", "--target", target]) == 0
    result = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose([*result["bands"], result["global"]], 3, atol=1e-9)


def test_choice_of_a_variable(capsys, tmp_path):
    target = write_target(tmp_path / "own.nc", final_temperature(), name="mine")
    assert main(["baseline", "static", "--json", "--target", target, "--variable", "mine"]) == 0
    assert json.loads(capsys.readouterr().out)["global"] == pytest.approx(0, abs=1e-9)
    options = argparse.ArgumentParser()
    add_setting(options)
    chosen = chosen_configuration(options.parse_args(["--target", target, "--variable", "mine"]))
    target = chosen.environment["target"]["surface_temperature"]
    np.testing.assert_allclose(target, final_temperature())


#: Every option once, and what `configure` is to be given for it.
ALL = {
    "--env ebm-v2": {"env": "ebm-v2"},
    "--model mine.py:Model": {"model": "mine.py:Model"},
    "--agents 4": {"agents": 4},
    "--sync-every 0": {"sync_every": 0},
    "--algo td3": {"algo": "td3"},
    "--preset paper": {"preset": "paper"},
    "--seeds 3,5,8": {"seeds": [3, 5, 8]},
    "--episodes 7": {"episodes": 7},
    "--sharing zones": {"sharing": "zones"},
    "--set tau=1e-2 --set reward=root --set layer_norm=true --set model.depth=50": {
        "settings": {"tau": 0.01, "reward": "root", "layer_norm": True, "model.depth": 50}
    },
    "--latitudes 24": {"latitudes": 24},
    "--backend climlab": {"backend": "climlab"},
    "--episode-length 30": {"episode_length": 30},
    "--start -5..5": {"start": (-5.0, 5.0)},
    "--forcing a=-3.7..-1 --forcing b=2": {"forcing": {"a": (-3.7, -1.0), "b": 2.0}},
    "--ramp 20": {"ramp": 20},
    "--noise 0.1": {"noise": 0.1},
    "--bounds A=180..240,B=1..3": {"bounds": {"A": (180.0, 240.0), "B": (1.0, 3.0)}},
    "--static B=1.98": {"static": {"B": 1.98}},
    "--learn D,A": {"learn": ["D", "A"]},
    "--judge surface_temperature=2,ice": {"judge": {"surface_temperature": 2.0, "ice": 1.0}},
    "--observe surface_temperature,target": {"observe": ["surface_temperature", "target"]},
    "--tiles 3x4": {"tiles": [3, 4]},
    "--unapplied a0,a2": {"unapplied": ["a0", "a2"]},
    "--unclipped": {"unclipped": True},
    "--overlap": {"overlap": True},
    "--judged-early 1": {"judged_early": 1},
    "--judged-over 3": {"judged_over": 3},
    "--split test": {"split": "test"},
    "--analysis-every 5": {"analysis_every": 5},
    "--smooth 10": {"smooth": 10.0},
    "--reward-shape log": {"reward_shape": "log"},
    "--around ice=10": {"around": {"ice": 10.0}},
}


def arguments_of(function):
    """Names of what can be given, but for what is not for the command line."""
    named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    found = {n for n, one in inspect.signature(function).parameters.items() if one.kind in named}
    return found - {"region", "model_options"}


def options_of(*command):
    """Destinations of a command's options."""
    parser = _parser()
    for word in command:
        action = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
        parser = action.choices[word]
    return {action.dest for action in parser._actions if action.dest != "help"}


def test_every_argument_has_an_option():
    """None can be added in Python and forgotten here, or stay here when it is gone there."""
    environment = arguments_of(make) - {"name"}
    experiment = environment | arguments_of(configure)
    target = {"variable", "weight_months"}
    run = {"experiment", "out", "resume", "start_from", "accept_changes"}
    assert set(ENVIRONMENT) == environment
    assert set(EXPERIMENT) == experiment
    assert options_of("train") == experiment | target | run
    assert options_of("tune") >= experiment | target
    assert options_of("baseline", "limit") >= environment | target | {"env"}
    assert {name for one in ALL.values() for name in one} == experiment - {"target"}


@pytest.mark.parametrize("text", ALL)
def test_an_option_is_the_argument_of_its_name(text):
    options = _parser().parse_args(["train", *text.split()])
    assert experiment_options(options) == ALL[text]
    (name,) = ALL[text]
    if name in ENVIRONMENT:
        options = _parser().parse_args(["baseline", "static", *text.split()])
        assert environment_options(options) == ALL[text]


def test_what_is_not_given_is_not_there():
    assert experiment_options(_parser().parse_args(["train"])) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30", 30.0),
        ("-5", -5.0),
        ("20..50", (20.0, 50.0)),
        ("temperature=20..50", {"temperature": (20.0, 50.0)}),
    ],
)
def test_starts(text, expected):
    assert experiment_options(_parser().parse_args(["train", "--start", text])) == {
        "start": expected
    }


def test_one_seed_by_its_number():
    assert experiment_options(_parser().parse_args(["train", "--seeds", "3,"]))["seeds"] == [3]
    assert experiment_options(_parser().parse_args(["train", "--seeds", "3"]))["seeds"] == 3


def test_options_reach_the_environment(capsys):
    """The static model of other static parameters is what Python makes of the same."""
    changes = {"static": {"A": 215.0}, "start": 10.0, "forcing": {"longwave": -3.7}, "ramp": 50}
    expected = static(make("ebm-v1", latitudes=24, **changes))
    small = ["--latitudes", "24", "--static", "A=215", "--start", "10", "--ramp", "50"]
    assert main(["baseline", "static", *small, "--forcing", "longwave=-3.7", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["global"] == pytest.approx(expected.skill.globe)
    assert found["global"] != pytest.approx(static(make("ebm-v1", latitudes=24)).skill.globe)


def test_json_has_no_nan(capsys):
    assert main(["baseline", "static", "--latitudes", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert [band is None for band in found["bands"]] == [True, False] * 2 + [True, False]
    print_json({"a": [1.0, float("nan")], "b": {"c": float("inf")}, "d": "nan", "e": None})
    values = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert values == {"a": [1.0, None], "b": {"c": None}, "d": "nan", "e": None}


TASK = """
from dataclasses import dataclass
from fedrain.climate import EnergyBalanceModel, Grid
from fedrain.envs import Task

@dataclass(frozen=True)
class Mine(EnergyBalanceModel):
    grid: Grid = Grid(12)

task = Task(model=Mine(), agents=2, episode_length=10)
"""


def train_small(folder, *more):
    preset = folder / "small.toml"
    if not preset.exists():
        small_preset(folder)
    small = ["--agents", "2", "--latitudes", "12", "--episode-length", "10"]
    return main(["train", *small, "--preset", str(preset), *more])


@pytest.mark.figures
def test_train_resume_extend_and_evaluate(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = ["--episodes", "3", "--seeds", "4,7", "--set", "width=8", "--out", "a"]
    assert train_small(tmp_path, *first) == 0
    captured = capsys.readouterr()
    assert "global" in captured.out
    assert "figure: a/returns.png" in captured.err
    leave_out_figures(monkeypatch)
    # What is not given is what the folder says; more episodes extend the run.
    assert main(["train", "--out", "a", "--resume", "--episodes", "5"]) == 0
    held = json.loads((tmp_path / "a" / "configuration.json").read_text())
    assert (held["episodes"], held["seeds"], held["hyperparameters"]["width"]) == (5, [4, 7], 8)
    assert len(xr.load_dataset(tmp_path / "a" / "returns.nc").episode) == 5
    capsys.readouterr()
    assert main(["train", "--out", "a", "--resume", "--set", "width=16"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert "(hyperparameters.width differs)" in error
    assert (
        main(["train", "--experiment", "a/configuration.json", "--seeds", "2", "--ramp", "3"]) == 2
    )
    assert "drop --seeds, --ramp" in capsys.readouterr().err
    # Another episode for the trained policies.
    assert main(["evaluate", "a", "--json"]) == 0
    usual = json.loads(capsys.readouterr().out)
    assert main(["evaluate", "a", "--start", "10", "--noise", "0.1", "--json"]) == 0
    other = json.loads(capsys.readouterr().out)
    assert other["global"] != usual["global"]
    assert set(other) == set(usual)
    assert main(["evaluate", "a", "--start", "10"]) == 0
    assert f"{'global':10}" in capsys.readouterr().out
    assert main(["evaluate", "a", "--forcing", "--start", "10"]) == 2
    assert "drop --start" in capsys.readouterr().err


def test_a_default_folder_is_resumed_with_what_it_says(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert train_small(tmp_path, "--episodes", "3", "--seeds", "2") == 0
    assert train_small(tmp_path, "--resume") == 0
    (folder,) = (tmp_path / "runs").iterdir()
    held = json.loads((folder / "configuration.json").read_text())
    assert (held["episodes"], held["seeds"]) == (3, [0, 1])


def test_what_is_of_ones_own_is_named_again(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(TASK)
    preset = str(small_preset(tmp_path))
    own = ["--env", "mine.py:task"]
    assert main(["train", *own, "--preset", preset, "--episodes", "3", "--out", "a"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "a", "--json"]) == 2
    assert "name it again with --env file.py:task (" in capsys.readouterr().err
    assert main(["evaluate", "a", "--json", *own]) == 0
    capsys.readouterr()
    again = ["train", "--experiment", "a/configuration.json", "--out", "b"]
    assert main(again) == 2
    assert "name it again" in capsys.readouterr().err
    assert main([*again, *own]) == 0


def test_start_from_a_run(tmp_path, monkeypatch):
    """Of a task of one's own: it is named once, for both."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(TASK)
    own = ["--env", "mine.py:task", "--preset", str(small_preset(tmp_path)), "--episodes", "3"]
    assert main(["train", *own, "--out", "a"]) == 0
    assert main(["train", *own, "--out", "b", "--from", "a"]) == 0
    assert json.loads((tmp_path / "b" / "configuration.json").read_text())["start_from"]


def test_a_start_without_a_name_may_be_a_pair(capsys):
    small = ["--latitudes", "24", "--start", "20..20", "--json"]
    assert main(["baseline", "static", *small]) == 0
    found = json.loads(capsys.readouterr().out)["global"]
    assert found == static(make("ebm-v1", latitudes=24, start=20.0)).skill.globe


def test_envs(capsys):
    assert main(["envs"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("ebm-v1", "ebm-v2", "ebm-v3", "gymnasium.make"))
    assert main(["envs", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["environments"]
    actions = {row["name"]: row["action"] for row in rows}
    assert list(actions.values())[:6] == [195, 195, 35] * 2  # of the paper; as published
    assert actions["ebm-energy"] == 4
    assert actions["ebm-twin"] == 1


def hole(latitude=3):
    values = np.zeros(96)
    values[latitude] = np.nan
    return values


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND"),
        (["trian"], "invalid choice: 'trian'"),
        (["baseline", "sttaic"], "invalid choice: 'sttaic'"),
        (["baseline", "static", "--latitudes", "many"], "invalid int value: 'many'"),
        (["baseline", "static", "--latitudes", "0"], "at least 2 latitudes"),
        (["baseline", "static", "--backend", "fortran"], "no backend 'fortran'"),
        (["baseline", "static", "--figure", "x.docx"], "ends in one of"),
        (["baseline", "static", "--figure="], "ends in one of"),
        (["baseline", "static", "--weight-months"], "go with --target"),
        (["train", "--variable", "skt"], "go with --target"),
        (["train", "--env", "ebm-v4"], "no environment 'ebm-v4'"),
        (["train", "--env", "none.py:task"], "there is no such file"),
        (["train", "--model", "none.py:Model"], "there is no such file"),
        (["train", "--algo", "dppg"], "did you mean 'ddpg'"),
        (["train", "--preset", "fedrian"], "There are constants, corrected, fedrain"),
        (["train", "--agents", "two"], "invalid int value: 'two'"),
        (["train", "--agents", "7"], "7"),
        (["train", "--seeds", "a,b"], "seeds such as 3,5,8"),
        (["train", "--seeds", "0"], "seeds are one or more"),
        (["train", "--seeds", "1,1"], "seeds are one or more"),
        (["train", "--episodes", "0"], "episodes must be an integer from 1"),
        (["train", "--sync-every", "-1"], "sync_every must be an integer from 0"),
        (["train", "--sharing", "al"], "There are all, zones, neighbours, shared, personal"),
        (["train", "--model", "mine.py"], "say which climate model in the file, as mine.py:Name"),
        (["train", "--set", "tau"], "'tau' is not name=value"),
        (["train", "--preset", "paper", "--set", "reach=10.0"], "reach cannot apply: it needs"),
        (["train", "--preset", "paper", "--set", "common_rate=0.3"], "without common_constant"),
        (["train", "--preset", "paper", "--set", "common_hold=9"], "without common_noise"),
        (["train", "--sync-every", "0", "--set", "stale_averages=true"], "nothing is averaged"),
        (["train", "--agents", "1", "--set", "stale_averages=true"], "nothing is averaged"),
        (["tune", "--set", "width=8"], "--set width: the search space has it"),
        (["train", "--set", "tua=1"], "did you mean 'tau'"),
        (["train", "--set", "tau=fast"], "tau must be a number, not 'fast'"),
        (["train", "--set", "tau=nan"], "is not a finite number"),
        (["train", "--set", "tau=.1", "--set", "tau=.2"], "--set tau: is given twice"),
        (["train", "--set", "model.depth=3"], "'depth'"),
        (["train", "--start", "warm"], "'warm' is not a number"),
        (["train", "--start", "temperature=50..20"], "the lower bound exceeds the upper"),
        (["train", "--start", "heat=20"], "'heat'"),
        (["train", "--start", "5", "--start", "temperature=20"], "name each value"),
        (["train", "--env", "ebm-twin", "--split", "nosuch"], "it has train, validation, test"),
        (["train", "--env", "rce-zonal", "--target", "TMP/skt.nc"], "of air_temperature cannot"),
        (["train", "--forcing", "longwave"], "is not name=value"),
        (["train", "--forcing", "longwav=1"], "did you mean 'longwave'"),
        (["train", "--ramp", "-1"], "ramp must be an integer from 0"),
        (["train", "--noise", "-1"], "noise must be a number from 0"),
        (["train", "--bounds", "A=180"], "is not LOW..HIGH"),
        (["train", "--bounds", "Z=1..2"], "'Z'"),
        (["train", "--static", "Z=1"], "'Z'"),
        (["train", "--learn", "D,,A"], "names with commas between"),
        (["train", "--learn", "Z"], "'Z'"),
        (["train", "--judge", "rain"], "'rain'"),
        (["train", "--observe", "rain"], "'rain'"),
        (["train", "--tiles", "3by4"], "is not ROWSxCOLS"),
        (["train", "--episode-length", "0"], "0"),
        (["train", "--from", "TMP"], "is not the folder of a run"),
        (["train", "--experiment", "TMP/none.json"], "none.json"),
        (["train", "--experiment", "x.json", "--set", "tau=1"], "drop --set"),
        (["evaluate", "TMP"], "is not the folder of a run"),
        (["baseline", "random", "--seed", "-1"], "a seed is an integer from 0"),
        (["baseline", "enki", "--seed", "-1"], "a seed is an integer from 0"),
        (["baseline", "static", "--target", "TMP/none.nc"], "there is no such file"),
        (["baseline", "static", "--target", "TMP/text.nc"], "not a NetCDF file"),
        (["baseline", "static", "--target", "TMP/rain.nc"], "no temperature"),
        (["baseline", "static", "--target", "TMP/rows.nc"], "no latitude"),
        (["baseline", "static", "--target", "TMP/hole.nc"], "missing at latitude -83.4"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(capsys, tmp_path, arguments, message):
    (tmp_path / "text.nc").write_text("not a data set")
    write_target(tmp_path / "skt.nc")
    write_target(tmp_path / "rain.nc", name="rain")
    write_target(tmp_path / "rows.nc", lat="rows")
    write_target(tmp_path / "hole.nc", hole())
    arguments = [argument.replace("TMP", str(tmp_path)) for argument in arguments]
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert captured.err.startswith("fedrain: error: ")
    assert message in captured.err
