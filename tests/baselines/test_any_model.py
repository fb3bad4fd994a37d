"""The baselines with a model that is not the energy balance model."""

from dataclasses import replace
from importlib import import_module

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from fedrain.baselines import (
    constant,
    known_limit,
    limit,
    random,
    sequence_dataset,
    share_reached,
    static,
    unknown_limit,
)
from fedrain.baselines.baseline import hold
from fedrain.baselines.constant import final_error
from fedrain.baselines.optimise import _value_and_slope, minimise
from fedrain.envs import make, rollout
from fedrain.errors import InputError
from tests.baselines.toys import (
    BOTH,
    COLUMNS,
    HUMIDITY,
    TARGET,
    WARMTH,
    Fragile,
    Host,
    Loop,
    Noisy,
    Refuses,
    Single,
    Toy,
)


def toy(model=None, env="ebm-v3", **options):
    given = {"agents": 4, "judge": BOTH, "target": TARGET, "episode_length": 30} | options
    return make(env, model=model or Toy(), **given)


def test_static_is_the_solution_of_the_equation():
    """x_n = p + (x_0 − p) / 2ⁿ."""
    result = static(toy(episode_length=5))
    np.testing.assert_allclose(result.final["warmth"], 5 + (-3 - 5) / 2**5)
    np.testing.assert_allclose(result.final["humidity"], 1 - 1 / 2**5)
    assert result.fields["humidity"].shape == (5, len(COLUMNS), 2)


def test_errors_are_area_weighted():
    result = static(toy())
    weights = np.cos(np.deg2rad(COLUMNS.latitude))
    weights /= weights.sum()
    warmth = np.sqrt(weights @ (result.final["warmth"] - WARMTH) ** 2)
    humidity = np.sqrt(weights @ ((result.final["humidity"] - HUMIDITY) ** 2).mean(1))
    assert result.errors == pytest.approx({"warmth": warmth, "humidity": humidity})
    assert result.skill.globe == result.errors["warmth"]
    assert result.as_dict()["fields"] == result.errors


@pytest.mark.parametrize("env", ["ebm-v1", "ebm-v2", "ebm-v3"])
def test_constant_parameters_reach_a_target_that_they_can_reach(env):
    result = constant(toy(env=env, agents=1 if env == "ebm-v1" else 4))
    assert max(result.errors.values()) < 1e-4
    assert (result.actions == result.actions[0]).all()


def test_the_goal_weighs_the_fields_as_the_reward_does():
    environment = toy(agents=2)
    with jax.enable_x64(True):
        actions = jnp.asarray(environment.static_actions)
        state, _ = hold(environment, actions, environment.params, jax.random.key(0))
        found = final_error(environment, state, environment.params)
    errors = static(environment).errors
    expected = sum(weight * errors[name] ** 2 for name, weight in BOTH.items())
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("env", ["ebm-v2", "ebm-v3"])
def test_limit_is_on_the_target_from_the_first_step(env):
    environment = toy(env=env, episode_length=6)
    best = limit(environment)
    static_return = static(environment).returns.mean()
    assert abs(best.returns.mean()) < 1e-6 * abs(static_return)
    np.testing.assert_allclose(best.fields["warmth"][0], WARMTH, atol=1e-2)


def test_order_of_the_baselines():
    """random < static < constant for the return < limit, in return."""
    small = toy(episode_length=8)
    found = [random(small), static(small), constant(small, "return"), limit(small)]
    returns = [float(b.returns.mean()) for b in found]
    assert returns == sorted(returns)


@pytest.mark.parametrize("env", ["ebm-v2", "ebm-v3"])
def test_enki_comes_near_without_gradients(env):
    environment = toy(env=env, agents=2, episode_length=12)
    result = enki(environment, ensemble=250)
    before = static(environment).errors
    for name, error in result.errors.items():
        assert error < 0.2 * before[name]


def test_what_is_not_learnt_keeps_its_static_value():
    environment = toy(learn=("heat",), judge="warmth", target=WARMTH, observe="humidity")
    for find in (constant, lambda e: enki(e, ensemble=30, iterations=2), random):
        data = sequence_dataset(environment, find(environment))
        assert (data["shift"] == 0).all()
        assert (data["source"] == 1).all()
        assert data["heat"].std() > 0.1


def test_another_episode_is_not_compiled_again():
    """Nor taken for the one that was compiled: the best parameters follow target and forcing."""
    tasks = [
        toy(target={**TARGET, "warmth": WARMTH + 5}),
        toy(forcing={"push": 4.0}, start={"warmth": 8.0}),
    ]
    plain = sequence_dataset(tasks[0], constant(toy()))
    compiled = _value_and_slope._cache_size()
    warmer, pushed = (sequence_dataset(task, constant(task)) for task in tasks)
    assert _value_and_slope._cache_size() == compiled

    def aim(data):
        return (data["heat"] + data["shift"])[-1]

    np.testing.assert_allclose(aim(warmer) - aim(plain), 5, atol=1e-2)
    np.testing.assert_allclose(aim(pushed) - aim(plain), -4, atol=1e-2)


