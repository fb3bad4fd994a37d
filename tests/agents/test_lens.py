"""What the learner sees, and that nothing changes where an option is off."""

from dataclasses import fields
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.agents import Lens, Spaces, load_algorithm
from fedrain.agents.networks import apply_network, excess, init_network
from fedrain.agents.options import Options, without_off
from fedrain.agents.step import draw, spaces_of
from fedrain.agents.transforms import hats
from fedrain.envs import make

SPACES = Spaces(3, (0.55, 1.4), (0.65, 4.2), (-45.0, 45.0))
RNG = np.random.default_rng(0)
SEEN = jnp.asarray(RNG.normal(size=(2, 3)), jnp.float32)


@pytest.mark.parametrize("preset", ["paper", "corrected"])
@pytest.mark.parametrize("algo", ["ddpg", "td3", "tqc"])
def test_the_published_presets_have_no_option_on(preset, algo):
    algorithm = load_algorithm(algo, preset)
    off = Options()
    assert all(getattr(algorithm, f.name) == getattr(off, f.name) for f in fields(Options))


def test_off_nothing_is_touched():
    lens = Lens(load_algorithm("ddpg", "paper"), SPACES)
    reward = jnp.array([-4.0, -9.0])
    assert lens.spaces == SPACES
    assert lens.observation(SEEN, (0, 1)) is SEEN
    assert lens.action(SEEN) is SEEN
    assert lens.reward(reward, (0, 1)) is reward
    assert without_off({"latitude": 0, "depth": 2, "tau": 0.1}) == {"tau": 0.1}
    assert without_off({"latitude": 3, "depth": 2}) == {"latitude": 3}
    assert without_off({"critics": 1, "tau": 0.1}) == {"tau": 0.1}
    assert without_off({"critics": 2}) == {"critics": 2}


def test_actions_are_the_bounds_at_their_ends():
    lens = Lens(Options(unit_actions=True), SPACES)
    assert (lens.spaces.low, lens.spaces.high) == ((-1.0, -1.0), (1.0, 1.0))
    for end, bound in ((-1.0, SPACES.low), (1.0, SPACES.high), (0.0, SPACES.centre)):
        np.testing.assert_allclose(lens.action(jnp.full(2, end)), bound, rtol=1e-6)


@pytest.mark.parametrize("env", ["ebm-v1", "ebm-v2", "ebm-v3"])
@pytest.mark.parametrize("unit", [True, False])
def test_profiles_are_linear_between_knots(env, unit):
    """All at a bound is all at the bound, a line is a line, and the rest is as it is set."""
    outside = spaces_of(make(env, agents=1 if env == "ebm-v1" else 2, latitudes=24))
    start, stop = outside.profiles[0]
    knots = (stop - start) // 3
    third = Lens(Options(knots=knots, unit_actions=unit), outside)
    assert outside.action_size - third.spaces.action_size == 2 * (stop - start - knots)
    assert len(third.spaces.common) == len(outside.common)
    for name in ("low", "high"):
        bound = jnp.asarray(getattr(third.spaces, name))
        np.testing.assert_allclose(third.action(bound), getattr(outside, name), rtol=1e-6)
    line = jnp.zeros(third.spaces.action_size).at[1 : 1 + knots].set(jnp.linspace(-1, 1, knots))
    inner = third.action(line)[start + 1 : stop - 1]
    np.testing.assert_allclose(np.diff(inner, 2), 0, atol=1e-5)
    assert (np.diff(inner) > 0).all()
    for here, there in zip(third.spaces.common, outside.common, strict=True):
        one = third.action(jnp.eye(third.spaces.action_size)[here])
        nothing = third.action(jnp.zeros(third.spaces.action_size))
        assert np.flatnonzero(one != nothing).tolist() == [there]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 16, 96])
@pytest.mark.parametrize("most", [1, 2, 4, 24, 96])
def test_knots_share_out_every_latitude(size, most):
    weights = hats(size, most)
    assert len(weights) == min(size, most)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(0), 1)
    np.testing.assert_allclose(weights, weights[::-1, ::-1], atol=1e-12)
    if most >= size:
        np.testing.assert_array_equal(weights, np.eye(size))


