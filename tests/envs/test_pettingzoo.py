import pickle

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


@pytest.mark.parametrize(
    "options",
    [{"agents": 3, "actions": "unit"}, {"task": "ebm-twin", "agents": 4}, {"task": "ebm-energy"}],
)
def test_parallel_api_of_other_tasks(options, capsys):
    env = parallel_env(latitudes=12, **{"agents": 2, **options}, episode_length=10)
    parallel_api_test(env, num_cycles=25)
    assert "Passed" in capsys.readouterr().out
    env.reset(seed=1)
    assert env.state() in env.state_space
    if "actions" in options:
        assert all((env.action_space(a).high == 1).all() for a in env.possible_agents)


def test_the_state_stays_in_its_space():
    env = parallel_env(agents=2, latitudes=12, bounds={"A": (-2000.0, 2000.0)})
    env.reset()
    while env.agents:  # the hottest climate there is
        env.step({agent: env.action_space(agent).low for agent in env.agents})
        assert env.state() in env.state_space
    assert env.state().max() == env.state_space.high.max()


def test_actions_from_minus_one_to_one_are_the_physical_ones():
    physical, unit = (parallel_env(agents=2, latitudes=12, actions=k) for k in ("physical", "unit"))
    for env in (physical, unit):
        env.reset(seed=0)
    ends = {
        a: (s.low.astype(float), s.high.astype(float)) for a, s in physical.action_spaces.items()
    }
    scaled = {a: unit.action_space(a).sample() for a in unit.agents}
    there = physical.step(
        {a: low + (scaled[a] + 1) / 2 * (high - low) for a, (low, high) in ends.items()}
    )
    back = unit.step(scaled)
    for agent in there[0]:
        np.testing.assert_allclose(there[0][agent], back[0][agent], atol=1e-4)
        assert there[1][agent] == pytest.approx(back[1][agent], rel=1e-5)


def test_options_are_honoured_or_refused():
    env = parallel_env(agents=2, latitudes=12)
    observations, _ = env.reset(options={"start": 20.0})
    assert observations["region_0"][0] == 20
    for options, message in (({"begin": 1}, "no option"), ({"options": 2}, "no option")):
        with pytest.raises(InputError, match=message):
            env.reset(options=options)
    with pytest.raises(InputError, match="a seed is an integer"):
        env.reset(seed=-1)


def test_a_copy_shares_what_is_compiled():
    """SuperSuit pickles an environment as often as it wants copies of it."""
    env = parallel_env(agents=3, latitudes=12)
    copy = pickle.loads(pickle.dumps(env))
    assert copy.adapter._functions is env.adapter._functions
    actions = {agent: env.action_space(agent).sample() for agent in env.possible_agents}
    for one in (env, copy):
        one.reset(seed=3)
    (seen, *_), (other, *_) = env.step(actions), copy.step(actions)
    for agent in env.possible_agents:
        np.testing.assert_array_equal(seen[agent], other[agent])


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
