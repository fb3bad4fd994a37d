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
        x = jax.nn.relu(_affine(x, layer))
    return _affine(x, last)


def apply_stack(network: Network, x: Float[Array, "batch in"]) -> Float[Array, "stack batch out"]:
    """What every network of a stack makes of the same input."""
    first, *others = network
    hidden = jax.nn.relu(_affine_stack(x, first))
    return jax.vmap(apply_network)(tuple(others), hidden)


# The gradients below are what automatic differentiation gives, in a better order. The weights'
# gradient comes out in their own layout instead of its transpose, which every later use would read
# against the grain of memory; and the input's gradient from a stack is one matrix product instead
# of a sum of several.


@jax.custom_vjp
def _affine(x: Float[Array, "*batch in"], layer: Layer) -> Float[Array, "*batch out"]:
    return x @ layer.weight + layer.bias


def _affine_forward(x: Array, layer: Layer) -> tuple[Array, tuple[Array, Array]]:
    return _affine(x, layer), (x, layer.weight)


def _affine_backward(kept: tuple[Array, Array], slope: Array) -> tuple[Array, Layer]:
    x, weight = kept
    rows, slopes = x.reshape(-1, x.shape[-1]), slope.reshape(-1, slope.shape[-1])
    return slope @ weight.T, Layer(rows.T @ slopes, slopes.sum(0))


_affine.defvjp(_affine_forward, _affine_backward)


@jax.custom_vjp
def _affine_stack(x: Float[Array, "batch in"], layer: Layer) -> Float[Array, "stack batch out"]:
    return x @ layer.weight + layer.bias[:, None]


def _affine_stack_forward(x: Array, layer: Layer) -> tuple[Array, tuple[Array, Array]]:
    return _affine_stack(x, layer), (x, layer.weight)


def _affine_stack_backward(kept: tuple[Array, Array], slope: Array) -> tuple[Array, Layer]:
    x, weight = kept
    back = jnp.einsum("sbo,sio->bi", slope, weight)
    return back, Layer(x.T @ slope, slope.sum(1))


_affine_stack.defvjp(_affine_stack_forward, _affine_stack_backward)


def soft_update(target: Network, online: Network, tau: float) -> Network:
    """θ' ← (1 − τ) θ' + τ θ."""
    return jax.tree.map(lambda t, o: t + tau * (o - t), target, online)
