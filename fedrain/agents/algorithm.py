"""What every algorithm is, and the skeleton of an update that the built-in ones share.

An algorithm is a frozen dataclass of its hyperparameters with three pure functions: ``init``,
``act`` (and ``explore``, the same while learning) and ``update``. Functions speak of one agent;
training maps them over agents and seeds, with the step counter left out of the map so that a
delayed update is a branch that is not taken.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from fedrain.agents.agent import Agent, Losses, OptimiserState
from fedrain.agents.networks import Layer, Network, Number, squash
from fedrain.agents.replay import Batch
from fedrain.agents.schedule import Schedule
from fedrain.agents.transforms import Transforms, View
from fedrain.climate.model import first_line
from fedrain.envs.spec import AgentSpec
from fedrain.errors import InputError
from fedrain.references import OF_OTHERS, is_ours

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Algorithm(ABC):
    """Hyperparameters that every algorithm has, its transforms and its schedule.

    Write one of your own as a frozen dataclass that inherits from the built-in one that it is
    nearest to, or from this one, and name it as ``--algo file.py:Class``.

    Args:
        batch_size: Transitions that an update learns from.
        width: Of the hidden layers.
        discount: γ, from 0 to 1.
        depth: Hidden layers.
        layer_norm: Whether they are normalised.
        transforms: What it sees: observations, actions, rewards.
        schedule: When it explores and learns, and how much.
    """

    batch_size: int
    width: int
    discount: float = 0.99
    # Small observations need no deep network; large ones may.
    depth: int = 2  # hidden layers
    # Keeps the layers' inputs of order one however the weights grow.
    layer_norm: bool = False
    transforms: Transforms = Transforms()
    schedule: Schedule = Schedule()

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return (self.width,) * self.depth

    def check(self, spec: AgentSpec) -> None:
        """Refuse options that cannot apply to agents like these, and functions that do not fit."""
        self.transforms.check(spec)
        self.schedule.check(spec)
        if not is_ours(self):
            check_functions(self, View(self.transforms, spec).spec)

    @abstractmethod
    def init(self, actor_key: Key[Array, ""], critic_key: Key[Array, ""], spec: AgentSpec) -> Agent:
        """A new agent. Agents of a federation share the actor's key.

        Args:
            actor_key: Agents of a federation share it, so that their actors start alike.
            critic_key: Its own for each agent.
            spec: The agents as the learner sees them: sizes and bounds.

        Returns:
            One agent's networks and optimisers.
        """

    @abstractmethod
    def explore(
        self,
        agent: Agent,
        observation: Float[Array, " obs"],
        noise: Float[Array, " action"],
        spec: AgentSpec,
    ) -> Float[Array, " action"]:
        """An action to learn from; ``noise`` is standard normal, scaled by the schedule.

        Args:
            agent: All that it has learnt.
            observation: ``[obs]``.
            noise: ``[action]``.
            spec: The agents as the learner sees them: sizes and bounds.

        Returns:
            ``[action]``, within the bounds of ``spec``.
        """

    @abstractmethod
    def act(
        self,
        actor: Network,
        observation: Float[Array, " obs"],
        noise: Float[Array, " action"],
        spec: AgentSpec,
    ) -> Float[Array, " action"]:
        """The action of the learnt policy; ``noise`` is standard normal, for those that draw it.

        Args:
            actor: Its weights.
            observation: ``[obs]``.
            noise: ``[action]``.
            spec: The agents as the learner sees them: sizes and bounds.

        Returns:
            ``[action]``, within the bounds of ``spec``.
        """

    @abstractmethod
    def update(
        self, agent: Agent, batch: Batch, key: Key[Array, ""], step: Int[Array, ""], spec: AgentSpec
    ) -> tuple[Agent, Losses]:
        """The agent after learning from a batch, and what is logged of it.

        Args:
            agent: All that it has learnt.
            batch: Transitions with the leading axis ``batch_size``.
            key: For whatever it draws; another at each step, agent and seed.
            step: Of the run, from 0: an array.
            spec: The agents as the learner sees them: sizes and bounds.

        Returns:
            The agent, with the structure, shapes and types that it had, and three numbers.
        """


@dataclass(frozen=True, kw_only=True)
class ActorCritic(Algorithm):
    """Off-policy actor and critics: each file of an algorithm shows its target and its losses.

    Args:
        tau: How far target networks move towards what they follow, at every update.
        policy_frequency: Steps from one update of the policy to the next.
        restraint: Weight of the penalty on actor outputs that the tanh cuts off.
        plain_tanh: Squash by tanh as in the published runs; its derivative vanishes where it is
            flat.
    """

    tau: float  # how far target networks move towards what they follow
    policy_frequency: int
    # An actor that has run far into the tanh, on the word of a new critic, finds no way back.
    restraint: float = 0.0  # weight of the penalty on actor outputs that the tanh cuts off
    plain_tanh: bool = False  # as in the published runs, whose derivative vanishes where it is flat

    def squash(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """An actor's outputs, brought into (−1, 1)."""
        return jnp.tanh(x) if self.plain_tanh else squash(x)

    @property
    @abstractmethod
    def critic_rate(self) -> Number:
        """Learning rate of the critics."""

    @abstractmethod
    def critic_target(
        self, agent: Agent, batch: Batch, key: Key[Array, ""], spec: AgentSpec
    ) -> Float[Array, "..."]:
        """What the critics are to learn, from the target networks.

        Args:
            agent: All that it has learnt.
            batch: Transitions with the leading axis ``batch_size``.
            key: For whatever it draws; another at each step, agent and seed.
            spec: The agents as the learner sees them: sizes and bounds.

        Returns:
            ``[batch]``, or ``[batch, kept]`` where a critic gives several numbers.
        """

    @abstractmethod
    def values(
        self,
        critic: Network,
        observation: Float[Array, "batch obs"],
        action: Float[Array, "batch action"],
    ) -> Float[Array, "critic batch ..."]:
        """What every critic thinks of the pairs (s, a).

        Args:
            critic: Weights, with a leading axis of critics.
            observation: s, ``[batch, obs]``.
            action: a, ``[batch, action]``.

        Returns:
            ``[critic, batch]``, or ``[critic, batch, output]``.
        """

    @abstractmethod
    def value_loss(
        self, values: Float[Array, "critic batch ..."], target: Float[Array, "..."]
    ) -> Float[Array, ""]:
        """The critics' loss.

        Args:
            values: What every critic thinks, as :meth:`values` gives it.
            target: As :meth:`critic_target` gives it.

        Returns:
            One number.
        """

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
        spec: AgentSpec,
    ) -> tuple[Agent, Float[Array, ""]]:
        """One gradient step of the actor (and of what moves with it), and its loss.

        Args:
            agent: All that it has learnt.
            batch: Transitions with the leading axis ``batch_size``.
            key: For whatever it draws; another at each step, agent and seed.
            spec: The agents as the learner sees them: sizes and bounds.

        Returns:
            The agent, and the loss: one number.
        """

    def policy_steps(self, step: Int[Array, ""]) -> Int[Array, ""]:
        """How many policy updates there are at this step.

        Args:
            step: Of the run, from 0: an array.

        Returns:
            An integer, as an array.
        """
        return jnp.where(step % self.policy_frequency == 0, 1, 0)

    def finish(self, agent: Agent, step: Int[Array, ""]) -> Agent:
        """What comes after the policy updates.

        Args:
            agent: All that it has learnt.
            step: Of the run, from 0: an array.

        Returns:
            The agent, with the structure that it had.
        """
        del step
        return agent

    def update(
        self, agent: Agent, batch: Batch, key: Key[Array, ""], step: Int[Array, ""], spec: AgentSpec
    ) -> tuple[Agent, Losses]:
        """One update: critics at every step, the policy when it is due.

        Losses are NaN where the policy is not: the critics learn from their gradient alone, and
        the loss itself, which is costly for quantiles, is computed when it is to be logged.
        """
        critic_key, policy_key = jax.random.split(key)
        target = self.critic_target(agent, batch, critic_key, spec)
        gradient, values = jax.grad(self.critic_loss, has_aux=True)(agent.critic, batch, target)
        critic, optimiser = adam_step(
            self.critic_rate, gradient, agent.critic_optimiser, agent.critic
        )
        agent = agent._replace(critic=critic, critic_optimiser=optimiser)
        policy_steps = self.policy_steps(step)

        def policy(i: Int[Array, ""], carry: tuple[Agent, Array]) -> tuple[Agent, Array]:
            key = jax.random.fold_in(policy_key, i)
            return self.update_policy(carry[0], batch, key, spec)

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


