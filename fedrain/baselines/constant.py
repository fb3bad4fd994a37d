"""The best constant parameters: what a modeller with a perfect tuning tool would have set once.

    min over all learnt parameters, within their bounds, of
    Σ over the judged fields of weight × area-weighted mean of (field at the end − target)²,

(and the penalty on rough parameters, where the task has one), or of the return with its sign
changed. In an environment whose agents have climates of their own,
each agent's parameters are the best for its own region.
"""

import time
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from fedrain.baselines.baseline import Baseline, episode_key, hold, play, precise
from fedrain.baselines.optimise import minimise
from fedrain.envs import Environment, EnvParams, State
from fedrain.errors import unknown

ITERATIONS = 2000


def constant(
    environment: Environment, goal: str = "final", iterations: int = ITERATIONS, seed: int = 0
) -> Baseline:
    """Constant parameters tuned for the final state, or for the return.

    Args:
        environment: Any environment whose model has a gradient.
        goal: ``"final"`` or ``"return"``.
        iterations: Of the search, at the most.
        seed: Draws the episode, where its start, its forcing or the model is random.

    Returns:
        An episode: ``actions`` ``[step, agent, action]`` in action units, ``returns`` ``[agent]``,
        skill, errors, physics, the number of model runs, and whether the search ``converged``.
    """
    if goal not in GOALS:
        raise unknown("goal", goal, GOALS)
    begin, key = time.perf_counter(), episode_key(seed)
    shape = environment.static_actions.shape
    with precise(environment):
        best = minimise("constant", environment, GOALS[goal], shape, iterations, key)
        actions = np.broadcast_to(best.actions, (environment.episode_length, *shape))
        found = play("constant", environment, actions, key, best.evaluations, begin)
        return replace(found, converged=best.converged)


def _negative_return(
    environment: Environment, action: Array, params: EnvParams, key: Key[Array, ""]
) -> Float[Array, ""]:
    return -hold(environment, action, params, key)[1].mean()


def _final_error(
    environment: Environment, action: Array, params: EnvParams, key: Key[Array, ""]
) -> Float[Array, ""]:
    error = final_error(environment, hold(environment, action, params, key)[0], params)
    if params.smooth is not None:
        rough = environment.roughness(environment.parameters(action))
        error = error + params.smooth * rough.mean()
    return error


GOALS = {"final": _final_error, "return": _negative_return}


def final_error(environment: Environment, state: State, params: EnvParams) -> Float[Array, ""]:
    """Area-weighted mean squared error of the regions that the agents are judged by.

    Judged fields are added up with their weights, as in the reward.
    """
    area = environment.model.columns.weights[environment.division.cells[list(environment.regions)]]
    errors = environment.errors(state, params)
    total = jnp.zeros(())
    for name, weight in environment.judged:
        squares = (errors[name] ** 2).reshape(*area.shape, -1).mean(axis=-1)  # over the levels
        total = total + weight * (area * squares).sum() / area.sum()
    return total
