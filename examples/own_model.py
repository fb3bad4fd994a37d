"""A climate model of one's own in an environment of FedRAIN: two boxes exchange heat."""

from dataclasses import dataclass

import jax.numpy as jnp

from fedrain.climate import Grid, Parameter, ParameterTable
from fedrain.envs import make


@dataclass(frozen=True)
class TwoHemispheres:
    """One temperature for each hemisphere, relaxed to a forcing that the agents set."""

    grid: Grid = Grid(2)
    table: ParameterTable = ParameterTable(
        (
            Parameter("F", "forcing", "K", 15.0, 0.0, 30.0, per_latitude=True),
            Parameter("k", "exchange between the hemispheres", "1", 0.1, 0.0, 0.5),
        )
    )

    def step(self, temperature, parameters):
        """The temperature one step later, for any number of climates at once."""
        exchange = jnp.asarray(parameters["k"])[..., None]
        relaxation = 0.1 * (parameters["F"] - temperature)
        return temperature + relaxation + exchange * (temperature[..., ::-1] - temperature)


env = make("ebm-v3", agents=2, model=TwoHemispheres(), target=[14.0, 16.0])
state, observation = env.reset()
for _ in range(env.episode_length):
    state, observation, reward, truncated = env.step(state, jnp.asarray([[14.0, 0.0], [16.0, 0.0]]))
print("temperatures", env.profile(state), "rewards", reward)
