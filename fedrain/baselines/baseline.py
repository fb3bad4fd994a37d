"""What every baseline reports."""

import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array as JaxArray
from jaxtyping import Float

from fedrain.climate import Skill, band_skill
from fedrain.envs import Environment
from fedrain.envs.environment import State
from fedrain.envs.rollout import rollout
from fedrain.errors import InputError


@dataclass(frozen=True)
class Baseline:
    """Skill and return of one episode, and what it cost to find its parameters."""

    name: str
    skill: Skill
    returns: Float[np.ndarray, " agent"]
    profiles: Float[np.ndarray, "step lat"]  # °C, after each step
    actions: Float[np.ndarray, "step agent action"]
    model_runs: int  # episodes that were integrated
    seconds: float

    @property
    def profile(self) -> Float[np.ndarray, " lat"]:
        """After the last step."""
        return self.profiles[-1]

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


def check_seed(seed: int) -> None:
    """Refuse what no generator starts from."""
    if seed < 0:
        raise InputError(f"a seed is a whole number from 0, not {seed}")


def play(
    name: str,
    environment: Environment,
    actions: Float[JaxArray | np.ndarray, "step agent action"],
    model_runs: int,
    begin: float,
) -> Baseline:
    """The baseline that these actions are. Call under ``jax.enable_x64(True)``."""
    played = rollout(environment, jnp.asarray(actions))
    steps = jnp.arange(1, environment.episode_length + 1, dtype=jnp.int32)
    profiles = np.asarray(jax.vmap(environment.profile)(State(played.temperature, steps)))
    return Baseline(
        name=name,
        skill=band_skill(environment.model.grid, profiles[-1], np.array(environment.target)),
        returns=np.asarray(played.returns),
        profiles=profiles,
        actions=np.asarray(actions),
        model_runs=model_runs,
        seconds=time.perf_counter() - begin,
    )
