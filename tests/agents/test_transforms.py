"""What the learner sees, that nothing changes where an option is off, and what is refused."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrain.agents import ALGORITHMS, Schedule, Transforms, View, load_algorithm
from fedrain.agents.networks import apply_network, excess, init_network
from fedrain.agents.transforms import REWARDS, hats
from fedrain.climate.columns import degrees_apart
from fedrain.envs import AgentSpec, make
from fedrain.errors import InputError

PLACES = ((-45.0, 0.0), (45.0, 0.0))
SPEC = AgentSpec(3, (0.55, 1.4), (0.65, 4.2), scale=(10.0, 10.0, 10.0), places=PLACES)
TOGETHER = replace(SPEC, common=(0,), shared=True)
RNG = np.random.default_rng(0)
SEEN = jnp.asarray(RNG.normal(size=(2, 3)), jnp.float32)


@pytest.mark.parametrize("preset", ["paper", "corrected"])
@pytest.mark.parametrize("algo", ALGORITHMS.names())
def test_the_published_presets_have_no_option_on(preset, algo):
    algorithm = load_algorithm(algo, preset)
    assert algorithm.transforms == Transforms()
    assert algorithm.schedule == Schedule()
    assert (algorithm.depth, algorithm.layer_norm, algorithm.restraint) == (2, False, 0.0)


def test_off_nothing_is_touched():
    view = View(Transforms(), SPEC)
    reward = jnp.array([-4.0, -9.0])
    assert view.spec == replace(SPEC, scale=None)  # learners do not scale once more
    assert view.observation(SEEN, (0, 1)) is SEEN
    assert view.action(SEEN) is SEEN
    assert view.reward(reward, (0, 1)) is reward
    assert view.shaped(reward, 2 * reward, False, 0.9) is reward


def test_actions_are_the_bounds_at_their_ends():
    view = View(Transforms(unit_actions=True), SPEC)
    assert (view.spec.low, view.spec.high) == ((-1.0, -1.0), (1.0, 1.0))
    for end, bound in ((-1.0, SPEC.low), (1.0, SPEC.high), (0.0, SPEC.centre)):
        np.testing.assert_allclose(view.action(jnp.full(2, end)), bound, rtol=1e-6)


@pytest.mark.parametrize("env", ["ebm-v1", "ebm-v2", "ebm-v3"])
@pytest.mark.parametrize("unit", [True, False])
def test_profiles_are_linear_between_knots(env, unit):
    """All at a bound is all at the bound, a line is a line, and the rest is as it is set."""
    outside = make(env, agents=1 if env == "ebm-v1" else 2, latitudes=24).spec
    start, stop = outside.profiles[0]
    knots = (stop - start) // 3
    third = View(Transforms(knots=knots, unit_actions=unit), outside)
    assert outside.action_size - third.spec.action_size == 2 * (stop - start - knots)
    assert len(third.spec.common) == len(outside.common)
    for name in ("low", "high"):
        bound = jnp.asarray(getattr(third.spec, name))
        np.testing.assert_allclose(third.action(bound), getattr(outside, name), rtol=1e-6)
    line = jnp.zeros(third.spec.action_size).at[1 : 1 + knots].set(jnp.linspace(-1, 1, knots))
    inner = third.action(line)[start + 1 : stop - 1]
    np.testing.assert_allclose(np.diff(inner, 2), 0, atol=1e-5)
    assert (np.diff(inner) > 0).all()
    for here, there in zip(third.spec.common, outside.common, strict=True):
        one = third.action(jnp.eye(third.spec.action_size)[here])
        nothing = third.action(jnp.zeros(third.spec.action_size))
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
    outside = make(env, agents=1 if env == "ebm-v1" else 2, latitudes=24).spec
    view = View(Transforms(knots=24), outside)
    assert view.spec == replace(outside, scale=None)
    action = jnp.asarray(outside.centre)
    assert view.action(action) is action


# -------------------------------------------------------------------- rewards


def test_rewards_are_roots():
    view = View(Transforms(reward="root", reward_scale=0.5), SPEC)
    np.testing.assert_allclose(
        view.reward(jnp.array([-4.0, -9.0, 0.0]), (0, 1, 2)), [-1.0, -1.5, 0.0]
    )


def test_rewards_are_logarithms():
    """Zero where nothing is wrong, the root's slope there, and 1/e of it e − 1 K away."""
    view = View(Transforms(reward="log"), SPEC)
    reward = partial(view.reward, regions=(0, 1))
    error = jnp.array([0.0, np.e - 1])
    np.testing.assert_allclose(reward(-(error**2)), [0.0, -1.0], atol=1e-6)
    slope = jax.vmap(jax.grad(lambda e: reward(-(e**2)[None])[0]))(jnp.array([1e-3, np.e - 1]))
    np.testing.assert_allclose(slope, [-1.0, -1 / np.e], rtol=2e-3)


SINGLE = st.floats(allow_nan=False, allow_infinity=False, width=32, allow_subnormal=False)


