"""The environments: one functional core, and what others use (Gymnasium and so on) around it."""

from fedrain.envs.environment import Environment
from fedrain.envs.episode import EnvParams, State, Transition
from fedrain.envs.functional import FunctionalEnv, make_functional
from fedrain.envs.gymnasium_adapter import (
    EnergyBalanceV1,
    EnergyBalanceV2,
    PhysicalActions,
    TaskEnv,
    UnitActions,
)
from fedrain.envs.models import BACKENDS
from fedrain.envs.pettingzoo_adapter import EnergyBalanceV3, parallel_env
from fedrain.envs.rollout import Rollout, rollout
from fedrain.envs.sb3_adapter import sb3_env
from fedrain.envs.spec import AgentSpec
from fedrain.envs.task import Task
from fedrain.envs.tasks import TASKS, make
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
    "FunctionalEnv",
    "PhysicalActions",
    "Rollout",
    "State",
    "Task",
    "TaskEnv",
    "Transition",
    "UnitActions",
    "make",
    "make_functional",
    "parallel_env",
    "rollout",
    "sb3_env",
    "vector_env",
]
