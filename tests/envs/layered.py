"""Environments of a climate with everything that the contract knows."""

import jax
import numpy as np

from fedrain.envs import Environment, make, rollout
from tests.climate.models import AIR, SURFACE, Layered

KEY = jax.random.key(0)
BOTH = {SURFACE: 1.0, AIR: 0.25}
SURFACE_TARGET, AIR_TARGET = np.linspace(-20.0, 25.0, 6), np.full((6, 3), 260.0)
TARGET = {SURFACE: SURFACE_TARGET, AIR: AIR_TARGET}
EVERYTHING = f"{SURFACE},{AIR},error,target,season"


def layered(name="ebm-v3", **options) -> Environment:
    given = {"model": Layered(), "agents": 3, "judge": BOTH, "target": TARGET, **options}
    return make(name, **given)


def random_actions(env, steps, seed=0):
    low, high = env.action_bounds
    shape = (steps, len(env.regions), env.action_size)
    return np.random.default_rng(seed).uniform(low, high, shape).astype("f4")


def after_some_steps(env, steps=3):
    """The state, and the whole rollout."""
    played = rollout(env, random_actions(env, steps))
    return jax.tree.map(lambda leaf: leaf[-1], played.state), played
