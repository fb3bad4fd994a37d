"""The algorithms as pure functions over pytrees, what they see, their schedules and presets."""

from fedrain.agents.agent import Agent, Losses
from fedrain.agents.algorithm import ActorCritic, Algorithm
from fedrain.agents.ddpg import DDPG
from fedrain.agents.presets import (
    ALGORITHMS,
    find_algorithm,
    load_algorithm,
    make_algorithm,
    preset_names,
    preset_text,
)
from fedrain.agents.replay import Batch
from fedrain.agents.sac import SAC
from fedrain.agents.schedule import Schedule
from fedrain.agents.td3 import TD3
from fedrain.agents.tqc import TQC
from fedrain.agents.transforms import Transforms, View

__all__ = [
    "ALGORITHMS",
    "DDPG",
    "SAC",
    "TD3",
    "TQC",
    "ActorCritic",
    "Agent",
    "Algorithm",
    "Batch",
    "Losses",
    "Schedule",
    "Transforms",
    "View",
    "find_algorithm",
    "load_algorithm",
    "make_algorithm",
    "preset_names",
    "preset_text",
]
