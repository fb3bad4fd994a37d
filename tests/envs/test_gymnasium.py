"""The Gymnasium adapters, by Gymnasium's own checkers and against the functional core."""

import warnings

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import fedrain
from fedrain.envs import make, rollout, vector_env
from fedrain.envs.adapter import compiled
from fedrain.errors import InputError

V1, V2 = fedrain.registration.ENVIRONMENT_IDS
CASES = [
    (V1, {}),
    (V1, {"latitudes": 24, "episode_length": 10}),
    *((V2, {"agents": n, "region": n // 2}) for n in (1, 2, 6, 96)),
]


def test_all_ours_are_checked():
    registered = {name for name in gymnasium.registry if name.startswith("fedrain/")}
    assert registered == {name for name, _ in CASES}


@pytest.mark.parametrize(("name", "options"), [*CASES, (V1, {"backend": "climlab"})])
def test_gymnasium_finds_nothing_to_warn_of(name, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, **options)
        check_env(env.unwrapped)
        env.close()


@pytest.mark.parametrize(("name", "options"), CASES)
def test_can_be_made_again_from_its_spec(name, options):
    env = gymnasium.make(name, **options)
    text = gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json())
    for again in (gymnasium.make(env.spec), gymnasium.make(text)):
        assert again.action_space == env.action_space
        assert again.unwrapped.adapter.environment == env.unwrapped.adapter.environment


@pytest.mark.parametrize(("name", "options"), CASES)
def test_actions_are_physical_and_within_the_bounds_of_the_table(name, options):
    env = gymnasium.make(name, **options)
    setting = make("ebm-v1" if name == V1 else "ebm-v2", **options)
    low, high = setting.action_bounds
    np.testing.assert_allclose(env.action_space.low, low, rtol=1e-6)
    np.testing.assert_allclose(env.action_space.high, high, rtol=1e-6)


def play(env, actions):
    observation, _ = env.reset(seed=0)
    observations, rewards = [observation], []
    for i, action in enumerate(actions):
        observation, reward, terminated, truncated, info = env.step(action)
        observations.append(observation)
        rewards.append(reward)
        assert not terminated
        assert truncated == (i + 1 == 200)
        assert info["step"] == i + 1
    return np.array(observations), np.array(rewards)


@pytest.mark.parametrize(
    ("name", "setting", "options"),
    [(V1, "ebm-v1", {}), (V2, "ebm-v2", {"agents": 6, "region": 3})],
)
def test_gives_what_the_core_gives(name, setting, options):
    core = make(setting, **options)
    env = gymnasium.make(name, **options)
    env.action_space.seed(0)
    actions = np.stack([env.action_space.sample() for _ in range(200)])
    observations, rewards = play(env, actions)
    expected = rollout(core, jnp.asarray(actions)[:, None])
    np.testing.assert_allclose(observations[1:], expected.state.climate[:, 0], atol=1e-4)
    np.testing.assert_allclose(rewards, expected.reward[:, 0], rtol=1e-4)


def test_raw_actions_are_scaled():
    physical, raw = gymnasium.make(V1), gymnasium.make(V1).unwrapped
    low, high = physical.action_space.low, physical.action_space.high
    for env in (physical, raw):
        env.reset()
    scaled = np.random.default_rng(0).uniform(-1, 1, 195)
    there = physical.step(low + (scaled + 1) / 2 * (high - low))
    back = raw.step(scaled)
    np.testing.assert_allclose(there[0], back[0], atol=1e-4)


def test_raw_actions_in_physical_units_are_refused():
    raw = gymnasium.make(V1).unwrapped
    raw.reset()
    with pytest.raises(InputError, match=r"within \[-1, 1\]"):
        raw.step(make("ebm-v1").static_actions[0])


def test_actions_beyond_the_bounds_are_clipped():
    env = gymnasium.make(V1)
    seen = []
    for action in (env.action_space.high, env.action_space.high + 7):
        env.reset()
        seen.append(env.step(action)[0])
    np.testing.assert_array_equal(*seen)


def test_static_action_gives_the_static_return():
    env = gymnasium.make(V1)
    _, rewards = play(env, [make("ebm-v1").static_actions[0]] * 200)
    assert rewards.sum() == pytest.approx(-60_358, rel=1e-4)


@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.zeros(194), r"shape \(194,\), but \(195,\) is asked for"),
        (np.zeros((195, 1)), "shape"),
        (np.full(195, np.nan), "NaN"),
        (np.array(["warm"] * 195), "array of numbers"),
    ],
)
def test_bad_actions(wrap, action, message):
    env = gymnasium.make(V1, disable_env_checker=True)
    env = env if wrap else env.unwrapped
    env.reset()
    before = env.unwrapped.adapter.state.climate
    with pytest.raises(InputError, match=message):
        env.step(action)
    assert env.unwrapped.adapter.state.climate is before


