"""Multilayer perceptrons as pytrees: a tuple of layers, each a weight matrix and a bias."""

from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key


class Layer(NamedTuple):
    """x ↦ x W + b."""

    weight: Float[Array, "*stack in out"]
    bias: Float[Array, "*stack out"]


Network = tuple[Layer, ...]


def init_network(key: Key[Array, ""], sizes: tuple[int, ...]) -> Network:
    """Weights and biases uniform in ±1/√fan-in, as PyTorch's default, which the paper used."""
    pairs = list(pairwise(sizes))
    # One draw for all layers: a random draw takes longer to compile than all the rest.
    numbers = [(fan_in + 1) * fan_out for fan_in, fan_out in pairs]
    draws = jnp.split(
        jax.random.uniform(key, (sum(numbers),), minval=-1.0), np.cumsum(numbers)[:-1]
    )
    layers = []
    for (fan_in, fan_out), draw in zip(pairs, draws, strict=True):
        scaled = draw.reshape(fan_in + 1, fan_out) * fan_in**-0.5
        layers.append(Layer(scaled[:-1], scaled[-1]))
    return tuple(layers)


def apply_network(network: Network, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
    """ReLU between the layers, nothing after the last."""
    *hidden, last = network
    for layer in hidden:
        x = jax.nn.relu(x @ layer.weight + layer.bias)
    return x @ last.weight + last.bias


def soft_update(target: Network, online: Network, tau: float) -> Network:
    """θ' ← (1 − τ) θ' + τ θ."""
    return jax.tree.map(lambda t, o: t + tau * (o - t), target, online)
