"""Multilayer perceptrons as pytrees: a tuple of layers, each a weight matrix and a bias."""

from functools import partial
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
#: A hyperparameter, or where many are tried an argument of the compiled program.
Number = float | Float[Array, ""]


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


def init_stack(key: Key[Array, ""], sizes: tuple[int, ...], number: int) -> Network:
    """Networks that see the same input, stacked.

    Their first layers lie side by side, as (input, network, output): one matrix product for all.
    """
    first, *others = jax.vmap(lambda key: init_network(key, sizes))(jax.random.split(key, number))
    return (Layer(first.weight.transpose(1, 0, 2), first.bias), *others)


def apply_network(
    network: Network, x: Float[Array, "*batch in"], layer_norm: bool = False
) -> Float[Array, "*batch out"]:
    """ReLU between the layers, normalised or not, and nothing after the last."""
    *hidden, last = network
    for layer in hidden:
        x = _activate(_affine(x, layer), layer_norm)
    return _affine(x, last)


def apply_stack(
    network: Network, x: Float[Array, "batch in"], layer_norm: bool = False
) -> Float[Array, "stack batch out"]:
    """What every network of a stack makes of the same input."""
    first, *others = network
    side_by_side = Layer(first.weight.reshape(x.shape[-1], -1), first.bias.reshape(-1))
    hidden = _activate(_affine(x, side_by_side).reshape(-1, *first.bias.shape), layer_norm)
    apply = partial(apply_network, layer_norm=layer_norm)
    return jax.vmap(apply)(tuple(others), hidden.transpose(1, 0, 2))


def _activate(x: Float[Array, "*batch width"], layer_norm: bool) -> Float[Array, "*batch width"]:
    """ReLU, of numbers with mean 0 and variance 1 if they are to be normalised (Ba et al. 2016)."""
    return jax.nn.relu(jax.nn.standardize(x, epsilon=1e-5) if layer_norm else x)


def apply_critics(
    critics: Network,
    observation: Float[Array, "batch obs"],
    action: Float[Array, "batch action"],
    layer_norm: bool = False,
) -> Float[Array, "critic batch out"]:
    """What every critic of a stack makes of the pairs (s, a)."""
    return apply_stack(critics, jnp.concatenate([observation, action], axis=-1), layer_norm)


@jax.custom_vjp
def _affine(x: Float[Array, "*batch in"], layer: Layer) -> Float[Array, "*batch out"]:
    return x @ layer.weight + layer.bias


def _affine_forward(x: Array, layer: Layer) -> tuple[Array, tuple[Array, Array]]:
    return _affine(x, layer), (x, layer.weight)


def _affine_backward(kept: tuple[Array, Array], slope: Array) -> tuple[Array, Layer]:
    # The weights' gradient has their own layout: what automatic differentiation gives is
    # its transpose, which every later use would read against the grain of memory.
    x, weight = kept
    rows, slopes = x.reshape(-1, x.shape[-1]), slope.reshape(-1, slope.shape[-1])
    return slope @ weight.T, Layer(rows.T @ slopes, slopes.sum(0))


_affine.defvjp(_affine_forward, _affine_backward)


@jax.custom_jvp
def squash(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Tanh, with a derivative that does not vanish before it must.

    1 − tanh² is exactly zero in float32 from |x| = 8 on, and an actor whose outputs all lie there
    never learns again. The same derivative as 4 e^(−2|x|) / (1 + e^(−2|x|))² keeps its digits, and
    Adam, which scales gradients, finds the way back.
    """
    return jnp.tanh(x)


@squash.defjvp
def _squash_derivative(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    (x,), (dx,) = primals, tangents
    decay = jnp.exp(-2 * jnp.abs(x))
    return squash(x), 4 * decay / (1 + decay) ** 2 * dx


def excess(x: Float[Array, "..."]) -> Float[Array, ""]:
    """Mean square of how far numbers lie beyond ±3, where tanh is as good as flat."""
    return jnp.mean(jax.nn.relu(jnp.abs(x) - 3) ** 2)


def soft_update(target: Network, online: Network, tau: Number) -> Network:
    """θ' ← (1 − τ) θ' + τ θ."""
    return jax.tree.map(lambda t, o: t + tau * (o - t), target, online)
