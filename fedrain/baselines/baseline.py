"""What every baseline reports."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from fedrain.climate import Skill


@dataclass(frozen=True)
class Baseline:
    """Skill and return of one episode, and what it cost to find its parameters."""

    name: str
    skill: Skill
    returns: Float[np.ndarray, " agent"]
    profile: Float[np.ndarray, " lat"]  # °C, after the last step
    model_runs: int  # episodes that were integrated
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "baseline": self.name,
            **self.skill.as_dict(),
            "return": float(self.returns.mean()),
            "model_runs": self.model_runs,
            "seconds": self.seconds,
        }