@pytest.mark.parametrize("reward", REWARDS)
@given(numbers=st.lists(SINGLE, min_size=2, max_size=20))
def test_any_reward_is_learnt_from_in_its_own_order(reward, numbers):
    """Finite and rising for all rewards, those above zero too, with the sign of the reward."""
    rewards = np.sort(np.array(numbers, np.float32))
    learnt = np.asarray(View(Transforms(reward=reward), SPEC).reward(jnp.asarray(rewards), (0, 1)))
    assert np.isfinite(learnt).all()
    assert (np.diff(learnt) >= 0).all()
    np.testing.assert_array_equal(np.sign(learnt), np.sign(rewards))
    apart = rewards[1:] - rewards[:-1] > 1e-3 * np.abs(rewards).max()
    assert (np.diff(learnt)[apart] > 0).all()


@given(
    rewards=st.lists(st.floats(-100, 100), min_size=1, max_size=12),
    share=st.floats(0.01, 1),
    discount=st.floats(0.1, 0.98),
)
def test_shaping_leaves_every_policy_its_rank(rewards, share, discount):
    """The discounted sum changes by what the first and the last step alone decide.

    With the potential Φ = p r / (1 − γ): Σ γᵗ r'ₜ = Σ γᵗ rₜ + γᵀ Φ_{T−1} − Φ of the first step.
    """
    view, before = View(Transforms(shaping=share), SPEC), jnp.zeros(1)
    total = 0.0
    for t, r in enumerate(rewards):
        now = jnp.full(1, r)
        total += discount**t * float(view.shaped(now, before, t == 0, discount)[0])
        before = now
    plain = sum(discount**t * r for t, r in enumerate(rewards))
    last, first = (share * r / (1 - discount) for r in (rewards[-1], rewards[0]))
    expected = plain + discount ** len(rewards) * last - first
    assert total == pytest.approx(expected, rel=1e-3, abs=1e-2)


def test_a_team_learns_from_the_error_of_all():
    """Of its own region nothing, the mean square error of all regions, or a share of both."""
    reward = jnp.array([-1.0, -49.0])

    def seen(team):
        return View(Transforms(reward="root", team=team), TOGETHER).reward(reward, (0, 1))

    np.testing.assert_allclose(seen(0.0), [-1.0, -7.0])
    np.testing.assert_allclose(seen(1.0), [-5.0, -5.0])
    np.testing.assert_allclose(seen(0.5), [-3.0, -6.0])


def test_who_is_near_counts_more():
    """Between an agent's own error, with no reach, and that of all alike, with an endless one."""
    reward = jnp.array([-1.0, -49.0])

    def seen(reach, spec=TOGETHER):
        return View(Transforms(team=1.0, reach=reach), spec).reward(reward, (0, 1))

    np.testing.assert_allclose(seen(1e-3), reward)
    np.testing.assert_allclose(seen(1e9), [-25.0, -25.0], rtol=1e-6)
    share = np.exp(-2) / (1 + np.exp(-2))  # of the other, 90° away
    expected = [-1 - 48 * share, -49 + 48 * share]
    np.testing.assert_allclose(seen(45.0), expected, rtol=1e-6)
    # A quarter of the way around the equator is as far, in tiles of latitude–longitude columns.
    tiles = replace(TOGETHER, places=((0.0, 10.0), (0.0, 280.0)))
    np.testing.assert_allclose(seen(45.0, tiles), expected, rtol=1e-6)


def test_an_agent_that_is_told_what_the_others_got_learns_as_if_they_were_here():
    reward = jnp.array([-1.0, -49.0])
    view = View(Transforms(reward="log", team=0.5, reach=30.0), TOGETHER)
    together = view.reward(reward, (0, 1))
    alone = [view.reward(reward[i : i + 1], (i,), np.asarray(reward))[0] for i in (0, 1)]
    np.testing.assert_allclose(alone, together, rtol=1e-6)
    with pytest.raises(InputError, match="team cannot apply: the rewards of the other regions"):
        view.reward(reward[1:], (1,))


def test_restraint_begins_where_tanh_is_flat():
    np.testing.assert_array_equal(excess(jnp.array([-3.0, 0.0, 3.0])), 0.0)
    np.testing.assert_allclose(excess(jnp.array([5.0, -4.0])), (4 + 1) / 2)


# -------------------------------------------------------------------- observations


def test_agents_know_their_own_latitude():
    view = View(Transforms(scaled_observations=True, place=3), SPEC)
    assert view.spec.observation_size == 6
    seen = view.observation(SEEN, (0, 1))
    np.testing.assert_allclose(seen[:, :3], SEEN / 10, rtol=1e-6)
    np.testing.assert_allclose(seen[:, 3:], [[-0.5, -1.0, 0.0], [0.5, 1.0, 0.0]], atol=1e-6)
    np.testing.assert_array_equal(view.observation(SEEN[1:], (1,))[0], seen[1])


