"""Radiation, convection and transport in columns: against climlab, SciPy and conservation laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from fedrain.climate import Grid, check_model, integrate
from fedrain.climate.models.climlab import import_climlab
from fedrain.climate.models.radiative_convective import (
    AIR_HEAT_CAPACITY,
    FREEZING,
    LAYER_MASS,
    LEVELS,
    PRESSURE,
    STEFAN_BOLTZMANN,
    RadiativeConvectiveModel,
    adjust,
    beams,
    column_parameters,
    pool,
)
from fedrain.climate.reanalysis import air_table
from fedrain.errors import InputError
from tests.conftest import random_parameters

#: A well-mixed absorber and no window: climlab's model.
AS_CLIMLAB = {"well_mixed": 1.0, "window": 0.0}
AIR = LAYER_MASS * AIR_HEAT_CAPACITY  # J m⁻² K⁻¹
advance = jax.jit(RadiativeConvectiveModel.step, static_argnums=0)


def climlab_column(model, parameters, state, column):
    climlab = import_climlab()
    process = climlab.GreyRadiationModel(
        lev=PRESSURE[::-1],
        water_depth=model.water_depth,
        albedo_sfc=parameters["albedo"][column],
        Q=model.insolation[column],
        abs_coeff=parameters["kappa"][column],
        timestep=model.time_step,
    )
    process.subprocess["SW"].absorptivity = np.array(model.shortwave_absorptivity)[::-1]
    convection = climlab.convection.ConvectiveAdjustment(
        state=process.state, adj_lapse_rate=parameters["lapse"][column], timestep=process.timestep
    )
    process.add_subprocess("convection", convection)
    for part in process.subprocess.values():
        part.timestep = model.time_step
    process.Tatm[:] = np.asarray(state["air"][column])[::-1]
    process.Ts[:] = float(state["surface"][column])
    return process


@pytest.mark.parametrize("seed", range(3))
def test_columns_are_climlab_over_100_steps(seed):
    rng = np.random.default_rng(seed)
    absorbing = rng.uniform(0, 0.05, 17)
    model = RadiativeConvectiveModel(
        grid=Grid(6),
        water_depth=rng.uniform(0.5, 5),
        days_per_step=rng.uniform(0.5, 2),
        shortwave_absorptivity=tuple(absorbing.tolist()),
        **AS_CLIMLAB,
    )
    parameters = random_parameters(rng, model) | {"D": np.zeros(6)}
    with jax.enable_x64(True):
        state = model.init(offset=rng.uniform(-10, 10))
        single = jax.tree.map(lambda x: x.astype(jnp.float32), state)
        peers = [climlab_column(model, parameters, state, column) for column in range(6)]
        for _ in range(100):
            state, single = (advance(model, s, parameters) for s in (state, single))
            for peer in peers:
                peer.step_forward()
            air = np.array([peer.Tatm[::-1] for peer in peers])
            np.testing.assert_allclose(state["air"], air, rtol=0, atol=1e-6)
            surface = np.array([peer.Ts[0] for peer in peers])
            np.testing.assert_allclose(state["surface"], surface, rtol=0, atol=1e-6)
            for name, peer_name in (("longwave", "OLR"), ("shortwave", "ASR")):
                flux = np.array([float(getattr(peer, peer_name)[0]) for peer in peers])
                np.testing.assert_allclose(state[name], flux, rtol=0, atol=1e-6)
    assert single["air"].dtype == jnp.float32
    np.testing.assert_allclose(single["air"], air, rtol=0, atol=0.05)


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), levels=st.sampled_from([1, 2, 18]))
def test_pooling_is_isotonic_regression(seed, levels):
    with jax.enable_x64(True):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(3, levels)).cumsum(-1) + np.arange(levels) * rng.uniform(-1, 1)
        weights = rng.uniform(0.01, 1, (3, levels))
        found = pool(jnp.asarray(values), jnp.asarray(weights))
        peer = [isotonic_regression(v, weights=w).x for v, w in zip(values, weights, strict=True)]
        np.testing.assert_allclose(found, peer, atol=1e-10)


def lapse_rates(air, surface):
    """K km⁻¹ between levels of a column in hydrostatic balance."""
    column = np.concatenate([surface[:, None], air], axis=-1)[:, 1:]
    return np.diff(np.log(column)) / np.diff(np.log(PRESSURE)) * 9.8 / 287 * 1000


def test_convection_conserves_enthalpy_and_leaves_no_instability(x64):
    rng = np.random.default_rng(0)
    air, surface = (
        jnp.asarray(rng.uniform(190, 310, (40, 17))),
        jnp.asarray(rng.uniform(250, 320, 40)),
    )
    critical, capacity = jnp.asarray(rng.uniform(3, 10, 40)), 4e6
    after, ground = adjust(air, surface, critical, capacity)
    before = np.asarray(air) @ AIR + np.asarray(surface) * capacity
    np.testing.assert_allclose(np.asarray(after) @ AIR + np.asarray(ground) * capacity, before)
    assert (lapse_rates(after, ground) <= np.asarray(critical)[:, None] + 1e-9).all()
    assert (np.asarray(ground) <= np.asarray(after[:, 0]) + 1e-9).all()  # both at 1000 hPa
    again = adjust(after, ground, critical, capacity)
    np.testing.assert_allclose(again[0], after, atol=1e-10)
    isothermal = jnp.full((40, 17), 250.0), jnp.full(40, 240.0)
    np.testing.assert_allclose(adjust(*isothermal, critical, capacity)[0], 250.0, atol=1e-10)


def random_state(rng, model):
    state = model.init()
    return state | {
        name: state[name] + rng.normal(0, 5, state[name].shape) for name in ("air", "surface")
    }


@pytest.mark.parametrize("forcing", [{}, {"longwave": -3.7, "solar": 20.0}])
def test_what_enters_at_the_top_is_what_the_globe_gains(x64, forcing):
    rng, model = np.random.default_rng(1), RadiativeConvectiveModel()
    for _ in range(5):
        before = random_state(rng, model)
        after = advance(model, before, random_parameters(rng, model), forcing)
        air, surface = (np.asarray(after[n] - before[n]) for n in ("air", "surface"))
        gained = model.grid.mean(air @ AIR + surface * model.surface_capacity) / model.time_step
        net = np.asarray(after["shortwave"] - after["longwave"])
        assert gained == pytest.approx(model.grid.mean(net), abs=1e-7)


def test_without_transport_columns_are_alone_and_with_it_neighbours_feel_each_other(x64):
    model = RadiativeConvectiveModel(grid=Grid(12))
    state, static = model.init(), model.table.static(12)
    warmer = state | {"air": state["air"].at[5].add(10.0)}

    def touched(diffusivity):
        parameters = static | {"D": np.full(12, diffusivity)}
        one, other = (advance(model, s, parameters)["air"] for s in (state, warmer))
        return np.abs(one - other).max(axis=1) > 1e-12

    np.testing.assert_array_equal(np.flatnonzero(touched(0.0)), [5])
    assert touched(0.6).all()


def test_forcing_is_what_it_is_called(x64):
    model = RadiativeConvectiveModel(grid=Grid(12))
    state, static = model.init(), model.table.static(12)
    free = advance(model, state, static)
    forced = advance(model, state, static, {"longwave": -3.7, "solar": 13.652})
    np.testing.assert_allclose(forced["longwave"], free["longwave"] - 3.7)
    np.testing.assert_allclose(forced["shortwave"], free["shortwave"] * 1.01)


def test_the_static_albedo_absorbs_what_the_reanalysis_does(x64):
    model = RadiativeConvectiveModel()
    after = advance(model, model.init(), model.table.static(36))
    np.testing.assert_allclose(after["shortwave"], model.target["absorbed_shortwave"], atol=1e-6)


def test_radiative_equilibrium_of_a_thin_top_layer(x64):
    """Without convection or sunlight absorbed in it, a layer emits twice what it absorbs."""
    model = RadiativeConvectiveModel(
        grid=Grid(2), shortwave_absorptivity=(0.0,) * 17, window=0.0, days_per_step=2.0
    )
    parameters = model.table.static(2) | {"D": np.zeros(2), "lapse": np.full(2, 1e3)}
    parameters["albedo"] = np.full(2, 0.3)
    state = integrate(model, model.init(), parameters, 3000)
    np.testing.assert_allclose(state["longwave"], 0.7 * model.insolation, rtol=1e-4)
    top = np.asarray(state["air"])[:, -1]
    ε = np.asarray(model.longwave_absorptivity(jnp.asarray(parameters["kappa"])))[:, -1]
    # OLR = (1 − ε) U + ε σT⁴ and 2 σT⁴ = U, with U what comes from below.
    expected = np.asarray(state["longwave"]) / (2 - ε)
    np.testing.assert_allclose(STEFAN_BOLTZMANN * top**4, expected, rtol=1e-3)


def test_through_a_window_the_surface_radiates_to_space(x64):
    model = RadiativeConvectiveModel(grid=Grid(6), window=1.0)
    state = model.init()
    after = advance(model, state, model.table.static(6))
    np.testing.assert_allclose(after["longwave"], STEFAN_BOLTZMANN * state["surface"] ** 4)


def test_gradients_agree_with_finite_differences(x64):
    rng = np.random.default_rng(4)
    model = RadiativeConvectiveModel(grid=Grid(6))
    start, parameters = random_state(rng, model), model.table.static(6)
    weights = {"air": rng.normal(size=(6, 17)), "surface": rng.normal(size=6)}
    weights |= {"longwave": rng.normal(size=6), "shortwave": rng.normal(size=6)}

    @jax.jit
    @jax.value_and_grad
    def loss(p):
        end = integrate(model, start, p, 30)
        return sum((w * end[name]).sum() for name, w in weights.items())

    _, gradient = loss(parameters)
    for symbol, size in (("kappa", 1e-9), ("lapse", 1e-5), ("D", 1e-5), ("albedo", 1e-6)):
        direction = rng.normal(size=6) * size
        changed = ({**parameters, symbol: parameters[symbol] + s * direction} for s in (1, -1))
        ends = [loss(one)[0] for one in changed]
        expected = (ends[0] - ends[1]) / 2
        assert abs(expected) > 1e-8  # every parameter does something
        np.testing.assert_allclose(gradient[symbol] @ direction, expected, rtol=1e-4)


def test_a_start_is_the_reanalysis():
    model = RadiativeConvectiveModel(grid=Grid(36))
    seen = model.observe(model.init(offset=2.0))
    table = air_table()
    assert tuple(table["level"]) == LEVELS
    for latitude in (-87.5, -2.5, 42.5):  # in both grids
        own = np.flatnonzero(np.isclose(model.grid.centres, latitude))[0]
        expected = table["annual"][:, np.isclose(table["latitude"], latitude)][:, 0]
        np.testing.assert_allclose(model.target["air_temperature"][own], expected)
        np.testing.assert_allclose(seen["air_temperature"][own], expected + 2, atol=1e-3)
    assert float(model.init()["surface"].min()) > FREEZING - 60


def test_an_analysis_sets_what_was_observed(x64):
    model = RadiativeConvectiveModel(grid=Grid(6))
    state, observed = model.init(offset=5.0), {"air_temperature": jnp.zeros((6, 17))}
    after = model.analyse(state, observed)
    np.testing.assert_allclose(model.observe(after)["air_temperature"], 0.0, atol=1e-9)
    np.testing.assert_array_equal(after["surface"], state["surface"])


def test_keeps_the_contract():
    check_model(RadiativeConvectiveModel())
    assert hash(RadiativeConvectiveModel()) == hash(RadiativeConvectiveModel())


@pytest.mark.parametrize(
    "change",
    [
        {"water_depth": 0.0},
        {"days_per_step": np.inf},
        {"well_mixed": -0.1},
        {"window": 1.5},
        {"shortwave_absorptivity": (0.1, 0.1)},
        {"shortwave_absorptivity": (2.0,) * 17},
        {"table": column_parameters(Grid(36)).replace(bounds={"kappa": (1e-4, 2e-3)})},
    ],
)
def test_bad_input(change):
    with pytest.raises(InputError):
        RadiativeConvectiveModel(**change)


def test_beams_are_added_up_layer_by_layer(x64):
    """Down, reflected at the ground, and up again, as a sum with a loop over the layers."""
    rng = np.random.default_rng(4)
    a, e = rng.uniform(0, 1, (3, 17)), rng.uniform(0, 300, (3, 17))
    sun, ground, albedo = (rng.uniform(0, top, 3) for top in (400.0, 500.0, 1.0))
    down = np.zeros((3, 18))
    down[:, 17] = sun
    for k in reversed(range(17)):
        down[:, k] = (1 - a[:, k]) * down[:, k + 1] + e[:, k]
    up = np.zeros((3, 18))
    up[:, 0] = ground + albedo * down[:, 0]
    for k in range(17):
        up[:, k + 1] = (1 - a[:, k]) * up[:, k] + e[:, k]
    heat, surface, space = jax.jit(beams)(*map(jnp.asarray, (a, e, sun, ground, albedo)))
    np.testing.assert_allclose(heat, up[:, :-1] + down[:, 1:] - up[:, 1:] - down[:, :-1], atol=1e-9)
    np.testing.assert_allclose(surface, down[:, 0] - up[:, 0], atol=1e-9)
    np.testing.assert_allclose(space, up[:, -1])


def test_the_absorber_falls_with_height_as_it_should():
    """Optical depth from the top: f p/ps + (1 − f) (p/ps)⁴; and ε = 2x/(2 + x)."""
    model = RadiativeConvectiveModel(well_mixed=0.3)
    below = np.cumsum(model.absorber[::-1])[::-1]  # from each level to the top
    sigma = np.array([1000.0, *(np.array(LEVELS[1:]) + np.array(LEVELS[:-1])) / 2]) / 1000
    mass = 1e5 / 9.8
    np.testing.assert_allclose(below, mass * (0.3 * sigma + 0.7 * sigma**4), rtol=1e-12)
    x = 4e-4 * model.absorber
    found = model.longwave_absorptivity(jnp.full(36, 4e-4))[5]
    np.testing.assert_allclose(found, 2 * x / (2 + x), rtol=1e-5)
