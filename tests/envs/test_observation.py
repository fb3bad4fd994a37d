"""What agents see of any model, and how well."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.climate import EnergyBalanceModel, Grid
from fedrain.envs import make, observation, rollout
from tests.climate.models import AIR, SURFACE, Layered
from tests.envs.layered import (
    AIR_TARGET,
    EVERYTHING,
    KEY,
    SURFACE_TARGET,
    after_some_steps,
    layered,
    random_actions,
)


def test_every_number_is_scaled_by_its_own_field():
    env = layered(observe=EVERYTHING)
    fields = [30.0] * 2 + [10.0] * 6  # two columns of the surface, two columns of three levels
    assert env.spec.scale == (*fields, *fields, *fields, 1.0, 1.0)
    low, high = env.observation_bounds
    np.testing.assert_array_equal(high[:2], 90)
    assert np.isinf(high[8:16]).all()
    np.testing.assert_array_equal(low[-2:], -1)
    assert env.observation_size == len(env.spec.scale) == 26


@pytest.mark.parametrize("name", ["ebm-v2", "ebm-v3"])
def test_observations_are_what_they_are_called(name):
    env = layered(name, observe=EVERYTHING)
    state, _ = after_some_steps(env)
    seen = np.asarray(env.observe(state))
    columns = 2 if name == "ebm-v3" else 6
    for agent in range(3):
        climate = 0 if name == "ebm-v3" else agent
        own = slice(2 * agent, 2 * agent + 2) if name == "ebm-v3" else slice(None)
        surface = np.asarray(state.climate[SURFACE][climate][own])
        air = np.asarray(state.climate[AIR][climate][own]).ravel()
        target = SURFACE_TARGET[own], AIR_TARGET[own].ravel()
        angle = 2 * np.pi * 3 / 8
        expected = [
            surface, air, surface - target[0], air - target[1], *target,
            [np.sin(angle), np.cos(angle)],
        ]  # fmt: skip
        np.testing.assert_allclose(seen[agent], np.concatenate(expected), rtol=1e-4, atol=1e-4)
    assert seen.shape == (3, 12 * columns + 2)


def test_only_the_error_is_an_observation_too():
    env = layered(observe="error", judge=[AIR], target={AIR: AIR_TARGET})
    _, seen = env.reset()
    np.testing.assert_allclose(seen, -10.0)
    assert env.observation_size == 6
    assert env.judged == ((AIR, 1.0),)


def test_nothing_to_see():
    env = layered(observe="")
    state, seen = env.reset()
    assert seen.shape == (3, 0)
    assert env.step(KEY, state, random_actions(env, 1)[0]).observation.shape == (3, 0)


def test_sensors_err_by_a_share_of_each_scale():
    env = layered(observe=EVERYTHING, noise=0.1)
    state, _ = env.reset()
    exact = env.observe(state)
    keys = jax.random.split(KEY, 2000)
    noise = np.asarray(jax.vmap(lambda key: env.observe(state, env.params, key))(keys) - exact)
    spread = noise.std(0)
    np.testing.assert_allclose(spread[:, :2], 3.0, rtol=0.1)
    np.testing.assert_allclose(spread[:, 2:8], 1.0, rtol=0.1)
    np.testing.assert_array_equal(noise[:, :, 16:], 0)  # target and season are known
    # The error is that of the field which is seen: it is measured once.
    np.testing.assert_allclose(noise[:, :, 8:16], noise[:, :, :8], atol=1e-4)
    sensors = noise[:, :, :8].reshape(2000, -1)
    off_diagonal = np.corrcoef(sensors.T) - np.eye(24)
    assert np.abs(off_diagonal).max() < 0.12


def test_noise_changes_nothing_but_what_is_seen():
    actions = random_actions(layered(), 20)
    exact, noisy = (rollout(layered(noise=n), actions) for n in (None, 0.5))
    np.testing.assert_allclose(noisy.reward, exact.reward, rtol=1e-6)
    env = layered(noise=0.5, start={"surface": 89.0})
    _, seen = env.reset(KEY)
    assert np.asarray(seen)[:, :2].max() <= 90
    np.testing.assert_array_equal(env.reset(KEY)[1], seen)
    assert (env.reset(jax.random.key(1))[1] != seen).any()


def test_noise_has_nothing_to_do_with_the_weather():
    env = make("ebm-v1", model=Layered(weather=1.0), target=SURFACE_TARGET, noise=0.1)

    def both(key):
        state, seen = env.reset(key)
        return state.climate[SURFACE][0] - 10, seen[0] - env.observe(state)[0]

    weather, noise = jax.vmap(both)(jax.random.split(KEY, 300))
    assert np.abs(np.corrcoef(np.ravel(weather), np.ravel(noise))[0, 1]) < 0.1
    # Keys of climates are split off the key that noise is folded into: they must not meet, also
    # where a model splits its own key further.
    climates = jax.random.key_data(jax.random.split(KEY, 3 * 1000))
    own = jax.random.key_data(jax.random.fold_in(KEY, observation._NOISE))
    assert not (climates == own).all(-1).any()


@dataclass(frozen=True)
class Diary(EnergyBalanceModel):
    """Keeps the key that it was given, in place of a temperature."""

    def init(self, key, temperature=50.0):
        start = jnp.zeros(self.grid.latitudes).at[2].set(temperature)
        return start.at[:2].set(jax.random.key_data(key) / 2.0**32)

    def step(self, state, parameters, forcing, key):
        return state.at[:2].set(jax.random.key_data(key) / 2.0**32)


def test_no_key_is_used_twice(x64):
    """Keys of the starts, those that a start may split off from its own, those of the steps."""
    env = make("ebm-v2", agents=4, model=Diary(grid=Grid(12)))
    played = rollout(env, jnp.zeros((10, 4, env.action_size)), key=KEY)
    start, _ = env.reset(jax.random.fold_in(KEY, 0))
    bits = [np.asarray(start.climate)[:, :2], *np.asarray(played.state.climate)[:, :, :2]]
    whole = (np.concatenate(bits) * 2.0**32).astype(np.uint32)
    used = {tuple(one) for one in whole}
    assert len(used) == 4 * 11
    for one in whole[:4]:
        own = jax.random.wrap_key_data(jnp.asarray(one))
        split = np.asarray(jax.random.key_data(jax.random.split(own, 8)))
        assert not used & {tuple(part) for part in split}
