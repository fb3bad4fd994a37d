"""The algorithms: DDPG, TD3 and TQC as pure functions over pytrees, and their presets."""

from fedrain.agents.algorithm import Agent, Algorithm, Losses, Spaces
from fedrain.agents.ddpg import DDPG
from fedrain.agents.presets import ALGORITHMS, load_algorithm, preset_names, preset_text
from fedrain.agents.replay import Batch
from fedrain.agents.td3 import TD3
from fedrain.agents.tqc import TQC
from fedrain.agents.transforms import Lens

__all__ = [
    "ALGORITHMS",
    "DDPG",
    "TD3",
    "TQC",
    "Agent",
    "Algorithm",
    "Batch",
    "Lens",
    "Losses",
    "Spaces",
    "load_algorithm",
    "preset_names",
    "preset_text",
]
