"""What one agent sees and sets, as a learner needs to know it."""

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fedrain.climate.columns import frozen


@dataclass(frozen=True)
class AgentSpec:
    """Sizes, the bounds of an action, and what is known of where its numbers come from.

    What is None is not known, as of an environment from elsewhere: options that need it are
    refused.

    Args:
        observation_size: Numbers in an observation.
        low: Lowest action.
        high: Highest action.
        scale: Typical size of each number in an observation.
        places: Latitude and longitude, in degrees, of the middle of every region.
        common: Positions in an action of what the agents of a shared climate set together.
        profiles: Where parameters of each latitude stand in an action: from, and up to.
        place_size: How many numbers at the end of an observation tell an agent where it is.
        shared: Whether the agents share a climate, and so feel what the others do.
    """

    observation_size: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    scale: tuple[float, ...] | None = None
    places: tuple[tuple[float, float], ...] | None = None
    common: tuple[int, ...] | None = None
    profiles: tuple[tuple[int, int], ...] | None = None
    place_size: int = 0
    shared: bool = False

    @property
    def action_size(self) -> int:
        """Numbers in an action."""
        return len(self.low)

    @cached_property
    def bounds(self) -> tuple[Float[np.ndarray, " action"], Float[np.ndarray, " action"]]:
        """Lowest and highest action."""
        return frozen(np.array(self.low, np.float32)), frozen(np.array(self.high, np.float32))

    @cached_property
    def centre(self) -> Float[np.ndarray, " action"]:
        """Middle of the action's range."""
        low, high = self.bounds
        return frozen((high + low) / 2)

    @cached_property
    def half_range(self) -> Float[np.ndarray, " action"]:
        """Half the width of the action's range."""
        low, high = self.bounds
        return frozen((high - low) / 2)

    def clip(self, action: Float[Array, "*batch action"]) -> Float[Array, "*batch action"]:
        """Each component to its own bounds."""
        return jnp.clip(action, *self.bounds)
