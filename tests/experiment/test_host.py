"""The host loop: what the fused loop gives, on environments that JAX does not compile."""

import gymnasium
import numpy as np
import pytest

from fedrain.envs import parallel_env
from fedrain.experiment import configure, train
from fedrain.experiment.host import Separate, Shared, train_on_host
from tests.experiment.small import SMALL, small_preset


@pytest.fixture
def preset(tmp_path):
    return small_preset(tmp_path)


def world_of(env):
    if env == "ebm-v1":
        return Separate([gymnasium.make("fedrain/EnergyBalance-v1", **SMALL)])
    if env == "ebm-v2":
        name = "fedrain/EnergyBalance-v2"
        return Separate([gymnasium.make(name, agents=3, region=i, **SMALL) for i in range(3)])
    return Shared(parallel_env(agents=3, **SMALL))


@pytest.mark.parametrize(
    ("env", "algo"),
    [
        pytest.param("ebm-v1", "tqc", marks=pytest.mark.slow),
        pytest.param("ebm-v2", "td3", marks=pytest.mark.slow),
        ("ebm-v3", "ddpg"),
    ],
)
def test_host_loop_gives_what_the_fused_loop_gives(tmp_path, preset, env, algo):
    several = {} if env == "ebm-v1" else {"agents": 3, "sync_every": 2}
    configuration = configure(env=env, algo=algo, preset=preset, episodes=5, **several, **SMALL)
    fused = train(configuration, tmp_path / "run").returns.returns.values[:, 0]
    _, returns = train_on_host(
        world_of(env),
        configuration.make_algorithm(),
        episodes=5,
        sync_every=configuration.sync_every,
        capacity=50,
    )
    np.testing.assert_allclose(returns, fused, rtol=1e-3)


def test_host_loop_on_climlab(tmp_path, preset):
    configuration = configure(env="ebm-v1", preset=preset, episodes=3, **SMALL)
    fused = train(configuration, tmp_path / "run").returns.returns.values[:, 0]
    world = Separate([gymnasium.make("fedrain/EnergyBalance-v1", backend="climlab", **SMALL)])
    _, returns = train_on_host(world, configuration.make_algorithm(), 3, capacity=30)
    np.testing.assert_allclose(returns, fused, rtol=1e-3)


class Noisy(gymnasium.Env):
    """What an episode begins with is drawn."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.time = 0
        return self.np_random.uniform(-1, 1, 1), {}

    def step(self, action):
        self.time += 1
        return np.zeros(1), -float(action[0] ** 2), False, self.time == 2, {}


def test_worlds_of_the_host_loop_are_drawn_anew(preset):
    """For each seed, episode and agent; the same seed draws the same."""
    begun = []

    class Kept(Separate):
        def reset(self, seed):
            begun.append(super().reset(seed))
            return begun[-1]

    algorithm = configure(preset=preset, **SMALL).make_algorithm()
    for seed in (0, 1, 0):
        train_on_host(Kept([Noisy(), Noisy()]), algorithm, 3, seed=seed, capacity=6)
    drawn = np.array(begun).reshape(3, -1)
    assert len(np.unique(drawn[:2])) == drawn[:2].size
    np.testing.assert_array_equal(drawn[0], drawn[2])


@pytest.mark.slow
def test_seeds_on_climlab_do_not_meet(tmp_path, preset):
    """Each has the climate to itself, though they run at once on one climlab process."""
    options = {"env": "ebm-v1", "preset": preset, "episodes": 2, "backend": "climlab", **SMALL}
    alone, together = (
        train(configure(seeds=seeds, **options), tmp_path / str(len(seeds)))
        .returns.returns.sel(seed=1)
        .values
        for seeds in ([1], [0, 1])
    )
    np.testing.assert_array_equal(alone, together)
