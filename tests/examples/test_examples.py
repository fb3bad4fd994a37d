"""Every example is short, keeps to the contract of a climate model, and has a sensible climate."""

import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.baselines import static
from fedrain.climate import EnergyBalanceModel, check_model, integrate, trajectory
from fedrain.climate.model import no_forcing
from fedrain.envs import rollout
from fedrain.references import check_same, fingerprint, load
from tests.examples.examples import EXAMPLES, FOLDER, examples, no_fortran

KEY = jax.random.key(0)


def defaults(model):
    values = model.table.static(len(model.columns))
    return {symbol: jnp.asarray(value) for symbol, value in values.items()}


def part(name, what):
    """Something that an example's file has."""
    return getattr(sys.modules[EXAMPLES[name].make().model.__module__], what)


def held(environment, actions=None):
    """An episode with the same actions at every step; the static ones if there are none."""
    actions = environment.static_actions if actions is None else actions
    every = np.repeat(np.asarray(actions)[None], environment.episode_length, 0)
    return rollout(environment, jnp.asarray(every, jnp.float32))


@pytest.mark.parametrize("files", [e.files for e in EXAMPLES.values()], ids=EXAMPLES)
def test_at_most_60_lines(files):
    texts = [(FOLDER / file).read_text(encoding="utf-8") for file in files]
    assert sum(len(text.splitlines()) for text in texts) <= 60


@examples()
def test_contract_and_a_stable_episode(example):
    environment = example.make()
    check_model(environment.model)
    environment.check_start()
    assert environment.agents == example.agents
    played = held(environment)
    assert np.isfinite(played.reward).all()
    assert (played.reward[-1] > -(35.0**2)).all()  # K²: no region runs away
    assert example.make() == environment  # so that nothing is compiled twice


@examples()
def test_the_climate_is_that_of_the_earth(example):
    """Within what one expects of a static model that nobody has tuned."""
    environment = example.make()
    model = environment.model
    state = integrate(model, model.init(KEY), defaults(model), 2000 if example.in_jax else 700)
    temperature = np.asarray(model.observe(state)["surface_temperature"])
    assert 5 < model.columns.mean(temperature) < 20
    latitude = np.abs(model.columns.latitude)
    tropics, poles = temperature[latitude < 20].mean(), temperature[latitude > 65].mean()
    assert 20 < tropics < 33
    assert -50 < poles < 0


@examples()
def test_every_learnt_parameter_does_something(example):
    environment = example.make(episode_length=5)
    usual = held(environment).returns
    low, high = environment.action_bounds
    for row in environment.learnt:
        changed = environment.static_actions.copy()
        where = environment.action_slices[row.symbol]
        changed[:, where] = (0.3 * low + 0.7 * high)[where]
        assert (np.abs(held(environment, changed).returns - usual) > 1e-3).any(), row.symbol


@examples(lambda example: example.in_jax)
def test_gradient(example):
    environment = example.make(episode_length=10)
    shape = (10, *environment.static_actions.shape)
    actions = jnp.broadcast_to(jnp.asarray(environment.static_actions, jnp.float32), shape)
    slope = jax.grad(lambda a: rollout(environment, a).returns.sum())(actions)
    assert np.isfinite(slope).all()
    assert (slope != 0).mean() > 0.99


@examples(lambda example: example.name == "task")
def test_both_precisions_in_one_process(example):
    """Baselines in double precision and training in single do not get in each other's way."""
    environment = example.make(episode_length=4, start={}, forcing={})
    first = static(environment).returns
    np.testing.assert_allclose(held(environment).returns, first, rtol=1e-4)
    np.testing.assert_array_equal(static(environment).returns, first)


def test_one_heat_capacity_is_the_model_without_land():
    model = EXAMPLES["heat_capacity"].thing()(land_depth=10.0, water_depth=10.0)
    T = jnp.linspace(-30, 40, 96)
    np.testing.assert_allclose(
        model.step(T, defaults(model), no_forcing(model), KEY),
        EnergyBalanceModel().step(T, defaults(model), no_forcing(model), KEY),
        atol=1e-4,
    )


