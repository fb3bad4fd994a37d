"""The general circulation model behind the contract, and what it keeps in the cache folder."""

import errno
import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.cli import main
from fedrain.climate import (
    Columns,
    EarthCirculationModel,
    GeneralCirculationModel,
    Parameter,
    ParameterTable,
    check_model,
)
from fedrain.climate.models import gcm_store, jcm_internals
from fedrain.climate.models.gcm_parameters import twin_truth, with_units
from fedrain.climate.models.gcm_store import cache_folder, recorded, spun_up
from fedrain.climate.reanalysis import air_table, on_columns
from fedrain.errors import InputError, MissingExtraError
from tests.conftest import optimised

DRY = {"physics": "held-suarez", "spin_up": 2}


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDRAIN_CACHE", str(tmp_path))
    gcm_store.spun_up.cache_clear()
    yield tmp_path
    gcm_store.spun_up.cache_clear()


# ------------------------------------------------------------------- without the extra


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"truncation": 22}, "jcm has no truncation 22: use one of 21, 31"),
        ({"layers": 10}, "layers must be 7 or 8, not 10"),
        ({"physics": "spedy"}, "no physics of jcm 'spedy': did you mean 'speedy'"),
        ({"surface": "mars"}, "no surface 'mars'"),
        ({"spin_up": -1}, "spin_up must be an integer from 0"),
        ({"days_per_step": 0}, "days_per_step must be an integer from 1"),
        ({"start": "spring"}, "start must be a date"),
        ({"physics": lambda: None}, "a physics of your own needs a table"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        GeneralCirculationModel(**options)


def test_a_misspelt_parameter_is_said_before_anything_is_computed(own_cache, capsys, monkeypatch):
    """The nearest is offered, and no climate is spun up for it."""

    def computed(*arguments, **options):
        raise AssertionError("something was computed")

    monkeypatch.setattr("fedrain.climate.models.gcm_store._compute", computed)
    assert main(["train", "--env", "gcm-twin", "--learn", "albcl,rhcl"]) == 2
    said = capsys.readouterr().err.strip()
    assert re.search(r"no parameter 'rhcl': did you mean 'rh", said), said
    assert "\n" not in said


def test_without_the_extra_one_line_says_what_to_install(monkeypatch):
    def absent(*arguments):
        raise MissingExtraError("jcm", "gcm")

    monkeypatch.setattr(jcm_internals, "jcm", absent)
    model = GeneralCirculationModel(layers=7)  # of which there is no machine yet
    with pytest.raises(InputError) as caught:
        check_model(model)
    assert str(caught.value) == "jcm is not installed: pip install 'fedrain[gcm]'"


def test_the_truth_differs_from_the_default_in_every_band_and_is_within_the_bounds():
    model = GeneralCirculationModel()
    for symbol, values in twin_truth(model.columns).items():
        row = model.table[symbol]
        assert (values > row.low).all()
        assert (values < row.high).all()
        apart = np.abs(values - row.default).reshape(8, 4).mean(1)
        assert (apart > 0.005 * (row.high - row.low)).all(), symbol


def test_columns_weigh_as_much_as_their_area():
    columns = GeneralCirculationModel().columns
    assert columns.is_zonal
    # Gaussian quadrature is exact for polynomials of the sine.
    for power in range(0, 20, 2):
        sines = np.sin(np.deg2rad(columns.latitude))
        assert columns.mean(sines**power) == pytest.approx(1 / (power + 1), rel=1e-10)


def test_the_target_over_the_earth_is_the_reanalysis_on_the_models_layers():
    """At 200 hPa there is a level of the reanalysis, in the middle of January and of July."""
    model = EarthCirculationModel()
    table = air_table()
    level = list(table["level"]).index(200.0)
    annual, january, july = (
        on_columns(table["latitude"], table[name][level], model.columns)
        for name in ("annual", "january", "july")
    )
    layer = model.sigma.index(0.2)
    for day, sign in ((15, 1), (197, -1)):
        shown = {"surface_pressure": jnp.full(32, 1000.0)}
        found = model.target_at({"day": jnp.int32(day), "shown": shown})
        expected = annual + sign * (january - july) / 2
        np.testing.assert_allclose(found["air_temperature"][:, layer], expected, atol=0.05)
        light = found["absorbed_shortwave"]
        assert (light[:8].mean() > light[-8:].mean()) == (sign > 0)
    # On a mountain the same layer lies at a lower pressure.
    shown = {"surface_pressure": jnp.full(32, 700.0)}
    higher = model.target_at({"day": jnp.int32(15), "shown": shown})["air_temperature"]
    assert (higher[12:20, 0] < 15).all()


# ------------------------------------------------------------------- with the extra


@pytest.fixture(scope="module")
def jcm():
    return pytest.importorskip("jcm", reason="the extra gcm is not installed", exc_type=ImportError)


def test_it_has_the_parts_of_a_model(jcm, own_cache):
    model = GeneralCirculationModel(**DRY)
    check_model(model)
    state = model.init()
    assert int(state["day"]) == 2
    seen = model.observe(state)
    assert float(seen["air_temperature"].max()) < 60
    assert seen["air_temperature"].shape == (32, 8)
    assert model.sigma[0] > model.sigma[-1]  # from the ground up
    assert float(model.season(state)) == pytest.approx(79 / 365.2422)


def test_the_spin_up_is_computed_once(jcm, own_cache, capsys):
    model = GeneralCirculationModel(**DRY)
    first = spun_up(model)
    assert "computed once and stored in" in capsys.readouterr().err
    gcm_store.spun_up.cache_clear()
    again = spun_up(model)
    assert capsys.readouterr().err == ""
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(one, other)
    assert cache_folder() == own_cache
    (file,) = (own_cache / "gcm").glob("start-*.safetensors")
    file.write_bytes(file.read_bytes()[:100])
    gcm_store.spun_up.cache_clear()
    with pytest.raises(InputError, match="missing, cut short or damaged"):
        spun_up(model)


def test_a_cache_that_cannot_be_written_is_said_in_one_line(jcm, own_cache, monkeypatch):
    file = own_cache / "file"
    file.write_text("no folder")
    monkeypatch.setenv("FEDRAIN_CACHE", str(file))
    with pytest.raises(InputError, match=r"file/gcm/\S*: cannot be written") as caught:
        spun_up(GeneralCirculationModel(**DRY))
    assert "\n" not in str(caught.value)


def test_no_space_for_the_cache_is_said_in_one_line(jcm, own_cache, monkeypatch, capsys):
    """The disk fills while the spun-up climate is written: no half of it is left behind."""

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fedrain.io.os.fsync", full)
    dry = ["--set", "model.spin_up=1", "--set", "model.physics=held-suarez", "--learn", "dTy"]
    assert main(["gcm", "spin-up", "--env", "gcm-twin", *dry]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert "cannot be written (no space left on the device)" in said
    assert not list((own_cache / "gcm").glob("*.safetensors"))


def test_a_record_is_the_run_of_its_parameters(jcm, own_cache):
    model = GeneralCirculationModel(**DRY)
    model = replace(model, table=model.table.replace(static={"dTy": 40.0}))
    states = recorded(model, adjust=1, days=3)
    assert states["day"].tolist() == [4, 5, 6]
    values = {k: jnp.asarray(v, jnp.float32) for k, v in model.table.static(32).items()}
    last = jax.tree.map(lambda every: jnp.asarray(every[1]), states)
    after = jax.jit(model.step)(last, values, {})
    for one, other in zip(jax.tree.leaves(after), jax.tree.leaves(states), strict=True):
        np.testing.assert_array_equal(one, other[2])


def _idle(model, days):
    """Parameters and forcings at whose bounds a step shows nothing new, on any of four days.

    What acts in the weather of some days only, as low clouds do, has several to act in.
    """
    values = {k: jnp.asarray(v, jnp.float32) for k, v in model.table.static(32).items()}
    forcing = {one.name: jnp.float32(one.default) for one in model.forcings}
    step = optimised(model.step)  # some two hundred days
    changes = {
        one.name: [(values, {**forcing, one.name: one.default + 1})] for one in model.forcings
    }
    for row in model.table:
        ends = (jnp.full_like(values[row.symbol], bound) for bound in (row.low, row.high))
        changes[row.symbol] = [({**values, row.symbol: end}, forcing) for end in ends]
    state = model.rest()
    for _ in range(4):
        for _ in range(days):
            state = step(state, values, forcing)
        before = model.observe(step(state, values, forcing))

        def acts(changed, state=state, before=before):
            after = model.observe(step(state, changed[0], jax.tree.map(jnp.float32, changed[1])))
            return any(float(np.abs(after[f] - before[f]).max()) > 1e-4 for f in after)

        changes = {name: ends for name, ends in changes.items() if not any(map(acts, ends))}
        if not changes:
            break
    return list(changes)


def test_every_parameter_of_the_dry_physics_does_something(jcm):
    model = GeneralCirculationModel(**DRY)
    assert _idle(model, 3) == []


@pytest.mark.parametrize("surface", ["aquaplanet", pytest.param("earth", marks=pytest.mark.slow)])
def test_every_parameter_of_speedy_does_something(jcm, surface):
    model = GeneralCirculationModel(surface=surface)
    assert _idle(model, 20) == []


def test_defaults_are_those_of_jcm(jcm):
    for options in ({}, {"surface": "earth"}, DRY):
        model = GeneralCirculationModel(**options)
        known = model.machine.parameters
        for row in model.table:
            assert row.default * with_units(row) == pytest.approx(known[row.symbol], rel=1e-6)


def test_a_scheme_of_ones_own_brings_its_own_parameters(jcm, own_cache):
    """Friction that a user has written, as a term of jcm, with a value at each latitude."""
    from flax import nnx
    from jcm.physics.held_suarez.held_suarez_physics import held_suarez_physics
    from jcm.physics.physics_term import PhysicsTerm
    from jcm.physics_interface import PhysicsTendency

    class Drag(PhysicsTerm):
        name, category = "drag", "drag"

        def __init__(self):
            self.rate = nnx.Param(jnp.zeros(()))

        def __call__(self, state, diagnostics, forcing, terrain):
            slower = -self.rate.get_value() * state.u_wind
            return PhysicsTendency.zeros(state.temperature.shape, u_wind=slower), diagnostics

    def physics():
        return held_suarez_physics() + Drag()

    rows = Parameter("rate", "drag", "s-1", 0.0, 0.0, 1e-4, "column", action_unit=1e-4)
    model = GeneralCirculationModel(physics=physics, table=ParameterTable((rows,)), spin_up=1)
    state, step = model.init(), jax.jit(model.step)
    half = jnp.where(jnp.arange(32) < 16, 1e-4, 0.0)
    free, slowed = (step(state, {"rate": rate})["shown"] for rate in (0 * half, half))
    change = np.abs(slowed["eastward_wind"] - free["eastward_wind"]).max(-1)
    assert change[:15].max() > 5 * change[20:].max()
    wrong = replace(model, table=ParameterTable((replace(rows, symbol="rat"),)))
    with pytest.raises(InputError, match="no parameter of the physics 'rat': did you mean 'rate'"):
        _ = wrong.machine


def test_the_truth_is_as_its_description_says():
    """At the poles (s = ±1) and at the equator (s = 0), number by number."""
    latitude = np.array([-90.0, 0.0, 90.0])
    truth = twin_truth(Columns(latitude, weights=np.ones(3)))
    np.testing.assert_allclose(truth["albcl"], [0.43 + 0.05, 0.43 - 0.05, 0.43 + 0.15])
    np.testing.assert_allclose(truth["rhcl1"], [0.30 - 0.04, 0.30 + 0.04, 0.30 - 0.12])
    np.testing.assert_allclose(truth["trcnv"], [6 * 2**-1.5, 12.0, 6 * 2**-0.5])
    np.testing.assert_allclose(truth["ablwin"], [0.22, 0.50, 0.38], atol=1e-12)


def test_units_of_the_tables_are_jcms_by_a_factor():
    """Rates by the day are rates by the second there; all else is as it is."""
    model = GeneralCirculationModel(physics="held-suarez")
    factors = {row.symbol: with_units(row) for row in model.table}
    assert factors["ka"] == factors["ks"] == factors["kf"] == pytest.approx(1 / (24 * 3600))
    assert factors["dTy"] == factors["maxT"] == 1.0
