"""The environments: one functional core, and Gymnasium and PettingZoo around it."""

from fedrain.envs.environment import Environment, State, Transition
from fedrain.envs.multi_agent import EnergyBalanceV3, parallel_env
from fedrain.envs.rollout import Rollout, rollout
from fedrain.envs.settings import BACKENDS, SETTINGS, make
from fedrain.envs.single_agent import EnergyBalanceV1, EnergyBalanceV2, PhysicalActions
from fedrain.envs.vector import EnergyBalanceVector, vector_env

__all__ = [
    "BACKENDS",
    "SETTINGS",
    "EnergyBalanceV1",
    "EnergyBalanceV2",
    "EnergyBalanceV3",
    "EnergyBalanceVector",
    "Environment",
    "PhysicalActions",
    "Rollout",
    "State",
    "Transition",
    "make",
    "parallel_env",
    "rollout",
    "vector_env",
]