def test_climates_that_differ_in_their_forcing():
    environment = toy(env="ebm-v2", agents=2, tiles=(2, 1))
    push = np.array([[0.0, 0.0], [6.0, 6.0]])
    params = environment.params._replace(forcing={"push": push})
    changed = replace(environment, params=params)
    for find, apart in ((constant, 1e-2), (lambda e: enki(e, ensemble=200), 1.0)):
        south, north = np.split(find(changed).actions[-1], 2)
        slices = environment.action_slices
        aims = [
            (agent[:, slices["heat"]] + agent[:, slices["shift"]])[0] for agent in (south, north)
        ]
        own = environment.division.cells
        # The target is the same in both hemispheres.
        found = aims[0][own[0]].mean() - aims[1][own[1]].mean()
        assert found == pytest.approx(6, abs=apart)


def test_hold_is_a_rollout_of_the_same_action():
    environment = toy(Noisy(), start={"warmth": (-9.0, 9.0)})
    key, params = jax.random.key(3), environment.params
    action = jnp.asarray(environment.static_actions)
    state, returns = hold(environment, action, params, key)
    played = rollout(environment, jnp.broadcast_to(action, (30, *action.shape)), params, key)
    np.testing.assert_allclose(returns, played.returns, rtol=1e-5)
    np.testing.assert_allclose(state.climate["T"], played.state.climate["T"][-1], rtol=1e-5)


def test_the_seed_draws_the_episode():
    environment = toy(Noisy(), episode_length=4)
    first, again, other = static(environment), static(environment), static(environment, seed=1)
    np.testing.assert_array_equal(first.fields["warmth"], again.fields["warmth"])
    assert np.abs(first.fields["warmth"] - other.fields["warmth"]).max() > 0.1


@pytest.mark.parametrize("env", ["ebm-v2", "ebm-v3"])
def test_a_model_outside_jax_gives_the_same(env):
    inside, outside = (toy(model, env, agents=2, episode_length=5) for model in (Toy(), Host()))
    for find in (static, random, lambda e: enki(e, ensemble=8, iterations=2)):
        expected, found = find(inside), find(outside)
        np.testing.assert_allclose(found.returns, expected.returns, rtol=1e-12)
        np.testing.assert_allclose(found.actions, expected.actions, rtol=1e-9)


@pytest.mark.parametrize("find", [constant, limit])
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Host(), "needs the gradient of the model, which Host does not have: use enki"),
        (Loop(), "Loop cannot be differentiated"),
        (Fragile(above=0.0), "with the static values of Fragile, its return is not finite"),
    ],
)
def test_what_cannot_be_searched_by_gradients(find, model, message):
    with pytest.raises(InputError, match=message) as caught:
        find(toy(model, episode_length=3))
    assert "\n" not in str(caught.value)


def test_a_search_survives_actions_with_which_the_model_diverges():
    warm = {**TARGET, "warmth": WARMTH + 10}  # 29 of heat at the most needed: near the cliff
    result = constant(toy(Fragile(), target=warm))
    assert np.isfinite(result.returns).all()
    assert result.errors["warmth"] < 0.1 * static(toy(Fragile(), target=warm)).errors["warmth"]


def test_members_of_an_ensemble_that_diverge_are_left_out():
    environment = toy(Fragile(above=95.0), agents=1, episode_length=12)
    result = enki(environment, ensemble=200)
    assert result.errors["warmth"] < static(environment).errors["warmth"]
    with pytest.raises(InputError, match="fewer than 2 members"):
        enki(toy(Fragile(above=-101.0)), ensemble=5)


@pytest.mark.parametrize("model", [Single(), Refuses()])
def test_a_model_in_single_precision_only(model):
    environment = toy(model, episode_length=6)
    assert static(environment).fields["warmth"].dtype == np.float32
    assert static(toy()).fields["warmth"].dtype == np.float64
    assert max(constant(environment).errors.values()) < 0.01
    np.testing.assert_allclose(
        random(environment).returns, random(toy(episode_length=6)).returns, rtol=1e-5
    )


def test_netcdf_of_columns_and_levels(tmp_path):
    environment = toy(episode_length=4)
    result = random(environment)
    data = sequence_dataset(environment, result)
    data.to_netcdf(tmp_path / "random.nc")
    assert data["humidity"].dims == ("step", "lat", "lon", "level")
    assert data["source"].dims == ("step", "lat", "lon", "level")
    assert data["shift"].dims == ("step",)
    assert data["level"].units == "hPa"
    np.testing.assert_array_equal(data["warmth"].values.reshape(4, -1), result.fields["warmth"])
    np.testing.assert_allclose(
        data["target"].sel(lat=22.5, lon=90.0), WARMTH[(COLUMNS.latitude == 22.5)][1]
    )
    np.testing.assert_array_equal(data["target_humidity"].values.reshape(-1, 2), HUMIDITY)
    # What was set, column by column, is what the fields follow: x' − x/2 = p/2.
    after, before = data["humidity"][1:].values, data["humidity"][:-1].values
    np.testing.assert_allclose(after - before / 2, data["source"][1:].values / 2)


