"""Parameters that never change, in the very episodes in which policies are evaluated.

Where a start, a forcing or the weather is random, every seed has an episode of its own. What a
policy is compared with plays the same ones, in the same precision: other bits would be other draws.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from fedrain.agents.step import EVALUATION, environment_key
from fedrain.climate.model import over_climates
from fedrain.envs import Environment, EnvParams, rollout
from fedrain.experiment.evaluation import Evaluation

#: It is called once or twice: what optimising it would take is more than what that would save.
ONCE = {"xla_backend_optimization_level": 0}


def hold(
    environment: Environment,
    actions: Float[np.ndarray, "agent action"],
    seeds: tuple[int, ...],
    params: EnvParams | None = None,
) -> Evaluation:
    """One episode of every seed with these actions at every step.

    Args:
        environment: Where they are held.
        actions: In action units.
        seeds: Those of the policies that they are compared with.
        params: Start, target, forcing and noise, if they are not the environment's own.
    """
    given = jax.tree.map(jnp.asarray, (params or environment.params).test)
    numbers = jnp.asarray(seeds, jnp.uint32)
    play = _hold_long if getattr(environment.model, "costly", False) else _hold_once
    held = play(environment, given, jnp.asarray(actions, jnp.float32), numbers)
    return Evaluation(*jax.device_get(held))


def _hold(
    environment: Environment,
    params: EnvParams,
    actions: Float[Array, "agent action"],
    seeds: UInt32[Array, " seed"],
) -> tuple[Any, ...]:
    every = jnp.broadcast_to(actions, (environment.episode_length, *actions.shape))
    parameters = jax.vmap(environment.own_parameters)(every)

    def one(seed: UInt32[Array, ""]) -> tuple[Any, ...]:
        played = rollout(environment, every, params, environment_key(seed, EVALUATION))
        shown = jax.vmap(environment.fields)(played.state)
        judged = {name: shown[name] for name, _ in environment.judged}
        ends = jax.tree.map(lambda leaf: leaf[environment.judged_steps], played.state)
        more = jax.vmap(lambda end: environment.judged_against(end, actions, params))(ends)
        more = jax.tree.map(lambda leaf: leaf.mean(0) if len(leaf) > 1 else leaf[0], more)
        return judged, played.returns, parameters, *more

    return over_climates(environment.model, one)(seeds)


_hold_long = jax.jit(_hold, static_argnames="environment")
_hold_once = jax.jit(_hold, static_argnames="environment", compiler_options=ONCE)
