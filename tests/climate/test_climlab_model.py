"""The JAX model against climlab."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.climate import ClimlabModel, EnergyBalanceModel, Grid, Orbit
from fedrain.climate.models.climlab import import_climlab
from fedrain.errors import MissingExtraError
from tests.conftest import random_parameters

GRIDS = (24, 48, 90, 96, 180)
SEEDS = 20


@pytest.mark.parametrize(
    "latitudes",
    [n if n in (24, 96) else pytest.param(n, marks=pytest.mark.slow) for n in GRIDS],
)
def test_agrees_over_random_episodes(latitudes):
    """New random parameters at every step: 1e-9 K in float64, 5e-3 K in float32."""
    model = EnergyBalanceModel(grid=Grid(latitudes))
    oracle = ClimlabModel(model)
    rng = np.random.default_rng(latitudes)
    reference = np.full((SEEDS, latitudes), 50.0)
    with jax.enable_x64(True):
        step = jax.jit(model.step)
        double = jnp.asarray(reference)
        single = double.astype(jnp.float32)
        for _ in range(200):
            parameters = random_parameters(rng, model, SEEDS)
            double, single = step(double, parameters), step(single, parameters)
            for seed in range(SEEDS):
                reference[seed] = oracle.step_host(
                    reference[seed], {s: v[seed] for s, v in parameters.items()}
                )
            assert single.dtype == jnp.float32
            np.testing.assert_allclose(double, reference, rtol=0, atol=1e-9)
            np.testing.assert_allclose(single, reference, rtol=0, atol=5e-3)


@pytest.mark.parametrize("latitudes", GRIDS)
@pytest.mark.parametrize("orbit", [Orbit(), Orbit(0.04, 120.0, 24.2)])
def test_insolation_agrees(latitudes, orbit):
    model = EnergyBalanceModel(grid=Grid(latitudes), orbit=orbit)
    np.testing.assert_allclose(ClimlabModel(model).insolation, model.insolation, rtol=1e-9)


def test_keeping_the_insolation_changes_nothing(x64):
    """The oracle is climlab's own step, untouched, with a constant that is not computed anew."""
    model = ClimlabModel()
    untouched = import_climlab().EBM_annual(num_lat=96, A=210.0, B=2.0, D=0.6, a0=0.354, a2=0.25)
    untouched.Ts[:] = 50.0
    state, static = np.full(96, 50.0), model.table.static(96)
    for _ in range(10):
        untouched.step_forward()
        state = model.step_host(state, static)
    np.testing.assert_array_equal(state, np.array(untouched.Ts[:, 0]))


def no_forcing(batch: int) -> dict:
    return {"longwave": jnp.zeros(batch), "solar": jnp.zeros(batch)}


def test_runs_inside_compiled_and_mapped_code(x64):
    model = EnergyBalanceModel(grid=Grid(12))
    parameters = random_parameters(np.random.default_rng(0), model, 3)
    state, keys = jnp.full((3, 12), 20.0), jax.random.split(jax.random.key(0), 3)
    expected = model.step(state, parameters)
    mapped = jax.vmap(ClimlabModel(model).step)
    for step in (mapped, jax.jit(mapped)):
        after = step(state, parameters, no_forcing(3), keys)
        np.testing.assert_allclose(after, expected, atol=1e-9)


def test_parameters_of_one_batch_axis_serve_another(x64):
    """Mapped over the outer axis, with parameters that the inner one shares."""
    model = EnergyBalanceModel(grid=Grid(12))
    parameters = random_parameters(np.random.default_rng(0), model, 4)
    start = np.random.default_rng(1).uniform(-20, 40, (4, 3, 12))
    state, key = jnp.asarray(start), jax.random.key(0)

    def both(step):
        inner = jax.vmap(step, in_axes=(0, None, None, None))
        return jax.vmap(inner, in_axes=(0, 0, 0, None))(state, parameters, no_forcing(4), key)

    np.testing.assert_allclose(both(ClimlabModel(model).step), both(model.step), atol=1e-9)


@pytest.mark.parametrize("forcing", [{"longwave": -3.7}, {"solar": 13.0}])
def test_both_are_forced_alike(x64, forcing):
    model = EnergyBalanceModel(grid=Grid(12))
    oracle = ClimlabModel(model)
    parameters = random_parameters(np.random.default_rng(2), model)
    state = np.linspace(-20.0, 30.0, 12)
    expected = oracle.step_host(state, parameters, forcing)
    after = model.step(jnp.asarray(state), parameters, forcing)
    np.testing.assert_allclose(after, expected, atol=1e-9)
    without = oracle.step_host(state, parameters)
    assert np.abs(expected - without).min() > 1e-3
    # climlab keeps its state in a place of its own: the forcing must not stay there.
    np.testing.assert_allclose(without, model.step(jnp.asarray(state), parameters), atol=1e-9)


def test_importing_climlab_is_silent():
    code = "from fedrain.climate import ClimlabModel; ClimlabModel().insolation"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr == ""


def test_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "climlab", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fedrain\[climlab\]'"):
        ClimlabModel()