def test_diffusion_moves_heat_and_makes_none():
    """Σ cos φ C T is kept, where C differs from latitude to latitude."""
    model = EXAMPLES["heat_capacity"].thing()()
    T = jnp.linspace(-30, 40, 96) ** 2 / 50
    spread = model.diffuse(T, jnp.asarray(0.6))
    assert float(jnp.abs(spread - T).max()) > 0.1
    heat = model.heat_capacity * model.columns.weights
    np.testing.assert_allclose(heat @ np.asarray(spread), heat @ np.asarray(T), rtol=1e-5)
    assert 1 < model.heat_capacity.max() / model.heat_capacity.min() < 20


def test_a_diffusivity_of_its_own_is_worth_learning():
    """The best D lies within the bounds, and is not the static one."""
    environment = EXAMPLES["diffusivity_only"].make(start=20.0)
    assert environment.action_size == 1
    found = np.linspace(0.2, 1.0, 17)
    returns = [held(environment, np.full((6, 1), D)).returns.sum() for D in found]
    best = int(np.argmax(returns))
    assert 0 < best < len(found) - 1
    assert abs(found[best] - 0.6) > 0.05
    assert returns[best] > held(environment).returns.sum() * 0.99


def test_default_albedo_is_that_of_the_energy_balance_model():
    model, T = EXAMPLES["albedo"].make().model, jnp.linspace(-30, 40, 96)
    usual = EnergyBalanceModel()
    np.testing.assert_allclose(
        model.step(T, defaults(model), no_forcing(model), KEY),
        usual.step(T, defaults(usual), no_forcing(usual), KEY),
        rtol=1e-5,
    )


def test_two_layers_keep_their_energy():
    """What they gain together is the sunlight absorbed, less what leaves to space."""
    model = EXAMPLES["two_layer"].make().model
    mean, values = model.columns.mean, defaults(model)
    before = model.init(KEY)
    after = model.step(before, values, {}, KEY)
    gain = {name: np.asarray(after[name] - before[name], float) for name in before}
    heat = 4.2e7 * gain["surface_temperature"] + 1.0e7 * gain["air_temperature"]
    surface, air = (
        5.67e-8 * (before[n] + 273.15) ** 4 for n in ("surface_temperature", "air_temperature")
    )
    to_space = 0.1 * surface + 0.9 * air
    expected = mean(part("two_layer", "SUN") - np.asarray(to_space))
    assert mean(heat) / (4 * 86_400) == pytest.approx(expected, rel=1e-3)


def test_both_layers_are_judged():
    environment = EXAMPLES["two_layer"].make(episode_length=3)
    errors = environment.errors(environment.reset()[0], environment.params)
    squares = sum((error**2).mean(1) for error in errors.values())
    assert list(dict(environment.judged)) == ["surface_temperature", "air_temperature"]
    np.testing.assert_allclose(
        environment.reward(environment.reset()[0], environment.params), -squares, rtol=1e-5
    )


def test_the_clock_and_the_seasons():
    environment = EXAMPLES["season"].make()
    model, values = environment.model, defaults(environment.model)
    states = trajectory(model, model.init(KEY, day=180.0), values, 180)
    season = np.asarray(jax.vmap(model.season)(states))
    assert season.min() == 0
    assert season.max() < 1
    np.testing.assert_allclose(season[90:], season[:90])  # a year later it is the same time of year
    north = np.asarray(states["temperature"])[90:, model.columns.latitude > 40].mean(1)
    assert 0.5 < season[90 + int(np.argmax(north))] < 0.8  # the warmest time is after July
    assert np.ptp(north) > 15
    two = environment.observe(environment.reset()[0])[:, -2:]  # sine and cosine
    np.testing.assert_allclose((two**2).sum(1), 1, rtol=1e-5)


def test_starts_on_any_day():
    environment = EXAMPLES["season"].make()
    states, _ = jax.vmap(environment.reset)(jax.random.split(KEY, 64))
    assert len(np.unique(states.climate["step"])) > 20


