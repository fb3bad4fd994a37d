"""All seeds of an experiment, or of one region of it, episode by episode."""

import os
import time
from contextlib import suppress
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from fedrain.agents import Losses, View
from fedrain.agents.networks import Network
from fedrain.agents.step import HEALTHY, Training, memory_needed, start_training
from fedrain.climate import HostModel
from fedrain.envs import Environment
from fedrain.errors import InputError
from fedrain.experiment.checkpoint import Checkpoints
from fedrain.experiment.configuration import Configuration
from fedrain.experiment.cores import Cores, open_cores
from fedrain.experiment.course import Course
from fedrain.experiment.fused import EpisodeLog, run_episode
from fedrain.federation import average
from fedrain.reading import amount
from fedrain.tables import counted

History = dict[str, np.ndarray]


class Trainer:
    """The agents of every seed, and what they have done so far.

    ``regions`` are those whose agents are here: all of the environment's, unless the others' are
    elsewhere.
    """

    compiled = staticmethod(run_episode)  # what plays an episode
    in_turn = False  # whether the seeds have to be played one after the other

    def __init__(
        self,
        configuration: Configuration,
        environment: Environment,
        regions: tuple[int, ...] | None = None,
    ) -> None:
        open_cores()
        self.configuration = configuration
        self.environment = environment
        self.regions = environment.regions if regions is None else regions
        self.algorithm = configuration.make_algorithm()
        self.sharing = configuration.make_sharing()
        self.params = jax.tree.map(jnp.asarray, environment.params)
        self.seeds = jnp.asarray(configuration.seeds, jnp.uint32)
        self._check_memory()
        self.trainings = [self._start(seed) for seed in self.seeds]
        self.episode = 0
        self.whole = True  # whether all seeds are at the end of an episode, and can be saved
        self.history: History = {}
        # What is told of the globe needs all of its regions.
        whole = self.regions == environment.regions and environment.only_region is None
        self.course = Course(configuration, environment) if whole else None

    def _start(self, seed: jax.Array) -> Training:
        steps = self.configuration.episodes * self.environment.episode_length
        spec, one_policy = self.environment.spec, self.sharing.one_policy
        return start_training(self.algorithm, spec, self.regions, seed, steps, one_policy)

    def _check_memory(self) -> None:
        """Refuse a run whose transitions this machine cannot hold, before it tries to."""
        steps = self.configuration.episodes * self.environment.episode_length
        regions, seeds = len(self.regions), len(self.configuration.seeds)
        needed = seeds * memory_needed(self.algorithm, self.environment.spec, regions, steps)
        if needed > (there := memory_there()):
            raise InputError(
                f"{counted(seeds, 'seed')} of {counted(steps, 'step')} with "
                f"{counted(regions, 'agent')} need {amount(needed)} of replay memory, and "
                f"this machine has {amount(there)}: use fewer"
            )

    def start_from(self, actors: Network) -> None:
        """Let the agents start from actors, stacked as seed, agent, instead of new ones."""
        seen = View(self.algorithm.transforms, self.environment.spec).spec
        for i, training in enumerate(self.trainings):
            learners = len(training.rows)
            own = jax.tree.map(lambda leaf, i=i, n=learners: jnp.asarray(leaf)[i, :n], actors)
            agents = training.agents._replace(actor=own)
            if agents.target_actor is not None:
                # A copy: training is given away to the loop, and no array may be given twice.
                agents = agents._replace(target_actor=jax.tree.map(jnp.copy, own))
            agents = self.algorithm.schedule.start(agents, seen)
            self.trainings[i] = training._replace(agents=agents)

    def synchronise(self) -> None:
        """Average the agents of every seed now."""
        mix = jax.jit(partial(average, sharing=self.sharing, synchronise=jnp.asarray(True)))
        self.trainings = [t._replace(agents=mix(t.agents)) for t in self.trainings]

    def restore(self, episode: int, trainings: list[Training], history: History) -> None:
        """Resume from a checkpoint."""
        if self.course is not None:
            self.course.restore(history)
        self.check_history(episode, history)
        self.episode, self.trainings, self.history = episode, trainings, history

    def check_history(self, episode: int, history: History) -> None:
        """Refuse what a checkpoint tells of its episodes, if it is not of so many, or of others."""
        seeds, regions = len(self.seeds), len(self.regions)
        each = ("returns", *Losses._fields)
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(each, (episode, seeds, regions))
        shapes |= {"distance": (episode, seeds), "seconds": (episode,), "core_seconds": (episode,)}
        for name, shape in shapes.items() if episode else ():
            found = history.get(name, np.zeros(()))
            if found.shape != shape or found.dtype.kind != "f":
                raise InputError(f"the checkpoint does not fit this configuration ({name})")

    @property
    def rows_filled(self) -> tuple[int, int]:
        """Rows in the memory of the seed with the fewest, and of the one with the most.

        A memory that all agents share gets a row of each of them at a step.
        """
        at_once = len(self.regions) if self.sharing.one_policy else 1
        filled = self.episode * self.environment.episode_length * at_once
        return filled, filled

    def save(self, checkpoints: Checkpoints, **more: np.ndarray) -> None:
        """Write a checkpoint, with more that is to be kept in the history."""
        course = {} if self.course is None else self.course.kept()
        history = {**self.history, **course, **more}
        checkpoints.save(self.episode, self.rows_filled, self.trainings, history)

    def begin(self) -> None:
        """Take the cores, before the first episode."""
        self.diverged = {i for i, training in enumerate(self.trainings) if has_diverged(training)}
        on_host = self._on_host
        # Where each core has a part of the agents, all of them compute the climate: twice the cost.
        divide = not on_host and not getattr(self.environment.model, "costly", False)
        self.cores = Cores(len(self.trainings[0].rows), self.in_turn or on_host, divide)
        self.trainings = [self.cores.place(training) for training in self.trainings]

    @property
    def _on_host(self) -> bool:
        """Whether the climate is computed outside JAX, where it may fail at any step."""
        return isinstance(self.environment.model, HostModel)

    def play(self, synchronise: bool) -> float:
        """One episode of every seed; how long it took."""
        begin, core = time.perf_counter(), time.process_time()
        self.whole = self._on_host  # what is compiled is given the agents away
        played = self.cores.map(partial(self._one_seed, synchronise), range(len(self.seeds)))
        self.trainings, logs = [training for training, _ in played], [log for _, log in played]
        self.whole = True
        seconds = time.perf_counter() - begin
        ends = [log.end for log in logs]
        log = jax.tree.map(
            lambda *parts: np.stack(parts), *(one._replace(end=None) for one in logs)
        )
        new = {"returns": log.returns, **log.losses._asdict(), "distance": log.distance}
        new["seconds"] = np.asarray(seconds)
        new["core_seconds"] = np.asarray(time.process_time() - core)
        for name, value in new.items():
            before = self.history.get(name, np.zeros((0, *value.shape), value.dtype))
            self.history[name] = np.concatenate([before, value[None]])
        self.episode += 1
        if self.course is not None and self.course.is_due(self.episode):
            self.course.add(self.episode, ends, self.trainings, self.actors)
        return seconds

    def _one_seed(self, synchronise: bool, index: int) -> tuple[Training, EpisodeLog]:
        training = self.trainings[index]
        if index in self.diverged:
            lost = jnp.full(len(self.regions), jnp.nan)
            return training, EpisodeLog(lost, Losses(lost, lost, lost), lost[0])
        if self._on_host:  # what it was is kept, should the climate fail
            training = jax.tree.map(jnp.copy, training)
        training, log = self._episode(index, training, synchronise)
        log = jax.block_until_ready(log)
        if has_diverged(training):  # the climate may look healthy all the same
            log = log._replace(returns=jnp.full(len(self.regions), jnp.nan))
        return training, log

    def _episode(
        self, index: int, training: Training, synchronise: bool
    ) -> tuple[Training, EpisodeLog]:
        return self.compiled(
            self.environment,
            self.algorithm,
            self.sharing,
            self.params,
            training,
            self.seeds[index],
            jnp.asarray(self.episode),
            jnp.asarray(synchronise),
        )

    def newly_diverged(self) -> list[str]:
        """A sentence for each seed that has just met a non-finite value."""
        found = []
        for index, training in enumerate(self.trainings):
            if index in self.diverged or not has_diverged(training):
                continue
            self.diverged.add(index)
            steps = np.asarray(training.diverged_at)
            agent = int(np.where(steps == HEALTHY, np.iinfo(steps.dtype).max, steps).argmin())
            found.append(
                f"seed {self.configuration.seeds[index]} stops: agent {self.regions[agent]} has "
                f"a non-finite value at step {steps[agent]}"
            )
        if found and len(self.diverged) < len(self.trainings):
            found[-1] += "; the other seeds continue"
        return found

    def actors(self) -> Network:
        """The actors of all seeds, stacked as seed, agent; one that is shared is given to all."""

        def stack(*leaves: jax.Array) -> jax.Array:
            stacked = jnp.stack(leaves)
            shape = (len(leaves), len(self.regions), *stacked.shape[2:])
            return jnp.broadcast_to(stacked, shape)

        return jax.tree.map(stack, *(training.agents.actor for training in self.trainings))


def memory_there() -> int:
    """Bytes of memory that this process may have."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(ImportError):  # not on every system
        import resource

        soft = resource.getrlimit(resource.RLIMIT_AS)[0]
        limits += [soft] if soft > 0 else []
    return min(limits)


def has_diverged(training: Training) -> bool:
    """Whether an agent has met a non-finite value."""
    return bool((np.asarray(training.diverged_at) != HEALTHY).any())
