"""Results as files: what is written is read back, and nothing else is."""

import shutil

import numpy as np
import pytest
import xarray as xr

from fedrain.baselines import known_limit, limit, static
from fedrain.cli import main
from fedrain.envs import make
from fedrain.errors import InputError
from fedrain.experiment import train
from fedrain.paper import cells, load_results
from fedrain.paper.results import (
    CELL,
    COLDEST,
    EPISODE,
    REFERENCES,
    WARMEST,
    our_bands,
    read_reference,
    read_result,
    write_reference,
    write_result,
)
from tests.paper import RESULTS


def test_what_is_written_is_read(tmp_path):
    """The mean episode is packed in 16 bits, to a 60 000th of the range of each variable."""
    (cell,) = cells("ebm-v3-a2-fed05-td3-paper")
    configuration = cell.configuration(seeds=2, episodes=1)
    run = train(configuration, tmp_path / "run", say=print, figures=False)
    write_result(tmp_path / "cell.nc", run)
    data = read_result(tmp_path / "cell.nc", configuration)
    assert {name: data[name].dims for name in data.data_vars} == CELL
    np.testing.assert_array_equal(data.areawrmse, run.results.areawrmse)
    np.testing.assert_array_equal(data.evaluation_return, run.results.returns)
    mean = run.results.sel(policy="local").mean("seed")
    table = configuration.make_environment().model.table
    widths = {row.symbol: row.high - row.low for row in table} | {"surface_temperature": 300.0}
    for name, width in widths.items():
        assert data[f"episode_{name}"].encoding["dtype"] == np.int16
        near = 0.6 * width / 60_000
        np.testing.assert_allclose(data[f"episode_{name}"], mean[name], rtol=1e-6, atol=near)
    assert widths.keys() == EPISODE.keys()


@pytest.mark.parametrize("name", REFERENCES)
def test_what_is_written_of_a_baseline_is_read(tmp_path, name):
    env, agents = REFERENCES[name]
    environment = make(env, agents=agents)
    baseline = static(environment)
    write_reference(tmp_path / "limit.nc", environment, baseline)
    data = read_reference(tmp_path / "limit.nc")
    near = 0.6 * (WARMEST - COLDEST) / 60_000
    np.testing.assert_allclose(
        data.surface_temperature, baseline.fields["surface_temperature"], atol=near
    )
    for row in environment.model.table:
        np.testing.assert_allclose(data[row.symbol], row.default, atol=(row.high - row.low) / 1e5)


def test_stored_results_hold_the_schema(results):
    for result in results.values():
        assert {name: result.data[name].dims for name in result.data.data_vars} == CELL
    for name in REFERENCES:
        data = read_reference(RESULTS / f"{name}.nc")
        assert {name: data[name].dims for name in EPISODE} == EPISODE


def test_every_seed_counts(results):
    for cell, result in results.items():
        assert result.skill().shape == (10, 6), cell
        assert np.isfinite(result.learning).all()
        assert result.core_hours > 0
        ours = our_bands(results)(cell)
        assert ours[2].mean == pytest.approx(result.data.areawrmse.sel(policy="local")[:, 2].mean())


def beaten(results, best_of):
    """Cells of which an agent, at any time, was better than ``best_of`` says that one can be."""
    found = []
    for cell, result in results.items():
        best = best_of(cell.configuration().make_environment())
        seen = (result.data.returns, result.data.evaluation_return)
        if any((returns.mean("agent") > best).any() for returns in seen):
            found.append(cell)
    return found


def test_no_agent_beats_optimal_control(results):
    """A thousand episodes of each cell; what is no optimum is found out."""
    assert beaten(results, known_limit) == []
    cut_short = float(limit(make("ebm-v1"), iterations=4).returns.mean())
    assert beaten(results, lambda _: cut_short)


