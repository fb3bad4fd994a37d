"""The course of a run: the climate and its parameters after an episode, over training.

Where a climate runs free, these are fields after the last step of a training episode and the mean
of what the agents set in it, exploration included: they cost next to nothing. Where it is set back
to analyses, its last state is an analysis and tells nothing of the agents; there their policies
are evaluated now and then in an episode of their own. A model that costs too much for that has
parameters alone.
"""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from fedrain.agents import Algorithm, View
from fedrain.agents.networks import Network
from fedrain.agents.replay import unpack
from fedrain.agents.step import Training
from fedrain.climate.layout import Layout
from fedrain.envs import Environment
from fedrain.envs.options import has_own_target
from fedrain.errors import InputError
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.evaluation import evaluate
from fedrain.experiment.integrity import check_course, check_file
from fedrain.reading import read_dataset, read_note

COURSE = "course.nc"
#: Episodes of a run that are recorded at most, and those for which policies are evaluated.
MOST, MOST_EVALUATED = 256, 16
KEPT = "course/"  # before the names of what a checkpoint has of it
EPISODES, TARGET = "episodes", "target_"

Record = dict[str, np.ndarray]


class Course:
    """What has been recorded so far of all seeds: fields, targets that move, and parameters."""

    def __init__(self, configuration: Configuration, environment: Environment) -> None:
        self.configuration, self.environment = configuration, environment
        self.is_free = environment.params.analysis_every is None
        self.has_fields = self.is_free or not getattr(environment.model, "costly", False)
        most = MOST if self.is_free or not self.has_fields else MOST_EVALUATED
        self._every = -(-configuration.episodes // most)
        self.episodes: list[int] = []
        self.records: list[Record] = []

    def is_due(self, episode: int) -> bool:
        """Whether an episode, counted from 1, is to be recorded."""
        ends = (1, self.configuration.episodes)
        return episode in ends or episode % self._every == 0

    def add(
        self, episode: int, ends: list[Any], trainings: list[Training], actors: Network
    ) -> None:
        """Record an episode.

        Args:
            episode: Its number, from 1.
            ends: Fields and targets after its last step, of each seed; None of one that diverged.
            trainings: Of each seed, with the transitions of the episode.
            actors: Stacked as seed, agent.
        """
        environment = self.environment
        if self.is_free or not self.has_fields:
            algorithm = self.configuration.make_algorithm()
            set_ = [mean_parameters(environment, algorithm, t.rows, episode) for t in trainings]
            record = {row.symbol: _stack([one[row.symbol] for one in set_], len(trainings))
                      for row in environment.learnt}  # fmt: skip
            if self.has_fields and any(end is not None for end in ends):
                record |= {name: _stack([None if e is None else e[name] for e in ends], len(ends))
                           for name in next(e for e in ends if e is not None)}  # fmt: skip
        else:
            seeds = tuple(self.configuration.seeds)
            found = evaluate(environment, self.configuration.make_algorithm(), actors, seeds)
            record = {
                row.symbol: found.parameters[row.symbol].mean(1) for row in environment.learnt
            }
            for name, _ in environment.judged:
                steps = np.moveaxis(found.fields[name], 1, 0)
                record[name] = environment.judged_mean(steps)
                if has_own_target(environment):
                    record[TARGET + name] = found.target[name]
        self.episodes.append(episode)
        self.records.append({name: np.asarray(v, np.float32) for name, v in record.items()})

    def kept(self) -> Record:
        """For a checkpoint."""
        if not self.episodes:
            return {}
        names = set.intersection(*(set(record) for record in self.records))
        arrays = {name: np.stack([r[name] for r in self.records]) for name in sorted(names)}
        return {
            KEPT + EPISODES: np.array(self.episodes),
            **{KEPT + n: a for n, a in arrays.items()},
        }

    def restore(self, history: dict[str, np.ndarray]) -> None:
        """Take what a checkpoint has of it out of the history in which it was kept."""
        own = {n: history.pop(n) for n in list(history) if n.startswith(KEPT)}
        found = {name.removeprefix(KEPT): array for name, array in own.items()}
        episodes = found.pop(EPISODES, np.zeros(0, int))
        if episodes.ndim != 1 or any(
            array.shape[:2] != (len(episodes), len(self.configuration.seeds))
            for array in found.values()
        ):
            raise InputError("the checkpoint does not fit this configuration (course)")
        self.episodes = episodes.tolist()
        self.records = [{n: a[i] for n, a in found.items()} for i in range(len(episodes))]

    def dataset(self) -> xr.Dataset:
        """As NetCDF, by the CF convention."""
        environment, layout = self.environment, Layout(self.environment.model)
        arrays = {name.removeprefix(KEPT): array for name, array in self.kept().items()}
        lead, variables = ("episode", "seed"), {}
        when = (
            "after the last step of the training episode, with exploration"
            if self.is_free
            else "in an episode without analyses and exploration"
        )
        for field in environment.judged_fields:
            for prefix, title in (("", ""), (TARGET, "target of the ")):
                if prefix + field.name in arrays:
                    one = layout.field(field, arrays[prefix + field.name], lead)
                    one.attrs |= {"long_name": title + field.title, "comment": when}
                    variables[prefix + field.name] = one
        for row in environment.learnt:
            one = layout.parameter(row, arrays[row.symbol], lead)
            one.attrs["comment"] = "mean over the episode"
            variables[row.symbol] = one
        coordinates = {
            "episode": ("episode", arrays[EPISODES], {"long_name": "episode"}),
            "seed": ("seed", np.array(self.configuration.seeds, np.int64), {"long_name": "seed"}),
            **layout.coordinates,
        }
        title = f"FedRAIN experiment {self.configuration.name}: course of the training"
        attributes = {"Conventions": "CF-1.11", "title": title, "source": "FedRAIN"}
        return xr.Dataset(variables, coords=coordinates, attrs=attributes)


def read_course(folder: Path, configuration: Configuration, weights: str) -> xr.Dataset:
    """The course of a finished run; a run without one, or anything else in its place, is refused.

    Args:
        folder: Of the run.
        configuration: Its experiment.
        weights: Name of the file with the checksums of the others.
    """
    if not (path := folder / COURSE).exists():
        raise InputError(
            f"{folder}: keeps no course of its training: it was trained by an earlier version, or "
            "by nodes of a federation, which report returns and losses alone"
        )
    check_file(path, read_note(folder / weights))
    check_course(path, data := read_dataset(path), configuration)
    return data


def _stack(parts: list[Any], seeds: int) -> np.ndarray:
    """Of all seeds; one that has diverged is not a number."""
    known = next(np.asarray(part) for part in parts if part is not None)
    lost = np.full(known.shape, np.nan, known.dtype)
    stacked = np.stack([lost if part is None else np.asarray(part) for part in parts])
    assert len(stacked) == seeds
    return stacked


def mean_parameters(
    environment: Environment, algorithm: Algorithm, rows: Float[Array, "..."], episode: int
) -> dict[str, Float[Array, "..."]]:
    """Mean over an episode of what the agents of one seed set, from their memory of it."""
    agents = len(environment.regions)
    steps = environment.episode_length * agents // len(rows)
    return _mean_parameters(environment, algorithm, rows, np.int32((episode - 1) * steps))


@partial(jax.jit, static_argnames=("environment", "algorithm"))
def _mean_parameters(
    environment: Environment,
    algorithm: Algorithm,
    rows: Float[Array, "learner capacity row"],
    first: Int[Array, ""],
) -> dict[str, Float[Array, "..."]]:
    view, agents = View(algorithm.transforms, environment.spec), len(environment.regions)
    length, at_once = environment.episode_length, agents // len(rows)
    latest = jax.lax.dynamic_slice_in_dim(rows, first, length * at_once, axis=1)
    # A memory that all agents share has a row of each of them for a step.
    by_step = latest.reshape(len(rows), length, at_once, -1).mean(1).reshape(agents, -1)
    action = unpack(by_step, view.spec.observation_size).action
    return environment.own_parameters(view.action(action))
