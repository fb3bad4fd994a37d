"""``fedrain baseline`` with a model and a task of one's own."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from fedrain.baselines import static
from fedrain.cli import main
from fedrain.envs import make
from tests.baselines.toys import TASK

TOYS = Path(__file__).with_name("toys.py")


def run(capsys, *arguments):
    assert main(["baseline", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["static", "constant", "enki", "limit", "random"])
def test_every_baseline_of_a_task_in_a_file(capsys, tmp_path, name):
    more = {"enki": ["--ensemble", 20, "--iterations", 2], "limit": ["--iterations", 5]}
    files = ["--out", tmp_path / "b.nc", "--figure", tmp_path / "b.png"]
    found = run(capsys, name, "--env", f"{TOYS}:TASK", *more.get(name, []), *files)
    assert found["baseline"] == name
    data = xr.load_dataset(tmp_path / "b.nc")
    weights = np.cos(np.deg2rad(data.lat))
    for field, target in (("warmth", data.target), ("humidity", data.target_humidity)):
        squares = (data[field][-1] - target) ** 2
        error = float(np.sqrt(squares.weighted(weights).mean()))
        assert found["fields"][field] == pytest.approx(error)
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


def test_options_of_task_and_model(capsys):
    def error(*options):
        return run(capsys, "static", "--env", f"{TOYS}:TASK", *options)["fields"]

    plain = error()
    assert plain == pytest.approx(static(make(TASK)).errors)
    assert error("--forcing", "push=3")["warmth"] != pytest.approx(plain["warmth"])
    assert error("--forcing", "push=3")["humidity"] == pytest.approx(plain["humidity"])
    other = run(capsys, "static", "--env", f"{TOYS}:TASK", "--judge", "humidity,warmth")
    assert other["fields"] == pytest.approx(plain)
    assert other["global"] == other["fields"]["humidity"]
    whole = error("--model", f"{TOYS}:Fragile", "--set", "model.above=9")
    assert whole == pytest.approx(plain)
    diverged = error("--model", f"{TOYS}:Fragile", "--set", "model.above=-9")
    assert diverged["warmth"] is None  # JSON has no NaN


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["limit", "--env", f"{TOYS}:HOST_TASK"], "limit needs the gradient of the model"),
        (["constant", "--backend", "climlab"], "which ClimlabModel does not have"),
        (["static", "--env", f"{TOYS}:NOTHING"], "NOTHING"),
        (["static", "--set", "rate=3"], "--set rate: a baseline learns nothing"),
        (["random", "--seed", "-1"], "a seed is an integer from 0"),
    ],
)
def test_bad_input(capsys, arguments, message):
    assert main(["baseline", *arguments]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


def test_for_people(capsys):
    assert main(["baseline", "static", "--env", f"{TOYS}:TASK"]) == 0
    told = capsys.readouterr().out
    error = static(make(TASK)).errors["humidity"]
    row = next(line for line in told.splitlines() if line.startswith("humidity (g kg⁻¹)"))
    assert row.split()[-1] == f"{error:.2f}"
    assert main(["baseline", "static", "--env", f"{TOYS}:TASK", "--judge", "humidity,warmth"]) == 0
    assert capsys.readouterr().out.startswith("areaWRMSE (g kg⁻¹) ")
    assert main(["baseline", "static", "--latitudes", "12", "--episode-length", "3"]) == 0
    assert "K²" in capsys.readouterr().out
