"""The course of a run: the climate and its parameters after an episode, over training.

Where a climate runs free, these are fields after the last step of a training episode and the mean
of what the agents set in it, exploration included: they cost next to nothing. Where it is set back
to analyses, its last state is an analysis and tells nothing of the agents; there their policies
are evaluated now and then in an episode of their own. A model that costs too much for that has
parameters alone.
"""

from collections.abc import Callable
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
        self,
        episode: int,
        ends: list[Any],
        trainings: list[Training],
        actors: Callable[[], Network],
    ) -> None:
        """Record an episode.

        Args:
            episode: Its number, from 1.
            ends: Fields and targets after its last step, of each seed; None of one that diverged.
            trainings: Of each seed, with the transitions of the episode.
            actors: Gives those of now, stacked as seed, agent.
        """
        if self.is_free or not self.has_fields:
            record = self._played(episode, ends, trainings)
        else:
            record = self._evaluated(actors())
        self.episodes.append(episode)
        self.records.append({name: np.asarray(v, np.float32) for name, v in record.items()})

    def _played(self, episode: int, ends: list[Any], trainings: list[Training]) -> Record:
        """Of the training episode itself."""
        algorithm = self.configuration.make_algorithm()
        rows = [training.rows for training in trainings]
        every = [mean_parameters(self.environment, algorithm, one, episode) for one in rows]
        record = {
            row.symbol: np.stack([np.asarray(one[row.symbol]) for one in every])
            for row in self.environment.learnt
        }
        known = next((end for end in ends if end is not None), None)
        if known is None or not self.has_fields:
            return record
        lost = {name: np.full(np.shape(values), np.nan) for name, values in known.items()}
        whole = [lost if end is None else end for end in ends]
        return record | {n: np.stack([np.asarray(end[n]) for end in whole]) for n in known}

    def _evaluated(self, actors: Network) -> Record:
        """Of an episode of the policies, without analyses."""
        environment, seeds = self.environment, tuple(self.configuration.seeds)
        found = evaluate(environment, self.configuration.make_algorithm(), actors, seeds)
        record = {row.symbol: found.parameters[row.symbol].mean(1) for row in environment.learnt}
        for name, _ in environment.judged:
            record[name] = environment.judged_mean(np.moveaxis(found.fields[name], 1, 0))
            if has_own_target(environment):
                record[TARGET + name] = found.target[name]
        return record

    def kept(self) -> Record:
        """For a checkpoint."""
        if not self.episodes:
            return {}
        arrays = {KEPT + EPISODES: np.array(self.episodes)}
        for name, first in self.records[0].items():
            lost = np.full_like(first, np.nan)  # fields of an episode that no seed has played
            arrays[KEPT + name] = np.stack([record.get(name, lost) for record in self.records])
        return arrays

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
        lead = ("episode", "seed")
        variables: dict[str, xr.Variable] = {}
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


def by_latitude(
    environment: Environment, values: Float[np.ndarray, "episode agent"]
) -> Float[np.ndarray, "episode lat"]:
    """What each region has, at its latitudes; the mean where regions share one."""
    columns, cells = environment.model.columns, environment.division.cells
    total, regions = np.zeros((len(values), len(columns))), np.zeros(len(columns))
    for agent, own in enumerate(cells):
        total[:, own] += values[:, [agent]]
        regions[own] += 1
    return columns.zonal_mean(total / regions)[1]


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
