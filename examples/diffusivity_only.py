"""Learn one parameter and leave the rest alone: the heat diffusivity D.

Train it with ``fedrain train --env examples/diffusivity_only.py:task``.

A task says what an experiment is about; nothing here is code that runs in a step. Each agent sees
its own sixth of the globe and proposes a value of D; the climate that they share takes the mean.
"""

from fedrain.climate import ENERGY_BALANCE_PARAMETERS, EnergyBalanceModel
from fedrain.envs import Task

# The paper's bounds of D are narrow (0.55 to 0.65 W m⁻² K⁻¹); these let it go far from 0.6.
TABLE = ENERGY_BALANCE_PARAMETERS.replace(bounds={"D": (0.2, 1.0)})

task = Task(
    model=EnergyBalanceModel(table=TABLE),
    learn=("D",),  # A, B, a0 and a2 keep their static values
    agents=6,
    judge=("surface_temperature",),  # against the NCEP climatology, unless a target is given
    observe=("surface_temperature", "error"),  # and how far each latitude is from it
    start={"temperature": (0.0, 30.0)},  # °C, drawn anew for each episode
    episode_length=200,  # steps of 365.2422/90 days
    summary="one heat diffusivity for the globe is learnt, and nothing else",
)
