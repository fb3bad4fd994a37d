"""The Gymnasium adapters, by Gymnasium's own checkers and against the functional core."""

import warnings

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import fedrain
from fedrain.envs import TASKS, TaskEnv, make, rollout, vector_env
from fedrain.envs.adapter import compiled
from fedrain.errors import InputError
from fedrain.registration import EPISODE_LENGTHS
from fedrain.registration import IDS as IDENTITIES

V1, V2 = fedrain.registration.ENVIRONMENT_IDS
V3 = "fedrain/EnergyBalance-v3"
CASES = [
    (V1, {}),
    (V1, {"latitudes": 24, "episode_length": 10}),
    *((V2, {"agents": n, "region": n // 2}) for n in (1, 2, 6, 96)),
]
#: Every id, as small as it can be said to be.
#: Those of a general circulation model have tests of their own, where the extra is installed.
IDS = [
    (name, {} if "rce" in name else {"latitudes": 12}) for name in IDENTITIES if "gcm" not in name
]


def test_all_ours_are_checked():
    registered = {name for name in gymnasium.registry if name.startswith("fedrain/")}
    assert registered == set(IDENTITIES)
    # A task of the package that has no id is one that nobody else can learn.
    paper = {name for name in TASKS.names() if name.endswith("-published")}
    assert set(TASKS.builtin) - paper == {kwargs["task"] for kwargs in IDENTITIES.values()}


@pytest.mark.parametrize("task", [name for name in EPISODE_LENGTHS if "gcm" not in name])
def test_the_limit_of_an_id_is_the_length_of_its_episodes(task):
    assert make(task).episode_length == EPISODE_LENGTHS[task]
    for name, kwargs in IDENTITIES.items():
        if kwargs["task"] == task:
            assert gymnasium.spec(name).max_episode_steps == EPISODE_LENGTHS[task]


@pytest.mark.parametrize(("name", "options"), IDS)
def test_every_id_by_the_checker_of_gymnasium(name, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, episode_length=4, **options)
        check_env(env.unwrapped, skip_render_check=True)
    seen, _ = env.reset(seed=0)
    assert seen in env.observation_space
    lasts = []
    for _ in range(4):
        seen, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert seen in env.observation_space
        assert np.isfinite(reward)
        assert not terminated
        lasts.append(truncated)
    assert lasts == [False, False, False, True]
    if name.endswith("-unit"):
        assert (env.action_space.low == -1).all()
        assert (env.action_space.high == 1).all()


@pytest.mark.parametrize("name", [V1, V2, V3])
def test_actions_from_minus_one_to_one_are_the_physical_ones(name):
    physical, unit = (gymnasium.make(one, latitudes=12) for one in (name, f"{name}-unit"))
    low, high = (
        np.asarray(end, float) for end in (physical.action_space.low, physical.action_space.high)
    )
    rng = np.random.default_rng(0)
    for env in (physical, unit):
        env.reset(seed=0)
    for _ in range(5):
        scaled = rng.uniform(-1.3, 1.3, unit.action_space.shape)  # beyond is clipped
        there = physical.step(low + (scaled + 1) / 2 * (high - low))
        back = unit.step(scaled)
        np.testing.assert_allclose(there[0], back[0], atol=1e-4)
        assert there[1] == pytest.approx(back[1], rel=1e-5)


def test_the_controller_of_all_agents_gets_their_mean_reward():
    """With equal regions that is what the agent of the whole globe gets."""
    several, core = (
        gymnasium.make(V3, agents=4, latitudes=12),
        make("ebm-v3", agents=4, latitudes=12),
    )
    one = gymnasium.make(V1, latitudes=12)
    actions = np.stack([core.static_actions] * 3)
    expected = rollout(core, jnp.asarray(actions, "f4"))
    for env in (several, one):
        env.reset(seed=0)
    for t in range(3):
        seen, reward, _, _, info = several.step(actions[t])
        assert seen.shape == (4, 3)
        np.testing.assert_allclose(info["rewards"], expected.reward[t], rtol=1e-5)
        assert reward == pytest.approx(float(expected.reward[t].mean()), rel=1e-5)
        assert reward == pytest.approx(
            one.step(make("ebm-v1", latitudes=12).static_actions[0])[1], rel=1e-5
        )


def test_episodes_that_gymnasium_would_cut_are_refused():
    with pytest.raises(InputError, match="with this id have at most 200 steps, not 400"):
        gymnasium.make(V1, episode_length=400)
    with pytest.raises(InputError, match="400 steps"):
        gymnasium.make_vec(V1, num_envs=2, episode_length=400)
    assert TaskEnv("ebm-v1", episode_length=400).adapter.environment.episode_length == 400
    with pytest.raises(InputError, match="kind of actions 'metric'"):
        gymnasium.make(V1, actions="metric")


@pytest.mark.parametrize(
    ("seed", "options", "message"),
    [
        (None, {"begin": 1}, "no option of an episode"),
        (None, [("start", 20.0)], "given by name"),
        (None, {"noise": -0.1}, "noise must be a number from 0"),
        (None, {"forcing": {"volcano": 1.0}}, "no forcing"),
        (None, {"reset_mask": np.array([True, True])}, "no option of an episode"),
        (1.5, None, "a seed is an integer from 0, not 1.5"),
        (-1, None, "a seed is an integer from 0, not -1"),
        ([1, 2, 3], None, "3 seeds for 2 environments"),
        ([1, "two"], None, "a seed is an integer from 0, not 'two'"),
    ],
)
def test_what_cannot_be_honoured_is_refused(seed, options, message):
    batch = vector_env("ebm-v1", 2, latitudes=12)
    with pytest.raises(InputError, match=message):
        batch.reset(seed=seed, options=options)
    if not isinstance(seed, list):
        with pytest.raises(InputError, match=message):
            gymnasium.make(V1, latitudes=12).reset(seed=seed, options=options)


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
        (np.zeros(194), r"shape \(194,\) instead of \(195,\)"),
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