def test_what_is_said_of_a_limit_that_is_not_known():
    assert unknown_limit(make("ebm-v1")) is None
    told = unknown_limit(toy())
    assert "`fedrain baseline limit`, with the same options of the environment" in told
    assert "not stored" in told
    assert "no gradient" in unknown_limit(toy(Host()))
    assert share_reached(toy(), -1.0) is None
    worst = static(toy()).returns.mean()
    assert share_reached(toy(), worst / 2, best=0.0) == pytest.approx(0.5)


def test_which_limits_are_known():
    """Optimal control does not depend on what agents see, but on what they are judged by."""
    names = ["D", "A", "B", "a0", "a2"]
    same = ({"noise": 0.1}, {"observe": ("error",)}, {"learn": names}, {"agents": 2})
    for options in same:
        assert known_limit(make("ebm-v3", **options)) == known_limit(make("ebm-v1"))
    target = np.zeros(96)
    other = ({"start": 20.0}, {"target": target}, {"learn": ("D",)}, {"episode_length": 100},
             {"forcing": {"solar": 5.0}}, {"judge": {"surface_temperature": 2.0}})  # fmt: skip
    for options in other:
        for name in ("ebm-v1", "ebm-v2", "ebm-v3"):
            assert known_limit(make(name, **options)) is None
    assert known_limit(make("ebm-v2", agents=2)) != known_limit(make("ebm-v2", agents=6))
    assert known_limit(make("ebm-v2", agents=3)) is None


def test_the_prior_of_neighbours_is_alike(monkeypatch):
    """Standard normal everywhere, and correlated by distance, across the date line too."""
    enki = import_module("fedrain.baselines.enki")  # a function by that name hides it
    monkeypatch.setattr(enki, "CORRELATION", 40.0)  # degrees, since these columns are far apart
    environment = toy(agents=1)
    prior = inversion(environment, 4000).z[environment.action_slices["heat"]]
    np.testing.assert_allclose(prior.std(axis=1), 1, atol=0.06)
    correlation = np.corrcoef(prior)
    place = np.arange(len(COLUMNS)).reshape(4, 6)
    east = np.rad2deg(2 * np.sin(np.deg2rad(30)) * np.cos(np.deg2rad(67.5)))
    north = np.rad2deg(2 * np.sin(np.deg2rad(22.5)))
    for other, chord, expected in ((place[0, 5], east, 0.861), (place[1, 0], north, 0.548)):
        assert np.exp(-((chord / 40) ** 2) / 2) == pytest.approx(expected, abs=1e-3)
        assert correlation[place[0, 0], other] == pytest.approx(expected, abs=0.06)
    assert norm.cdf(prior).mean() == pytest.approx(0.5, abs=0.02)


def inversion(environment, members=3000):
    from fedrain.baselines.enki import _Inversion

    values = sum(int(np.prod(one.shape(len(COLUMNS)))) for one in environment.judged_fields)
    return _Inversion(environment, [0], 0, members, 1, jnp.zeros((1, values)))


def test_members_of_an_ensemble_fill_their_bounds():
    """low + (high − low) Φ(z): uniform between the bounds, for standard normal z."""
    environment = toy(agents=1)
    low, high = environment.action_bounds
    scaled = (inversion(environment).members()[:, 0] - low) / (high - low)
    np.testing.assert_allclose(np.quantile(scaled, [0.05, 0.5, 0.95]), [0.05, 0.5, 0.95], atol=0.02)


def test_errors_of_an_inversion_weigh_as_in_the_reward():
    """Each field's squares over their variances are its weighted mean square, times a number."""
    environment = toy(agents=1)
    variances = inversion(environment, 4).method.C_D
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(3):
        warmth, humidity = rng.normal(size=24), rng.normal(size=(24, 2))
        errors = np.concatenate([warmth, humidity.ravel()])
        reward = (warmth**2).mean() + 4.0 * (humidity**2).mean()
        ratios.append((errors**2 / variances).sum() / reward)
    np.testing.assert_allclose(ratios, 24 / 0.1**2, rtol=1e-9)  # a hundredth of a scale of 10 K


def test_a_search_begins_with_the_static_values():
    """Its first evaluation, and all there is where nothing can be better."""
    asked = []

    def flat(environment, actions, params, key):
        jax.debug.callback(lambda values: asked.append(np.array(values)), actions)
        return 0.0 * actions.sum()

    environment = toy()
    shape = environment.static_actions.shape
    found = minimise("flat", environment, flat, shape, 3, jax.random.key(0))
    jax.effects_barrier()
    np.testing.assert_allclose(asked[0], environment.static_actions, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.actions, environment.static_actions, atol=1e-5)
