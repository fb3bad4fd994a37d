"""What needs no agent, to hold a learnt policy against."""

from fedrain.baselines.baseline import Baseline
from fedrain.baselines.constant import constant
from fedrain.baselines.enki import enki
from fedrain.baselines.limit import limit
from fedrain.baselines.random import random
from fedrain.baselines.reference import known_limit, share_reached
from fedrain.baselines.static import static

__all__ = [
    "Baseline",
    "constant",
    "enki",
    "known_limit",
    "limit",
    "random",
    "share_reached",
    "static",
]
