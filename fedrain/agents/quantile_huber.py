"""The quantile Huber loss of every pair of quantile and target, without a table of the pairs.

    ρ_τ(u) = |τ − 1{u < 0}| H(u),   H(u) = u²/2 for |u| ≤ 1, |u| − ½ beyond,   u = target − value

With c = clip(u, ±1), H(u) = c (u − c/2) and H'(u) = c, so that loss and gradient are two sums over
the targets that share all their work. They are accumulated for a few targets at a time: what is in
use then stays in the cache, where a table of all pairs (millions of numbers) would not.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Targets taken together. From about this many on the compiler vectorises the pass.
TOGETHER = 25


@jax.custom_vjp
def quantile_huber(
    values: Float[Array, "critic batch quantile"], target: Float[Array, "batch kept"]
) -> Float[Array, ""]:
    """Mean of ρ over critics, batch, quantiles and targets; τ_k = (k − ½)/M. Targets are fixed."""
    return _forward(values, target)[0]


def _forward(
    values: Float[Array, "critic batch quantile"], target: Float[Array, "batch kept"]
) -> tuple[Float[Array, ""], tuple[Float[Array, "critic batch quantile"], Array]]:
    # The batch comes last, so that neighbours in memory share a quantile level.
    value, targets = values.transpose(0, 2, 1), target.T
    number = values.shape[-1]
    level = ((jnp.arange(number) + 0.5) / number)[:, None]

    def add(sums: tuple[Array, Array], some: Float[Array, "some batch"]) -> tuple[Array, Array]:
        loss, slope = sums
        for one in some:
            error = one - value
            clipped = jnp.clip(error, -1, 1)
            weighted = jnp.where(error < 0, 1 - level, level) * clipped
            loss, slope = loss + weighted * (error - clipped / 2), slope + weighted
        return loss, slope

    passes = max(1, len(targets) // TOGETHER)
    size = len(targets) // passes
    pieces = targets[: passes * size].reshape(passes, size, -1)
    zeros = jnp.zeros_like(value)
    sums, _ = jax.lax.scan(lambda sums, some: (add(sums, some), None), (zeros, zeros), pieces)
    loss, slope = add(sums, targets[passes * size :])
    pairs = value.size * len(targets)
    return loss.sum() / pairs, (-slope.transpose(0, 2, 1) / pairs, target)


def _backward(
    kept: tuple[Float[Array, "critic batch quantile"], Array], scale: Float[Array, ""]
) -> tuple[Array, Array]:
    gradient, target = kept
    return scale * gradient, jnp.zeros_like(target)


quantile_huber.defvjp(_forward, _backward)
