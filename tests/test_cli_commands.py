"""The command as a process, and the commands that train nothing: baselines and stability."""

import json
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import fedrain
from fedrain import paper
from fedrain.cli import main, stability


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


def test_json_has_no_nan(capsys, monkeypatch):
    """Of commands whose numbers are not finite as a rule, if they were."""
    rows = [{"cell": "a", "state": "running", "expected_seconds": float("nan")}]
    monkeypatch.setattr(stability, "_equilibria", lambda *_: {"mean": float("nan")})
    monkeypatch.setattr(paper, "status", lambda *_: rows)
    for command in (["stability", "equilibria", "--latitudes", "12"], ["benchmark", "status"]):
        assert main([*command, "--json"]) == 0
        found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
        assert None in (found.get("mean", 0), found.get("expected_seconds", 0))


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


@pytest.mark.parametrize("command", ["train", "federate"])
def test_only_training_can_be_extended(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert ("extend" in capsys.readouterr().out) == (command == "train")


COUNTED = """
from dataclasses import dataclass
from fedrain.climate import Columns, EnergyBalanceModel

@dataclass(frozen=True)
class Counted(EnergyBalanceModel):
    number: int = 6

    @property
    def columns(self):
        return Columns.zonal(self.number // 2)
"""


def test_an_option_of_a_model_of_the_wrong_type(capsys, tmp_path):
    (tmp_path / "counted.py").write_text(COUNTED)
    model = ["--model", f"{tmp_path}/counted.py:Counted", "--set", "model.number=many"]
    assert main(["train", *model, "--out", str(tmp_path / "run")]) == 2
    told = capsys.readouterr()
    (line,) = told.err.splitlines()
    assert line.startswith("fedrain: error: Counted: columns fails (TypeError: ")
    assert line.endswith("; counted.py:11)")
    assert not (tmp_path / "run").exists()
