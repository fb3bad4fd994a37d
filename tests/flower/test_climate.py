"""The folder of a shared climate that is used again."""

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
