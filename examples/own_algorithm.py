"""An algorithm of one's own: REDQ (Chen et al. 2021), which is SAC with an ensemble of critics.

The target is the lowest of a few critics, drawn anew at every update; the actor follows the mean of
all of them. With several updates for each step it learns from fewer steps of the climate.

    fedrain train --env ebm-v1 --algo examples/own_algorithm.py:REDQ --set updates=4 --out runs/redq
    fedrain evaluate runs/redq --algo examples/own_algorithm.py:REDQ
"""

from dataclasses import dataclass

import jax

from fedrain.agents import SAC, load_algorithm
from fedrain.envs import make
from fedrain.errors import InputError


@dataclass(frozen=True, kw_only=True)
class REDQ(SAC):
    """Fields are hyperparameters; those that are not set here are SAC's, from the preset."""

    critics: int = 6
    subset: int = 2  # critics that are asked for a target

    def __post_init__(self) -> None:
        if not 0 < self.subset <= self.critics:
            raise InputError(f"subset must be from 1 to {self.critics}, not {self.subset}")

    def target_values(self, values, key):
        """[critic, batch, 1] → [batch, 1]: the lowest of a random few."""
        # SAC draws the next action from this key: what else is drawn takes one derived from it.
        key = jax.random.fold_in(key, 1)
        few = jax.random.choice(key, self.critics, (self.subset,), replace=False)
        return values[few].min(axis=0)

    def policy_value(self, values):
        """[critic, batch, 1] → [batch]: the mean of all."""
        return values.mean(axis=0)[:, 0]


if __name__ == "__main__":
    agents = make("ebm-v3").spec
    algorithm = load_algorithm(REDQ, "fedrain", agents)
    algorithm.check(agents)  # shapes of init, act, explore and update
    print(f"{algorithm.subset} of {algorithm.critics} critics, transforms {algorithm.transforms}")
