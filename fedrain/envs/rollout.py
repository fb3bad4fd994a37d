"""Play a fixed sequence of actions through an environment."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Key

from fedrain.envs.environment import Environment
from fedrain.envs.episode import EnvParams, State, Transition


class Rollout(NamedTuple):
    """The state after each step, and the rewards.

    Args:
        state: Arrays with a leading axis of steps.
        reward: ``[step, agent]``.
    """

    state: State  # arrays with a leading axis of steps
    reward: Float[Array, "step agent"]

    @property
    def returns(self) -> Float[Array, " agent"]:
        """The sum of each agent's rewards."""
        return self.reward.sum(axis=0)


def rollout(
    environment: Environment,
    actions: ArrayLike,
    params: EnvParams | None = None,
    key: Key[Array, ""] | None = None,
) -> Rollout:
    """One episode from the start; differentiable in the actions, where the model is.

    Args:
        environment: Any environment.
        actions: ``[step, agent, action]``.
        params: Start, target, forcing and noise; the task's own if they are left out.
        key: For what is random.

    Returns:
        States after each step, and rewards ``[step, agent]``; ``returns`` are the sums of these,
        ``[agent]``.
    """
    params = environment.params if params is None else params
    key = jax.random.key(0) if key is None else key
    every = jnp.asarray(actions)
    environment.parameters(every[0])  # refuses what are not its actions
    return _rollout(environment, every, params, key)


@partial(jax.jit, static_argnames="environment")
def _rollout(
    environment: Environment, actions: Array, params: EnvParams, key: Key[Array, ""]
) -> Rollout:
    def advance(state: State, now: tuple[Array, Array]) -> tuple[State, Transition]:
        step, action = now
        transition = environment.step(jax.random.fold_in(key, step + 1), state, action, params)
        return transition.state, transition

    start, _ = environment.reset(jax.random.fold_in(key, 0), params)
    _, transitions = jax.lax.scan(advance, start, (jnp.arange(len(actions)), actions))
    return Rollout(transitions.state, transitions.reward)
