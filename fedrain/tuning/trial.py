"""One trial: all seeds of an experiment with the hyperparameters that were suggested.

Hyperparameters that only scale or count are arguments of the compiled episode, so that trials of
networks and batches of equal shape are compiled once; those that change the program are not.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fedrain.agents import Algorithm
from fedrain.agents.step import Training
from fedrain.envs import Environment
from fedrain.experiment.configuration import Configuration, Named
from fedrain.experiment.evaluation import evaluate
from fedrain.experiment.fused import EpisodeLog, play_episode
from fedrain.experiment.resolve import from_dict
from fedrain.experiment.trainer import Trainer
from fedrain.references import is_ours

#: Hyperparameters that no branch in the program depends on.
NUMBERS = (
    "learning_rate", "actor_learning_rate", "critic_learning_rate", "alpha_learning_rate", "tau",
    "exploration_noise", "noise_clip", "policy_frequency", "target_frequency", "discount",
)  # fmt: skip
OBJECTIVES = ("skill", "return")
REPORT_EPISODES = 20  # from one report to the next

#: Called with the episode and a number to be made small; true, if the trial is hopeless.
Report = Callable[[int, float], bool]


class TrialTrainer(Trainer):
    """A trainer whose algorithm's numbers are arguments of the compiled episode."""

    def __init__(self, configuration: Configuration, environment: Environment) -> None:
        super().__init__(configuration, environment)
        # An algorithm of somebody's own may branch on any of them.
        names = (
            [n for n in NUMBERS if hasattr(self.algorithm, n)] if is_ours(self.algorithm) else []
        )
        # DDPG fixes some of TD3's numbers: those are no arguments.
        settable = set(configuration.hyperparameters)
        self.numbers = {n: getattr(self.algorithm, n) for n in names if n in settable}
        self.template = replace(self.algorithm, **{n: type(v)(1) for n, v in self.numbers.items()})

    def compiled(
        self, environment: Environment, algorithm: Algorithm, *rest: Any
    ) -> tuple[Training, EpisodeLog]:
        """An episode with the numbers beside the algorithm."""
        del algorithm
        numbers = {name: jnp.asarray(number) for name, number in self.numbers.items()}
        return numbered_episode(numbers, environment, self.template, *rest)

    def reached(self, objective: str) -> float:
        """What the policies reach without exploration, to be made small: mean over the seeds."""
        # No policy depends on the numbers: one program evaluates those of all trials.
        seeds = self.configuration.seeds
        found = evaluate(self.environment, self.template, self.actors(), seeds)
        if objective == "return":
            return -float(found.returns.mean())
        return float(np.mean([skill.globe for skill in found.skill(self.environment)]))


@partial(jax.jit, static_argnums=(1, 2, 3), donate_argnums=5)
def numbered_episode(
    numbers: dict[str, Array], environment: Environment, algorithm: Algorithm, *rest: Any
) -> tuple[Training, EpisodeLog]:
    """One episode with these numbers in the algorithm's place; the rest as of `play_episode`."""
    told = copy(algorithm)
    for name, number in numbers.items():
        object.__setattr__(told, name, number)  # as its constructor does: it is frozen
    return play_episode(environment, told, *rest)


def score(configuration: Configuration, objective: str, report: Report) -> float | None:
    """What an experiment reaches in the end; None, if it is given up, or diverges."""
    trainer = TrialTrainer(configuration, configuration.make_environment())
    trainer.begin()
    while trainer.episode < configuration.episodes:
        last = trainer.episode + 1 == configuration.episodes
        trainer.play(configuration.averages_after(trainer.episode))
        if trainer.newly_diverged():
            return None
        due = trainer.episode % REPORT_EPISODES == 0 and not last
        if due and report(trainer.episode, trainer.reached(objective)):
            return None
    return trainer.reached(objective)


def handed_over(configuration: Configuration) -> tuple[dict[str, Any], dict[str, str]]:
    """An experiment as plain values, and what it takes from outside by paths that are whole."""
    named = {kind: getattr(configuration, kind) for kind in configuration.sources}
    for kind, reference in named.items():
        where, colon, name = str(reference).rpartition(":")
        if where.endswith(".py"):
            named[kind] = f"{Path(where).absolute()}{colon}{name}"
    return configuration.as_dict(), named


def score_whole(values: dict[str, Any], named: dict[str, str], objective: str) -> float | None:
    """The same to the end, for a worker of a cluster, which does not know the other trials.

    Args:
        values: The experiment.
        named: What of it is not of the package.
        objective: What is made small.
    """
    configuration = from_dict(values, Named(**named))
    return score(configuration, objective, lambda _episode, _value: False)
