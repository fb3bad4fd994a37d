"""What needs no agent, to hold a learnt policy against."""

from fedrain.baselines.baseline import Baseline
from fedrain.baselines.static import static

__all__ = ["Baseline", "static"]
