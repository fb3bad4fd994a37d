"""Uniform random actions: what an agent does before it has learnt anything."""

import time

import jax
import jax.numpy as jnp
import numpy as np

from fedrain.baselines.baseline import Baseline, check_seed, play
from fedrain.envs import Environment


def random(environment: Environment, seed: int = 0) -> Baseline:
    """One episode of actions drawn uniformly between their bounds."""
    check_seed(seed)
    begin = time.perf_counter()
    low, high = environment.action_bounds
    shape = (environment.episode_length, len(environment.regions), environment.action_size)
    actions = np.random.default_rng(seed).uniform(low, high, shape)
    with jax.enable_x64(True):
        return play("random", environment, jnp.asarray(actions), 1, begin)
