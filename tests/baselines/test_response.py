"""How climates answer a forcing, and the proportional controller."""

import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.baselines import proportional
from fedrain.baselines.proportional import proportional_control
from fedrain.baselines.response import DOUBLING, Response, hold_actions, respond
from fedrain.climate import Columns
from fedrain.envs import make
from fedrain.errors import InputError


def held(environment):
    return jnp.asarray(environment.static_actions, jnp.float32)


def numpy_proportional(gain, diffusivity):
    """The annual model of the paper and the rule, in plain NumPy."""
    model = make("ebm-v1").model
    target = model.target["surface_temperature"]
    eigenvalues, vectors, inverse = model.grid.modes
    pace = model.time_step / model.heat_capacity
    temperature, total = np.full(96, 50.0), 0.0
    for _ in range(200):
        A = np.clip(210 + 100 * gain * (temperature - target), 140, 420)
        absorbed = (1 - 0.35 - 0.25 * model.grid.p2) * model.insolation
        heated = temperature + pace * (absorbed - A - 2 * temperature)
        temperature = vectors @ ((inverse @ heated) / (1 - pace * diffusivity * eigenvalues))
        total -= ((temperature - target) ** 2).mean()
    return temperature, total


@pytest.mark.parametrize(("gain", "diffusivity"), [(3.0, 0.55), (0.5, 0.6)])
def test_the_proportional_controller_is_that_of_plain_numpy(gain, diffusivity):
    found = proportional(make("ebm-v1"), gain, diffusivity)
    temperature, total = numpy_proportional(gain, diffusivity)
    np.testing.assert_allclose(found.final["surface_temperature"], temperature, atol=1e-4)
    assert found.returns.mean() == pytest.approx(total, abs=0.1)


def test_a_thermostat_is_as_good_as_the_best_agents():
    found = proportional(make("ebm-v1"))
    assert found.skill.globe == pytest.approx(1.53, abs=0.02)
    assert found.returns.mean() == pytest.approx(-17_170, abs=50)
    assert found.physics.above_black_body > 0  # and pays with an impossible budget


def test_in_a_shared_climate_it_does_the_same():
    one, six = proportional(make("ebm-v1")), proportional(make("ebm-v3"))
    assert six.skill.globe == pytest.approx(one.skill.globe, abs=1e-4)


def test_the_response_of_the_static_model_is_that_of_its_b():
    """In the linear model a forcing F warms by −F / B, everywhere alike."""
    environment = make("ebm-v3", latitudes=24, agents=6)
    found = respond(environment, hold_actions, held(environment), (-3.7, 4.0), steps=1500)
    assert found["model"][-3.7].warming == pytest.approx(1.85, abs=0.01)
    assert found["model"][-3.7].feedback == pytest.approx(2.0, abs=0.01)
    assert found["model"][-3.7].polar_amplification == pytest.approx(1.0, abs=0.01)
    assert found["model"][4.0].warming == pytest.approx(-2.0, abs=0.01)


def test_a_thermostat_hides_the_forcing():
    environment = make("ebm-v3")
    control, numbers = proportional_control(environment)
    found = respond(environment, control, numbers, steps=1500)["model"][-3.7]
    assert 0 < found.warming < 0.15  # where the model alone warms by 1.85 K


def test_the_truth_answers_beside_the_model():
    environment = make("ebm-twin")
    found = respond(environment, hold_actions, held(environment), (-3.7,), steps=3000)
    assert found["model"][-3.7].warming == pytest.approx(1.85, abs=0.01)
    assert found["truth"][-3.7].warming == pytest.approx(2.77, abs=0.02)
    assert found["truth"][-3.7].polar_amplification == pytest.approx(4.5 / 2.77, abs=0.02)


def test_polar_amplification_is_of_the_columns_beyond_60_degrees():
    columns = Columns.zonal(18)
    profile = np.where(np.abs(columns.latitude) > 60, 3.0, 1.0)
    found = Response.of(columns, -3.7, profile)
    assert found.warming == pytest.approx(float(columns.mean(profile)))
    assert found.polar_amplification == pytest.approx(3.0 / found.warming)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gain": np.nan}, "gain must be a number"),
        ({"diffusivity": 3.0}, "D must be between 0.55 and 0.65"),
    ],
)
def test_what_the_rule_cannot_be(options, said):
    with pytest.raises(InputError, match=said):
        proportional(make("ebm-v1"), **options)


def test_a_task_without_a_to_set_has_no_proportional_rule():
    with pytest.raises(InputError, match="proportional sets A of each column"):
        proportional(make("ebm-twin"))


def test_a_response_is_weighted_by_area():
    """Warming of 1 K in the tropics and 3 K at the poles, by the areas of the columns."""
    columns = Columns.zonal(6)  # in the middle of six bands of 30°
    one = Response.of(columns, DOUBLING, np.array([3.0, 1.0, 1.0, 1.0, 1.0, 3.0]))
    weights = np.cos(np.deg2rad([75.0, 45.0, 15.0]))
    mean = (3 * weights[0] + weights[1] + weights[2]) / weights.sum()
    assert one.warming == pytest.approx(mean)
    assert one.polar_amplification == pytest.approx(3 / mean)
    assert one.feedback == pytest.approx(3.7 / mean)
