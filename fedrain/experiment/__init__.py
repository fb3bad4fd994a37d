"""Experiments: configuration, the training loops, evaluation, checkpoints and records."""

from fedrain.experiment.configuration import Configuration, configure
from fedrain.experiment.run import Run, load
from fedrain.experiment.training import train

__all__ = ["Configuration", "Run", "configure", "load", "train"]
