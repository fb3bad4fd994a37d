"""The seasonal model against climlab, linear algebra and the theory of linear oscillators."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.climate import Grid, Orbit, check_model, integrate, trajectory
from fedrain.climate.diffusion import convergence
from fedrain.climate.models.climlab import import_climlab
from fedrain.climate.models.seasonal import SeasonalModel
from fedrain.climate.reanalysis import balanced_months
from fedrain.errors import InputError
from tests.conftest import random_parameters

#: No land, no ice and one heat capacity: climlab's model.
AS_CLIMLAB = {"land": 0.0, "ocean_depth": 10.0, "ice_edges": (-90.0, 90.0)}

advance = jax.jit(SeasonalModel.step, static_argnums=0)


def climlab_model(model: SeasonalModel):
    with np.errstate(invalid="ignore"):
        process = import_climlab().EBM_seasonal(
            num_lat=model.grid.latitudes, S0=model.solar_constant, water_depth=model.ocean_depth
        )
        orbit = model.orbit
        process.subprocess["insolation"].orb = {
            "ecc": orbit.eccentricity,
            "long_peri": orbit.perihelion,
            "obliquity": orbit.obliquity,
        }
    return process


def climlab_step(process, parameters, albedo):
    parts = process.subprocess
    parts["LW"].A, parts["LW"].B = parameters["A"][:, None], parameters["B"][:, None]
    D = parameters["D"]
    parts["diffusion"].D = np.concatenate([[0.0], (D[1:] + D[:-1]) / 2, [0.0]])
    parts["albedo"].a0, parts["albedo"].a2 = albedo
    process.step_forward()
    return np.array(process.Ts[:, 0])


@pytest.mark.parametrize("latitudes", [24, 96])
@pytest.mark.parametrize("orbit", [Orbit(), Orbit(0.04, 120.0, 24.2)])
def test_is_climlab_over_a_year_of_random_parameters(latitudes, orbit):
    rng = np.random.default_rng(latitudes)
    model = SeasonalModel(grid=Grid(latitudes), orbit=orbit, **AS_CLIMLAB)
    process = climlab_model(model)
    with jax.enable_x64(True):
        double = model.init(offset=rng.uniform(-10, 10, latitudes))
        process.Ts[:, 0] = np.asarray(double["ocean"])
        single = jax.tree.map(
            lambda x: x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x, double
        )
        for _ in range(model.steps_per_year + 5):  # beyond the turn of the year
            parameters = random_parameters(rng, model)
            a0, a2 = rng.uniform(0.2, 0.4), rng.uniform(0.0, 0.3)
            parameters["albedo"] = a0 + a2 * model.grid.p2
            double, single = (advance(model, s, parameters) for s in (double, single))
            expected = climlab_step(process, parameters, (a0, a2))
            seen = model.observe(double)["surface_temperature"]
            np.testing.assert_allclose(seen, expected, rtol=0, atol=1e-9)
            assert single["ocean"].dtype == jnp.float32
            np.testing.assert_allclose(single["ocean"], expected, rtol=0, atol=5e-3)
            radiation = process.subprocess
            longwave = np.array(radiation["LW"].OLR[:, 0])
            np.testing.assert_allclose(double["longwave"], longwave, atol=1e-9)
            shortwave = np.array(radiation["SW"].ASR[:, 0])
            np.testing.assert_allclose(double["shortwave"], shortwave, atol=1e-9)


def test_where_land_is_as_sluggish_as_the_ocean_it_makes_no_difference(x64):
    rng = np.random.default_rng(0)
    like_sea = SeasonalModel(grid=Grid(24), land_depth=10.0, ocean_depth=10.0)
    no_land = SeasonalModel(grid=Grid(24), **AS_CLIMLAB)
    assert like_sea.land_share.max() > 0.5
    parameters = random_parameters(rng, no_land)
    one, other = (integrate(m, m.init(), parameters, 100) for m in (like_sea, no_land))
    np.testing.assert_allclose(one["land"], other["ocean"], atol=1e-9)
    np.testing.assert_allclose(one["ocean"], other["ocean"], atol=1e-9)


def random_state(rng, model):
    state = model.init(day=rng.uniform(0, 365))
    shape = state["land"].shape
    return state | {name: jnp.asarray(rng.normal(5, 20, shape)) for name in ("land", "ocean")}


@pytest.mark.parametrize("forcing", [{}, {"longwave": -3.7, "solar": 20.0}])
def test_radiation_alone_changes_the_heat_of_the_globe(x64, forcing):
    """Neither the exchange of land and ocean nor diffusion makes heat."""
    rng, model = np.random.default_rng(1), SeasonalModel()
    share = np.stack([model.land_share, 1 - model.land_share])
    for _ in range(10):
        before = random_state(rng, model)
        after = advance(model, before, random_parameters(rng, model), forcing)
        change = np.stack([after[name] - before[name] for name in ("land", "ocean")])
        gained = model.grid.mean((share * model.heat_capacities * change).sum(0))
        net = np.asarray(after["shortwave"] - after["longwave"])
        assert gained / model.time_step == pytest.approx(model.grid.mean(net), abs=1e-8)


def test_forcing_is_what_it_is_called(x64):
    rng, model = np.random.default_rng(2), SeasonalModel(grid=Grid(12))
    state, parameters = random_state(rng, model), random_parameters(rng, model)
    free = advance(model, state, parameters)
    forced = advance(model, state, parameters, {"longwave": -3.7, "solar": 13.652})
    np.testing.assert_allclose(forced["longwave"], free["longwave"] - 3.7)
    np.testing.assert_allclose(forced["shortwave"], free["shortwave"] * 1.01)


def test_exchange_and_transport_solve_one_implicit_system(x64):
    """(T' − T*) C/Δt is what reaches land and ocean at the end of the step, not at its start."""
    rng, model = np.random.default_rng(3), SeasonalModel()
    state, parameters = random_state(rng, model), random_parameters(rng, model)
    after = advance(model, state, parameters)
    f, k = model.land_share, parameters["k"]
    mean = f * after["land"] + (1 - f) * after["ocean"]
    heat = convergence(model.grid, mean, jnp.asarray(parameters["D"]))
    gap = after["ocean"] - after["land"]
    for name, capacity, exchange in zip(
        ("land", "ocean"), model.heat_capacities, (k * (1 - f) * gap, -k * f * gap), strict=True
    ):
        radiation = after["shortwave"] - parameters["A"] - parameters["B"] * state[name]
        stored = capacity / model.time_step * (after[name] - state[name])
        np.testing.assert_allclose(stored, radiation + heat + exchange, atol=1e-6)


def test_a_column_alone_follows_the_sun_as_a_linear_oscillator(x64):
    """Without neighbours T' = T + Δt/C (F − B T): its first harmonic is known."""
    model = SeasonalModel(grid=Grid(12), land=1.0)
    parameters = model.table.static(12) | {"D": np.zeros(12), "k": np.zeros(12)}
    year = trajectory(model, integrate(model, model.init(), parameters, 1800), parameters, 90)
    harmonic = np.exp(-2j * np.pi * np.arange(90) / 90)
    # The first entry is the state after step 0, so that it stands at time 1.
    response = harmonic @ np.roll(np.asarray(year["land"]), 1, axis=0)
    forcing = harmonic @ ((1 - parameters["albedo"]) * model.insolation)
    pace = model.time_step / model.heat_capacities[0]
    transfer = pace / (np.exp(2j * np.pi / 90) - 1 + pace * parameters["B"])
    np.testing.assert_allclose(response, transfer * forcing, rtol=1e-9, atol=1e-7)
    assert (np.abs(response) > 100).any()


def test_land_swings_more_than_the_ocean_and_the_sea_lags():
    model = SeasonalModel()
    static = model.table.static(96)
    year = trajectory(model, integrate(model, model.init(), static, 450), static, 90)
    middle = (model.grid.centres > 40) & (model.grid.centres < 60)
    land, ocean = (np.asarray(year[name])[:, middle].mean(1) for name in ("land", "ocean"))
    assert np.ptp(land) > 2 * np.ptp(ocean)
    assert 0 < ocean.argmax() - land.argmax() < 20


def test_gradients_agree_with_finite_differences(x64):
    rng = np.random.default_rng(4)
    model = SeasonalModel(grid=Grid(12))
    start, parameters = random_state(rng, model), model.table.static(12)
    weights = {name: rng.normal(size=12) for name in ("land", "ocean", "longwave", "shortwave")}

    @jax.jit
    @jax.value_and_grad
    def loss(p):
        end = integrate(model, start, p, 120)
        return sum((w * end[name]).sum() for name, w in weights.items())

    _, gradient = loss(parameters)
    for symbol in parameters:
        assert np.abs(gradient[symbol]).max() > 1e-3  # every parameter does something
        direction = rng.normal(size=12) * 1e-4
        changed = ({**parameters, symbol: parameters[symbol] + s * direction} for s in (1, -1))
        ends = [loss(one)[0] for one in changed]
        expected = (ends[0] - ends[1]) / 2
        np.testing.assert_allclose(gradient[symbol] @ direction, expected, rtol=1e-6, atol=1e-10)


def test_the_target_moves_with_the_clock(x64):
    model = SeasonalModel(grid=Grid(24), steps_per_year=24)  # every other step is mid-month
    months = balanced_months(model.columns)
    state = model.init()
    for step in range(30):
        now = model.target_at(state)
        assert float(model.season(state)) == pytest.approx(step % 24 / 24)
        if step % 2:
            expected = months["surface_temperature"][step % 24 // 2]
            np.testing.assert_allclose(now["surface_temperature"], expected, atol=1e-9)
        elif step:  # the fluxes of the step that led here are those of its beginning
            expected = months["outgoing_longwave"][(step - 1) % 24 // 2]
            np.testing.assert_allclose(now["outgoing_longwave"], expected, atol=1e-9)
        state = advance(model, state, model.table.static(24))
    for name, mean in model.target.items():
        np.testing.assert_allclose(mean, months[name].mean(0), atol=1e-9)


@pytest.mark.parametrize("offset", [0.0, -4.0])
@pytest.mark.parametrize("day", [0.0, 200.0])
def test_a_start_is_the_reanalysis_of_that_day(x64, offset, day):
    model = SeasonalModel()
    state = model.init(offset=offset, day=day)
    seen, target = model.observe(state), model.target_at(state)
    error = seen["surface_temperature"] - target["surface_temperature"]
    np.testing.assert_allclose(error, offset, atol=1e-9)
    for name in ("outgoing_longwave", "absorbed_shortwave"):
        np.testing.assert_array_equal(seen[name], target[name])
    assert int(state["step"]) == int(day / model.days_per_step)


def test_an_analysis_sets_the_zonal_mean(x64):
    rng, model = np.random.default_rng(5), SeasonalModel()
    state, observed = random_state(rng, model), jnp.asarray(rng.normal(10, 20, 96))
    after = model.analyse(state, {"surface_temperature": observed})
    np.testing.assert_allclose(model.observe(after)["surface_temperature"], observed, atol=1e-9)
    shifts = [np.abs(after[name] - state[name]) for name in ("land", "ocean")]
    assert (shifts[0] >= shifts[1] - 1e-9).all()


def test_keeps_the_contract():
    check_model(SeasonalModel())
    check_model(SeasonalModel(grid=Grid(7), land=0.3))
    assert hash(SeasonalModel()) == hash(SeasonalModel())


@pytest.mark.parametrize(
    "change",
    [
        {"ocean_depth": 0.0},
        {"land_depth": np.nan},
        {"land": 1.2},
        {"ice_edges": (75.0, -65.0)},
        {"ice_edges": (1.0,)},
        {"steps_per_year": 0},
    ],
)
def test_bad_input(change):
    with pytest.raises(InputError):
        SeasonalModel(**change)


def test_heat_capacities_are_those_of_the_depths():
    """4181.3 kJ m⁻³ K⁻¹ of water, so deep; under ice the sea is as light as land."""
    model = SeasonalModel(grid=Grid(18), ocean_depth=60.0, land_depth=3.0, ice_edges=(-60.0, 70.0))
    latitude = model.grid.centres
    open_sea = (latitude > -60) & (latitude < 70)
    land, ocean = model.heat_capacities / 4181.3e3
    np.testing.assert_allclose(land, 3.0)
    np.testing.assert_allclose(ocean, np.where(open_sea, 60.0, 3.0))


def test_an_analysis_leaves_each_its_share(x64):
    """Land takes as much more than the ocean as its cycle is larger: 1/|10 + iωC|."""
    model = SeasonalModel(grid=Grid(12), land=0.4, ice_edges=(-90.0, 90.0))
    state = model.init()
    seen = model.observe(state)["surface_temperature"]
    after = model.analyse(state, {"surface_temperature": seen + 3.0})
    omega = 2 * np.pi / (365.2422 * 86400)
    land, ocean = (1 / np.abs(10 + 1j * omega * 4181.3e3 * depth) for depth in (2.0, 50.0))
    mean = 0.4 * land + 0.6 * ocean
    np.testing.assert_allclose(after["land"] - state["land"], 3.0 * land / mean, rtol=1e-9)
    np.testing.assert_allclose(after["ocean"] - state["ocean"], 3.0 * ocean / mean, rtol=1e-9)
