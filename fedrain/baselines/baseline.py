"""What every baseline reports."""

import time
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array as JaxArray
from jaxtyping import Float

from fedrain.climate import Skill, band_skill
from fedrain.envs import Environment
from fedrain.envs.environment import State
from fedrain.envs.rollout import rollout


@dataclass(frozen=True)
class Baseline:
    """Skill and return of one episode, and what it cost to find its parameters."""

    name: str
    skill: Skill
    returns: Float[np.ndarray, " agent"]
    profile: Float[np.ndarray, " lat"]  # °C, after the last step
    actions: Float[np.ndarray, "step agent action"]
    model_runs: int  # episodes that were integrated
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "baseline": self.name,
            **self.skill.as_dict(),
            "return": float(self.returns.mean()),
            "returns": self.returns.tolist(),
            "model_runs": self.model_runs,
            "seconds": self.seconds,
        }


def play(
    name: str,
    environment: Environment,
    actions: Float[JaxArray | np.ndarray, "step agent action"],
    model_runs: int,
    begin: float,
) -> Baseline:
    """The baseline that these actions are. Call under ``jax.enable_x64(True)``."""
    played = rollout(environment, jnp.asarray(actions))
    end = State(played.temperature[-1], jnp.asarray(environment.episode_length, jnp.int32))
    profile = np.asarray(environment.profile(end))
    return Baseline(
        name=name,
        skill=band_skill(environment.model.grid, profile, np.array(environment.target)),
        returns=np.asarray(played.returns),
        profile=profile,
        actions=np.asarray(actions),
        model_runs=model_runs,
        seconds=time.perf_counter() - begin,
    )
