"""Deep deterministic policy gradient (Lillicrap et al. 2016): TD3 without its additions.

    y    = r + γ Q'(s', π'(s'))
    L(φ) = mean (Q(s, a) − y)²
    L(θ) = − mean Q(s, π(s)),   every ``policy_frequency`` steps, when the targets move too

The published hyperparameters list a ``noise_clip``, which DDPG has no use for.
"""

from dataclasses import dataclass, field

from jaxtyping import Array, Float

from fedrain.agents.td3 import TD3


@dataclass(frozen=True, kw_only=True)
class DDPG(TD3):
    """One critic, or the mean of several, and no noise on the target action.

    A critic alone errs in one direction for long, and its actor follows it there; in the mean of
    several, which start from other weights, much of that cancels.

    Args:
        critics: How many.
    """

    critics: int = 1
    policy_noise: float = field(default=0.0, init=False)
    noise_clip: float = field(default=0.0, init=False)
    clip_target_to_first_component: bool = field(default=False, init=False)

    def target_value(self, values: Float[Array, "critic batch"]) -> Float[Array, " batch"]:
        """The mean."""
        return values.mean(axis=0)

    def policy_value(self, values: Float[Array, "critic batch"]) -> Float[Array, " batch"]:
        """The mean."""
        return values.mean(axis=0)
