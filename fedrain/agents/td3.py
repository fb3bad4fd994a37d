"""Twin-delayed deep deterministic policy gradient (Fujimoto et al. 2018).

    y  = r + γ min_i Q'_i(s', a'),   a' = π'(s') + clip(ε, ±c) half-range,   ε ~ N(0, σ)
    L(φ_i) = mean (Q_i(s, a) − y)²
    L(θ)   = − mean Q_1(s, π(s)),   every ``policy_frequency`` steps, when the targets move too

Where the published runs depart from this: see ``clip_target_to_first_component``.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from fedrain.agents.agent import Agent
from fedrain.agents.algorithm import ActorCritic, adam_step
from fedrain.agents.networks import (
    Network,
    Number,
    apply_critics,
    apply_network,
    excess,
    init_network,
    init_stack,
    soft_update,
)
from fedrain.agents.replay import Batch
from fedrain.envs.spec import AgentSpec


@dataclass(frozen=True, kw_only=True)
class TD3(ActorCritic):
    """TD3; DDPG is this with its additions switched off.

    Args:
        learning_rate: Of actor and critics.
        exploration_noise: Standard deviation, in half-ranges of the action.
        critics: How many.
        policy_noise: Of the target action, in half-ranges.
        noise_clip: Largest noise of it.
        clip_target_to_first_component: Clip it as the published runs did.
    """

    learning_rate: float
    exploration_noise: float  # in half-ranges of the action
    critics: int = 2
    policy_noise: float = 0.2  # in half-ranges of the action
    noise_clip: float = 0.5
    # The published runs clip the noisy target action, in every component, to the bounds of
    # component 0 (D, 0.55–0.65), so that A and B in the target are always wrong.
    clip_target_to_first_component: bool = False

    def init(self, actor_key: Key[Array, ""], critic_key: Key[Array, ""], spec: AgentSpec) -> Agent:
        """Targets start as copies."""
        sizes = (spec.observation_size, *self.hidden, spec.action_size)
        actor = init_network(actor_key, sizes)
        sizes = (spec.observation_size + spec.action_size, *self.hidden, 1)
        critic = init_stack(critic_key, sizes, self.critics)
        adam = optax.adam(self.learning_rate)
        return Agent(actor, critic, actor, critic, adam.init(actor), adam.init(critic))

    def act(
        self,
        actor: Network,
        observation: Float[Array, "*batch obs"],
        noise: object,
        spec: AgentSpec,
    ) -> Float[Array, "*batch action"]:
        """π(s): tanh, scaled to the bounds."""
        del noise
        squashed = self.squash(apply_network(actor, observation, self.layer_norm))
        return spec.centre + spec.half_range * squashed

    def explore(
        self,
        agent: Agent,
        observation: Float[Array, " obs"],
        noise: Float[Array, " action"],
        spec: AgentSpec,
    ) -> Float[Array, " action"]:
        """π(s) with normal noise, clipped to the bounds."""
        action = self.act(agent.actor, observation, None, spec)
        return spec.clip(action + self.exploration_noise * spec.half_range * noise)

    def values(
        self,
        critic: Network,
        observation: Float[Array, "batch obs"],
        action: Float[Array, "batch action"],
    ) -> Float[Array, "critic batch"]:
        """Q_i(s, a) of every critic."""
        return apply_critics(critic, observation, action, self.layer_norm)[..., 0]

    def target_value(self, values: Float[Array, "critic batch"]) -> Float[Array, " batch"]:
        """What the critics together tell the critics: the lowest, since they err upwards.

        Args:
            values: ``[critic, batch]``.

        Returns:
            ``[batch]``.
        """
        return values.min(axis=0)

    def policy_value(self, values: Float[Array, "critic batch"]) -> Float[Array, " batch"]:
        """What they tell the actor: the first one's word.

        Args:
            values: ``[critic, batch]``.

        Returns:
            ``[batch]``.
        """
        return values[0]

    def target_action(
        self,
        agent: Agent,
        observation: Float[Array, "batch obs"],
        key: Key[Array, ""],
        spec: AgentSpec,
    ) -> Float[Array, "batch action"]:
        """a': the target policy, smoothed by clipped noise.

        Args:
            agent: All that it has learnt.
            observation: s', ``[batch, obs]``.
            key: For whatever it draws; another at each step, agent and seed.
            spec: The agents as the learner sees them: sizes and bounds.

        Returns:
            ``[batch, action]``.
        """
        assert agent.target_actor is not None
        action = self.act(agent.target_actor, observation, None, spec)
        if self.policy_noise == 0:
            return action
        noise = self.policy_noise * jax.random.normal(key, action.shape)
        noisy = action + jnp.clip(noise, -self.noise_clip, self.noise_clip) * spec.half_range
        if self.clip_target_to_first_component:
            return jnp.clip(noisy, spec.low[0], spec.high[0])
        return spec.clip(noisy)

    @property
    def critic_rate(self) -> Number:
        """Learning rate of the critics."""
        return self.learning_rate

    def critic_target(
        self, agent: Agent, batch: Batch, key: Key[Array, ""], spec: AgentSpec
    ) -> Float[Array, " batch"]:
        """Y = r + γ min_i Q'_i(s', a')."""
        action = self.target_action(agent, batch.next_observation, key, spec)
        values = self.values(agent.target_critic, batch.next_observation, action)
        return batch.reward + self.discount * self.target_value(values)

    def value_loss(
        self, values: Float[Array, "critic batch"], target: Float[Array, " batch"]
    ) -> Float[Array, ""]:
        """Σ_i mean (Q_i(s, a) − y)²."""
        return jnp.mean((values - target) ** 2, axis=1).sum()

    def actor_loss(
        self, actor: Network, critic: Network, batch: Batch, spec: AgentSpec
    ) -> Float[Array, ""]:
        """− mean Q(s, π(s)), of the critics that the actor listens to.

        Args:
            actor: Weights that the gradient is taken by.
            critic: Weights, with a leading axis of critics.
            batch: Transitions with the leading axis ``batch_size``.
            spec: The agents as the learner sees them: sizes and bounds.

        Returns:
            One number.
        """
        action = self.act(actor, batch.observation, None, spec)
        values = self.values(critic, batch.observation, action)
        loss = -self.policy_value(values).mean()
        if self.restraint:
            outputs = apply_network(actor, batch.observation, self.layer_norm)
            loss = loss + self.restraint * excess(outputs)
        return loss

    def update_policy(
        self, agent: Agent, batch: Batch, key: Key[Array, ""], spec: AgentSpec
    ) -> tuple[Agent, Float[Array, ""]]:
        """One gradient step of the actor; then both targets move."""
        del key
        loss, gradient = jax.value_and_grad(self.actor_loss)(agent.actor, agent.critic, batch, spec)
        actor, optimiser = adam_step(
            self.learning_rate, gradient, agent.actor_optimiser, agent.actor
        )
        assert agent.target_actor is not None
        return (
            agent._replace(
                actor=actor,
                actor_optimiser=optimiser,
                target_actor=soft_update(agent.target_actor, actor, self.tau),
                target_critic=soft_update(agent.target_critic, agent.critic, self.tau),
            ),
            loss,
        )
