"""The static model: the parameters that a modeller would have tuned once, never changed."""

import time

import jax
import jax.numpy as jnp
import numpy as np

from fedrain.baselines.baseline import Baseline
from fedrain.climate import band_skill
from fedrain.envs import Environment
from fedrain.envs.environment import State
from fedrain.envs.rollout import rollout


def static(environment: Environment) -> Baseline:
    """One episode with the static values, in float64."""
    begin = time.perf_counter()
    with jax.enable_x64(True):
        shape = (environment.episode_length, len(environment.regions), environment.action_size)
        actions = jnp.broadcast_to(jnp.asarray(environment.static_action), shape)
        played = rollout(environment, actions)
        end = State(played.temperature[-1], jnp.asarray(environment.episode_length, jnp.int32))
        profile = np.asarray(environment.profile(end))
        returns = np.asarray(played.returns)
    return Baseline(
        name="static",
        skill=band_skill(environment.model.grid, profile, np.array(environment.target)),
        returns=returns,
        profile=profile,
        model_runs=1,
        seconds=time.perf_counter() - begin,
    )
