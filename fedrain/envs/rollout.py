"""Play a fixed sequence of actions through an environment."""

from functools import partial
from typing import NamedTuple

import jax
from jaxtyping import Array, Float

from fedrain.envs.environment import Environment, State, Transition


class Rollout(NamedTuple):
    """Temperature of each climate after each step, and the rewards."""

    temperature: Float[Array, "step climate lat"]
    reward: Float[Array, "step agent"]

    @property
    def returns(self) -> Float[Array, " agent"]:
        """The sum of each agent's rewards."""
        return self.reward.sum(axis=0)


@partial(jax.jit, static_argnames="environment")
def rollout(environment: Environment, actions: Array) -> Rollout:
    """One episode from the start, in the dtype of the actions; differentiable in them.

    Actions have the shape (step, agent, action).
    """

    def advance(state: State, action: Float[Array, "agent action"]) -> tuple[State, Transition]:
        transition = environment.step(state, action)
        return transition.state, transition

    environment.parameters(actions[0])  # refuses what are not its actions
    start, _ = environment.reset(actions.dtype)
    _, transitions = jax.lax.scan(advance, start, actions)
    return Rollout(transitions.state.temperature, transitions.reward)
