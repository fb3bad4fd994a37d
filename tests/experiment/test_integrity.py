"""A finished run whose files are not those that it wrote: one line, never another result."""

import json
import shutil

import numpy as np
import pytest
import xarray as xr
from safetensors import safe_open
from safetensors.numpy import save_file

from fedrain.cli import main
from fedrain.errors import InputError
from fedrain.experiment import configure, load, train
from fedrain.experiment.results import SKILL, WEIGHTS
from fedrain.io import write_dataset
from fedrain.reading import read_arrays, read_dataset
from tests.experiment.small import SMALL, small_preset


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    configuration = configure(preset=small_preset(folder), episodes=2, agents=2, seeds=2, **SMALL)
    train(configuration, folder / "run", say=lambda _: None, figures=False)
    return folder / "run"


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def without_checksums(folder):
    """As runs of before were."""
    arrays, note = read_arrays(folder / WEIGHTS)
    note = {name: note[name] for name in ("layout", "episodes")}
    save_file(arrays, folder / WEIGHTS, metadata={"note": json.dumps(note)})


def evaluate(folder, capsys, *more):
    """Exit status, what is said to machines, and to people."""
    status = main(["evaluate", str(folder), "--json", *more])
    told = capsys.readouterr()
    return status, told.out, told.err


def test_a_run_of_before_checksums_is_read_and_says_so(run, capsys):
    whole = evaluate(run, capsys)
    assert (whole[0], whole[2]) == (0, "")
    assert load(run).has_checksums
    without_checksums(run)
    assert not load(run).has_checksums
    found = evaluate(run, capsys)
    assert found[:2] == whole[:2]
    assert (
        found[2]
        == f"{run}: was written before checksums were introduced: damage cannot be detected\n"
    )


def test_a_random_block_in_the_weights(run, capsys):
    """Wherever the numbers are; what is computed from them is refused."""
    path, random = run / WEIGHTS, np.random.default_rng(0)
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    for place in random.integers(start, len(content) - 64, 5):
        changed = content[:place] + random.bytes(64) + content[place + 64 :]
        path.write_bytes(changed)
        status, out, err = evaluate(run, capsys, "--start", "20")
        assert (status, out) == (2, "")
        assert (
            err
            == f"fedrain: error: {path}: is damaged or was changed: its checksum does not match\n"
        )


@pytest.mark.parametrize("name", ["returns.nc", SKILL])
def test_a_byte_in_the_results(run, capsys, name):
    """Nothing of it is given to the NetCDF library."""
    path = run / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    status, out, err = evaluate(run, capsys)
    assert (status, out) == (2, "")
    assert f"{path}: is damaged or was changed" in err


@pytest.mark.parametrize(
    ("key", "value"), [("episodes", 2.0), ("seeds", [0, 2]), ("sync_every", 1)]
)
def test_another_configuration_beside_the_results(run, capsys, key, value):
    path = run / "configuration.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, key: value}))
    status, out, err = evaluate(run, capsys)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    with pytest.raises(InputError):
        train(out=run, resume=True, say=lambda _: None, figures=False)


def reversed_along(name):
    return lambda data: data.isel({name: slice(None, None, -1)})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (reversed_along("band"), "coordinate 'band'"),
        (reversed_along("lat"), "coordinate 'lat'"),
        (reversed_along("seed"), "coordinate 'seed'"),
        (reversed_along("policy"), "coordinate 'policy'"),
        (lambda data: data.isel(step=slice(5)), "coordinate 'step'"),
        (lambda data: data.drop_vars("areawrmse"), "no variable 'areawrmse'"),
        (lambda data: data.drop_vars("seed"), "coordinate 'seed'"),
        (lambda data: data.transpose(), "the dimensions of"),
        (lambda data: data.assign(returns=data.returns.astype(str)), "'returns' has no numbers"),
        (lambda _: xr.Dataset(), "coordinate 'policy'"),
    ],
)
def test_a_netcdf_file_of_something_else(run, capsys, change, reason):
    """With no checksum to tell, its names, dimensions, types and coordinates have to be a run's."""
    without_checksums(run)
    write_dataset(run / SKILL, change(read_dataset(run / SKILL)))
    status, out, err = evaluate(run, capsys)
    assert (status, out) == (2, "")
    assert reason in err.splitlines()[-1]
    assert err.count("\n") == 2  # that there are no checksums, and this


def test_checksums_are_those_of_the_files(run):
    """As anybody's ``sha256sum`` gives them."""
    import hashlib

    with safe_open(run / WEIGHTS, framework="numpy") as file:
        note = json.loads(file.metadata()["note"])
    for name in ("returns.nc", SKILL):
        assert note["files"][name] == hashlib.sha256((run / name).read_bytes()).hexdigest()
