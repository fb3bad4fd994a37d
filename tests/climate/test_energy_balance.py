"""The model against what mathematics says of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrain.climate import EnergyBalanceModel, Grid, integrate, trajectory
from fedrain.errors import InputError
from tests.conftest import random_parameters


def test_constants_of_the_paper():
    model = EnergyBalanceModel()
    assert model.heat_capacity == pytest.approx(4.1813e7)
    assert model.time_step == pytest.approx(350_632.512)


def decay_rates(model: EnergyBalanceModel, modes: int) -> np.ndarray:
    """Rates of the slowest modes of one step, its own time discretisation taken out.

    A mode with L v = −μ v is multiplied by g = (1 − Δt B/C) / (1 + Δt/C D μ) in a step; solved
    for μ, the rate −(B + D μ)/C is left with the error of the grid alone.
    """
    latitudes = model.grid.latitudes
    static = model.table.static(latitudes)
    jacobian = jax.jacfwd(lambda t: model.step(t, static))(jnp.zeros(latitudes))
    growth = np.sort(np.linalg.eigvals(np.asarray(jacobian)).real)[::-1][:modes]
    k, B, D = model.time_step / model.heat_capacity, model.table["B"].default, static["D"]
    mu = ((1 - k * B) / growth - 1) / (k * D)
    return -(B + D * mu) / model.heat_capacity


def test_small_perturbations_decay_as_legendre_modes(x64):
    n = np.arange(10)
    model = EnergyBalanceModel()
    exact = -(2.0 + 0.6 * n * (n + 1)) / model.heat_capacity
    errors = np.array(
        [
            np.abs(decay_rates(EnergyBalanceModel(grid=Grid(latitudes)), 10) / exact - 1)
            for latitudes in (48, 96, 192)
        ]
    )
    assert errors[1].max() < 0.01
    assert errors[:, 0].max() < 1e-9  # the mean decays at B/C on any grid
    order = np.log2(errors[:-1, 1:] / errors[1:, 1:])
    np.testing.assert_allclose(order, 2, atol=0.05)


def test_p2_forcing_gives_the_analytic_steady_state(x64):
    errors = []
    for latitudes in (48, 96, 192):
        model = EnergyBalanceModel(grid=Grid(latitudes))
        static = model.table.static(latitudes)
        mean, contrast = 30.0, -90.0  # W m⁻²
        start = jnp.zeros(latitudes)
        shortwave = np.asarray(model.absorbed_shortwave(start, static))
        # A takes up all of the insolation but mean + contrast P2.
        forced = {**static, "A": shortwave - mean - contrast * model.grid.p2}
        steady = integrate(model, start, forced, 3000)
        exact = mean / 2.0 + contrast / (2.0 + 6 * 0.6) * model.grid.p2
        errors.append(np.abs(steady - exact).max())
    assert errors[1] < 0.02
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 4, rtol=0.1)


def test_radiation_alone_sets_the_change_of_global_energy(x64):
    """Diffusion moves heat and makes none, whatever D is."""
    rng = np.random.default_rng(0)
    model = EnergyBalanceModel()
    before = jnp.asarray(rng.normal(10, 20, (50, 96)))
    parameters = random_parameters(rng, model, 50)
    after = model.step(before, parameters)
    gained = model.grid.mean(np.asarray(after - before)) * model.heat_capacity / model.time_step
    radiated = model.grid.mean(np.asarray(model.net_radiation(before, parameters)))
    np.testing.assert_allclose(gained, radiated, rtol=1e-9, atol=1e-9)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), latitudes=st.sampled_from([2, 7, 96]))
def test_a_batch_is_its_members(seed, latitudes):
    with jax.enable_x64(True):
        rng = np.random.default_rng(seed)
        model = EnergyBalanceModel(grid=Grid(latitudes))
        state = jnp.asarray(rng.uniform(-60, 60, (2, 3, latitudes)))
        parameters = random_parameters(rng, model, 2, 3)
        together = model.step(state, parameters)
        for i, j in np.ndindex(2, 3):
            alone = model.step(state[i, j], {s: v[i, j] for s, v in parameters.items()})
            np.testing.assert_allclose(together[i, j], alone, atol=1e-11)


def test_mirrored_parameters_give_the_mirrored_climate(x64):
    rng = np.random.default_rng(1)
    model = EnergyBalanceModel()
    parameters = random_parameters(rng, model)
    # The annual insolation is itself symmetric to 0.1 W m⁻² only, so A takes up the difference.
    shift = (1 - parameters["a0"] - parameters["a2"] * model.grid.p2) * model.insolation
    even = {**parameters, "A": parameters["A"] + shift}
    mirrored = {**even, "A": parameters["A"][::-1] + shift, "B": even["B"][::-1]}
    state = jnp.full(96, 50.0)
    there, back = (integrate(model, state, p, 50) for p in (even, mirrored))
    np.testing.assert_allclose(there, back[::-1], atol=1e-10)


def test_a_trajectory_ends_where_integration_does():
    model = EnergyBalanceModel()
    start, static = jnp.full((3, 96), 50.0), model.table.static(96)
    every = trajectory(model, start, static, 30)
    np.testing.assert_allclose(every[-1], integrate(model, start, static, 30), atol=1e-4)
    np.testing.assert_allclose(every[0], model.step(start, static), atol=1e-4)


def test_a_forcing_of_the_longwave_is_a_change_of_its_offset(x64):
    rng = np.random.default_rng(3)
    model = EnergyBalanceModel()
    parameters, state = random_parameters(rng, model), jnp.asarray(rng.normal(10, 20, 96))
    changed = {**parameters, "A": parameters["A"] - 3.7}
    forced = model.step(state, parameters, {"longwave": -3.7})
    np.testing.assert_allclose(forced, model.step(state, changed), atol=1e-12)


def test_a_brighter_sun_is_a_larger_solar_constant(x64):
    rng = np.random.default_rng(4)
    model = EnergyBalanceModel()
    brighter = EnergyBalanceModel(solar_constant=model.solar_constant + 20.0)
    parameters, state = random_parameters(rng, model), jnp.asarray(rng.normal(10, 20, 96))
    forced = model.step(state, parameters, {"solar": 20.0})
    np.testing.assert_allclose(forced, brighter.step(state, parameters), atol=1e-10)


def test_less_outgoing_longwave_warms_by_its_feedback(x64):
    """At equilibrium the global mean warms by −ΔF/B."""
    model = EnergyBalanceModel()
    static, start = model.table.static(96), jnp.full(96, 15.0)
    steady = [integrate(model, start, static, 4000, {"longwave": f}) for f in (0.0, -3.7)]
    warming = model.grid.mean(np.asarray(steady[1] - steady[0]))
    assert warming == pytest.approx(3.7 / 2.0, rel=1e-6)


def test_there_is_no_such_forcing():
    model = EnergyBalanceModel(grid=Grid(8))
    with pytest.raises(InputError, match="no forcing of EnergyBalanceModel 'long_wave'"):
        integrate(model, jnp.full(8, 15.0), model.table.static(8), 1, {"long_wave": 1.0})


def test_float32_stays_float32():
    model = EnergyBalanceModel()
    with jax.enable_x64(True):
        after = model.step(jnp.full(96, 50.0, jnp.float32), model.table.static(96))
    assert after.dtype == jnp.float32


def test_compiled_once_for_equal_models():
    integrate.clear_cache()
    for _ in range(3):
        model = EnergyBalanceModel(grid=Grid(8))
        integrate(model, jnp.full(8, 50.0), model.table.static(8), 5)
    assert integrate._cache_size() == 1


@pytest.mark.parametrize("change", [{"water_depth": 0.0}, {"solar_constant": float("nan")}])
def test_bad_constants(change):
    with pytest.raises(InputError):
        EnergyBalanceModel(**change)


@pytest.mark.parametrize("forcing", [None, {"longwave": -3.7, "solar": 20.0}])
def test_fluxes_are_those_of_the_equation_forced_or_not(x64, forcing):
    rng, model = np.random.default_rng(7), EnergyBalanceModel()
    state, p = jnp.asarray(rng.normal(10, 20, 96)), random_parameters(rng, model)
    found = model.fluxes(state, p, forcing)
    change, sun = (0.0, 0.0) if forcing is None else (-3.7, 20.0)
    Q = model.insolation * (1 + sun / 1365.2)
    x = np.sin(np.deg2rad(model.grid.centres))
    albedo = p["a0"] + p["a2"] * (3 * x**2 - 1) / 2
    np.testing.assert_allclose(found["outgoing_longwave"], p["A"] + p["B"] * state + change)
    np.testing.assert_allclose(found["absorbed_shortwave"], (1 - albedo) * Q)
