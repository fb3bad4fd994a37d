"""What is taken of jcm's inside, against jcm itself: when a new jcm breaks it, these say what."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("jcm", reason="the extra gcm is not installed", exc_type=ImportError)

from jcm.physics.speedy.speedy_coords import get_speedy_coords
from jcm.utils import TRUNCATION_FOR_NODAL_SHAPE

from fedrain.climate.models import jcm_internals
from fedrain.climate.models.gcm import GeneralCirculationModel
from fedrain.climate.models.jcm_internals import (
    LAYER_EDGES,
    TRUNCATIONS,
    Machine,
    machine,
    missing,
)
from fedrain.errors import FailureError, InputError

START = "2001-03-21"
FORCING = {"sst": 0.0, "solar": 0.0, "co2_absorptivity": 6.0}


def test_the_installed_jcm_has_all_that_is_used():
    assert missing() == []


def test_a_jcm_that_lacks_something_is_said_in_one_line(monkeypatch):
    monkeypatch.setattr(jcm_internals, "missing", lambda: ["jcm.model.Model", "jcm.date"])
    with pytest.raises(FailureError, match=r"jcm 3\S* has no jcm.model.Model, no jcm.date: pip"):
        jcm_internals.Machine(21, 8, "held-suarez", "aquaplanet", START)


def test_grids_are_those_of_jcm():
    shapes = {truncation: shape[1] for shape, truncation in TRUNCATION_FOR_NODAL_SHAPE.items()}
    assert shapes == TRUNCATIONS
    coords = get_speedy_coords(layers=8, spectral_truncation=21)
    model = GeneralCirculationModel()
    ours = np.deg2rad(model.columns.latitude)
    np.testing.assert_allclose(ours, coords.horizontal.latitudes, atol=1e-6)
    for layers, edges in LAYER_EDGES.items():
        vertical = get_speedy_coords(layers=layers, spectral_truncation=21).vertical
        np.testing.assert_allclose(vertical.boundaries, edges, atol=1e-6)


@pytest.mark.parametrize("physics", ["held-suarez", "speedy"])
def test_a_day_is_that_of_jcms_own_run(physics):
    """Up to rounding, which differs between two programs and grows with the weather."""
    ours = machine(21, 8, physics, "aquaplanet", START)
    forcing = FORCING if physics == "speedy" else {}
    state, _ = jax.jit(lambda state: ours.advance(state, {}, forcing, jnp.int32(0)))(ours.rest())
    ours.model.run(total_time=1, save_interval=1)
    expected = ours.unpack(ours.model.dycore_state)
    for name, found in state["air"].items():
        apart = np.linalg.norm(np.asarray(found) - np.asarray(expected[name]))
        assert apart <= 1e-4 * np.linalg.norm(expected[name]), name


def test_all_that_lasts_of_the_physics_is_kept():
    """A day from what is kept is, to the same bits, the day from all that jcm carries on."""
    ours = Machine(21, 8, "speedy", "aquaplanet", START)
    keep, restore = ours.memory, ours.carried
    ours.memory = ours.carried = lambda carry: carry  # all of it
    day = jax.jit(lambda state: ours.advance(state, {}, FORCING, jnp.int32(0)))
    first, _ = day({"air": ours.rest()["air"], "memory": ours.carry})
    air, seen = day(first)
    same_air, same_seen = day({**first, "memory": restore(keep(first["memory"]))})
    whole, kept = ((one["air"], two) for one, two in ((air, seen), (same_air, same_seen)))
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(kept), strict=True):
        np.testing.assert_array_equal(one, other)
    without = day({**first, "memory": ours.carry})[1]["outgoing_longwave"]
    assert np.abs(without - seen["outgoing_longwave"]).max() > 0  # and what is kept matters


def test_the_days_of_a_year_pass():
    """The sun of one day is another than that of three months later, unless it stays."""
    ours = machine(21, 8, "speedy", "aquaplanet", START)

    def light(day, perpetual):
        seen = ours.advance(ours.rest(), {}, FORCING, day, 1, perpetual)[1]
        return seen["absorbed_shortwave"]

    light = jax.jit(light, static_argnums=1)
    spring, summer = light(jnp.int32(0), False), light(jnp.int32(91), False)
    assert np.argmax(spring) in (15, 16)  # the sun is above the equator
    assert float(summer[20:].mean()) > 1.5 * float(summer[:12].mean())
    np.testing.assert_allclose(light(jnp.int32(0), True), spring, atol=2.0)


def test_what_is_no_parameter_is_refused():
    ours = machine(21, 8, "held-suarez", "aquaplanet", START)
    with pytest.raises(InputError, match="no parameter of the physics 'dTz': did you mean 'dThz'"):
        ours.check(["ka", "dTz"])
