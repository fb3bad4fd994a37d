"""What DDPG, TD3 and TQC share: the state of an agent, and the skeleton of an update.

An algorithm is a frozen dataclass of its hyperparameters with three pure functions: ``init``,
``act`` (and ``explore``), ``update``. Each file of an algorithm shows its target, its losses, and
nothing else. Functions speak of one agent; training maps them over agents and seeds, with the
step counter left out of the map so that a delayed update is a branch that is not taken.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key

from fedrain.agents.networks import Network, Number
from fedrain.agents.options import Options
from fedrain.agents.replay import Batch
from fedrain.climate.grid import frozen

T = TypeVar("T")
OptimiserState = Any  # a pytree of optax


@dataclass(frozen=True)
class Spaces:
    """What an agent sees and sets: sizes, and the bounds of its action.

    ``latitudes`` are the centres of all regions in degrees, where agents have a region; ``common``
    the places in an action that the agents of a shared climate set together; ``profiles`` where
    parameters of each latitude stand in it, from and up to.
    """

    observation_size: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    latitudes: tuple[float, ...] = ()
    common: tuple[int, ...] = ()
    profiles: tuple[tuple[int, int], ...] = ()

    @property
    def action_size(self) -> int:
        """Numbers in an action."""
        return len(self.low)

    @cached_property
    def bounds(self) -> tuple[Float[np.ndarray, " action"], Float[np.ndarray, " action"]]:
        """Lowest and highest action."""
        return frozen(np.array(self.low, np.float32)), frozen(np.array(self.high, np.float32))

    @cached_property
    def centre(self) -> Float[np.ndarray, " action"]:
        """Middle of the action's range."""
        low, high = self.bounds
        return frozen((high + low) / 2)

    @cached_property
    def half_range(self) -> Float[np.ndarray, " action"]:
        """Half the width of the action's range."""
        low, high = self.bounds
        return frozen((high - low) / 2)

    def clip(self, action: Float[Array, "*batch action"]) -> Float[Array, "*batch action"]:
        """Each component to its own bounds."""
        return jnp.clip(action, *self.bounds)


class Agent(NamedTuple):
    """Everything that one agent learns. What an algorithm does not use is None."""

    actor: Network
    critic: Network
    target_actor: Network | None
    target_critic: Network
    actor_optimiser: OptimiserState
    critic_optimiser: OptimiserState
    log_alpha: Float[Array, "*stack"] | None = None
    alpha_optimiser: OptimiserState | None = None
    anchor: Network | None = None  # the last average, for agents that are pulled towards it


class Losses(NamedTuple):
    """What is logged of an update."""

    critic_loss: Float[Array, "*stack"]
    actor_loss: Float[Array, "*stack"]
    q: Float[Array, "*stack"]


@dataclass(frozen=True, kw_only=True)
class Algorithm(Options, ABC):
    """Hyperparameters that every algorithm has."""

    tau: float
    batch_size: int
    width: int
    policy_frequency: int
    discount: float = 0.99
    warmup_steps: int = 1000  # uniform random actions before learning starts

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return (self.width,) * self.depth

    @abstractmethod
    def init(self, actor_key: Key[Array, ""], critic_key: Key[Array, ""], spaces: Spaces) -> Agent:
        """A new agent. Agents of a federation share the actor's key."""

    @abstractmethod
    def explore(
        self,
        agent: Agent,
        observation: Float[Array, " obs"],
        noise: Float[Array, " action"],
        spaces: Spaces,
    ) -> Float[Array, " action"]:
        """An action to learn from; ``noise`` is standard normal."""

    @abstractmethod
    def act(
        self,
        actor: Network,
        observation: Float[Array, " obs"],
        noise: Float[Array, " action"],
        spaces: Spaces,
    ) -> Float[Array, " action"]:
        """The action of the learnt policy; ``noise`` is standard normal, for those that draw it."""

    @property
    @abstractmethod
    def critic_rate(self) -> Number:
        """Learning rate of the critics."""

    @abstractmethod
    def critic_target(
        self, agent: Agent, batch: Batch, key: Key[Array, ""], spaces: Spaces
    ) -> Float[Array, "..."]:
        """What the critics are to learn, from the target networks."""

    @abstractmethod
    def values(
        self,
        critic: Network,
        observation: Float[Array, "batch obs"],
        action: Float[Array, "batch action"],
    ) -> Float[Array, "critic batch ..."]:
        """What every critic thinks of the pairs (s, a)."""

    @abstractmethod
    def value_loss(
        self, values: Float[Array, "critic batch ..."], target: Float[Array, "..."]
    ) -> Float[Array, ""]:
        """The critics' loss."""

    def critic_loss(
        self, critic: Network, batch: Batch, target: Float[Array, "..."]
    ) -> tuple[Float[Array, ""], Float[Array, "critic batch ..."]]:
        """The critics' loss on a batch, and their values."""
        values = self.values(critic, batch.observation, batch.action)
        return self.value_loss(values, target), values

    @abstractmethod
    def update_policy(
        self,
        agent: Agent,
        batch: Batch,
        key: Key[Array, ""],
        spaces: Spaces,
    ) -> tuple[Agent, Float[Array, ""]]:
        """One gradient step of the actor (and of what moves with it), and its loss."""

    def policy_steps(self, step: Int[Array, ""]) -> Int[Array, ""]:
        """How many policy updates there are at this step."""
        return jnp.where(step % self.policy_frequency == 0, 1, 0)

    def finish(self, agent: Agent, step: Int[Array, ""]) -> Agent:
        """What comes after the policy updates."""
        del step
        return agent

    def update(
        self, agent: Agent, batch: Batch, key: Key[Array, ""], step: Int[Array, ""], spaces: Spaces
    ) -> tuple[Agent, Losses]:
        """One update: critics at every step, the policy when it is due.

        Losses are NaN where the policy is not: the critics learn from their gradient alone, and
        the loss itself, which is costly for quantiles, is worked out when it is to be logged.
        """
        critic_key, policy_key = jax.random.split(key)
        target = self.critic_target(agent, batch, critic_key, spaces)
        gradient, values = jax.grad(self.critic_loss, has_aux=True)(agent.critic, batch, target)
        critic, optimiser = adam_step(
            self.critic_rate, gradient, agent.critic_optimiser, agent.critic
        )
        agent = agent._replace(critic=critic, critic_optimiser=optimiser)
        policy_steps = self.policy_steps(step)

        def policy(i: Int[Array, ""], carry: tuple[Agent, Array]) -> tuple[Agent, Array]:
            key = jax.random.fold_in(policy_key, i)
            return self.update_policy(carry[0], batch, key, spaces)

        unknown = jnp.full((), jnp.nan)
        critic_loss = jax.lax.cond(
            policy_steps > 0, lambda: self.value_loss(values, target), lambda: unknown
        )
        agent, actor_loss = repeat(policy_steps, policy, (agent, unknown))
        return self.finish(agent, step), Losses(critic_loss, actor_loss, values.mean())


def repeat(times: Int[Array, ""], function: Callable[[Any, T], T], value: T) -> T:
    """``function`` applied ``times`` times, in place.

    A loop of none or one is a branch that costs nothing when it is not taken: unlike a
    conditional, it does not copy what it passes through.
    """
    return jax.lax.fori_loop(0, times, function, value)


def adam_step(
    rate: Number, gradient: T, optimiser: OptimiserState, weights: T
) -> tuple[T, OptimiserState]:
    """One step of Adam: new weights and new moments."""
    updates, optimiser = optax.adam(rate).update(gradient, optimiser)
    return optax.apply_updates(weights, updates), optimiser
