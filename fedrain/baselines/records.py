"""Moved: import ``sequence_dataset`` from :mod:`fedrain.baselines`."""

from fedrain.baselines.baseline import sequence_dataset

__all__ = ["sequence_dataset"]
