import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from fedrain.climate import ClimlabModel, EnergyBalanceModel, diagnostics, integrate, trajectory
from fedrain.climate.grid import EARTH_RADIUS
from fedrain.errors import InputError


def steady_state(model):
    static = model.table.static(96)
    return np.asarray(integrate(model, jnp.full(96, 20.0), static, 4000)), static


def test_transport_carries_what_radiation_leaves(x64):
    """At a steady state the heat through a latitude is the net radiation south of it."""
    model = EnergyBalanceModel()
    data = diagnostics(model, *steady_state(model))
    ring = 2 * np.pi * EARTH_RADIUS**2 * model.grid.weights * model.grid.spacing * 1e-15
    inferred = np.concatenate([[0.0], np.cumsum(ring * data.net_radiation.values)])
    np.testing.assert_allclose(data.heat_transport, inferred, atol=1e-6)
    assert 4 < data.heat_transport.max() < 8  # PW, as observed in either hemisphere
    assert data.heat_transport.values[[0, -1]].tolist() == [0.0, 0.0]


def test_fluxes_agree_with_climlab(x64):
    model = EnergyBalanceModel()
    oracle = ClimlabModel(model)
    state, static = steady_state(model)
    data = diagnostics(model, state, static)
    # climlab's radiation is that of the state before a step, its transport of the one after.
    after = diagnostics(model, oracle.step_host(state, static), static)
    parts = oracle.process.subprocess
    for name, value in (
        ("absorbed_shortwave", parts["SW"].ASR),
        ("outgoing_longwave", parts["LW"].OLR),
    ):
        np.testing.assert_allclose(data[name], np.array(value).reshape(-1), rtol=1e-9)
    transport = np.array(parts["diffusion"].heat_transport).reshape(-1)
    np.testing.assert_allclose(after.heat_transport, transport, atol=1e-9)


def test_either_model_has_the_same_diagnostics():
    model = EnergyBalanceModel()
    state = np.linspace(-20.0, 30.0, 96)
    static = model.table.static(96)
    xr.testing.assert_identical(
        diagnostics(ClimlabModel(model), state, static), diagnostics(model, state, static)
    )


def test_global_mean_follows_from_global_balance(x64):
    model = EnergyBalanceModel()
    data = diagnostics(model, *steady_state(model))
    balanced = (model.grid.mean(data.absorbed_shortwave.values) - 210) / 2
    np.testing.assert_allclose(data.global_mean_temperature, balanced, atol=1e-6)


def test_a_trajectory_survives_netcdf(tmp_path):
    model = EnergyBalanceModel()
    static = model.table.static(96)
    states = trajectory(model, jnp.full(96, 50.0), static, 20)
    data = diagnostics(model, states, static)
    data.to_netcdf(tmp_path / "run.nc")
    with xr.open_dataset(tmp_path / "run.nc") as again:
        xr.testing.assert_identical(again.load(), data)
    assert data.time.values[-1] == pytest.approx(20 / 90)
    for name, variable in data.variables.items():
        assert variable.attrs["units"], name
        assert variable.attrs["long_name"], name


def test_wrong_shape():
    model = EnergyBalanceModel()
    with pytest.raises(InputError, match="profiles of 96 latitudes"):
        diagnostics(model, np.zeros(95), model.table.static(96))
