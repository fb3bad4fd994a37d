import argparse
import json
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import fedrain
from fedrain.baselines import static
from fedrain.cli import main
from fedrain.cli.train import add_setting, chosen_configuration
from fedrain.climate import Grid
from fedrain.envs import make


def write_target(path, values=None, name="skt", lat="lat"):
    values = np.zeros(96) if values is None else values
    latitude = Grid(96).centres
    xr.Dataset({name: (lat, values, {"units": "degC"})}, coords={lat: latitude}).to_netcdf(path)
    return str(path)


def test_static_json(capsys):
    assert main(["baseline", "static", "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    np.testing.assert_allclose(
        result["bands"], [11.453, 7.768, 2.730, 3.746, 6.398, 5.566], atol=0.001
    )
    assert result["global"] == pytest.approx(5.896, abs=0.001)
    assert result["return"] == pytest.approx(-60_358, abs=1)
    assert captured.err == ""


def test_static_table_and_picture(capsys, tmp_path):
    picture = tmp_path / "static.png"
    assert main(["baseline", "static", "--figure", str(picture)]) == 0
    captured = capsys.readouterr()
    assert "60°N–90°N          5.566" in captured.out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in captured.err


def test_static_against_ones_own_target(capsys, tmp_path):
    warmer = static(make("ebm-v1")).profile + 3
    target = write_target(tmp_path / "own.nc", warmer)
    assert main(["baseline", "static", "--json", "--target", target]) == 0
    result = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose([*result["bands"], result["global"]], 3, atol=1e-9)


def test_choice_of_a_variable(capsys, tmp_path):
    target = write_target(tmp_path / "own.nc", static(make("ebm-v1")).profile, name="mine")
    assert main(["baseline", "static", "--json", "--target", target, "--variable", "mine"]) == 0
    assert json.loads(capsys.readouterr().out)["global"] == pytest.approx(0, abs=1e-9)
    options = argparse.ArgumentParser()
    add_setting(options)
    chosen = chosen_configuration(options.parse_args(["--target", target, "--variable", "mine"]))
    np.testing.assert_allclose(chosen.environment["target"], static(make("ebm-v1")).profile)


def test_envs(capsys):
    assert main(["envs"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("ebm-v1", "ebm-v2", "ebm-v3", "gymnasium.make"))
    assert main(["envs", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["environments"]
    assert [row["action"] for row in rows] == [195, 195, 35]


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
        (["baseline", "static", "--latitudes", "3"], "use 6 or more"),
        (["baseline", "static", "--latitudes", "0"], "at least 2 latitudes"),
        (["baseline", "static", "--backend", "fortran"], "no backend 'fortran'"),
        (["baseline", "static", "--figure", "x.docx"], "ends in one of"),
        (["baseline", "static", "--figure="], "ends in one of"),
        (["baseline", "static", "--weight-months"], "go with --target"),
        (["train", "--variable", "skt"], "go with --target"),
        (["train", "--target", "TMP/rain.nc"], "no temperature"),
        (["baseline", "random", "--seed", "-1"], "a seed is a whole number from 0"),
        (["baseline", "enki", "--seed", "-1"], "a seed is a whole number from 0"),
        (["baseline", "static", "--target", "TMP/none.nc"], "there is no such file"),
        (["baseline", "static", "--target", "TMP/text.nc"], "not a NetCDF file"),
        (["baseline", "static", "--target", "TMP/rain.nc"], "no temperature"),
        (["baseline", "static", "--target", "TMP/rows.nc"], "no latitude"),
        (["baseline", "static", "--target", "TMP/hole.nc"], "missing at latitude -83.4"),
        (["baseline", "static", "--target", "TMP"], "there is no such file"),
    ],
)
def test_bad_input_gets_one_line_and_status_2(capsys, tmp_path, arguments, message):
    (tmp_path / "text.nc").write_text("not a data set")
    write_target(tmp_path / "rain.nc", name="rain")
    write_target(tmp_path / "rows.nc", lat="rows")
    write_target(tmp_path / "hole.nc", hole())
    arguments = [argument.replace("TMP", str(tmp_path)) for argument in arguments]
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("fedrain: error: ")
    assert message in captured.err


def test_missing_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "climlab", None)
    assert main(["baseline", "static", "--backend", "climlab"]) == 2
    assert capsys.readouterr().err == (
        "fedrain: error: climlab is not installed: pip install 'fedrain[climlab]'\n"
    )


def fedrain_process(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "fedrain", *arguments], capture_output=True, text=True, check=False
    )


def test_as_a_process():
    done = fedrain_process("baseline", "static", "--target", "none.nc")
    assert done.returncode == 2
    assert done.stderr == "fedrain: error: none.nc: there is no such file\n"


def test_version():
    done = fedrain_process("--version")
    assert done.stdout == f"fedrain {fedrain.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["baseline", "random", "--seed", "3"],
        ["baseline", "limit", "--iterations", "3", "--env", "ebm-v3", "--agents", "2"],
        ["baseline", "constant", "--iterations", "3", "--goal", "return"],
        ["baseline", "enki", "--iterations", "1", "--ensemble", "5"],
    ],
)
def test_baselines(capsys, tmp_path, arguments):
    files = ["--out", str(tmp_path / "b.nc"), "--figure", str(tmp_path / "b.png")]
    small = ["--latitudes", "12"]
    assert main([*arguments, *small, *files, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["baseline"] == arguments[1]
    assert len(result["bands"]) == 6
    assert result["model_runs"] >= 1
    assert xr.load_dataset(tmp_path / "b.nc").A.dims == ("step", "lat")
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


def test_stability_equilibria(capsys):
    assert main(["stability", "equilibria", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["equilibria"]
    assert [state["stable"] for state in found] == [True, False, True]
    assert main(["stability", "spectrum"]) == 0
    assert "leading_eigenvalue" in capsys.readouterr().out


def test_stability_files(capsys, tmp_path):
    small = ["--latitudes", "24", "--width", "10", "--out", str(tmp_path), "--json"]
    assert main(["stability", "diagram", *small]) == 0
    tips = json.loads(capsys.readouterr().out)["tipping_points"]
    data = xr.load_dataset(tmp_path / "equilibria.nc")
    np.testing.assert_allclose(data.tipping_solar, [tip["solar"] for tip in tips])
    assert main(["stability", "hysteresis", *small, "--step", "20"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["mean_before"] > result["mean_after"] + 20
    for name in ("diagram", "spectrum", "states", "hysteresis"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stability", "equilibria", "--coldest", "80"], "there is no equilibrium"),
        (["stability", "diagram", "--low", "1400", "--high", "1500"], "there is no tipping point"),
        (["stability", "hysteresis", "--step", "0"], "must be positive"),
        (["baseline", "enki", "--ensemble", "1"], "at least 2 members"),
        (["baseline", "limit", "--target", "nowhere.nc"], "nowhere.nc"),
        (["baseline", "constant", "--goal", "fame"], "there is no goal"),
    ],
)
def test_bad_input_of_baselines_and_stability(capsys, arguments, message):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
