"""The static model: the parameters that a modeller would have tuned once, never changed."""

import time

import jax
import jax.numpy as jnp

from fedrain.baselines.baseline import Baseline, play
from fedrain.envs import Environment


def static(environment: Environment) -> Baseline:
    """One episode with the static values, in float64."""
    begin = time.perf_counter()
    shape = (environment.episode_length, len(environment.regions), environment.action_size)
    with jax.enable_x64(True):
        actions = jnp.broadcast_to(jnp.asarray(environment.static_action), shape)
        return play("static", environment, actions, 1, begin)