def check_functions(algorithm: Algorithm, spec: AgentSpec) -> None:
    """Refuse functions of a user's own that give what training cannot use; computes nothing."""
    name, key = type(algorithm).__name__, jax.random.key(0)

    def shapes(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return jax.eval_shape(lambda *given: function(*given, spec), *arguments)
        except InputError:
            raise
        except OF_OTHERS as error:
            raise InputError(f"{name}: {what} fails ({first_line(error)})") from None

    agent = shapes("init", algorithm.init, key, key)
    if not isinstance(agent, Agent):
        raise InputError(f"{name}: init must give a fedrain.agents.Agent")
    actor = agent.actor if isinstance(agent.actor, tuple) else ()
    if not actor or not all(isinstance(layer, Layer) for layer in actor):
        raise InputError(f"{name}: the actor must be a tuple of fedrain.agents.networks.Layer")
    seen, noise = jnp.zeros(spec.observation_size), jnp.zeros(spec.action_size)
    for what, who in (("act", agent.actor), ("explore", agent)):
        found = getattr(shapes(what, getattr(algorithm, what), who, seen, noise), "shape", None)
        if found != noise.shape:
            raise InputError(f"{name}: {what} gives shape {found} instead of {noise.shape}")
    one = Batch(seen, noise, jnp.zeros(()), seen)
    batch = jax.tree.map(lambda x: jnp.zeros((algorithm.batch_size, *x.shape)), one)
    pair = shapes("update", algorithm.update, agent, batch, key, jnp.zeros((), jnp.int32))
    if not isinstance(pair, tuple) or [type(part) for part in pair] != [Agent, Losses]:
        raise InputError(f"{name}: update must give an Agent and Losses")
    before, after = (jax.tree.map(lambda x: (x.shape, x.dtype), a) for a in (agent, pair[0]))
    if before != after:
        raise InputError(f"{name}: update changes the structure, shapes or types of the agent")
    if any(getattr(loss, "shape", None) != () for loss in pair[1]):
        raise InputError(f"{name}: each of the Losses must be one number")
