"""The same environment on JAX and on climlab, over whole random episodes."""

import gymnasium
import numpy as np
import pytest

from fedrain.envs import parallel_env
from fedrain.registration import ENVIRONMENT_IDS

V1, V2 = ENVIRONMENT_IDS


@pytest.mark.parametrize(
    ("name", "options"), [(V1, {}), (V2, {"agents": 2, "region": 1}), (V2, {"agents": 6})]
)
def test_single_agents(name, options):
    fast = gymnasium.make(name, **options)
    oracle = gymnasium.make(name, backend="climlab", **options)
    fast.action_space.seed(7)
    np.testing.assert_array_equal(fast.reset()[0], oracle.reset()[0])
    truncated = False
    while not truncated:
        action = fast.action_space.sample()
        seen, reward, _, truncated, _ = fast.step(action)
        expected, expected_reward, _, oracle_truncated, _ = oracle.step(action)
        np.testing.assert_allclose(seen, expected, rtol=0, atol=5e-3)
        assert reward == pytest.approx(expected_reward, rel=1e-4)
        assert truncated == oracle_truncated


@pytest.mark.parametrize("agents", [2, 6])
def test_shared_climate(agents):
    fast, oracle = parallel_env(agents=agents), parallel_env(agents=agents, backend="climlab")
    fast.reset()
    oracle.reset()
    for i, agent in enumerate(fast.agents):
        fast.action_space(agent).seed(i)
    while fast.agents:
        actions = {agent: fast.action_space(agent).sample() for agent in fast.agents}
        seen, rewards, *_ = fast.step(actions)
        expected, expected_rewards, *_ = oracle.step(actions)
        for agent in actions:
            np.testing.assert_allclose(seen[agent], expected[agent], rtol=0, atol=5e-3)
            assert rewards[agent] == pytest.approx(expected_rewards[agent], rel=1e-4)
    assert not oracle.agents
