"""Networks, their gradients and their start."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.agents import DDPG, SAC
from fedrain.agents.networks import Layer, apply_network, apply_stack, soft_update, squash
from tests.agents.by_hand import (
    DETERMINISTIC,
    KEY,
    SOFT,
    SPEC,
    member,
    new_agent,
    random_batch,
)


def test_gradients_of_networks_are_those_of_automatic_differentiation():
    def one(network, x):
        for i, (weight, bias) in enumerate(network):
            x = x @ weight + bias
            x = jax.nn.relu(x) if i < 2 else x
        return x

    def every(network, x):
        first, *others = network
        apart = (Layer(first.weight.transpose(1, 0, 2), first.bias), *others)
        return jax.vmap(one, in_axes=(0, None))(apart, x)

    agent = new_agent(SAC(**SOFT))
    x = random_batch().observation
    pair = jnp.concatenate([x, random_batch().action], axis=-1)
    for ours, theirs, network, inputs in (
        (apply_network, one, agent.actor, x),
        (apply_stack, every, agent.critic, pair),
    ):
        found, expected = (
            jax.value_and_grad(lambda n, i, f=f: jnp.sin(f(n, i)).sum(), argnums=(0, 1))(
                network, inputs
            )
            for f in (ours, theirs)
        )
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, expected
        )


def test_the_derivative_of_the_actors_end_does_not_vanish():
    """sech² in double precision, where 1 − tanh² in single precision is zero."""
    x = np.linspace(-20, 20, 401)
    found = jax.vmap(jax.grad(squash))(jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(found, np.cosh(x) ** -2.0, rtol=1e-5)
    np.testing.assert_array_equal(squash(jnp.asarray(x)), jnp.tanh(jnp.asarray(x)))


def test_soft_update():
    old, new = new_agent(DDPG(**DETERMINISTIC), 0).actor, new_agent(DDPG(**DETERMINISTIC), 1).actor
    mixed = soft_update(old, new, 0.25)
    np.testing.assert_allclose(
        mixed[1].weight, 0.75 * old[1].weight + 0.25 * new[1].weight, atol=1e-6
    )


def test_networks_start_within_their_fan_in():
    agent = DDPG(**{**DETERMINISTIC, "width": 64}).init(KEY, KEY, SPEC)
    for network in (agent.actor, member(agent.critic, 0)):
        for weight, *bias in network:
            bound = weight.shape[0] ** -0.5
            for leaf in (weight, *bias):
                assert np.abs(leaf).max() <= bound
        assert np.std(network[1][0]) == pytest.approx(64**-0.5 / 3**0.5, rel=0.05)
