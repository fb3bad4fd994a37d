"""The energy balance model with transport and albedo by latitude, and the climate with ice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.climate import (
    EnergyBalanceModel,
    EnergyBudgetModel,
    Grid,
    IceAlbedoModel,
    TwinModel,
    check_model,
    integrate,
)
from fedrain.climate.climatology import FLUX_SHIFT, ncep_profiles, ncep_table
from fedrain.climate.models.energy_budget import BudgetState, budget_parameters
from fedrain.errors import InputError


def random_parameters(rng, columns=96):
    table = budget_parameters(Grid(columns))
    return {row.symbol: jnp.asarray(rng.uniform(row.low, row.high, columns)) for row in table}


@pytest.mark.parametrize("model", [EnergyBudgetModel(), IceAlbedoModel(), TwinModel()])
def test_the_models_keep_the_contract(model):
    check_model(model)
    assert hash(model) == hash(type(model)())


@pytest.mark.parametrize("seed", range(3))
def test_with_one_d_and_a_paper_albedo_it_is_the_papers_model(seed):
    rng = np.random.default_rng(seed)
    with jax.enable_x64(True):
        paper, budget = EnergyBalanceModel(), EnergyBudgetModel()
        temperature = jnp.asarray(rng.normal(10, 20, 96))
        own = {
            "D": jnp.asarray(rng.uniform(0.3, 1.0)),
            "A": jnp.asarray(rng.uniform(180, 240, 96)),
            "B": jnp.asarray(rng.uniform(1.8, 2.2, 96)),
            "a0": jnp.asarray(0.35),
            "a2": jnp.asarray(0.25),
        }
        same = {
            "D": jnp.full(96, own["D"]),
            "A": own["A"],
            "B": own["B"],
            "albedo": own["a0"] + own["a2"] * paper.grid.p2,
        }
        forcing = {"longwave": -3.7, "solar": 5.0}
        after = budget.step(BudgetState(*[temperature] * 3), same, forcing)
        expected = paper.step(temperature, own, forcing)
        np.testing.assert_allclose(after.temperature, expected, atol=1e-10)
        fluxes = paper.fluxes(expected, own, forcing)
        np.testing.assert_allclose(after.outgoing_longwave, fluxes["outgoing_longwave"])
        np.testing.assert_allclose(after.absorbed_shortwave, fluxes["absorbed_shortwave"])


@pytest.mark.parametrize("seed", range(3))
def test_transport_moves_heat_and_makes_none(seed):
    """Whatever D is: the area mean of the temperature changes by the radiation alone."""
    rng = np.random.default_rng(seed)
    with jax.enable_x64(True):
        model = EnergyBudgetModel()
        parameters = random_parameters(rng)
        before = jnp.asarray(rng.normal(10, 20, 96))
        after = model.step(BudgetState(*[before] * 3), parameters).temperature
        heating = model.net_radiation(before, parameters)
        pace = model.time_step / model.heat_capacity
        gained = np.asarray(after - before - pace * heating)
        assert model.columns.mean(gained) == pytest.approx(0.0, abs=1e-10)


def test_gradients_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        model = EnergyBudgetModel(grid=Grid(12), table=budget_parameters(Grid(12)))
        parameters = random_parameters(rng, 12)
        start = model.init()

        def end(parameters):
            return (integrate(model, start, parameters, 20).temperature ** 2).sum()

        slope = jax.grad(end)(parameters)
        for symbol, cell in (("D", 3), ("A", 0), ("albedo", 7)):
            size = 1e-5

            def moved(by, symbol=symbol, cell=cell):
                return {**parameters, symbol: parameters[symbol].at[cell].add(by)}

            expected = (end(moved(size)) - end(moved(-size))) / (2 * size)
            assert slope[symbol][cell] == pytest.approx(float(expected), rel=1e-5)


def test_the_target_is_in_balance_and_its_shift_is_known():
    profiles = ncep_profiles(Grid(96).columns)
    mean = Grid(96).columns.mean
    longwave, shortwave = profiles["outgoing_longwave"], profiles["absorbed_shortwave"]
    assert abs(mean(longwave) - mean(shortwave)) < 0.05
    table = ncep_table()
    raw = np.interp(Grid(96).centres[5:-5], table["lat"], table["toa_outgoing_longwave"])
    np.testing.assert_allclose(longwave[5:-5], raw - FLUX_SHIFT)


@pytest.mark.parametrize(
    ("forcing", "globe", "poles"), [(-3.7, 2.77, 4.5), (-7.4, 4.94, 7.4), (4.0, -3.64, -5.8)]
)
def test_a_climate_with_ice_answers_as_it_should(forcing, globe, poles):
    with jax.enable_x64(True):
        model = IceAlbedoModel()
        values = {k: jnp.asarray(v) for k, v in model.table.static(96).items()}
        end = integrate(model, model.init(), values, 4000, {"longwave": forcing})
        warming = np.asarray(end.temperature) - model.target["surface_temperature"]
    assert model.columns.mean(warming) == pytest.approx(globe, abs=0.01)
    assert np.r_[warming[:16], warming[-16:]].mean() == pytest.approx(poles, abs=0.05)


def test_the_model_without_ice_with_the_albedo_of_the_truth_is_the_truth():
    """What is missing is the albedo, and nothing else: the same weather too."""
    truth, twin = IceAlbedoModel(weather=0.4), TwinModel(weather=0.4)
    key = jax.random.key(5)
    state = truth.init(offset=2.0)
    values = {k: jnp.asarray(v, jnp.float32) for k, v in truth.table.static(96).items()}
    albedo = truth.albedo(state.temperature, values)
    one = truth.step(state, values, None, key)
    other = twin.step(state, {**values, "albedo": albedo}, None, key)
    np.testing.assert_allclose(one.temperature, other.temperature, atol=1e-4)
    assert abs(np.asarray(one.temperature - state.temperature)).std() > 0.2


def test_weather_cannot_be_negative():
    with pytest.raises(InputError, match="weather must be a number from 0"):
        EnergyBudgetModel(weather=-1.0)


def test_the_albedo_of_the_truth_is_its_formula(x64):
    model = IceAlbedoModel(grid=Grid(24))
    x, t = np.sin(np.deg2rad(model.grid.centres)), np.linspace(-60, 40, 24)
    free = 0.3 + 0.078 * (3 * x**2 - 1) / 2
    expected = free + (0.62 - free) * 0.5 * (1 - np.tanh((t + 10) / 5))
    np.testing.assert_allclose(model.albedo(jnp.asarray(t), {}), expected, rtol=1e-12)


def test_the_target_of_the_truth_is_calm_and_in_equilibrium(x64):
    """Whatever the weather: what it absorbs and gains by transport is what it loses."""
    model = IceAlbedoModel(grid=Grid(12), weather=0.5)
    target = {name: np.asarray(values) for name, values in model.target.items()}
    t = target["surface_temperature"]
    moved = 0.555 * model.grid.laplacian @ t
    np.testing.assert_allclose(target["outgoing_longwave"], 210 + 2 * t, rtol=1e-9)
    gained = target["absorbed_shortwave"] - target["outgoing_longwave"] + moved
    np.testing.assert_allclose(gained, 0, atol=1e-6)


def budget(latitudes, **options):
    grid = Grid(latitudes)
    return EnergyBudgetModel(grid=grid, table=budget_parameters(grid), **options)


def test_weather_is_noise_of_its_own_strength(x64):
    """In every column, anew with every key, on top of the calm step."""
    noisy, still = budget(24, weather=0.4), budget(24)
    values = still.table.static(24)
    state = jax.jit(still.init)()
    calm = jax.jit(still.step)(state, values).temperature
    keys = jax.random.split(jax.random.key(0), 500)
    drawn = jax.jit(jax.vmap(lambda key: noisy.step(state, values, None, key).temperature))(keys)
    noise = np.asarray(drawn) - np.asarray(calm)
    assert noise.std() == pytest.approx(0.4, rel=0.03)
    assert np.abs(noise.mean(0)).max() < 0.1
    assert np.abs(np.corrcoef(noise.T) - np.eye(24)).max() < 0.25


def test_fluxes_are_those_of_the_state_that_is_shown(x64):
    """A + B T and (1 − α) Q of the temperature after the step, with the forcing."""
    model = budget(12)
    p = {name: np.asarray(v) for name, v in random_parameters(np.random.default_rng(1), 12).items()}
    after = jax.jit(model.step)(model.init(offset=8.0), p, {"longwave": -3.7, "solar": 0.0})
    expected = p["A"] + p["B"] * after.temperature - 3.7
    np.testing.assert_allclose(after.outgoing_longwave, expected, rtol=1e-12)
    np.testing.assert_allclose(after.absorbed_shortwave, (1 - p["albedo"]) * model.insolation)


def test_an_analysis_sets_the_temperature(x64):
    model = budget(12)
    state, observed = model.init(offset=5.0), jnp.linspace(-20.0, 25.0, 12)
    after = model.analyse(state, {"surface_temperature": observed})
    np.testing.assert_array_equal(after.temperature, observed)
    np.testing.assert_array_equal(after.outgoing_longwave, state.outgoing_longwave)