def test_tiles_of_the_grid():
    environment = EXAMPLES["lat_lon"].make()
    columns, cells = environment.model.columns, environment.division.cells
    assert columns.shape == (24, 48)
    assert cells.shape == (8, 144)
    for own in cells:  # a rectangle, a quarter around the globe and from a pole to the equator
        assert np.ptp(columns.longitude[own]) == pytest.approx(90 - 7.5)
        assert np.ptp(columns.latitude[own]) == pytest.approx(90 - 7.5)


def test_heat_on_the_sphere():
    """Diffusion makes none, and smooths around the globe as well as along meridians."""
    model = EXAMPLES["lat_lon"].make().model
    values, mean = defaults(model), model.columns.mean
    T = 20 + 10 * jnp.asarray(np.sin(np.deg2rad(model.columns.longitude)))
    after = np.asarray(model.step(T, values, no_forcing(model), KEY), float)
    heating = part("lat_lon", "ABSORBED") - 210 - 2 * np.asarray(T)
    gain = part("lat_lon", "PACE") * heating
    assert mean(after - np.asarray(T)) == pytest.approx(mean(gain), abs=1e-4)
    unmoved = np.asarray(T) + gain
    polar = model.columns.latitude > 80
    assert np.ptp(after[polar]) < 0.5 * np.ptp(unmoved[polar])


def test_numpy_through_jax_is_numpy_alone():
    environment = EXAMPLES["numpy_model"].make(episode_length=20)
    model = environment.model
    seen = held(environment).state.climate["surface_temperature"][:, 0]
    alone = {"surface_temperature": np.asarray(seen[0], float)}
    values = model.table.static(len(model.columns))
    for _ in range(19):
        alone = model.step_host(alone, values, {"solar": 0.0}, np.random.default_rng(0))
    np.testing.assert_allclose(seen[-1], alone["surface_temperature"], atol=1e-3)


def test_ice_amplifies_a_change_of_the_sun():
    model = EXAMPLES["numpy_model"].make().model
    values = model.table.static(len(model.columns))
    ends = []
    for solar in (0.0, 20.0):
        state = model.init_host(np.random.default_rng(0))
        for _ in range(700):
            state = model.step_host(state, values, {"solar": solar}, np.random.default_rng(0))
        ends.append(state["surface_temperature"])
    warming = ends[1] - ends[0]
    polar = np.abs(model.columns.latitude) > 60
    assert warming[polar].max() > 1.5 * warming[~polar].mean() > 0


@no_fortran
def test_fortran_is_the_equation():
    model = EXAMPLES["fortran"].make().model
    rng = np.random.default_rng(1)
    values = {row.symbol: rng.uniform(row.low, row.high, row.shape(24)) for row in model.table}
    T = rng.uniform(-40, 40, 24)
    x = np.linspace(-1, 1, 25)
    sine = (x[1:] + x[:-1]) / 2
    albedo = values["a0"] + values["a2"] * (3 * sine**2 - 1) / 2
    absorbed = (1 - albedo) * part("fortran", "Q")
    expected = T.copy()
    for _ in range(4):
        flux = values["D"] * (1 - x[1:-1] ** 2) * np.diff(expected) * 12
        spread = np.diff(np.concatenate([[0], flux, [0]])) * 12
        heating = absorbed - values["A"] - values["B"] * expected + spread
        expected = expected + 86_400 / 4.2e7 * heating
    found = model.step_host({"surface_temperature": T.copy()}, values, {}, rng)
    np.testing.assert_allclose(found["surface_temperature"], expected, rtol=1e-12)


@no_fortran
def test_another_fortran_program_is_another_model(tmp_path):
    """What is compiled is no part of the Python source: its hash is a field of the model."""
    model = EXAMPLES["fortran"].make().model
    for file in ("ebm.py", "ebm.f90"):
        shutil.copy(FOLDER / "fortran" / file, tmp_path)
    other = tmp_path / "ebm.f90"
    other.write_text(other.read_text().replace("4.2d7", "8.4d7"))
    (tmp_path / "ebm.py").write_text((tmp_path / "ebm.py").read_text() + "# another file\n")
    changed = load(f"{tmp_path / 'ebm.py'}:FortranModel", "model")()
    with pytest.raises(ValueError, match="program is"):
        check_same("climate model", fingerprint(model), changed)
