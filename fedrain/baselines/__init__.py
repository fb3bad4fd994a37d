"""Non-learning baselines, to hold a learnt policy against."""

from fedrain.baselines.baseline import Baseline, sequence_dataset
from fedrain.baselines.constant import constant
from fedrain.baselines.enki import enki
from fedrain.baselines.limit import limit
from fedrain.baselines.proportional import proportional
from fedrain.baselines.random import random
from fedrain.baselines.reference import known_limit, share_reached, unknown_limit
from fedrain.baselines.static import static

__all__ = [
    "Baseline",
    "constant",
    "enki",
    "known_limit",
    "limit",
    "proportional",
    "random",
    "sequence_dataset",
    "share_reached",
    "static",
    "unknown_limit",
]
