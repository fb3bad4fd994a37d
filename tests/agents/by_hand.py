"""Small agents, and what they are to compute, in NumPy and double precision."""

import jax
import jax.numpy as jnp
import numpy as np

from fedrain.agents import Batch
from fedrain.envs import AgentSpec

SPEC = AgentSpec(4, (-1.0, 1.4, 0.2), (1.0, 4.2, 0.3))
COMMON = {"tau": 0.1, "batch_size": 8, "width": 16, "policy_frequency": 2, "discount": 0.9}
DETERMINISTIC = {**COMMON, "learning_rate": 1e-3, "exploration_noise": 0.1}
SOFT = {
    **COMMON,
    "actor_learning_rate": 1e-3,
    "critic_learning_rate": 2e-3,
    "alpha_learning_rate": 3e-3,
    "critics": 3,
    "target_frequency": 4,
}
QUANTILES = {**SOFT, "quantiles": 5}
KEY = jax.random.key(3)


def random_batch(seed=0, size=8) -> Batch:
    rng = np.random.default_rng(seed)
    low, high = SPEC.bounds
    return Batch(
        *(
            jnp.asarray(x, jnp.float32)
            for x in (
                rng.normal(size=(size, 4)),
                rng.uniform(low, high, (size, 3)),
                rng.normal(size=size),
                rng.normal(size=(size, 4)),
            )
        )
    )


def at_once(method, *arguments):
    """A method for agents like ours: one compilation, where each operation would have its own."""
    return jax.jit(lambda *given: method(*given, SPEC))(*arguments)


def new_agent(algorithm, seed=0):
    """Targets that differ from what they follow."""
    keys = jax.random.split(jax.random.key(seed), 4)
    agent, other = (at_once(algorithm.init, *pair) for pair in (keys[:2], keys[2:]))
    return agent._replace(target_critic=other.critic, target_actor=other.target_actor)


def forward(network, x):
    for i, (weight, bias) in enumerate(network):
        x = x @ np.asarray(weight, float) + np.asarray(bias, float)
        x = np.maximum(x, 0) if i < len(network) - 1 else x
    return x


def member(critic, i):
    first, *others = critic
    weight = np.asarray(first.weight)[:, i], np.asarray(first.bias)[i]
    return (weight, *((np.asarray(w)[i], np.asarray(b)[i]) for w, b in others))


def policy(actor, observation):
    low, high = (np.array(b, float) for b in SPEC.bounds)
    return (high + low) / 2 + (high - low) / 2 * np.tanh(forward(actor, observation))


def values(critic, observation, action, number):
    pair = np.concatenate([observation, action], 1)
    return np.stack([forward(member(critic, i), pair) for i in range(number)])


def squashed_normal(actor, observation, key):
    """a ~ π and its log density, by the change of variables."""
    mean, raw = np.split(forward(actor, observation), 2, axis=1)
    log_std = -5 + 3.5 * (np.tanh(raw) + 1)
    noise = np.asarray(jax.random.normal(key, mean.shape), float)
    u = mean + np.exp(log_std) * noise
    low, high = (np.array(b, float) for b in SPEC.bounds)
    half = (high - low) / 2
    density = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi)
    jacobian = np.log(half * (1 - np.tanh(u) ** 2) + 1e-6)
    return (high + low) / 2 + half * np.tanh(u), (density - jacobian).sum(1)
