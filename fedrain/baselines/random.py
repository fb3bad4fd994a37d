"""Uniform random actions: what an agent does before it has learnt anything."""

import time

import numpy as np

from fedrain.baselines.baseline import Baseline, episode_key, play, precise
from fedrain.envs import Environment


def random(environment: Environment, seed: int = 0) -> Baseline:
    """One episode of actions drawn uniformly between their bounds.

    Args:
        environment: Any environment.
        seed: Draws the actions, and the episode where something in it is random.

    Returns:
        An episode: ``actions`` ``[step, agent, action]`` in action units, ``returns`` ``[agent]``,
        skill, errors, physics and the number of model runs.
    """
    begin, key = time.perf_counter(), episode_key(seed)
    low, high = environment.action_bounds
    shape = (environment.episode_length, len(environment.regions), environment.action_size)
    actions = np.random.default_rng(seed).uniform(low, high, shape)
    with precise(environment):
        return play("random", environment, actions, key, 1, begin)
