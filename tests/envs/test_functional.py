"""The form of gymnax, against the steps of the environment itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.envs import make_functional

KEY = jax.random.key(3)
DRAWN = {"latitudes": 12, "start": (0.0, 40.0), "noise": 0.1, "episode_length": 3}
TASKS = [
    ("ebm-v1", DRAWN),
    ("ebm-v3", {**DRAWN, "agents": 3}),
    ("ebm-twin", {"latitudes": 12, "agents": 4}),
]


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize(("name", "options"), TASKS)
def test_steps_are_those_of_the_environment(name, options, unit):
    env, params = make_functional(name, unit=unit, **options)
    core, space = env.environment, env.action_space(params)
    seen, state = jax.jit(env.reset)(KEY, params)
    expected, first = core.reset(KEY, params)
    np.testing.assert_allclose(seen.reshape(first.shape), first, atol=1e-4)
    assert seen.shape == env.observation_space(params).shape
    assert env.observation_space(params).contains(seen)
    step, low, high = jax.jit(env.step), *(np.asarray(end) for end in core.action_bounds)
    for t, key in enumerate(jax.random.split(KEY, 2)):
        action = space.sample(key)
        assert space.contains(action)
        seen, state, reward, done, info = step(key, state, action, params)
        physical = low + (np.asarray(action) + 1) / 2 * (high - low) if unit else action
        first = jnp.asarray(physical, jnp.float32).reshape(-1, core.action_size)
        after = core.step(jax.random.split(key)[0], expected, first, params)
        expected = after.state
        np.testing.assert_allclose(
            seen.reshape(after.observation.shape), after.observation, atol=1e-3
        )
        np.testing.assert_allclose(np.atleast_1d(reward), after.reward, rtol=1e-4)
        assert not done
        assert info["step"] == t + 1


def test_a_new_episode_follows_the_end_of_one():
    env, params = make_functional("ebm-v1", **DRAWN)
    action = env.action_space(params).sample(KEY)

    def advance(state, key):
        seen, state, reward, done, info = env.step(key, state, action, params)
        ends = (done, info["terminated"], info["truncated"])
        return state, (seen, state.time, reward, ends, info["final_observation"])

    keys = jax.random.split(KEY, 7)
    _, state = env.reset(KEY, params)
    _, (seen, time, reward, ends, last) = jax.jit(lambda s: jax.lax.scan(advance, s, keys))(state)
    done, terminated, truncated = ends
    np.testing.assert_array_equal(done, [False, False, True] * 2 + [False])
    np.testing.assert_array_equal(truncated, done)  # so the value of what follows still counts
    assert not terminated.any()
    np.testing.assert_array_equal(time, [1, 2, 0, 1, 2, 0, 1])
    assert np.isfinite(reward).all()
    for t in range(7):
        if not done[t]:
            np.testing.assert_array_equal(seen[t], last[t])
            continue
        first, _ = env.reset(jax.random.split(keys[t])[1], params)
        np.testing.assert_allclose(seen[t], first, atol=1e-4)
        assert (seen[t] != last[t]).any()


def test_params_say_how_long_an_episode_is():
    """As those of gymnax do, which its learners ask; after JAX has put them together again too."""
    _, params = make_functional("ebm-v1", **DRAWN)
    changed = jax.tree.map(jnp.asarray, params)._replace(noise=jnp.asarray(0.2)).free
    inside = jax.jit(lambda p: jnp.asarray(p.max_steps_in_episode))
    assert params.max_steps_in_episode == changed.max_steps_in_episode == inside(changed) == 3
    again, other = make_functional("ebm-v1", **{**DRAWN, "episode_length": 5})
    assert (other.max_steps_in_episode, again.default_params.max_steps_in_episode) == (5, 5)


def test_params_can_differ_in_a_batch():
    env, params = make_functional("ebm-v1", latitudes=12)
    starts = jnp.array([5.0, 20.0, 35.0])
    axes = jax.tree.map(lambda _: None, params)._replace(start={"temperature": 0})
    many = params._replace(start={"temperature": jnp.stack([starts, starts], axis=-1)})
    seen, state = jax.vmap(env.reset, in_axes=(None, axes))(KEY, many)
    np.testing.assert_allclose(seen, np.repeat(starts[:, None], 12, axis=1), rtol=1e-6)
    actions = jnp.broadcast_to(
        jnp.asarray(env.environment.static_actions[0], "f4"), (3, env.num_actions)
    )
    step = jax.jit(jax.vmap(env.step, in_axes=(None, 0, 0, axes)))
    _, _, reward, _, _ = step(KEY, state, actions, many)
    for i, start in enumerate(starts):
        one = params._replace(start={"temperature": jnp.array([start, start])})
        _, alone = env.reset(KEY, one)
        np.testing.assert_allclose(env.step(KEY, alone, actions[i], one)[2], reward[i], rtol=1e-5)


def test_rewards_have_a_gradient():
    """Through a whole step with its new episode: what learners by gradient need."""
    env, params = make_functional("ebm-v1", unit=True, latitudes=12)
    _, state = env.reset(KEY, params)
    action = jnp.zeros(env.num_actions)
    reward = lambda a: env.step(KEY, state, a, params)[2]  # noqa: E731
    slope = jax.grad(reward)(action)
    size = 0.5
    for i in (0, 5):
        ahead, behind = (float(reward(action.at[i].add(s))) for s in (size, -size))
        assert float(slope[i]) == pytest.approx((ahead - behind) / (2 * size), rel=0.05, abs=2e-3)
