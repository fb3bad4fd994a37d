"""Optimal control: the best sequence of actions, the ceiling that no agent can pass.

    max over all actions of the episode, within their bounds, of the return

All 200 × 195 numbers are found at once by gradients through the model. In an environment whose
agents have climates of their own, each agent's sequence is the best for its own region.
"""

import time

import jax
from jaxtyping import Array, Float

from fedrain.baselines.baseline import Baseline, play
from fedrain.baselines.optimise import minimise
from fedrain.envs import Environment
from fedrain.envs.rollout import rollout

ITERATIONS = 600


def limit(environment: Environment, iterations: int = ITERATIONS) -> Baseline:
    """The best action sequence for the return."""
    begin = time.perf_counter()

    def objective(actions: Float[Array, "step agent action"]) -> Float[Array, ""]:
        return -rollout(environment, actions).returns.mean()

    with jax.enable_x64(True):
        shape = (environment.episode_length, len(environment.regions))
        best = minimise(environment, objective, shape, iterations)
        return play("limit", environment, best.variables, best.evaluations, begin)