def test_every_number_has_its_own_scale():
    view = View(Transforms(scaled_observations=True), replace(SPEC, scale=(1.0, 10.0, 100.0)))
    np.testing.assert_allclose(
        view.observation(SEEN, (0, 1)), SEEN / np.array([1, 10, 100]), rtol=1e-6
    )


def test_tiles_know_their_longitude():
    """As sine and cosine: 359° and 1° are neighbours."""
    places = ((0.0, 1.0), (0.0, 359.0), (0.0, 180.0))
    view = View(Transforms(place=1), replace(SPEC, places=places))
    seen = np.asarray(view.observation(jnp.zeros((3, 3)), (0, 1, 2)))
    assert view.spec.observation_size == seen.shape[1] == 6
    apart = np.linalg.norm(seen - seen[0], axis=1)
    assert apart[1] < 0.04
    assert apart[2] == pytest.approx(2, abs=1e-3)


@pytest.mark.parametrize("latitudes", [48, 96])
def test_latitudes_are_those_of_the_regions(latitudes):
    """The same place is the same number on every grid."""
    centres = np.array(make("ebm-v3", agents=6, latitudes=latitudes).spec.places)
    np.testing.assert_allclose(centres[:, 0], [-75, -45, -15, 15, 45, 75], atol=1e-9)
    np.testing.assert_array_equal(centres[:, 1], 0)


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
    deep = replace(load_algorithm("ddpg", "paper"), depth=4)
    agent = deep.init(jax.random.key(0), jax.random.key(1), SPEC)
    assert len(agent.actor) == len(agent.critic) == 5


# -------------------------------------------------------------------- what is refused

#: Agents of an environment of which nothing is known but the sizes.
BARE = AgentSpec(3, (0.0,), (1.0,))


@pytest.mark.parametrize(
    ("transforms", "spec"),
    [
        ({"knots": 4}, SPEC),
        ({"knots": 4}, replace(SPEC, profiles=())),
        ({"place": 3}, replace(SPEC, places=None)),
        ({"scaled_observations": True}, replace(SPEC, scale=None)),
        ({"team": 0.5}, SPEC),
        ({"reach": 40.0, "team": 0.5}, SPEC),
        ({"team": 0.5}, replace(TOGETHER, places=None)),
        ({"team": 0.5}, make("ebm-v2", agents=2, latitudes=12).spec),
        ({"team": 0.5}, make("ebm-v3", agents=1, latitudes=12).spec),
    ],
)
def test_an_option_that_cannot_apply_is_an_error(transforms, spec):
    names = "|".join(transforms)
    algorithm = replace(load_algorithm("ddpg", "paper"), transforms=Transforms(**transforms))
    with pytest.raises(InputError, match=f"^({names}) cannot apply: ") as error:
        algorithm.check(spec)
    assert "\n" not in str(error.value)
    algorithm.check(replace(TOGETHER, profiles=((0, 2),)))  # there it can


@pytest.mark.parametrize(
    "change",
    [
        {"common_noise": True},
        {"common_hold": 5, "common_noise": True},
        {"common_constant": True},
        {"common_rate": 0.1, "common_constant": True},
    ],
)
def test_who_sets_nothing_together_cannot_do_it_in_a_common_way(change):
    for spec in (SPEC, replace(SPEC, common=()), BARE):
        with pytest.raises(InputError, match=f"^({'|'.join(change)}) cannot apply: "):
            Schedule(**change).check(spec)
    Schedule(**change).check(TOGETHER)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        (Transforms, {"reach": 10.0}),
        (Schedule, {"common_hold": 5}),
        (Schedule, {"common_rate": 0.1}),
    ],
)
def test_what_acts_through_another_option_needs_that(part, change):
    (name,) = change
    with pytest.raises(InputError, match=f"^{name} cannot apply") as error:
        part(**change).check(TOGETHER)
    assert "\n" not in str(error.value)


def test_a_reward_that_there_is_not_is_refused():
    with pytest.raises(InputError, match="reward must be one of square, root, log, not 'cube'"):
        Transforms(reward="cube")


def test_degrees_apart_are_those_of_the_great_circle():
    """By the angle of unit vectors; along a meridian, the difference of the latitudes."""
    places = np.array([[-60.0, 10.0], [30.0, 100.0], [89.0, 250.0], [0.0, 359.0]])
    north, east = np.deg2rad(places).T
    unit = np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)])
    expected = np.rad2deg(np.arccos(np.clip(unit.T @ unit, -1, 1)))
    np.testing.assert_allclose(degrees_apart(places), expected, atol=1e-5)
    line = degrees_apart(np.array([[-80.0, 0.0], [10.0, 0.0]]))
    np.testing.assert_allclose(line, [[0, 90], [90, 0]])


def test_a_scaled_reward():
    view = View(Transforms(reward_scale=0.1), SPEC)
    np.testing.assert_allclose(view.reward(jnp.array([-4.0, -9.0]), (0, 1)), [-0.4, -0.9])