@pytest.mark.parametrize("env", ["ebm-v1", "ebm-v2", "ebm-v3"])
def test_knots_for_all_latitudes_change_nothing(env):
    outside = spaces_of(make(env, agents=1 if env == "ebm-v1" else 2, latitudes=24))
    lens = Lens(Options(knots=24), outside)
    assert lens.spaces == outside
    action = jnp.asarray(outside.centre)
    assert lens.action(action) is action


def test_rewards_are_roots():
    lens = Lens(Options(root_reward=True, reward_scale=0.5), SPACES)
    np.testing.assert_allclose(
        lens.reward(jnp.array([-4.0, -9.0, 0.0]), (0, 1, 2)), [-1.0, -1.5, 0.0]
    )


def test_rewards_are_logarithms():
    """Zero where nothing is wrong, the root's slope there, and 1/e of it e − 1 K away."""
    lens = Lens(Options(log_reward=True), SPACES)
    reward = partial(lens.reward, regions=(0, 1))
    error = jnp.array([0.0, np.e - 1])
    np.testing.assert_allclose(reward(-(error**2)), [0.0, -1.0], atol=1e-6)
    slope = jax.vmap(jax.grad(lambda e: reward(-(e**2)[None])[0]))(jnp.array([1e-3, np.e - 1]))
    np.testing.assert_allclose(slope, [-1.0, -1 / np.e], rtol=2e-3)


TOGETHER = Spaces(3, (0.55, 1.4), (0.65, 4.2), (-45.0, 45.0), common=(0,))


def test_a_team_learns_from_the_error_of_all():
    """Of its own region nothing, the mean square error of all regions, or a share of both."""
    reward = jnp.array([-1.0, -49.0])

    def seen(team, spaces=TOGETHER):
        return Lens(Options(root_reward=True, team=team), spaces).reward(reward, (0, 1))

    np.testing.assert_allclose(seen(0.0), [-1.0, -7.0])
    np.testing.assert_allclose(seen(1.0), [-5.0, -5.0])
    np.testing.assert_allclose(seen(0.5), [-3.0, -6.0])
    np.testing.assert_array_equal(seen(0.5, SPACES), seen(0.0))  # who shares no climate is no team


def test_who_is_near_counts_more():
    """Between an agent's own error, with no reach, and that of all alike, with an endless one."""
    reward = jnp.array([-1.0, -49.0])

    def seen(reach):
        return Lens(Options(team=1.0, reach=reach), TOGETHER).reward(reward, (0, 1))

    np.testing.assert_allclose(seen(1e-3), reward)
    np.testing.assert_allclose(seen(1e9), [-25.0, -25.0], rtol=1e-6)
    share = np.exp(-2) / (1 + np.exp(-2))  # of the other, 90° away
    np.testing.assert_allclose(seen(45.0), [-1 - 48 * share, -49 + 48 * share], rtol=1e-6)


def test_an_agent_that_is_told_what_the_others_got_learns_as_if_they_were_here():
    reward = jnp.array([-1.0, -49.0])
    lens = Lens(Options(log_reward=True, team=0.5, reach=30.0), TOGETHER)
    together = lens.reward(reward, (0, 1))
    alone = [lens.reward(reward[i : i + 1], (i,), np.asarray(reward))[0] for i in (0, 1)]
    np.testing.assert_allclose(alone, together, rtol=1e-6)
    untold = lens.reward(reward[1:], (1,))
    selfish = Lens(Options(log_reward=True), TOGETHER)
    np.testing.assert_allclose(untold, selfish.reward(reward[1:], (1,)))


def test_restraint_begins_where_tanh_is_flat():
    np.testing.assert_array_equal(excess(jnp.array([-3.0, 0.0, 3.0])), 0.0)
    np.testing.assert_allclose(excess(jnp.array([5.0, -4.0])), (4 + 1) / 2)


