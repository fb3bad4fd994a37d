"""Environments of any model: what agents set, and what they are judged by."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.climate import Columns, EnergyBalanceModel, Field, ncep_zonal_mean
from fedrain.envs import Task, make, options, rollout
from fedrain.envs.tasks import same_task
from fedrain.errors import InputError
from tests.climate.models import AIR, FIELDS, SURFACE, HostLayered, Layered
from tests.envs.layered import (
    AIR_TARGET,
    BOTH,
    KEY,
    SURFACE_TARGET,
    TARGET,
    after_some_steps,
    layered,
    random_actions,
)

GLOBE = Columns.lat_lon(24, 48)


def test_what_is_not_learnt_keeps_its_static_value():
    env = layered(learn=["q"])
    assert env.action_size == 2
    values = env.parameters(random_actions(env, 1)[0])
    np.testing.assert_allclose(values["k"], [0.1])
    np.testing.assert_allclose(values["g"], np.full((1, 6, 3), 0.2), rtol=1e-6)
    assert len(np.unique(values["q"])) == 6
    everything = layered()
    assert [row.symbol for row in everything.learnt] == ["k", "q", "g"]
    assert everything.action_size == 1 + 2 + 6


def test_fixed_bounds_drop_out_of_the_action():
    env = layered(bounds={"k": (0.1, 0.1)})
    assert env.action_size == 2 + 6
    np.testing.assert_allclose(env.parameters(env.static_actions)["k"], [0.1])


@pytest.mark.parametrize("name", ["ebm-v1", "ebm-v2", "ebm-v3"])
@pytest.mark.parametrize("columns", [Columns.zonal(6), Columns.lat_lon(6, 4)])
def test_static_actions_set_the_static_values(name, columns):
    each = np.random.default_rng(0).uniform(-1, 1, len(columns))
    table = Layered().table.replace(static={"q": each})
    model = Layered(columns=columns, table=table)
    target = np.zeros(len(columns))
    env = make(name, model=model, agents=1 if name == "ebm-v1" else 6, target=target)
    static = model.table.static(len(columns))
    for symbol, value in env.parameters(env.static_actions).items():
        expected = np.broadcast_to(static[symbol], (env.climates, *static[symbol].shape))
        np.testing.assert_allclose(value, expected, rtol=1e-6)
    for symbol, value in env.own_parameters(env.static_actions).items():
        np.testing.assert_allclose(value, static[symbol], rtol=1e-6)


def test_only_latitudes_are_curves():
    """What a row of cells along a latitude sets is no curve that knots could describe."""
    env = make("ebm-v3", model=Layered(columns=GLOBE), tiles=(3, 6), judge=[SURFACE])
    assert env.spec.profiles == ()


def test_the_spec_says_where_things_are():
    spec = layered().spec
    assert spec.common == (0,)
    assert spec.profiles == ((1, 3),)
    assert spec.shared
    np.testing.assert_allclose(np.array(spec.places)[:, 0], [-60, 0, 60], atol=1e-9)
    own = layered("ebm-v2").spec
    assert (own.common, own.shared) == ((), False)


@pytest.mark.parametrize("name", ["ebm-v2", "ebm-v3"])
def test_several_fields_are_judged_with_weights(name):
    env = layered(name)
    state, played = after_some_steps(env)
    fields = env.fields(state)
    surface = (np.asarray(fields[SURFACE]) - SURFACE_TARGET).reshape(3, -1) ** 2
    air = (np.asarray(fields[AIR]) - AIR_TARGET).reshape(3, -1) ** 2
    expected = -(surface.mean(1) + 0.25 * air.mean(1))
    np.testing.assert_allclose(played.reward[-1], expected, rtol=1e-5)
    assert env.judged_fields == FIELDS


def test_a_models_own_target():
    env = make("ebm-v3", model=Layered(), agents=3, judge=[AIR])
    np.testing.assert_array_equal(env.params.target[AIR], 260.0)


def test_a_target_in_kelvin():
    @dataclass(frozen=True)
    class Kelvin(Layered):
        fields = (Field(SURFACE, "K", scale=30.0), FIELDS[1])

        def init(self, key, surface=280.0, air=250.0):
            return super().init(key, surface, air)

    celsius, kelvin = (make("ebm-v1", model=m).params.target for m in (Layered(), Kelvin()))
    np.testing.assert_allclose(kelvin[SURFACE] - 273.15, celsius[SURFACE])


def test_tiles_on_a_latitude_longitude_grid():
    env = make(
        "ebm-v3", model=Layered(columns=GLOBE), tiles=(3, 6), judge=[SURFACE], learn=["q"],
        bounds={"q": (-100.0, 100.0)}, target=np.zeros(1152),
    )  # fmt: skip
    assert env.agents == 18
    assert env.spec.places[7] == pytest.approx((0, 90))
    # The number of the agent as an action stands in its own tile.
    numbers = np.arange(18.0, dtype="f4")[:, None] * np.ones((1, 64), "f4")
    heating = np.asarray(env.parameters(numbers / 2)["q"][0]).reshape(24, 48)
    expected = np.kron(np.arange(18).reshape(3, 6), np.ones((8, 8)))
    np.testing.assert_array_equal(heating, expected)
    # What an agent sees is its own tile, and its reward is of no other.
    state, _ = env.reset()
    where = jnp.arange(1152.0)[None] / 1152
    state = state._replace(climate={**state.climate, SURFACE: where})
    seen = np.asarray(env.observe(state))
    tile = np.arange(1152).reshape(24, 48)[8:16, 8:16].ravel() / 1152
    np.testing.assert_allclose(seen[7], tile, rtol=1e-6)
    np.testing.assert_allclose(env.reward(state, env.params)[7], -np.mean(tile**2), rtol=1e-5)
    np.testing.assert_allclose(env.fields(state)[SURFACE], where[0])


def test_each_tile_of_its_own_climate():
    env = make(
        "ebm-v2", model=Layered(columns=GLOBE), agents=18, judge=[SURFACE], target=np.zeros(1152)
    )
    state, _ = env.reset()
    climates = jnp.arange(18.0)[:, None] * jnp.ones(1152)
    fields = env.fields(state._replace(climate={**state.climate, SURFACE: climates}))
    expected = np.kron(np.arange(18).reshape(3, 6), np.ones((8, 8)))
    np.testing.assert_array_equal(np.asarray(fields[SURFACE]).reshape(24, 48), expected)


@pytest.mark.parametrize("name", ["ebm-v2", "ebm-v3"])
def test_a_model_on_the_host_trains_the_same(name):
    forcing, observe = {"co2": (280.0, 560.0)}, [SURFACE, AIR, "error", "target"]
    twin, host = (
        layered(name, model=model, observe=observe, forcing=forcing, start=(0.0, 20.0))
        for model in (Layered(), HostLayered())
    )
    actions = random_actions(twin, 20)
    for key in (KEY, jax.random.key(1)):
        one, other = (rollout(env, actions, key=key) for env in (twin, host))
        np.testing.assert_allclose(other.reward, one.reward, rtol=1e-4)
        np.testing.assert_allclose(other.state.climate[AIR], one.state.climate[AIR], rtol=1e-4)


def test_own_climates_and_a_shared_one():
    """What one agent does is felt by the others where they share a climate, and there only."""
    for name, felt in (("ebm-v2", False), ("ebm-v3", True)):
        env = layered(name)
        actions = random_actions(env, 10)
        other = actions.copy()
        other[:, 0] = env.action_bounds[1]
        one, two = (np.asarray(rollout(env, a).reward) for a in (actions, other))
        assert (one[:, 0] != two[:, 0]).any()
        assert (one[:, 2] != two[:, 2]).any() == felt


def test_a_task_of_ones_own():
    task = Task(
        model=Layered, agents=2, learn=("q",), judge=BOTH, observe=(AIR, "season"), target=TARGET,
        start={"surface": (0.0, 5.0)}, forcing={"co2": 400.0}, ramp=3, noise=0.1, episode_length=9,
    )  # fmt: skip
    env = make(task)
    assert (env.agents, env.action_size, env.observation_size) == (2, 3, 9 + 2)
    assert env.episode_length == 9
    np.testing.assert_array_equal(env.params.forcing["co2"], 400.0)
    assert float(env.params.noise) == pytest.approx(0.1)
    assert make(task, agents=3, noise=0.0).params.noise is None
    assert list(make(task, judge=[AIR]).params.target) == [AIR]  # of the two that the task has
    with pytest.raises(InputError, match="judged field"):
        make(task, judge=[AIR], target=TARGET)
    assert same_task(make(task), env)
    assert not same_task(make(task, ramp=4), env)
    assert make(task, ramp=4) == env  # what is compiled serves both


def test_options_of_a_models_class():
    env = make("ebm-v1", model=Layered, model_options={"weather": 0.5}, target=SURFACE_TARGET)
    assert env.model == Layered(weather=0.5)
    assert make("ebm-v1", model_options={"latitudes": 12}).model.grid.latitudes == 12


class Listed(Layered):
    """Is made with something that it refuses."""

    def __init__(self):
        raise ArithmeticError("out of ice\nand snow")


@dataclass(frozen=True)
class Misnamed(Layered):
    fields = (Field("target", "K"),)

    def observe(self, state):
        return {"target": state[SURFACE]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"forcing": {"co3": 1.0}}, "no forcing of Layered 'co3': did you mean 'co2'"),
        ({"forcing": {"co2": "much"}}, "forcing co2: must be a number, or a pair"),
        ({"forcing": {"co2": (560.0, 280.0)}}, "the lower bound exceeds the upper one"),
        ({"forcing": {"co2": np.ones((2, 2))}}, "forcing co2: must be a number, or a pair"),
        ({"start": {"temperature": 3.0}}, "no argument of the start of Layered 'temperature'"),
        ({"start": (1.0, 2.0, 3.0)}, "Layered: cannot start"),
        ({"start": 91.0}, "surface_temperature starts at 91"),
        ({"start": {"surface": float("nan")}}, "start surface: must be a number, or a pair"),
        ({"judge": "snow"}, "no field to judge 'snow'"),
        ({"judge": {SURFACE: 0.0}}, "the weight of surface_temperature must be a positive number"),
        ({"judge": ""}, "needs a field to judge"),
        ({"observe": "snow"}, "no field 'snow'"),
        ({"learn": "z"}, "no parameter 'z'"),
        ({"learn": ""}, "no parameter is learnt"),
        ({"bounds": dict.fromkeys("kqg", (0.1, 0.1)), "static": dict.fromkeys("kqg", 0.1)},
         "no parameter is learnt"),
        ({"ramp": -1}, "ramp must be an integer from 0"),
        ({"noise": -0.1}, "noise must be a number from 0"),
        ({"tiles": (2,)}, "tiles are a pair"),
        ({"tiles": (3, 1)}, "tiles divide rows of latitude–longitude columns"),
        ({"judge": [AIR], "target": {AIR: np.zeros((6, 2))}}, "has 6 columns of 3 levels"),
        ({"judge": [AIR], "target": np.full((6, 3), np.nan)}, "air_temperature has a value"),
        ({"target": {"snow": 1.0}}, "no judged field 'snow'"),
        ({"judge": [AIR], "target": {AIR: "there.nc"}}, "there is no such file"),
        ({"model": HostLayered(), "judge": [AIR], "target": EnergyBalanceModel},
         "a target must be numbers"),
        ({"model": Listed}, r"Listed cannot be made \(ArithmeticError: out of ice; "),
        ({"model": Layered, "model_options": {"wether": 1.0}}, "no option of Layered 'wether'"),
        ({"model_options": {"weather": 1.0}}, "a model that is made already takes no options"),
        ({"model": Misnamed(), "target": np.zeros(6)}, "no field can be called 'target'"),
        ({"model": 7}, "int has no columns"),
        ({"latitudes": 12}, "of the energy balance model only"),
    ],
)  # fmt: skip
def test_bad_options(given, message):
    with pytest.raises(InputError, match=message) as caught:
        layered(**{"judge": None, "target": None, **given})
    assert "\n" not in str(caught.value)


def test_things_of_another_kind():
    for call, message in (
        (lambda: options.forcings(Layered(), -3.7), "forcings are given by name"),
        (lambda: options.names_of("observe", 3), "observe: must be names, not 3"),
        (lambda: options.names_of("learn", ["q", 1]), "learn: must be names"),
        (lambda: options.ramp_of(2.5), "ramp must be an integer from 0"),
        (lambda: options.tiles_of("23"), "tiles are a pair"),
        (lambda: options.noise_of(True), "noise must be a number"),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_no_season_to_see():
    with pytest.raises(InputError, match="EnergyBalanceModel has no season"):
        make("ebm-v3", observe="season")


def test_a_zonal_mean_is_no_target_of_a_field_with_levels():
    with pytest.raises(InputError, match="give its values in every column and level"):
        layered(judge=[AIR], target=ncep_zonal_mean())


def test_an_option_that_the_energy_balance_model_does_not_have():
    with pytest.raises(InputError, match="no option of energy_balance 'latitude'"):
        make("ebm-v1", model_options={"latitude": 12})
