"""The static model: the parameters that a modeller would have tuned once, never changed."""

import time

import numpy as np

from fedrain.baselines.baseline import Baseline, episode_key, play, precise
from fedrain.envs import Environment


def static(environment: Environment, seed: int = 0) -> Baseline:
    """One episode with the static values, in float64.

    Args:
        environment: Any environment.
        seed: Draws the episode, where its start, its forcing or the model is random.

    Returns:
        An episode: ``actions`` ``[step, agent, action]`` in action units, ``returns`` ``[agent]``,
        skill, errors, physics and the number of model runs.
    """
    begin, key = time.perf_counter(), episode_key(seed)
    actions = environment.static_actions
    with precise(environment):
        every = np.broadcast_to(actions, (environment.episode_length, *actions.shape))
        return play("static", environment, every, key, 1, begin)
