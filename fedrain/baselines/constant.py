"""The best constant parameters: what a modeller with a perfect tuning tool would have set once.

    min over A(φ), B(φ), D, a0, a2 within their bounds of  Σ cos φ (T_end − target)² / Σ cos φ,

or of the return with its sign changed. In an environment whose agents have climates of their own,
each agent's parameters are the best for its own region.
"""

import time

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fedrain.baselines.baseline import Baseline, play
from fedrain.baselines.optimise import minimise
from fedrain.envs import Environment
from fedrain.envs.rollout import rollout
from fedrain.errors import InputError

GOALS = ("final", "return")
ITERATIONS = 2000


def constant(
    environment: Environment,
    goal: str = "final",
    iterations: int = ITERATIONS,
) -> Baseline:
    """Constant parameters tuned for the final state, or for the return."""
    if goal not in GOALS:
        raise InputError(f"there is no goal {goal!r}: use one of {', '.join(GOALS)}")
    begin = time.perf_counter()
    length = environment.episode_length

    def objective(action: Float[Array, "agent action"]) -> Float[Array, ""]:
        played = rollout(environment, jnp.broadcast_to(action, (length, *action.shape)))
        if goal == "return":
            return -played.returns.mean()
        return final_error(environment, played.temperature[-1])

    with jax.enable_x64(True):
        best = minimise(environment, objective, (len(environment.regions),), iterations)
        actions = jnp.broadcast_to(best.variables, (length, *best.variables.shape))
        return play("constant", environment, actions, best.evaluations, begin)


def final_error(
    environment: Environment, temperature: Float[Array, "climate lat"]
) -> Float[Array, ""]:
    """Area-weighted mean squared error of the regions that the agents are judged by."""
    error = environment.own_error(temperature)
    weights = jnp.asarray(environment.model.grid.weights).reshape(environment.agents, -1)
    weights = weights[jnp.asarray(environment.regions)]
    return (weights * error**2).sum() / weights.sum()
