"""A model that computes outside JAX is the same model."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.climate import Columns, check_model
from fedrain.climate.models.host import clear_failures
from fedrain.errors import InputError
from tests.climate.models import AIR, SURFACE, HostLayered, Layered, random_parameters

FORCING = {"co2": jnp.asarray(400.0), "longwave": jnp.asarray(-1.0)}


def assert_same(one, other, **tolerance):
    assert set(one) == set(other)
    for name in one:
        np.testing.assert_allclose(one[name], other[name], **tolerance)


@pytest.mark.parametrize("columns", [Columns.zonal(6), Columns.lat_lon(3, 4)])
def test_is_the_same_as_its_twin_in_jax(x64, columns):
    """Alone, compiled, mapped, mapped twice and inside a scan."""
    twin, host = Layered(columns=columns), HostLayered(columns=columns)
    rng, key = np.random.default_rng(0), jax.random.key(0)
    parameters = jax.tree.map(jnp.asarray, random_parameters(rng, twin))
    start = twin.init(key, surface=5.0)
    assert_same(host.init(key, surface=5.0), start)
    starts = jax.tree.map(
        lambda leaf: leaf + jnp.arange(12.0).reshape(3, 4, *[1] * leaf.ndim), start
    )

    def alone(model):
        return model.step(start, parameters, FORCING, key)

    def mapped(model):
        step = jax.vmap(model.step, in_axes=(0, None, None, None))
        return jax.vmap(step, in_axes=(0, None, None, None))(starts, parameters, FORCING, key)

    def scanned(model):
        def one(state, _):
            return model.step(state, parameters, FORCING, key), None

        return jax.lax.scan(one, start, length=20)[0]

    for run in (alone, mapped, scanned):
        for how in (run, jax.jit(run, static_argnums=0)):
            assert_same(how(host), run(twin), rtol=1e-12)


def test_float32_in_is_float32_out():
    host = HostLayered()
    state = host.init(jax.random.key(0))
    after = host.step(state, host.table.static(6), FORCING, jax.random.key(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(after)} == {jnp.dtype("float32")}


def test_what_is_random_comes_from_the_key():
    host = HostLayered(weather=1.0)
    static = host.table.static(6)
    start = host.init(jax.random.key(0))
    step = jax.jit(lambda key: host.step(start, static, FORCING, key)[SURFACE])
    one, same, other = (np.asarray(step(jax.random.key(k))) for k in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()
    several = jax.vmap(step)(jax.random.split(jax.random.key(3), 4))
    assert len(np.unique(np.asarray(several))) == 24


def test_changing_the_state_in_place_changes_nothing_outside():
    class Careless(HostLayered):
        def step_host(self, state, parameters, forcing, rng):
            state[SURFACE] += 1.0
            parameters["q"][:] = 0.0
            return state

    host = Careless()
    start, static = host.init(jax.random.key(0)), host.table.static(6)
    for _ in range(2):
        after = host.step(start, static, FORCING, jax.random.key(0))
        np.testing.assert_allclose(after[SURFACE], 11.0)
    np.testing.assert_allclose(start[SURFACE], 10.0)
    np.testing.assert_allclose(static["q"], 0.5)
    check_model(host)
    np.testing.assert_allclose(host.init(jax.random.key(0))[SURFACE], 10.0)


class Breaking(HostLayered):
    """Fails when it has become warm."""

    def init_host(self, rng, surface=10.0, air=250.0):
        if surface > 50:
            raise ValueError("there is no ice at 50 °C")
        return super().init_host(rng, surface, air)

    def step_host(self, state, parameters, forcing, rng):
        if state[SURFACE].max() > 20:
            raise ArithmeticError("the ice has melted\nand the line goes on")
        return super().step_host(state, parameters, forcing, rng)


def wrong_shape(self, state, parameters, forcing, rng):
    return {**state, AIR: state[AIR][:, :2]}


def wrong_structure(self, state, parameters, forcing, rng):
    return {**state, "snow": state[SURFACE]}


def not_a_number(self, state, parameters, forcing, rng):
    return {**state, SURFACE: state[SURFACE] * np.nan}


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (wrong_shape, r"step_host fails .*shape \(6, 2\), not \(6, 3\)"),
        (wrong_structure, "step_host fails .*structure"),
        (not_a_number, "step_host gives NaN or infinity"),
        (lambda *_: 1 / 0, "step_host fails .ZeroDivisionError: division by zero"),
        (lambda *_: None, "step_host fails .*structure"),
    ],
)
def test_what_is_wrong_is_said_before_it_runs(step, message):
    host = type("Mine", (HostLayered,), {"step_host": step})()
    with pytest.raises(InputError, match=f"Mine: {message}") as caught:
        check_model(host)
    assert "\n" not in str(caught.value)


def test_what_goes_wrong_on_the_way_is_one_line(caplog, capfd):
    host = Breaking()
    check_model(host)
    start, static = host.init(jax.random.key(0), surface=19.8), host.table.static(6)

    @jax.jit
    def run(state):
        def one(state, _):
            return host.step(state, static, FORCING, jax.random.key(0)), None

        return jax.lax.scan(one, state, length=50)[0]

    message = r"^Breaking: step_host fails \(ArithmeticError: the ice has melted; .*py:\d+\)$"
    caplog.set_level(logging.DEBUG)
    with pytest.raises(InputError, match=message), clear_failures():
        jax.block_until_ready(run(start))
    assert "Traceback" not in caplog.text + capfd.readouterr().err


def test_a_start_that_fails_is_one_line():
    message = r"^Breaking: init_host fails \(ValueError: there is no ice at 50 °C; .*py:\d+\)$"
    with pytest.raises(InputError, match=message), clear_failures():
        jax.block_until_ready(Breaking().init(jax.random.key(0), surface=60.0))


def test_other_errors_pass_as_they_are():
    with pytest.raises(ZeroDivisionError), clear_failures():
        _ = 1 / 0
