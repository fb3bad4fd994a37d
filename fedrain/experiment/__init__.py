"""Experiments: configuration, the training loops, evaluation, checkpoints and results."""

from fedrain.experiment.configuration import Configuration
from fedrain.experiment.policy import Policy
from fedrain.experiment.resolve import configure
from fedrain.experiment.run import Run, load
from fedrain.experiment.training import Episode, train
from fedrain.experiment.watching import watch

__all__ = ["Configuration", "Episode", "Policy", "Run", "configure", "load", "train", "watch"]
