"""The compiled batch: every copy is what it would be alone."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import fedrain
from fedrain.envs import make, vector_env
from fedrain.envs.sb3_adapter import sb3_env
from fedrain.envs.vector import EnergyBalanceVector
from fedrain.errors import InputError
from fedrain.registration import IDS

V1, V2 = fedrain.registration.ENVIRONMENT_IDS
V3 = "fedrain/EnergyBalance-v3"
#: Everything that can be drawn in an episode is.
DRAWN = {"latitudes": 12, "start": (0.0, 40.0), "forcing": {"longwave": (-4.0, 4.0)}, "noise": 0.1}


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize(
    ("name", "options"),
    [(V1, {}), (f"{V1}-unit", {}), (V2, {"agents": 2, "region": 1}), (V3, {"agents": 3})],
)
def test_a_batch_is_what_gymnasium_makes_of_single_ones(name, options, mode):
    """Seeds, options, ends, new episodes and infos: as SyncVectorEnv has them."""
    options = {**options, **DRAWN, "episode_length": 3}
    peer = SyncVectorEnv([lambda: gymnasium.make(name, **options)] * 4, autoreset_mode=mode)
    batch = gymnasium.make_vec(name, num_envs=4, autoreset_mode=mode, **options)
    assert isinstance(batch, EnergyBalanceVector)
    assert batch.metadata["autoreset_mode"] is peer.metadata["autoreset_mode"] is mode
    for space in ("observation_space", "action_space", "single_observation_space"):
        assert getattr(batch, space) == getattr(peer, space)
    batch.action_space.seed(1)
    for seed, episode in ((7, None), ([3, None, 5, 3], {"start": (10.0, 20.0), "noise": 0.0})):
        ours, theirs = (env.reset(seed=seed, options=episode) for env in (batch, peer))
        np.testing.assert_allclose(ours[0], theirs[0], atol=1e-4)
        for _ in range(8):
            actions = batch.action_space.sample()
            ours, theirs = batch.step(actions), peer.step(actions)
            np.testing.assert_allclose(ours[0], theirs[0], atol=2e-4)
            np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-4, atol=1e-6)
            for i in (2, 3):
                np.testing.assert_array_equal(ours[i], theirs[i])
            _same_infos(ours[4], theirs[4])


def _same_infos(ours, theirs):
    assert set(ours) == set(theirs)
    for key, value in theirs.items():
        if isinstance(value, dict):
            _same_infos(ours[key], value)
            continue
        assert ours[key].dtype == value.dtype
        for one, other in zip(ours[key], value, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("name", [name for name in IDS if "gcm" not in name])
def test_make_vec_gives_the_compiled_batch(name):
    options = {} if "rce" in name else {"latitudes": 12}
    batch = gymnasium.make_vec(name, num_envs=2, **options)
    assert isinstance(batch, EnergyBalanceVector)
    assert batch.adapter.environment.episode_length == batch.spec.max_episode_steps
    observations, _ = batch.reset(seed=0)
    assert observations in batch.observation_space
    observations, reward, *_ = batch.step(batch.action_space.sample())
    assert observations in batch.observation_space
    assert reward.shape == (2,)
    again = gymnasium.make_vec(batch.spec)
    assert again.num_envs == 2
    assert again.action_space == batch.action_space


def test_copies_draw_their_own_numbers():
    batch = vector_env("ebm-v1", 3, **DRAWN)
    first, _ = batch.reset(seed=[1, 2, 3])
    assert len(np.unique(first[:, 0])) == 3
    other, _ = batch.reset(seed=[1, 2, 4])
    np.testing.assert_array_equal(other[:2], first[:2])
    assert (other[2] != first[2]).any()
    assert (batch.reset()[0] != other).any()


def test_a_limit_shortens_the_episodes():
    batch = gymnasium.make_vec(V1, num_envs=2, latitudes=12, max_episode_steps=2)
    batch.reset()
    ends = [batch.step(batch.action_space.sample())[3].all() for _ in range(2)]
    assert ends == [False, True]


@pytest.mark.parametrize(
    ("name", "number", "options", "message"),
    [
        ("ebm-v9", 4, {}, "there is no environment 'ebm-v9'"),
        ("ebm-v1", 0, {}, "num_envs"),
        ("ebm-v1", True, {}, "num_envs"),
        ("ebm-v1", 4, {"region": 2}, "no regions"),
        ("ebm-v1", 4, {"autoreset_mode": "Disabled"}, "NextStep or SameStep"),
        ("ebm-v1", 4, {"render_mode": "human"}, "cannot be rendered"),
        ("ebm-v1", 4, {"actions": "metric"}, "kind of actions"),
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


def test_without_stable_baselines3_one_line_says_so(monkeypatch):
    from fedrain.envs import sb3_adapter

    sb3_adapter._vec_env_class.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "stable_baselines3.common.vec_env", None)
    with pytest.raises(InputError, match=r"^stable-baselines3 is not installed: pip install"):
        sb3_env("ebm-v1", 2)


@pytest.mark.parametrize(("name", "options"), [("ebm-v1", {}), ("ebm-v3", {"agents": 3})])
def test_stable_baselines3_gets_the_same_batch(name, options):
    pytest.importorskip("stable_baselines3")
    options = {**options, **DRAWN, "episode_length": 3}
    agents = make(name, **options).agents
    env = sb3_env(name, 2, **options)
    peer = vector_env(name, 2, actions="unit", autoreset_mode="SameStep", **options)
    assert env.num_envs == 2 * agents
    env.seed(5)
    env.set_options({"start": 20.0})
    seen = env.reset()
    expected, _ = peer.reset(seed=[5, 5 + agents], options={"start": 20.0})
    np.testing.assert_array_equal(seen, expected.reshape(seen.shape))
    rng = np.random.default_rng(0)
    for t in range(1, 7):
        actions = rng.uniform(-1, 1, (env.num_envs, *env.action_space.shape)).astype("f4")
        seen, reward, done, infos = env.step(actions)
        expected, mean, _, truncated, info = peer.step(actions.reshape(peer.action_space.shape))
        np.testing.assert_array_equal(seen, expected.reshape(seen.shape))
        np.testing.assert_allclose(reward.reshape(2, -1).mean(1), mean, rtol=1e-5)
        assert (done == (t % 3 == 0)).all()
        assert truncated.all() == done.all()
        if done.all():
            last = np.stack([one["terminal_observation"] for one in infos])
            np.testing.assert_array_equal(
                last, np.stack(list(info["final_obs"])).reshape(last.shape)
            )
    env.set_options([{"start": float(i)} for i in range(env.num_envs)])
    with pytest.raises(InputError, match="the same options"):
        env.reset()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_batch_goes_on_after_its_first_end(mode):
    """Step by step, of episodes of three: when it ends, when it starts again, and what it gives."""
    batch = vector_env("ebm-v1", 2, autoreset_mode=mode, latitudes=12, episode_length=3)
    first, _ = batch.reset(seed=0)
    actions = np.stack([batch.adapter.environment.static_actions[0]] * 2).astype(np.float32)
    steps, ends, began = [], [], []
    for _ in range(9):
        seen, reward, _, truncated, info = batch.step(actions)
        steps.append(int(info["step"][0]))
        ends.append(bool(truncated[0]))
        began.append(np.array_equal(seen, first))
        assert (reward == 0).all() == (mode == "NextStep" and steps[-1] == 0)
    if mode == "NextStep":
        assert steps == [1, 2, 3, 0, 1, 2, 3, 0, 1]
        assert ends == [False, False, True, False] * 2 + [False]
        assert began == [False, False, False, True] * 2 + [False]
    else:
        assert steps == [1, 2, 0] * 3
        assert ends == began == [False, False, True] * 3


def test_every_step_has_a_key_of_its_own():
    """Sensors that err draw anew at each step of a climate that stands still."""
    batch = vector_env("ebm-v1", 1, latitudes=12, noise=0.1, episode_length=8)
    still = make("ebm-v1", latitudes=12, episode_length=8)
    batch.reset(seed=3)
    (state, _), move = still.reset(), jax.jit(still.step)
    actions, errors = still.static_actions.astype(np.float32), []
    for _ in range(3):
        state, true, *_ = move(jax.random.key(0), state, actions)
        errors.append(batch.step(actions)[0][0] - np.asarray(true)[0])
    assert np.std(errors) == pytest.approx(3.0, rel=0.4)
    assert np.abs(np.corrcoef(errors) - np.eye(3)).max() < 0.9
