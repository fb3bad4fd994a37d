"""What stands beside the skill of a run: budget, parameters, and the answer to a forcing."""

import json

import numpy as np
import pytest
import xarray as xr
from safetensors.numpy import save_file

from fedrain.cli import main
from fedrain.climate import band_skill
from fedrain.climate.physics import above_black_body
from fedrain.errors import InputError
from fedrain.experiment import configure, load, train
from fedrain.experiment.response import responses
from fedrain.io import NOTE
from fedrain.reading import read_arrays
from tests.experiment.small import small_preset


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("response")
    small = {"agents": 3, "latitudes": 12, "episodes": 3, "episode_length": 20, "seeds": 2}
    configuration = configure(env="ebm-v3", preset=small_preset(folder), **small)
    return train(configuration, folder / "run", figures=False)


def test_budget_and_parameters_stand_beside_skill(run):
    found, environment = run.summary(), run.configuration.make_environment()
    columns, target = environment.model.columns, environment.model.target
    with xr.open_dataset(run.folder / "skill.nc") as data:
        own = data.sel(policy="local").load()
    last = own.isel(step=-1)
    for seed in range(2):
        A, B, T = (last[name].values[seed] for name in ("A", "B", "surface_temperature"))
        np.testing.assert_allclose(last.outgoing_longwave.values[seed], A + B * T, rtol=1e-5)
    errors = [
        band_skill(columns, values, target["outgoing_longwave"]).globe
        for values in last.outgoing_longwave.values
    ]
    assert found["fields"]["outgoing_longwave"] == pytest.approx(np.mean(errors))
    hot = above_black_body(last.surface_temperature.values, last.outgoing_longwave.values)
    assert found["physics"]["above_black_body"] == pytest.approx(hot.sum(axis=1).mean())
    rough = np.abs(np.diff(last.A.values, axis=1)).mean() / 280
    assert found["physics"]["roughness_of"]["A"] == pytest.approx(rough)
    played = run.evaluate("local")  # the same, played again
    assert played["fields"] == pytest.approx(found["fields"])
    assert played["physics"]["roughness"] == pytest.approx(found["physics"]["roughness"])


def test_results_of_before_are_played_again(run, tmp_path):
    """A run without the new variables, and without checksums, gets them all the same."""
    for path in run.folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    new = ["at_bounds", "roughness", "above_black_body", "outgoing_longwave", "absorbed_shortwave"]
    with xr.open_dataset(run.folder / "skill.nc") as data:
        old = data.drop_vars([*new, "rms_error", "field", "parameter"]).load()
    old.to_netcdf(tmp_path / "skill.nc")
    weights, note = read_arrays(run.folder / "weights.safetensors")
    plain = {name: one for name, one in note.items() if name not in ("configuration", "files")}
    metadata = {NOTE: json.dumps(plain)}
    save_file(weights, tmp_path / "weights.safetensors", metadata=metadata)
    assert load(tmp_path).summary()["fields"] == pytest.approx(run.summary()["fields"])


def test_the_answer_to_a_forcing(run, capsys):
    assert main(["evaluate", str(run.folder), "--response", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"policy", "static", "constant", "proportional"} <= set(found)
    assert found["static"]["warming"] == pytest.approx(1.85, abs=0.01)
    assert found["static"]["feedback"] == pytest.approx(2.0, abs=0.01)
    assert 1.8 < found["constant"]["warming"] < 1.9  # B is within 1.95 to 2.05
    assert found["proportional"]["warming"] < 0.5
    assert np.isfinite(found["policy"]["polar_amplification"])
    assert main(["evaluate", str(run.folder), "--response"]) == 0
    assert "feedback (W m⁻² K⁻¹)" in capsys.readouterr().out


def test_several_forcings_from_python(run):
    assert run.respond("global", [3.7])["static"].keys() == {3.7}
    with pytest.raises(InputError, match="policy"):
        run.respond("lokal")
    found = responses(run, "global", (-3.7, 3.7), steps=1500)
    assert found["static"][3.7].warming == pytest.approx(-found["static"][-3.7].warming, abs=1e-3)


@pytest.mark.parametrize("more", [["--forcing"], ["--noise", "0.1"]])
def test_a_response_has_episodes_of_its_own(run, more, capsys):
    assert main(["evaluate", str(run.folder), "--response", *more]) == 2
    assert capsys.readouterr().err.count("\n") == 1
