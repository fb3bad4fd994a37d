"""Optimal control: the best sequence of actions, the ceiling that no agent can pass.

    max over all actions of the episode, within their bounds, of the return

All of them, 200 × 195 numbers in ebm-v1, are found at once by gradients through the model. In an
environment whose agents have climates of their own, each agent's sequence is the best for its own
region.
"""

import time
from dataclasses import replace

from jaxtyping import Array, Float, Key

from fedrain.baselines.baseline import Baseline, episode_key, play, precise
from fedrain.baselines.optimise import minimise
from fedrain.envs import Environment, EnvParams, rollout

ITERATIONS = 600


def limit(environment: Environment, iterations: int = ITERATIONS, seed: int = 0) -> Baseline:
    """The best action sequence for the return.

    Args:
        environment: Any environment whose model has a gradient.
        iterations: Of the search, at the most.
        seed: Draws the episode, where its start, its forcing or the model is random. The sequence
            is the best for that one episode.

    Returns:
        An episode: ``actions`` ``[step, agent, action]`` in action units, ``returns`` ``[agent]``,
        skill, errors, physics, the number of model runs, and whether the search ``converged``.
    """
    begin, key = time.perf_counter(), episode_key(seed)
    shape = (environment.episode_length, *environment.static_actions.shape)
    with precise(environment):
        best = minimise("limit", environment, _negative_return, shape, iterations, key)
        found = play("limit", environment, best.actions, key, best.evaluations, begin)
        return replace(found, converged=best.converged)


def _negative_return(
    environment: Environment, actions: Array, params: EnvParams, key: Key[Array, ""]
) -> Float[Array, ""]:
    return -rollout(environment, actions, params, key).returns.mean()