def test_bad_results(tmp_path, capsys):
    with pytest.raises(InputError, match="holds no results"):
        load_results(tmp_path)
    (tmp_path / "ebm-v1-td3-paper.nc").write_bytes(b"not a NetCDF file")
    work = ["--work", str(tmp_path / "work"), "--only", "ebm-v1-td3-paper"]
    for command in (["tables"], ["run", "--jobs", "1", *work]):
        assert main(["benchmark", *command, "--results", str(tmp_path)]) == 2
        assert "ebm-v1-td3-paper.nc" in capsys.readouterr().err
    assert main(["benchmark", "status", "--results", str(tmp_path), *work]) == 0
    assert "damaged" in capsys.readouterr().out
    other = RESULTS / "ebm-v1-td3-corrected.nc"
    shutil.copy(other, tmp_path / "ebm-v1-td3-paper.nc")
    with pytest.raises(InputError, match="another experiment"):
        load_results(tmp_path)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda data: data.drop_vars("episode_A"), "episode_A is missing"),
        (lambda data: data.drop_vars("core_seconds"), "core_seconds is missing"),
        (lambda data: data.isel(band=slice(3)), "areawrmse has the wrong shape"),
        (lambda data: data.isel(seed=slice(3)), "returns has the wrong shape"),
        (lambda data: data.assign_coords(policy=["local", "moon"]), "other policies"),
        (lambda data: data.drop_attrs(), "configuration"),
    ],
)
def test_results_that_lack_something(tmp_path, damage, told):
    data = xr.load_dataset(RESULTS / "ebm-v1-td3-paper.nc")
    damage(data).to_netcdf(tmp_path / "ebm-v1-td3-paper.nc")
    with pytest.raises(InputError, match=rf"not the result of this cell .*{told}"):
        load_results(tmp_path)


def test_optimal_control_that_lacks_something(tmp_path):
    path = tmp_path / "limit-shared.nc"
    xr.load_dataset(RESULTS / path.name).drop_vars("B").to_netcdf(path)
    with pytest.raises(InputError, match="B is missing"):
        read_reference(path)


def test_a_damaged_result_does_not_keep_the_others_from_being_trained(tmp_path, monkeypatch):
    trained = []
    monkeypatch.setattr("fedrain.paper.run_jobs", lambda _, matrix, *__: trained.extend(matrix))
    monkeypatch.setattr("fedrain.paper.make_references", lambda *_: None)
    (tmp_path / "ebm-v1-td3-paper.nc").write_bytes(b"not a NetCDF file")
    command = ["benchmark", "run", "--only", "*v1-td3*", "--jobs", "1"]
    assert main([*command, "--results", str(tmp_path), "--work", str(tmp_path / "work")]) == 2
    assert [cell.preset for cell in trained] == ["corrected", "published"]


def test_damaged_results(tmp_path, capsys):
    """Whichever bytes are wrong, HDF5's many errors end as one line; optimal control's too."""
    whole = (RESULTS / "ebm-v1-td3-paper.nc").read_bytes()
    path = tmp_path / "ebm-v1-td3-paper.nc"
    told = []
    for seed in range(12):
        random, content = np.random.default_rng(seed), np.frombuffer(whole, np.uint8).copy()
        content[random.integers(0, len(content), 400)] = random.integers(0, 256, 400)
        path.write_bytes(content.tobytes())
        try:
            load_results(tmp_path)
        except InputError as error:
            told.append(str(error))
    assert len(told) > 3
    assert all(path.name in text for text in told)
    path.write_bytes(whole)
    (tmp_path / "limit-shared.nc").write_bytes(whole[:3000])
    out = ["--out", str(tmp_path / "report.html")]
    assert main(["benchmark", "report", "--results", str(tmp_path), *out]) == 2
    assert "limit-shared.nc" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


def test_a_cell_whose_seeds_diverged_is_left_out(results, tmp_path):
    names = ("ebm-v1-td3-paper", "ebm-v1-td3-corrected")
    for name, diverged in zip(names, (9, 8), strict=True):
        data = xr.load_dataset(RESULTS / f"{name}.nc")
        data.areawrmse_global.values[..., :diverged] = np.nan
        data.to_netcdf(tmp_path / f"{name}.nc")
    (kept,) = load_results(tmp_path).values()
    assert kept.cell.name == names[1]
    assert kept.globe().number == 2
    data.returns.values[9, ..., -1] = np.nan  # it diverged at the last update
    data.to_netcdf(tmp_path / f"{names[1]}.nc")
    with pytest.raises(InputError, match="holds no results"):
        load_results(tmp_path)
    del data["areawrmse_global"]
    data.to_netcdf(tmp_path / f"{names[1]}.nc")
    with pytest.raises(InputError, match="areawrmse_global is missing"):
        load_results(tmp_path)
