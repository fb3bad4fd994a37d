"""The environments: one functional core, and Gymnasium and PettingZoo around it."""

from fedrain.envs.environment import Environment
from fedrain.envs.episode import EnvParams, State, Transition
from fedrain.envs.gymnasium_adapter import EnergyBalanceV1, EnergyBalanceV2, PhysicalActions
from fedrain.envs.pettingzoo_adapter import EnergyBalanceV3, parallel_env
from fedrain.envs.rollout import Rollout, rollout
from fedrain.envs.spec import AgentSpec
from fedrain.envs.tasks import BACKENDS, TASKS, Task, make
from fedrain.envs.vector import EnergyBalanceVector, vector_env

__all__ = [
    "BACKENDS",
    "TASKS",
    "AgentSpec",
    "EnergyBalanceV1",
    "EnergyBalanceV2",
    "EnergyBalanceV3",
    "EnergyBalanceVector",
    "EnvParams",
    "Environment",
    "PhysicalActions",
    "Rollout",
    "State",
    "Task",
    "Transition",
    "make",
    "parallel_env",
    "rollout",
    "vector_env",
]
