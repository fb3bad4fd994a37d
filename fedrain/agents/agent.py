"""What one agent learns, as a pytree, and what is logged of it."""

from typing import Any, NamedTuple

from jaxtyping import Array, Bool, Float

from fedrain.agents.networks import Network

OptimiserState = Any  # a pytree of optax


class Agent(NamedTuple):
    """Everything that one agent learns. What an algorithm does not use is None.

    ``actor`` is what federations average; ``more`` is for algorithms of one's own.

    Args:
        actor: Weights of the actor: what federations average.
        critic: Weights of the critics, with a leading axis of critics.
        target_actor: Follows the actor; None, if the algorithm has none.
        target_critic: Follows the critics.
        actor_optimiser: State of the actor's optimiser.
        critic_optimiser: Of the critics'.
        log_alpha: Logarithm of the entropy coefficient, of SAC and TQC.
        alpha_optimiser: Of the coefficient's.
        anchor: The last average, for agents that are pulled towards it.
        sent: The actor before the last average, where averages are stale.
        prompt: Whether it is the one whose actor is then that of now.
        more: Any pytree of arrays.
    """

    actor: Network
    critic: Network
    target_actor: Network | None
    target_critic: Network
    actor_optimiser: OptimiserState
    critic_optimiser: OptimiserState
    log_alpha: Float[Array, "*stack"] | None = None
    alpha_optimiser: OptimiserState | None = None
    anchor: Network | None = None  # the last average, for agents that are pulled towards it
    sent: Network | None = None  # the actor before the last average, where averages are stale
    prompt: Bool[Array, "*stack"] | None = None  # whether it is the one whose actor is then of now
    more: Any = None


class Losses(NamedTuple):
    """What is logged of an update.

    Args:
        critic_loss: The critics' loss; NaN where there is none.
        actor_loss: The actor's; NaN where there is none.
        q: Mean value; not finite: the agent has diverged.
    """

    critic_loss: Float[Array, "*stack"]
    actor_loss: Float[Array, "*stack"]
    q: Float[Array, "*stack"]
