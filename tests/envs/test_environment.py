"""The functional environment and its three settings."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrain.climate import ClimlabModel, EnergyBalanceModel, Grid
from fedrain.climate.columns import divisors
from fedrain.envs import Environment, State, make, rollout
from fedrain.envs.rollout import _rollout
from fedrain.errors import InputError

TASKS = ("ebm-v1", "ebm-v2", "ebm-v3")
KEY = jax.random.key(0)


@cache
def jitted_step(env: Environment):
    return jax.jit(env.step)


def random_actions(env: Environment, seed: int, steps: int) -> jnp.ndarray:
    low, high = env.action_bounds
    rng = np.random.default_rng(seed)
    shape = (steps, len(env.regions), env.action_size)
    return jnp.asarray(rng.uniform(low, high, shape))


@pytest.mark.parametrize(
    ("name", "agents", "climates", "observation", "action"),
    [
        ("ebm-v1", 1, 1, 96, 195),
        ("ebm-v2", 2, 2, 96, 195),
        ("ebm-v2", 6, 6, 96, 195),
        ("ebm-v3", 2, 1, 48, 99),
        ("ebm-v3", 6, 1, 16, 35),
        ("ebm-v3", 96, 1, 1, 5),
    ],
)
def test_sizes_of_the_paper(name, agents, climates, observation, action):
    env = make(name, agents=agents)
    assert env.climates == climates
    assert (env.observation_size, env.action_size) == (observation, action)
    state, seen = env.reset()
    assert seen.shape == (agents, observation)
    assert state.climate.shape == (climates, 96)
    np.testing.assert_array_equal(seen, 50.0)


@pytest.mark.parametrize("agents", divisors(96))
@pytest.mark.parametrize("name", ["ebm-v2", "ebm-v3"])
def test_every_divisor_of_96(name, agents):
    env = make(name, agents=agents)
    state, _ = env.reset()
    after = jax.jit(env.step)(KEY, state, random_actions(env, 0, 1)[0])
    assert after.reward.shape == (agents,)
    assert np.isfinite(after.reward).all()
    assert env.fields(after.state)["surface_temperature"].shape == (96,)


def test_one_agent_makes_the_three_the_same(x64):
    """With n = 1 the switches switch nothing."""
    results = []
    for name in TASKS:
        env = make(name, agents=1)
        results.append(rollout(env, random_actions(env, 3, 50)))
    for other in results[1:]:
        np.testing.assert_array_equal(other.state.climate, results[0].state.climate)
        np.testing.assert_array_equal(other.reward, results[0].reward)


def test_reward_is_minus_the_mean_squared_error_of_the_own_region(x64):
    for name in ("ebm-v2", "ebm-v3"):
        env = make(name, agents=6)
        played = rollout(env, random_actions(env, 1, 10))
        target = env.params.target["surface_temperature"].reshape(6, 16)
        for agent in range(6):
            climate = 0 if name == "ebm-v3" else agent
            own = np.asarray(played.state.climate[:, climate]).reshape(-1, 6, 16)[:, agent]
            expected = -np.mean((own - target[agent]) ** 2, axis=-1)
            np.testing.assert_allclose(played.reward[:, agent], expected, rtol=1e-12)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), agents=st.sampled_from(divisors(96)))
def test_shared_parameters_are_laid_end_to_end_and_averaged(seed, agents):
    with jax.enable_x64(True):
        env = make("ebm-v3", agents=agents)
        action = random_actions(env, seed, 1)[0]
        size = 96 // agents
        values = env.parameters(action)
        np.testing.assert_allclose(values["D"], [action[:, 0].mean()])
        np.testing.assert_allclose(values["A"][0], 100 * action[:, 1 : 1 + size].reshape(-1))
        np.testing.assert_allclose(values["B"][0], action[:, 1 + size : 1 + 2 * size].reshape(-1))
        np.testing.assert_allclose(values["a0"], [action[:, -2].mean()])
        np.testing.assert_allclose(values["a2"], [action[:, -1].mean()])


def test_own_climates_do_not_touch_each_other(x64):
    """An agent of v2 alone sees what it sees among the others."""
    together = make("ebm-v2", agents=6)
    actions = random_actions(together, 5, 30)
    all_regions = rollout(together, actions)
    for region in (0, 4):
        alone = rollout(make("ebm-v2", agents=6, region=region), actions[:, region : region + 1])
        np.testing.assert_allclose(
            alone.state.climate[:, 0], all_regions.state.climate[:, region], atol=1e-10
        )
        np.testing.assert_allclose(alone.reward[:, 0], all_regions.reward[:, region], rtol=1e-10)


def test_profile_takes_each_region_from_its_own_climate():
    env = make("ebm-v2", agents=6)
    climates = jnp.arange(6.0)[:, None] * jnp.ones(96)
    profile = env.fields(State(climates, {}, jnp.zeros((), jnp.int32)))
    np.testing.assert_array_equal(profile["surface_temperature"], np.repeat(np.arange(6.0), 16))


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_actions_are_clipped(seed):
    env = make("ebm-v1")
    step = jitted_step(env)
    wild = jnp.asarray(np.random.default_rng(seed).normal(0, 10, (1, 195)), jnp.float32)
    low, high = (jnp.asarray(b, jnp.float32) for b in env.action_bounds)
    state, _ = env.reset()
    there, back = (step(KEY, state, a) for a in (wild, jnp.clip(wild, low, high)))
    np.testing.assert_array_equal(there.state.climate, back.state.climate)


@pytest.mark.parametrize("extreme", [0, 1])
def test_observations_stay_within_their_bounds(extreme):
    env = make("ebm-v1")
    action = jnp.asarray(env.action_bounds[extreme], jnp.float32)[None]
    step = jax.jit(env.step)
    state, _ = env.reset()
    coldest = 0.0
    for _ in range(200):
        state, seen, _, _ = step(KEY, state, action)
        coldest = min(coldest, float(state.climate.min()))
        assert np.abs(seen).max() <= 90
    if extreme == 1:
        assert coldest < -90  # the bound does bind


def test_episode_is_truncated_after_its_length():
    env = make("ebm-v3", agents=6, episode_length=3)
    state, _ = env.reset()
    ends = []
    for action in random_actions(env, 0, 3):
        state, _, _, truncated = env.step(KEY, state, action)
        ends.append(bool(truncated))
    assert ends == [False, False, True]


def test_gradient_of_the_return_with_respect_to_all_parameters(x64):
    """All 195 constant parameters, over 200 steps, against central differences."""
    env = make("ebm-v1")

    def episode_return(action):
        return rollout(env, jnp.broadcast_to(action, (200, 1, 195))).returns[0]

    low, high = env.action_bounds
    middle = jnp.asarray(
        np.random.default_rng(0).uniform(0.9 * low + 0.1 * high, 0.1 * low + 0.9 * high)
    )
    gradient = np.asarray(jax.jit(jax.grad(episode_return))(middle))
    width = 1e-4 * (high - low)
    shifted = jnp.asarray(np.concatenate([middle + np.diag(width), middle - np.diag(width)]))
    values = np.asarray(jax.jit(jax.vmap(episode_return))(shifted))
    differences = (values[:195] - values[195:]) / (2 * width)
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("name", TASKS)
def test_gradient_of_the_return_with_respect_to_every_action(x64, name):
    """A whole random sequence of actions, along random directions."""
    env = make(name)
    low, high = env.action_bounds
    actions = random_actions(env, 2, 200) * 0.8 + 0.1 * (low + high)

    def total(actions):
        return rollout(env, actions).returns.sum()

    gradient = jax.jit(jax.grad(total))(actions)
    rng = np.random.default_rng(1)
    for _ in range(3):
        direction = jnp.asarray(rng.normal(size=actions.shape) * (high - low))
        slope = (total(actions + 1e-5 * direction) - total(actions - 1e-5 * direction)) / 2e-5
        np.testing.assert_allclose(jnp.vdot(gradient, direction), slope, rtol=1e-6)


def test_random_actions_give_the_return_of_the_paper():
    env = make("ebm-v1")
    returns = [float(rollout(env, random_actions(env, seed, 200)).returns[0]) for seed in range(5)]
    assert np.mean(returns) == pytest.approx(-155_000, rel=0.05)


def test_compiled_once():
    _rollout.clear_cache()
    for _ in range(2):
        env = make("ebm-v3", agents=2, latitudes=8)
        rollout(env, random_actions(env, 0, 4))
    assert _rollout._cache_size() == 1


def test_every_parameter_of_the_experiment_can_be_set():
    env = make(
        "ebm-v1",
        latitudes=12,
        bounds={"A": (180.0, 240.0)},
        static={"B": 1.98},
        start=10.0,
        episode_length=7,
        target=[5.0] * 12,
    )
    np.testing.assert_allclose(env.action_bounds[0][1:13], 1.8)
    assert env.static_actions[0, 13] == pytest.approx(1.98)
    state, seen = env.reset()
    np.testing.assert_array_equal(seen, 10.0)
    assert env.step(KEY, state, jnp.asarray(env.static_actions)).reward < 0
    np.testing.assert_array_equal(env.params.target["surface_temperature"], 5.0)


def test_a_model_of_ones_own():
    own = EnergyBalanceModel(grid=Grid(24), water_depth=2.0)
    env = make("ebm-v3", agents=4, model=own)
    assert env.action_size == 3 + 2 * 6
    with pytest.raises(InputError, match=r"latitudes: .* of the energy balance model only"):
        make("ebm-v3", agents=4, model=own, latitudes=24)


def test_a_model_must_be_hashable():
    class Melting(EnergyBalanceModel):
        __hash__ = None

    with pytest.raises(InputError, match="frozen dataclass"):
        make("ebm-v1", model=Melting())


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("use", ["step", "rollout"])
def test_actions_of_another_shape_or_kind(name, use):
    env = make(name, agents=1 if name == "ebm-v1" else 6)
    agents, size = env.agents, env.action_size
    wrong = [jnp.zeros((agents, 1)), jnp.zeros((agents + 1, size)), jnp.zeros((agents, size), int)]
    state, _ = env.reset()
    for action in wrong:
        with pytest.raises(InputError, match="floating-point numbers of shape"):
            env.step(KEY, state, action) if use == "step" else rollout(env, action[None])


def test_numpy_actions_are_taken():
    env = make("ebm-v1")
    assert env.step(KEY, env.reset()[0], env.static_actions).reward.dtype == jnp.float32


def test_what_is_shared_cannot_be_changed():
    env = make("ebm-v1")
    for array in (env.action_bounds[0], env.model.grid.weights, env.model.insolation):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_backend_climlab():
    assert isinstance(make("ebm-v1", backend="climlab").model, ClimlabModel)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "ebm-v4",
            {},
            "no environment 'ebm-v4': did you mean 'ebm-v3'. There are ebm-v1, ebm-v2, ebm-v3",
        ),
        ("ebm-v3", {"agents": 7}, "7 agents do not divide 96 latitudes: use one of 1, 2, 3, 4"),
        ("ebm-v3", {"agents": 0}, "0 agents"),
        ("ebm-v3", {"agents": -6}, "-6 agents"),
        ("ebm-v1", {"agents": 2}, "ebm-v1 has one agent"),
        ("ebm-v2", {"region": 6}, "region must be an integer from 0 to 5"),
        ("ebm-v3", {"region": 1}, "shared climate"),
        ("ebm-v1", {"bounds": {"A": (420.0, 140.0)}}, "A: the lower bound must not exceed"),
        ("ebm-v1", {"bounds": {"A": (float("nan"), 420.0)}}, "A: .* must be finite"),
        ("ebm-v1", {"start": float("nan")}, "start temperature"),
        ("ebm-v1", {"start": 300.0}, "surface_temperature starts at 300 .* within -90 to 90"),
        ("ebm-v1", {"episode_length": 0}, "episode length"),
        ("ebm-v1", {"latitudes": 1}, "at least 2 latitudes"),
        ("ebm-v1", {"target": [0.0] * 95}, "95"),
        ("ebm-v1", {"target": [288.0] * 96}, "are they in °C"),
        ("ebm-v1", {"region": 1}, "ebm-v1 has no regions"),
        ("ebm-v1", {"target": "none.nc"}, "no such file"),
        ("ebm-v1", {"backend": "fortran"}, "no backend 'fortran': use one of jax, climlab"),
    ],
)
def test_bad_options(name, options, message):
    with pytest.raises(InputError, match=message) as caught:
        make(name, **options)
    assert "\n" not in str(caught.value)


def test_parameters_of_an_ensemble_are_those_it_is_judged_by():
    """In climates of their own: each agent's columns; of what is one number, the mean."""
    env = make("ebm-v2", agents=3, latitudes=12)
    action = random_actions(env, 3, 1)[0]
    found, a = env.own_parameters(action), np.asarray(action, float)
    expected = [100 * a[agent, 1 + 4 * agent : 5 + 4 * agent] for agent in range(3)]
    np.testing.assert_allclose(found["A"], np.concatenate(expected), rtol=1e-5)
    for symbol, place in (("D", 0), ("a0", -2), ("a2", -1)):
        np.testing.assert_allclose(found[symbol], a[:, place].mean(), rtol=1e-6)


def test_errors_are_field_minus_target():
    env = make("ebm-v2", agents=3, latitudes=12, target=np.linspace(-20.0, 25.0, 12))
    climates = jnp.asarray(np.random.default_rng(0).normal(0, 20, (3, 12)), jnp.float32)
    state = State(climates, {}, jnp.zeros((), jnp.int32))
    found = env.errors(state, env.params)["surface_temperature"]
    expected = np.asarray(climates) - np.linspace(-20.0, 25.0, 12)
    own = [expected[agent, 4 * agent : 4 * agent + 4] for agent in range(3)]
    np.testing.assert_allclose(found, own, rtol=1e-4, atol=1e-4)
