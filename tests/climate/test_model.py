"""The door of the contract: what is let in, and what is said to what is not."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.climate import Columns, EnergyBalanceModel, Field, Forcing, check_model, integrate
from fedrain.climate.model import check_start, no_forcing, trajectory
from fedrain.errors import InputError
from tests.climate.models import AIR, SURFACE, HostLayered, Layered, random_parameters


@pytest.mark.parametrize("model", [EnergyBalanceModel(), Layered(), HostLayered()])
def test_models_come_in(model):
    check_model(model)
    check_start(model, {})


def changed(**parts: Any) -> Any:
    """A model with other parts than it should have; None takes one away."""
    kept = {
        name: getattr(Layered, name)
        for name in ("columns", "table", "fields", "forcings", "init", "step", "observe", "weather")
    }
    return type("Mine", (), {k: v for k, v in {**kept, **parts}.items() if v is not None})()


def smaller(self, state, parameters, forcing, key):
    return {**state, SURFACE: state[SURFACE][:-1]}


def integer_clock(self, state, parameters, forcing, key):
    return {**state, "clock": jnp.asarray(3, jnp.int32)}


def failing_to_show(self, state):
    raise ArithmeticError("nothing to see")


def bare(self, state):
    return state[SURFACE]


def bare_step(self, state, parameters, forcing, key):
    return state[SURFACE]


def without_a_key(self):
    return jnp.zeros(6)


def of_six_columns(self, key):
    return Layered().init(key)


def melting(self, state, parameters, forcing, key):
    raise ArithmeticError("the ice has melted\nand more")


@property
def dividing(self):
    return Columns.zonal(1 // 0)


@property
def misspelt(self):
    return self.table_of_mine


@property
def too_few(self):
    return Columns.zonal(0)


def seasons(self, state):
    return state["clock"] + jnp.zeros(6)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"columns": dividing},
            r"^Mine: columns fails \(ZeroDivisionError: .*; test_model.py:\d+\)$",
        ),
        ({"table": misspelt}, "Mine: table fails .AttributeError: .*'table_of_mine'"),
        ({"columns": too_few}, "Mine: columns fails"),
        ({"season": seasons}, r"Mine: season must be one number, and has shape \(6,\)"),
        ({"season": lambda _: 1 / 0}, "Mine: season fails .TypeError"),
        ({"step": None}, "Mine has no step: a climate model has columns, table, fields"),
        ({"step": None, "init": None}, "Mine has no init and no step"),
        ({"columns": [0.0, 1.0]}, r"its columns must be fedrain\.climate\.Columns"),
        ({"table": {}}, r"its table must be a fedrain\.climate\.ParameterTable"),
        ({"fields": [Layered.fields[0]]}, r"its fields must be a tuple of fedrain\.climate\.Field"),
        ({"fields": ("snow",)}, r"its fields must be a tuple of fedrain\.climate\.Field"),
        ({"fields": ()}, "no field that could be judged"),
        ({"fields": Layered.fields * 2}, "a name occurs twice among its fields"),
        ({"forcings": ("co2",)}, r"its forcings must be a tuple of fedrain\.climate\.Forcing"),
        ({"forcings": (Forcing("a", "1"),) * 2}, "a name occurs twice among its forcings a, a"),
        ({"fields": (Field("snow", "m"),)}, "observe does not give the field 'snow'"),
        (
            {"fields": (Field(SURFACE, "degC", levels=(1.0, 2.0)),)},
            r"surface_temperature has shape \(6,\) instead of \(6, 2\)",
        ),
        ({"observe": failing_to_show}, "observe fails .ArithmeticError"),
        ({"observe": bare}, "observe must give a dictionary"),
        ({"init": without_a_key}, "init fails .TypeError"),
        ({"columns": Columns.zonal(5), "init": of_six_columns}, "instead"),
        (
            {"step": melting},
            r"step fails .ArithmeticError: the ice has melted; test_model.py:\d+\)",
        ),
        ({"step": smaller}, r"step changes .*float32\[6\].* becomes .*float32\[5\]"),
        ({"step": integer_clock}, r"step changes .* becomes .*int32\[\]"),
        ({"step": bare_step}, "step changes the structure"),
    ],
)
def test_what_is_not_a_model(parts, message):
    with pytest.raises(InputError, match=message) as caught:
        check_model(changed(**parts))
    assert "\n" not in str(caught.value)


def test_a_class_is_no_model():
    with pytest.raises(InputError, match=r"Layered is a class: a model is an object, Layered\(\)"):
        check_model(Layered)


def test_a_model_must_be_hashable():
    with pytest.raises(InputError, match="make it a frozen dataclass"):
        check_model(type("Mine", (Layered,), {"__hash__": None})())


def test_defaults_must_fit_the_columns():
    table = Layered().table.replace(static={"q": np.linspace(0.0, 1.0, 5)})
    with pytest.raises(InputError, match="q: 5 default values for 6 columns"):
        check_model(Layered(table=table))


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"surface": (float("nan"),) * 2}, "surface_temperature is NaN or infinite"),
        ({"air": (250.0, float("inf"))}, "air_temperature is NaN or infinite"),
        ({"surface": (20.0, 300.0)}, "starts at 300 to 300 degC: it must be within -90 to 90"),
        ({"surface": np.zeros((2, 5))}, "Layered: cannot start .TypeError"),
    ],
)
def test_bad_starts(start, message):
    with pytest.raises(InputError, match=message) as caught:
        check_start(Layered(), {name: np.asarray(bounds) for name, bounds in start.items()})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("steps", [1, 7])
def test_a_trajectory_is_step_after_step(steps):
    model = Layered()
    parameters = random_parameters(np.random.default_rng(0), model)
    forcing = {"co2": 560.0}
    start = model.init(jax.random.key(0), surface=3.0)
    every = trajectory(model, start, parameters, steps, forcing)
    state = start
    for i in range(steps):
        state = model.step(state, parameters, {**no_forcing(model), **forcing}, None)
        for name in (SURFACE, AIR):
            np.testing.assert_allclose(every[name][i], state[name], rtol=1e-5, atol=1e-4)
    last = integrate(model, start, parameters, steps, forcing)
    np.testing.assert_allclose(last[AIR], state[AIR], rtol=1e-5)


def test_a_model_that_draws_is_drawn_from_its_key():
    model = Layered(weather=1.0)
    start, static = model.init(jax.random.key(0)), model.table.static(6)
    one, same, other = (
        integrate(model, start, static, 3, key=jax.random.key(k))[SURFACE] for k in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()
    every = trajectory(model, start, static, 3, key=jax.random.key(1))[SURFACE]
    steps = np.diff(np.asarray(every), axis=0)
    assert np.abs(steps[0] - steps[1]).max() > 0.1  # new weather at every step
