import jax.numpy as jnp
import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from fedrain.envs import make, parallel_env, rollout
from fedrain.errors import InputError


@pytest.mark.parametrize("agents", [1, 2, 6, 96])
def test_parallel_api(agents, capsys):
    parallel_api_test(parallel_env(agents=agents, episode_length=50), num_cycles=120)
    assert "Passed" in capsys.readouterr().out


def test_parallel_seed():
    parallel_seed_test(lambda: parallel_env(agents=6, episode_length=20))


def test_parallel_seed_climlab():
    parallel_seed_test(lambda: parallel_env(agents=2, backend="climlab", episode_length=5))


def test_gives_what_the_core_gives():
    env = parallel_env(agents=6)
    observations, _ = env.reset(seed=0)
    assert set(observations) == {f"region_{i}" for i in range(6)}
    for i, agent in enumerate(env.agents):
        env.action_space(agent).seed(i)
    actions, seen, rewards = [], [], []
    while env.agents:
        chosen = {agent: env.action_space(agent).sample() for agent in env.agents}
        agents = list(env.agents)
        observations, reward, terminated, truncated, infos = env.step(chosen)
        assert all(observations[a] in env.observation_space(a) for a in agents)
        actions.append([chosen[a] for a in agents])
        seen.append([observations[a] for a in agents])
        rewards.append([reward[a] for a in agents])
        np.testing.assert_array_equal(env.state(), np.concatenate(seen[-1]))
    assert all(truncated.values())
    assert not any(terminated.values())
    assert infos["region_0"]["step"] == len(actions) == 200
    expected = rollout(make("ebm-v3", agents=6), jnp.asarray(actions))
    regions = np.asarray(expected.state.climate).reshape(200, 6, 16)
    rounding = 200 * np.spacing(np.float32(50.0))  # once a step, at the highest temperature
    np.testing.assert_allclose(seen, regions, rtol=0, atol=rounding)
    np.testing.assert_allclose(rewards, expected.reward, rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("region_1"), "region_1 has no action"),
        (lambda a: a.update(region_9=a["region_0"]), "region_9 is not an agent"),
        (lambda a: a.update(region_0=np.zeros(3)), r"shape \(3,\), but \(99,\)"),
        (lambda a: a.update({3: a["region_0"]}), "3 is not an agent"),
        (lambda a: a["region_0"].fill(np.nan), "NaN"),
    ],
)
def test_bad_actions(change, message):
    env = parallel_env(agents=2)
    env.reset()
    actions = {agent: env.action_space(agent).sample() for agent in env.agents}
    change(actions)
    with pytest.raises(InputError, match=message):
        env.step(actions)
    assert env.agents == ["region_0", "region_1"]


def test_actions_that_are_no_mapping():
    env = parallel_env(agents=2)
    env.reset()
    with pytest.raises(InputError, match="given by agent"):
        env.step(np.zeros((2, 99)))


def test_each_agent_has_a_random_generator_of_its_own():
    env = parallel_env(agents=2)
    for agent in env.possible_agents:
        env.action_space(agent).seed(5)
    samples = [env.action_space(agent).sample() for agent in env.possible_agents]
    np.testing.assert_array_equal(*samples)


def test_step_after_the_end():
    env = parallel_env(agents=2, episode_length=1)
    env.reset()
    env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    with pytest.raises(InputError, match="has ended"):
        env.step({})


def test_render():
    env = parallel_env(agents=2, render_mode="rgb_array", episode_length=5)
    env.reset()
    assert env.render().ndim == 3
    env.close()
