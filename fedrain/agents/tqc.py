"""Truncated quantile critics (Kuznetsov et al. 2020): SAC on quantiles of the return.

    Z   = the N·M target quantiles of N critics at (s', a'), a' ~ π(s'), the largest ``drop`` for
          each critic left out
    y_j = r + γ (z_j − α log π(a'|s'))
    L(φ_i) = mean over quantiles k and targets j of the quantile Huber loss ρ_τk(y_j − θ_ik)
    L(θ)   = mean α log π(a|s) − mean of all quantiles at (s, a),   a ~ π(s)

The policy, its entropy and the order of the steps are SAC's (``sac.py``). Critics err upwards: SAC
takes the lowest of them, TQC leaves out the top of their distribution.

Where the published runs depart from this: ``drop`` is 0, and ``evaluate_by_sampling``.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from fedrain.agents.quantile_huber import quantile_huber
from fedrain.agents.sac import SAC
from fedrain.errors import InputError


@dataclass(frozen=True, kw_only=True)
class TQC(SAC):
    """Critics that give quantiles, and targets without the largest of them.

    Args:
        quantiles: That each critic gives.
        critics: How many.
        drop: Largest quantiles left out of the target, for each critic.
    """

    quantiles: int
    critics: int = 5
    drop: int = 2  # largest quantiles left out, for each critic; the published runs drop none

    def __post_init__(self) -> None:
        if self.drop >= self.quantiles:
            raise InputError(f"drop must leave a quantile of {self.quantiles}, not {self.drop}")

    @property
    def outputs(self) -> int:
        """Numbers that each critic gives: quantiles."""
        return self.quantiles

    def target_values(
        self, values: Float[Array, "critic batch quantile"], key: Key[Array, ""]
    ) -> Float[Array, "batch kept"]:
        """The quantiles of all critics, except for the largest."""
        del key
        pooled = values.transpose(1, 0, 2).reshape(values.shape[1], -1)
        if self.drop:
            pooled = without_largest(pooled.T, self.drop * self.critics).T
        return pooled

    def value_loss(
        self, values: Float[Array, "critic batch quantile"], target: Float[Array, "batch kept"]
    ) -> Float[Array, ""]:
        """Mean quantile Huber loss."""
        return quantile_huber(values, target)

    def policy_value(self, values: Float[Array, "critic batch quantile"]) -> Float[Array, " batch"]:
        """The mean of all quantiles."""
        return values.mean(axis=(0, 2))


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
