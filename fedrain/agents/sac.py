"""Soft actor-critic (Haarnoja et al. 2018), with an entropy coefficient that is learnt.

    y      = r + γ (min_i Q'_i(s', a') − α log π(a'|s')),   a' ~ π(s')
    L(φ_i) = mean (Q_i(s, a) − y)²
    L(θ)   = mean (α log π(a|s) − min_i Q_i(s, a)),   a ~ π(s)
    L(α)   = − α · mean (log π(a|s) + target entropy),   target entropy = −dim(a)

π is a normal distribution squashed by tanh to the bounds of the action. What makes another of this
one is how its critics' numbers are used: ``outputs``, ``target_values``, ``value_loss`` and
``policy_value``. TQC (``tqc.py``) is these four, and nothing else.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from fedrain.agents.agent import Agent
from fedrain.agents.algorithm import ActorCritic, adam_step, repeat
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

LOG_STD_LOW, LOG_STD_HIGH = -5.0, 2.0


@dataclass(frozen=True, kw_only=True)
class SAC(ActorCritic):
    """SAC; TQC is this with quantiles of the return in place of its mean.

    Args:
        actor_learning_rate: Of the actor.
        critic_learning_rate: Of the critics.
        alpha_learning_rate: Of the entropy coefficient.
        target_frequency: Steps from one move of the target critics to the next.
        critics: How many.
        evaluate_by_sampling: Whether a policy is judged by actions drawn from it, not by its mean.
        log_alpha_loss: Learn the entropy coefficient as the published runs did.
    """

    actor_learning_rate: float
    critic_learning_rate: float
    alpha_learning_rate: float
    target_frequency: int
    critics: int = 2
    # The published runs of TQC are judged by actions drawn from the policy, not by its mean.
    evaluate_by_sampling: bool = False
    # Their entropy coefficient, too, is learnt another way: from −log α · mean (log π + target
    # entropy), with π drawn once more after the actor's step.
    log_alpha_loss: bool = False

    # ---------------------------------------------------------------- how critics are used

    @property
    def outputs(self) -> int:
        """Numbers that each critic gives for a pair (s, a): Q."""
        return 1

    def target_values(
        self, values: Float[Array, "critic batch output"], key: Key[Array, ""]
    ) -> Float[Array, "batch kept"]:
        """What the critics together tell the critics: the lowest, since they err upwards.

        Args:
            values: ``[critic, batch, output]``, of the target critics.
            key: For those that draw which critics are asked.

        Returns:
            ``[batch, kept]``: each number of the target distribution that is kept; for SAC one.
        """
        del key  # for those that draw which critics are asked
        return values.min(axis=0)

    def value_loss(
        self, values: Float[Array, "critic batch output"], target: Float[Array, "batch kept"]
    ) -> Float[Array, ""]:
        """Σ_i mean (Q_i(s, a) − y)²."""
        return jnp.mean((values - target) ** 2, axis=(1, 2)).sum()

    def policy_value(self, values: Float[Array, "critic batch output"]) -> Float[Array, " batch"]:
        """What they tell the actor: the lowest.

        Args:
            values: ``[critic, batch, output]``.

        Returns:
            ``[batch]``.
        """
        return values.min(axis=0)[:, 0]

    # ---------------------------------------------------------------- the policy

    def init(self, actor_key: Key[Array, ""], critic_key: Key[Array, ""], spec: AgentSpec) -> Agent:
        """The actor's last layer gives mean and log-std of the action before it is squashed."""
        sizes = (spec.observation_size, *self.hidden, 2 * spec.action_size)
        actor = init_network(actor_key, sizes)
        sizes = (spec.observation_size + spec.action_size, *self.hidden, self.outputs)
        critic = init_stack(critic_key, sizes, self.critics)
        log_alpha = jnp.zeros(())
        return Agent(
            actor=actor,
            critic=critic,
            target_actor=None,
            target_critic=critic,
            actor_optimiser=optax.adam(self.actor_learning_rate).init(actor),
            critic_optimiser=optax.adam(self.critic_learning_rate).init(critic),
            log_alpha=log_alpha,
            alpha_optimiser=optax.adam(self.alpha_learning_rate).init(log_alpha),
        )

    def distribution(
        self, actor: Network, observation: Float[Array, "*batch obs"]
    ) -> tuple[Float[Array, "*batch action"], Float[Array, "*batch action"]]:
        """Mean and log-std before squashing; the log-std itself is squashed to its bounds."""
        outputs = apply_network(actor, observation, self.layer_norm)
        mean, raw = jnp.split(outputs, 2, axis=-1)
        half = (LOG_STD_HIGH - LOG_STD_LOW) / 2
        return mean, LOG_STD_LOW + half * (jnp.tanh(raw) + 1)

    def sample(
        self,
        actor: Network,
        observation: Float[Array, "*batch obs"],
        noise: Float[Array, "*batch action"],
        spec: AgentSpec,
    ) -> tuple[Float[Array, "*batch action"], Float[Array, "*batch"]]:
        """An action ``a ~ π(s)`` and ``log π(a|s)``, from standard normal ``noise``."""
        mean, log_std = self.distribution(actor, observation)
        squashed = self.squash(mean + jnp.exp(log_std) * noise)
        log_normal = -0.5 * noise**2 - log_std - 0.5 * jnp.log(2 * jnp.pi)
        log_volume = jnp.log(spec.half_range * (1 - squashed**2) + 1e-6)
        action = spec.centre + spec.half_range * squashed
        return action, (log_normal - log_volume).sum(-1)

    def act(
        self,
        actor: Network,
        observation: Float[Array, "*batch obs"],
        noise: Float[Array, "*batch action"],
        spec: AgentSpec,
    ) -> Float[Array, "*batch action"]:
        """The mean of the policy, or a draw from it where that is asked for."""
        if self.evaluate_by_sampling:
            return self.sample(actor, observation, noise, spec)[0]
        mean, _ = self.distribution(actor, observation)
        return spec.centre + spec.half_range * self.squash(mean)

    def explore(
        self,
        agent: Agent,
        observation: Float[Array, " obs"],
        noise: Float[Array, " action"],
        spec: AgentSpec,
    ) -> Float[Array, " action"]:
        """A draw from the policy."""
        return self.sample(agent.actor, observation, noise, spec)[0]

    # ---------------------------------------------------------------- learning

    @property
    def critic_rate(self) -> Number:
        """Learning rate of the critics."""
        return self.critic_learning_rate

    def values(
        self,
        critic: Network,
        observation: Float[Array, "batch obs"],
        action: Float[Array, "batch action"],
    ) -> Float[Array, "critic batch output"]:
        """What every critic gives."""
        return apply_critics(critic, observation, action, self.layer_norm)

    def critic_target(
        self, agent: Agent, batch: Batch, key: Key[Array, ""], spec: AgentSpec
    ) -> Float[Array, "batch kept"]:
        """``r + γ (value of s' − α log π(a'|s'))``, for each of the values that are kept."""
        assert agent.log_alpha is not None
        noise = jax.random.normal(key, batch.action.shape)
        action, log_probability = self.sample(agent.actor, batch.next_observation, noise, spec)
        values = self.values(agent.target_critic, batch.next_observation, action)
        entropy = (jnp.exp(agent.log_alpha) * log_probability)[:, None]
        soft = self.target_values(values, key) - entropy
        return batch.reward[:, None] + self.discount * soft

    def actor_loss(
        self,
        actor: Network,
        agent: Agent,
        batch: Batch,
        noise: Float[Array, "batch action"],
        spec: AgentSpec,
    ) -> tuple[Float[Array, ""], Float[Array, " batch"]]:
        """``α log π(a|s) − value of (s, a)``, its mean; and ``log π(a|s)``.

        Args:
            actor: Weights that the gradient is taken by.
            agent: All that it has learnt.
            batch: Transitions with the leading axis ``batch_size``.
            noise: ``[batch, action]``, standard normal.
            spec: The agents as the learner sees them: sizes and bounds.

        Returns:
            One number, and ``[batch]``.
        """
        assert agent.log_alpha is not None
        action, log_probability = self.sample(actor, batch.observation, noise, spec)
        values = self.policy_value(self.values(agent.critic, batch.observation, action))
        alpha = jnp.exp(agent.log_alpha)
        loss = (alpha * log_probability - values).mean()
        if self.restraint:
            loss = loss + self.restraint * excess(self.distribution(actor, batch.observation)[0])
        return loss, log_probability

    def update_policy(
        self, agent: Agent, batch: Batch, key: Key[Array, ""], spec: AgentSpec
    ) -> tuple[Agent, Float[Array, ""]]:
        """One gradient step of the actor, and one of the entropy coefficient on the same draw."""
        assert agent.log_alpha is not None
        noise = jax.random.normal(key, batch.action.shape)
        (loss, log_probability), gradient = jax.value_and_grad(self.actor_loss, has_aux=True)(
            agent.actor, agent, batch, noise, spec
        )
        actor, actor_optimiser = adam_step(
            self.actor_learning_rate, gradient, agent.actor_optimiser, agent.actor
        )
        if self.log_alpha_loss:
            again = jax.random.normal(jax.random.fold_in(key, 1), batch.action.shape)
            log_probability = self.sample(actor, batch.observation, again, spec)[1]
            slope = -(log_probability - spec.action_size).mean()
        else:
            slope = alpha_gradient(agent.log_alpha, log_probability, spec.action_size)
        log_alpha, alpha_optimiser = adam_step(
            self.alpha_learning_rate, slope, agent.alpha_optimiser, agent.log_alpha
        )
        return (
            agent._replace(
                actor=actor,
                actor_optimiser=actor_optimiser,
                log_alpha=log_alpha,
                alpha_optimiser=alpha_optimiser,
            ),
            loss,
        )

    def policy_steps(self, step: Int[Array, ""]) -> Int[Array, ""]:
        """As many in a row as steps have passed since the last."""
        return jnp.where(step % self.policy_frequency == 0, self.policy_frequency, 0)

    def finish(self, agent: Agent, step: Int[Array, ""]) -> Agent:
        """The target critics move every ``target_frequency`` steps."""

        def move(_: object, agent: Agent) -> Agent:
            moved = soft_update(agent.target_critic, agent.critic, self.tau)
            return agent._replace(target_critic=moved)

        return repeat(jnp.where(step % self.target_frequency == 0, 1, 0), move, agent)


def alpha_gradient(
    log_alpha: Float[Array, ""], log_probability: Float[Array, " batch"], action_size: int
) -> Float[Array, ""]:
    """Of L(α) by log α, on a draw that does not depend on it."""
    return -jnp.exp(log_alpha) * (log_probability - action_size).mean()