def test_step_before_reset():
    with pytest.raises(InputError, match="reset the environment"):
        gymnasium.make(V1).unwrapped.step(np.zeros(195))


def test_bad_agents():
    with pytest.raises(InputError, match="7 agents do not divide 96"):
        gymnasium.make(V2, agents=7)


def test_equal_environments_share_their_compiled_code():
    envs = [gymnasium.make(V2, agents=3, region=1, latitudes=12).unwrapped for _ in range(2)]
    for env in envs:
        env.reset()
        env.step(env.action_space.sample())
    functions = compiled(envs[0].adapter.environment, None)
    assert functions.step._cache_size() == 1


@pytest.mark.parametrize(
    ("setting", "options"), [("ebm-v1", {}), ("ebm-v2", {"agents": 2, "region": 1})]
)
def test_vector_form_is_many_single_ones(setting, options):
    batch = vector_env(setting, 5, episode_length=4, **options)
    single = gymnasium.make(V1 if setting == "ebm-v1" else V2, episode_length=4, **options)
    batch.action_space.seed(1)
    actions = np.stack([batch.action_space.sample() for _ in range(4)])
    observations, _ = batch.reset(seed=0)
    assert observations in batch.observation_space
    rewards = []
    for action in actions:
        observations, reward, terminated, truncated, _ = batch.step(action)
        rewards.append(reward)
    assert truncated.all()
    assert not terminated.any()
    for i in range(5):
        single.reset()
        for t in range(4):
            seen, reward, _, _, _ = single.step(actions[t, i])
            assert reward == pytest.approx(rewards[t][i], rel=1e-4)
        np.testing.assert_allclose(seen, observations[i], atol=1e-4)
    # Gymnasium's next-step autoreset: the step after the end starts again.
    observations, reward, _, truncated, _ = batch.step(actions[0])
    np.testing.assert_array_equal(observations, 50.0)
    np.testing.assert_array_equal(reward, 0.0)
    assert not truncated.any()


def test_gymnasium_can_vectorise_too():
    batch = gymnasium.make_vec(V1, num_envs=2, latitudes=12)
    observations, _ = batch.reset(seed=0)
    assert observations.shape == (2, 12)
    assert batch.step(batch.action_space.sample())[0].shape == (2, 12)


@pytest.mark.parametrize(
    ("name", "number", "options", "message"),
    [
        ("ebm-v3", 4, {}, "no vector form"),
        ("ebm-v1", 0, {}, "num_envs"),
        ("ebm-v1", True, {}, "num_envs"),
        ("ebm-v1", 4, {"region": 2}, "no regions"),
    ],
)
def test_bad_vectors(name, number, options, message):
    with pytest.raises(InputError, match=message):
        vector_env(name, number, **options)


@pytest.mark.parametrize("actions", [1.0, np.zeros((3, 194)), np.full((3, 195), np.nan)])
def test_bad_vector_actions(actions):
    batch = vector_env("ebm-v1", 3)
    batch.reset()
    with pytest.raises(InputError):
        batch.step(np.asarray(actions))