def test_agents_know_their_own_latitude():
    lens = Lens(Options(observation_scale=10.0, latitude=3), SPACES)
    assert lens.spaces.observation_size == 6
    seen = lens.observation(SEEN, (0, 1))
    np.testing.assert_allclose(seen[:, :3], SEEN / 10, rtol=1e-6)
    np.testing.assert_allclose(seen[:, 3:], [[-0.5, -1.0, 0.0], [0.5, 1.0, 0.0]], atol=1e-6)
    np.testing.assert_array_equal(lens.observation(SEEN[1:], (1,))[0], seen[1])
    nowhere = Lens(Options(latitude=1), Spaces(3, (0.0,), (1.0,)))
    assert nowhere.spaces.observation_size == 3
    assert nowhere.observation(SEEN, (0, 1)) is SEEN


@pytest.mark.parametrize("latitudes", [48, 96])
def test_latitudes_are_those_of_the_regions(latitudes):
    """The same place is the same number on every grid."""
    centres = np.array(spaces_of(make("ebm-v3", agents=6, latitudes=latitudes)).latitudes)
    np.testing.assert_allclose(centres, [-75, -45, -15, 15, 45, 75], atol=1e-9)


def test_what_is_set_together_is_explored_together():
    environment = make("ebm-v3", agents=3, latitudes=12)
    spaces, seed = spaces_of(environment), jnp.asarray(0, jnp.uint32)
    algorithm = load_algorithm("ddpg", "fedrain")
    alone = type(algorithm)(**{**_values(algorithm), "common_noise": False})
    together = type(algorithm)(**{**_values(algorithm), "common_noise": True})
    common = np.isin(np.arange(spaces.action_size), spaces.common)
    symbols = [row.symbol for row in environment.model.table if not row.per_latitude]
    assert common.sum() == len(symbols) == 3
    step = jnp.asarray(7)
    first = draw(alone, spaces, (0, 1, 2), seed, step).action
    second = draw(together, spaces, (0, 1, 2), seed, step).action
    np.testing.assert_array_equal(first[:, ~common], second[:, ~common])
    assert len(np.unique(second[:, common])) == 3
    assert len(np.unique(first[:, common])) == 9
    # An agent that is alone on its machine draws the same.
    np.testing.assert_array_equal(draw(together, spaces, (2,), seed, step).action[0], second[2])


def test_what_is_set_together_is_explored_for_a_while():
    environment = make("ebm-v3", agents=3, latitudes=12)
    spaces, seed = spaces_of(environment), jnp.asarray(0, jnp.uint32)
    algorithm = load_algorithm("ddpg", "fedrain")
    anew = type(algorithm)(**{**_values(algorithm), "common_hold": 1})
    held = type(algorithm)(**{**_values(algorithm), "common_hold": 4})
    common = np.isin(np.arange(spaces.action_size), spaces.common)
    drawn, fresh = (
        np.stack([draw(a, spaces, (0, 1, 2), seed, jnp.asarray(s)).action for s in range(8)])
        for a in (held, anew)
    )
    np.testing.assert_array_equal(drawn[..., ~common], fresh[..., ~common])
    np.testing.assert_array_equal(drawn[::4], fresh[::4])
    for begin in (0, 4):
        assert (drawn[begin : begin + 4][..., common] == drawn[begin][..., common]).all()
    assert (drawn[0][:, common] != drawn[4][:, common]).all()


def _values(algorithm):
    return {f.name: getattr(algorithm, f.name) for f in fields(algorithm) if f.init}


def test_layer_norm_forgets_the_scale_of_its_input():
    """Without biases, a normalised network gives the same for x and for any multiple of x."""
    network = init_network(jax.random.key(0), (3, 16, 16, 2))
    bare = tuple(layer._replace(bias=jnp.zeros_like(layer.bias)) for layer in network)
    x = 10 * SEEN
    np.testing.assert_allclose(
        apply_network(bare, x, True), apply_network(bare, 3 * x, True), atol=1e-4
    )
    assert not np.allclose(apply_network(bare, x), apply_network(bare, 3 * x), atol=1e-2)


def test_depth_is_the_number_of_hidden_layers():
    algorithm = load_algorithm("ddpg", "paper")
    deep = type(algorithm)(**{**_values(algorithm), "depth": 4})
    agent = deep.init(jax.random.key(0), jax.random.key(1), SPACES)
    assert len(agent.actor) == len(agent.critic) == 5
