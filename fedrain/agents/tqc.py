"""Truncated quantile critics (Kuznetsov et al. 2020): soft actor-critic on quantiles of the return.

    Z   = the N·M target quantiles of N critics at (s', a'), a' ~ π(s'), the largest ``drop`` for
          each critic left out
    y_j = r + γ (z_j − α log π(a'|s'))
    L(φ_i) = mean over quantiles k and targets j of the quantile Huber loss ρ_τk(y_j − θ_ik)
    L(θ)   = mean α log π(a|s) − mean of all quantiles at (s, a),   a ~ π(s)
    L(α)   = − α · mean (log π(a|s) + target entropy),   target entropy = −dim(a)

Where the published runs depart from this: ``drop`` is 0, and ``evaluate_by_sampling``.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from fedrain.agents.agent import Agent
from fedrain.agents.algorithm import Algorithm, adam_step, repeat
from fedrain.agents.networks import (
    Network,
    Number,
    apply_critics,
    apply_network,
    excess,
    init_network,
    init_stack,
    soft_update,
    squash,
)
from fedrain.agents.quantile_huber import quantile_huber
from fedrain.agents.replay import Batch
from fedrain.envs.spec import AgentSpec

LOG_STD_LOW, LOG_STD_HIGH = -5.0, 2.0


@dataclass(frozen=True, kw_only=True)
class TQC(Algorithm):
    """TQC with an entropy coefficient that is learnt."""

    actor_learning_rate: float
    critic_learning_rate: float
    alpha_learning_rate: float
    quantiles: int
    critics: int
    target_frequency: int
    drop: int = 2  # largest quantiles left out, for each critic; the published runs drop none
    # The published runs are judged by actions drawn from the policy, not by its mean.
    evaluate_by_sampling: bool = False

    def init(self, actor_key: Key[Array, ""], critic_key: Key[Array, ""], spec: AgentSpec) -> Agent:
        """The actor's last layer gives mean and log-std of the action before it is squashed."""
        sizes = (spec.observation_size, *self.hidden, 2 * spec.action_size)
        actor = init_network(actor_key, sizes)
        sizes = (spec.observation_size + spec.action_size, *self.hidden, self.quantiles)
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
        """A ~ π(s) and log π(a|s), from standard normal ``noise``."""
        mean, log_std = self.distribution(actor, observation)
        squashed = squash(mean + jnp.exp(log_std) * noise)
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
        return spec.centre + spec.half_range * squash(mean)

    def explore(
        self,
        agent: Agent,
        observation: Float[Array, " obs"],
        noise: Float[Array, " action"],
        spec: AgentSpec,
    ) -> Float[Array, " action"]:
        """A draw from the policy."""
        return self.sample(agent.actor, observation, noise, spec)[0]

    def values(
        self,
        critic: Network,
        observation: Float[Array, "batch obs"],
        action: Float[Array, "batch action"],
    ) -> Float[Array, "critic batch quantile"]:
        """The quantiles of every critic."""
        return apply_critics(critic, observation, action, self.layer_norm)

    @property
    def critic_rate(self) -> Number:
        """Learning rate of the critics."""
        return self.critic_learning_rate

    def critic_target(
        self, agent: Agent, batch: Batch, key: Key[Array, ""], spec: AgentSpec
    ) -> Float[Array, "batch kept"]:
        """y_j = r + γ (z_j − α log π(a'|s')) for the kept quantiles."""
        assert agent.log_alpha is not None
        noise = jax.random.normal(key, batch.action.shape)
        action, log_probability = self.sample(agent.actor, batch.next_observation, noise, spec)
        values = self.values(agent.target_critic, batch.next_observation, action)
        pooled = values.transpose(1, 0, 2).reshape(len(batch.reward), -1)
        if self.drop:
            pooled = without_largest(pooled.T, self.drop * self.critics).T
        soft = pooled - (jnp.exp(agent.log_alpha) * log_probability)[:, None]
        return batch.reward[:, None] + self.discount * soft

    def value_loss(
        self, values: Float[Array, "critic batch quantile"], target: Float[Array, "batch kept"]
    ) -> Float[Array, ""]:
        """Mean quantile Huber loss."""
        return quantile_huber(values, target)

    def actor_loss(
        self,
        actor: Network,
        agent: Agent,
        batch: Batch,
        noise: Float[Array, "batch action"],
        spec: AgentSpec,
    ) -> tuple[Float[Array, ""], Float[Array, " batch"]]:
        """Mean α log π(a|s) − mean of the quantiles at (s, a); and log π(a|s)."""
        assert agent.log_alpha is not None
        action, log_probability = self.sample(actor, batch.observation, noise, spec)
        values = self.values(agent.critic, batch.observation, action).mean(axis=(0, 2))
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
        log_alpha, alpha_optimiser = adam_step(
            self.alpha_learning_rate,
            alpha_gradient(agent.log_alpha, log_probability, spec.action_size),
            agent.alpha_optimiser,
            agent.log_alpha,
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


def without_largest(rows: Float[Array, "all batch"], number: int) -> Float[Array, "kept batch"]:
    """All numbers of each column but the ``number`` largest, in no order.

    The rows pass by a list of the largest so far, in falling order; what it has no place for is
    kept. Which numbers those are is all that counts, and to sort all of them takes 25 times longer.
    """

    def push(largest: Float[Array, "number batch"], row: Array) -> tuple[Array, Array]:
        above = jnp.concatenate([jnp.full_like(largest[:1], jnp.inf), largest[:-1]])
        return jnp.maximum(largest, jnp.minimum(above, row)), jnp.minimum(largest[-1], row)

    nothing = jnp.full_like(rows[:number], -jnp.inf)
    return jax.lax.scan(push, nothing, rows)[1][number:]
