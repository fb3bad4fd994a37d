"""How episodes start, what forces them, and that one compilation serves them all."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

from fedrain.envs import make, parallel_env, rollout, vector_env
from fedrain.envs.adapter import compiled
from fedrain.envs.rollout import _rollout
from fedrain.errors import FailureError, InputError
from tests.climate.models import AIR, SURFACE, HostLayered, Layered
from tests.envs.layered import (
    AIR_TARGET,
    BOTH,
    KEY,
    SURFACE_TARGET,
    TARGET,
    layered,
    random_actions,
)


def test_a_number_is_where_it_starts():
    for start in (7.0, {"surface": 7.0}, {"surface": (7.0, 7.0)}):
        state, _ = layered(start=start).reset(KEY)
        np.testing.assert_array_equal(state.climate[SURFACE], 7.0)
        np.testing.assert_array_equal(state.climate[AIR], 250.0)


def test_starts_are_drawn_evenly_and_independently():
    env = layered("ebm-v2", start={"surface": (-10.0, 30.0), "air": (200.0, 300.0)})
    drawn = jax.vmap(lambda key: env.reset(key)[0].climate)(jax.random.split(KEY, 1000))
    surface, air = np.asarray(drawn[SURFACE])[:, :, 0], np.asarray(drawn[AIR])[:, :, 0, 0]
    assert surface.min() >= -10
    assert surface.max() <= 30
    quarters = np.quantile(surface, [0.25, 0.5, 0.75])
    np.testing.assert_allclose(quarters, [0, 10, 20], atol=1.5)
    every = np.corrcoef(np.concatenate([surface, air], axis=1).T)
    assert np.abs(every - np.eye(6)).max() < 0.12  # each climate, and each argument, by itself
    shared = layered(start=(-10.0, 30.0)).reset(KEY)[0].climate[SURFACE]
    assert len(np.unique(shared)) == 1


def test_a_profile_to_start_from():
    profile = np.linspace(-30.0, 30.0, 6)
    state, _ = layered(start=profile).reset(KEY)
    np.testing.assert_allclose(state.climate[SURFACE][0], profile, rtol=1e-6)
    low, high = profile - 5, profile + 5
    drawn = np.asarray(layered(start=(low, high)).reset(KEY)[0].climate[SURFACE][0])
    shift = drawn - profile
    assert abs(shift[0]) <= 5
    np.testing.assert_allclose(shift, shift[0], atol=1e-5)  # one draw for all of it


def still(**options):
    """A climate that only its forcing moves: the steps of its temperature show it."""
    bounds = {"k": (0.0, 0.5), "q": (-2.0, 3.0), "g": (0.0, 1.0)}
    static = {"k": 0.0, "q": 0.0, "g": 0.0}
    env = layered(options.pop("name", "ebm-v3"), bounds=bounds, static=static, **options)

    def steps(key, length=8):
        actions = np.broadcast_to(
            env.static_actions.astype("f4"), (length, *env.static_actions.shape)
        )
        start, _ = env.reset(jax.random.fold_in(key, 0))
        states = rollout(env, actions, key=key).state.climate[SURFACE][..., 0]
        every = jnp.concatenate([start.climate[SURFACE][None, :, 0], states])
        return np.diff(np.asarray(every), axis=0)

    return steps


def test_no_forcing_is_the_models_default():
    np.testing.assert_allclose(still()(KEY), 0, atol=1e-5)


def test_forcing_is_there_at_once():
    np.testing.assert_allclose(still(forcing={"longwave": -1.5})(KEY), 1.5, rtol=1e-4)
    np.testing.assert_allclose(still(forcing={"co2": 560.0})(KEY), 2.8, rtol=1e-4)


def test_a_ramp_goes_from_the_default_to_the_value():
    expected = np.minimum(np.arange(1, 9) / 4, 1)[:, None]
    np.testing.assert_allclose(
        still(forcing={"co2": 560.0}, ramp=4)(KEY), 2.8 * expected, rtol=1e-3, atol=1e-4
    )
    np.testing.assert_allclose(
        still(forcing={"longwave": -2.0}, ramp=4)(KEY), 2 * expected, rtol=1e-3, atol=1e-4
    )


def test_forcing_is_drawn_for_an_episode_and_a_climate():
    steps = still(name="ebm-v2", forcing={"longwave": (-2.0, -1.0)})
    drawn = np.stack([steps(jax.random.key(k)) for k in range(5)])  # [episode, step, climate]
    assert (drawn > 0.999).all()
    assert (drawn < 2.001).all()
    np.testing.assert_allclose(drawn, drawn[:, :1].repeat(8, 1), atol=1e-4)
    assert len(np.unique(drawn[:, 0].round(3))) == 15


def test_climates_that_are_forced_differently():
    env = layered("ebm-v2")
    each = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    params = env.params._replace(forcing={**env.params.forcing, "longwave": each})
    state, _ = env.reset(KEY, params)
    np.testing.assert_array_equal(state.forcing["longwave"], [0, 1, 2])


NUMBER = 64


def many(what):
    """64 params that differ in one thing, as one batch and as its axes."""
    env = layered()
    rng = np.random.default_rng(1)
    params = env.params
    if what == "start":
        batch = params._replace(
            start={
                "surface": np.repeat(rng.uniform(-40, 40, (NUMBER, 1)), 2, axis=1),
                "air": np.repeat(rng.uniform(200, 300, (NUMBER, 1)), 2, axis=1),
            }
        )
    elif what == "target":
        batch = params._replace(
            target={
                SURFACE: SURFACE_TARGET + rng.normal(0, 5, (NUMBER, 6)),
                AIR: AIR_TARGET + rng.normal(0, 5, (NUMBER, 6, 3)),
            }
        )
    else:
        batch = params._replace(
            forcing={
                "co2": np.repeat(rng.uniform(200, 600, (NUMBER, 1)), 2, axis=1),
                "longwave": np.repeat(rng.uniform(-4, 4, (NUMBER, 1)), 2, axis=1),
            }
        )
    shared = jax.tree.map(lambda _: None, params)
    return env, batch, shared._replace(**{what: jax.tree.map(lambda _: 0, getattr(params, what))})


def member(batch, what, i):
    return batch._replace(**{what: jax.tree.map(lambda leaf: leaf[i], getattr(batch, what))})


@pytest.mark.parametrize("what", ["start", "target", "forcing"])
def test_64_at_once_are_64_one_after_the_other(what):
    env, batch, axes = many(what)
    actions = jnp.asarray(random_actions(env, 12))
    _rollout.clear_cache()
    alone = [rollout(env, actions, member(batch, what, i)).reward for i in range(NUMBER)]
    assert _rollout._cache_size() == 1
    together = jax.vmap(lambda params: rollout(env, actions, params).reward, in_axes=(axes,))(batch)
    assert together.shape == (NUMBER, 12, 3)
    np.testing.assert_allclose(together, np.stack(alone), rtol=1e-4)
    assert len(np.unique(np.asarray(together)[:, -1, 0])) == NUMBER  # they do differ


def different_tasks():
    """Environments that differ in everything that may differ from episode to episode."""
    profile = np.linspace(-30.0, 20.0, 6)
    return [
        layered(),
        layered(start=20.0),
        layered(start={"surface": (0.0, 20.0), "air": 240.0}),
        layered(target={SURFACE: profile, AIR: np.full((6, 3), 230.0)}),
        layered(forcing={"co2": 560.0}),
        layered(forcing={"co2": (280.0, 560.0), "longwave": -1.0}, ramp=6),
    ]


def test_one_compilation_for_all_starts_targets_and_forcings():
    _rollout.clear_cache()
    tasks = different_tasks()
    actions = random_actions(tasks[0], 10)
    rewards = [np.asarray(rollout(env, actions).reward) for env in tasks]
    assert _rollout._cache_size() == 1
    # What was compiled for the first does not give the first's results to the others.
    assert len({rewards[i][-1].tobytes() for i in range(len(tasks))}) == len(tasks)
    for env, reward in zip(tasks, rewards, strict=True):
        _rollout.clear_cache()
        np.testing.assert_array_equal(rollout(env, actions).reward, reward)


def test_one_compilation_for_the_energy_balance_model():
    _rollout.clear_cache()
    tasks = [
        make("ebm-v3", latitudes=12),
        make("ebm-v3", latitudes=12, start=20.0),
        make("ebm-v3", latitudes=12, target=np.zeros(12)),
        make("ebm-v3", latitudes=12, forcing={"longwave": (-3.7, 0.0)}, ramp=100),
    ]
    for env in tasks:
        rollout(env, random_actions(env, 5))
    assert _rollout._cache_size() == 1


def test_one_compilation_of_step_and_reset():
    step, reset = (jax.jit(getattr(layered(), name)) for name in ("step", "reset"))
    for env in different_tasks():
        state, _ = reset(KEY, env.params)
        step(KEY, state, jnp.asarray(random_actions(env, 1)[0]), env.params)
    assert step._cache_size() == reset._cache_size() == 1


def test_one_compilation_for_the_options_of_an_episode():
    env = gymnasium.make("fedrain/EnergyBalance-v1", latitudes=12).unwrapped
    compiled.cache_clear()
    env = gymnasium.make("fedrain/EnergyBalance-v1", latitudes=12).unwrapped
    seen = []
    for options in (
        {},
        {"start": 20.0},
        {"start": (0, 20)},
        {"target": [5.0] * 12},
        {"forcing": {"longwave": -3.7}},
        {"ramp": 2, "forcing": {"solar": (-10, 10)}},
    ):
        env.reset(seed=1, options=options)
        seen.append(env.step(np.zeros(env.action_space.shape, "f4"))[:2])
    functions = compiled(env.adapter.environment, None)
    assert functions.step._cache_size() == functions.reset._cache_size() == 1
    assert len({float(reward) for _, reward in seen}) == len(seen)


def test_options_last_for_one_episode():
    env = gymnasium.make("fedrain/EnergyBalance-v1", latitudes=12)
    assert env.reset(options={"start": 20.0})[0][0] == 20
    assert env.reset()[0][0] == 50
    with pytest.raises(InputError, match="no option of an episode 'begin'"):
        env.reset(options={"begin": 20.0})
    with pytest.raises(InputError, match="starts at 300"):
        env.reset(options={"start": 300.0})


def test_a_seed_draws_the_same_episode_again():
    env = gymnasium.make("fedrain/EnergyBalance-v1", latitudes=12, start=(0.0, 40.0), noise=0.1)
    one, same, other = (env.reset(seed=seed)[0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert (env.reset()[0] != other).any()  # and the next episode is another one
    batch = vector_env("ebm-v1", 3, latitudes=12, start=(0.0, 40.0))
    first, _ = batch.reset(seed=[1, 2, 3])
    assert len(np.unique(first)) == 3  # each copy starts elsewhere
    np.testing.assert_array_equal(batch.reset(seed=[1, 2, 3])[0], first)
    other = batch.reset(seed=[1, 2, 4])[0]
    np.testing.assert_array_equal(other[:2], first[:2])
    assert (other[2] != first[2]).all()


def test_gymnasium_and_pettingzoo_take_any_model():
    target = {SURFACE: SURFACE_TARGET}
    single = gymnasium.make("fedrain/EnergyBalance-v1", model=Layered(), target=target)
    check_env(single.unwrapped)
    assert single.observation_space.shape == (6,)
    several = parallel_env(agents=3, model=Layered(), judge=BOTH, target=TARGET, episode_length=20)
    parallel_api_test(several, num_cycles=40)
    several.reset()
    assert several.state().shape == (6 + 18,)
    assert several.action_space("region_0").shape == (9,)


class Melting(HostLayered):
    def step_host(self, state, parameters, forcing, rng):
        if state["clock"] >= 3:
            raise ArithmeticError("the ice has melted\nand the line goes on")
        return super().step_host(state, parameters, forcing, rng)


def test_a_model_that_fails_says_why_in_one_line():
    env = gymnasium.make("fedrain/EnergyBalance-v1", model=Melting(), target=SURFACE_TARGET)
    env.reset()
    for _ in range(3):
        env.step(env.action_space.sample())
    message = r"^Melting: step_host fails \(ArithmeticError: the ice has melted; .*py:\d+\)$"
    with pytest.raises(FailureError, match=message):
        env.step(env.action_space.sample())
