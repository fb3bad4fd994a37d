"""The folder of a shared climate that is used again."""

import threading

import jax
import numpy as np
import pytest

from fedrain.envs import make
from fedrain.errors import InputError
from fedrain.flower.climate import Episode, SharedClimate
from tests.experiment.small import SMALL


@pytest.fixture
def environment():
    return make("ebm-v3", agents=1, **SMALL)


def play(climate, federation_id):
    episode = Episode(0, 0, federation_id)
    climate.begin(0, episode)
    climate.step(0, episode, 0, climate.environment.action_bounds[1])


def test_with_another_number_of_agents(tmp_path, environment):
    play(SharedClimate(environment, 1.0, print, folder=tmp_path), "one")
    with pytest.raises(InputError, match="journal of another climate"):
        SharedClimate(make("ebm-v3", agents=6, **SMALL), 1.0, print, folder=tmp_path)


def test_by_another_federation(tmp_path, environment):
    """Nobody gets the last parameters of the federation before."""
    play(SharedClimate(environment, 1.0, print, folder=tmp_path), "first")
    climate = SharedClimate(environment, 1.0, print, folder=tmp_path)
    np.testing.assert_array_equal(climate._last[0], np.float32(environment.action_bounds[1]))
    climate.begin(0, Episode(0, 0, "second"))
    np.testing.assert_array_equal(climate._last[0], environment.static_actions[0])


def acting(number, **options):
    """A climate of two agents, and what they set: not the static values."""
    environment = make("ebm-v3", agents=2, **SMALL)
    low, high = environment.action_bounds
    given = (0.3 * low + 0.7 * high).astype(np.float32)
    return SharedClimate(environment, 0.05, options.pop("say", print), **options), given


@pytest.mark.parametrize("heard", [True, False])
def test_who_was_heard_in_an_episode_is_not_gone(heard):
    """It is late, and said to be so once; the next episode waits for it all the same."""
    said = []
    climate, given = acting(2, say=said.append)
    episode = Episode(0, 0)
    for region in (0, 1):
        climate.begin(region, episode)
    begin = 0
    if heard:
        thread = threading.Thread(target=climate.step, args=(1, episode, 0, given))
        climate.patience = 60.0
        thread.start()
        climate.step(0, episode, 0, given)
        thread.join()
        climate.patience, begin = 0.05, 1
    for step in range(begin, 10):
        climate.step(0, episode, step, given)
    assert [(late.step, late.region) for late in climate.late] == [(s, 1) for s in range(begin, 10)]
    assert len(said) == 1
    assert climate._gone == (set() if heard else {1})
    climate.begin(0, Episode(1, 0))
    assert climate._plays[0].absent == (set() if heard else {1})


def test_a_climate_that_comes_back_knows_what_was_set_last(tmp_path):
    """In place of an agent that is late it takes what that set last, before it was lost."""
    climate, given = acting(2, folder=tmp_path)
    episode = Episode(0, 0)
    for region in (0, 1):
        climate.begin(region, episode)
    climate.patience = 60.0
    thread = threading.Thread(target=climate.step, args=(1, episode, 0, given))
    thread.start()
    climate.step(0, episode, 0, given)
    thread.join()
    again, _ = acting(2, folder=tmp_path)
    answer = again.step(0, episode, 1, given)
    assert [(late.step, late.region) for late in again.late] == [(1, 1)]
    environment = again.environment
    (state, _), move = environment.reset(), jax.jit(environment.step)
    both = np.stack([given] * 2)
    for _ in range(2):
        state, seen, reward, _ = move(jax.random.key(0), state, both)
    np.testing.assert_allclose(answer.observation, seen[0], atol=1e-4)
    np.testing.assert_allclose(answer.of_all, reward, rtol=1e-5)
    static = environment.static_actions.astype(np.float32)
    assert np.abs(static - both).max() > 0.01
    assert (tmp_path / "late.csv").read_text().split() == ["0,0,,1,1,last"]


def test_what_is_random_is_drawn_step_by_step_as_in_training():
    """The key of a step is that of its number in the run, counted from its first episode."""
    environment = make("ebm-v3", agents=1, **SMALL)
    climate = SharedClimate(environment, 1.0, print)
    for number, time, step in ((0, 0, 0), (0, 3, 3), (2, 0, 20), (2, 9, 29)):
        seed, found = climate._when(Episode(number, 5), time)
        assert (int(seed), int(found)) == (5, step)
