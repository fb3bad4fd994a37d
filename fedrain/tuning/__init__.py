"""Tuning: the hyperparameters of an algorithm found by trial, and written as a preset."""

from fedrain.tuning.space import Choice, Range, Space, load_space
from fedrain.tuning.study import Study, Tuning, tune

__all__ = ["Choice", "Range", "Space", "Study", "Tuning", "load_space", "tune"]
