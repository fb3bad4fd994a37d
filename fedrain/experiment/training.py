"""Train one experiment into a folder that explains itself."""

import hashlib
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from tensorboardX import SummaryWriter

from fedrain.agents import Losses
from fedrain.errors import InputError
from fedrain.experiment.checkpoint import Checkpoints
from fedrain.experiment.configuration import Configuration, from_dict, versions
from fedrain.experiment.cores import Cores, open_cores
from fedrain.experiment.evaluation import evaluate
from fedrain.experiment.fused import EpisodeLog, run_episode
from fedrain.experiment.progress import Progress
from fedrain.experiment.records import returns_dataset, skill_dataset
from fedrain.experiment.run import Run
from fedrain.experiment.stepping import HEALTHY, Training, spaces_of, start_training
from fedrain.experiment.storage import flatten, read_json, write_arrays, write_json
from fedrain.federation import mean_network
from fedrain.files import write_dataset

CHECKPOINT_SECONDS = 20.0

Say = Callable[[str], None]


class Session:
    """One experiment on its way from the first episode, or the last checkpoint, to the end."""

    def __init__(self, configuration: Configuration, out: Path, resume: bool, say: Say) -> None:
        open_cores()
        self.configuration = configuration
        self.out = out
        self.say = say
        self.environment = configuration.make_environment()
        self.algorithm = configuration.make_algorithm()
        self.sharing = configuration.make_sharing()
        self.seeds = jnp.asarray(configuration.seeds, jnp.uint32)
        self.checkpoints = Checkpoints(out / "checkpoint", identity(configuration))
        open_folder(configuration, out, resume)
        self.trainings = [self._start(seed) for seed in self.seeds]
        self.episode = 0
        self.history: dict[str, np.ndarray] = {}
        if resume and (found := self.checkpoints.load(self.trainings)) is not None:
            self.episode, self.trainings, self.history = found
        self.broken = {i for i, training in enumerate(self.trainings) if is_broken(training)}
        self.cores = Cores(configuration.agents)
        self.trainings = [self.cores.place(training) for training in self.trainings]

    def _start(self, seed: jax.Array) -> Training:
        steps = self.configuration.episodes * self.environment.episode_length
        spaces = spaces_of(self.environment)
        return start_training(self.algorithm, spaces, self.configuration.agents, seed, steps)

    def run(self) -> None:
        """Train to the end, with a checkpoint now and then, and write the results."""
        configuration = self.configuration
        length = self.environment.episode_length
        agent_steps = length * len(self.seeds) * configuration.agents
        progress = Progress(configuration.episodes, agent_steps, self.episode)
        saved = time.monotonic()
        with SummaryWriter(str(self.out / "events"), purge_step=self.episode * length) as writer:
            while self.episode < configuration.episodes:
                seconds = self._one_episode()
                self._log(writer, agent_steps / seconds)
                self._report_broken()
                progress.show(self.episode, self.history["returns"][-1], seconds)
                if time.monotonic() - saved > CHECKPOINT_SECONDS:
                    self._save()
                    saved = time.monotonic()
        self._save()
        self._write_results()

    def _one_episode(self) -> float:
        begin, core = time.perf_counter(), time.process_time()
        logs = self.cores.map(self._one_seed, range(len(self.seeds)))
        seconds = time.perf_counter() - begin
        log = jax.tree.map(lambda *parts: np.stack(parts), *logs)
        new = {"returns": log.returns, **log.losses._asdict(), "distance": log.distance}
        new["seconds"] = np.asarray(seconds)
        new["core_seconds"] = np.asarray(time.process_time() - core)
        for name, value in new.items():
            before = self.history.get(name, np.zeros((0, *value.shape), value.dtype))
            self.history[name] = np.concatenate([before, value[None]])
        self.episode += 1
        return seconds

    def _one_seed(self, index: int) -> EpisodeLog:
        if index in self.broken:
            lost = jnp.full(self.configuration.agents, jnp.nan)
            return EpisodeLog(lost, Losses(lost, lost, lost), lost[0])
        last = self.episode + 1 == self.configuration.episodes
        # The last average makes the global policy; the local ones are those of just before.
        synchronise = self.configuration.synchronises_after(self.episode) and not last
        self.trainings[index], log = run_episode(
            self.environment,
            self.algorithm,
            self.sharing,
            self.trainings[index],
            self.seeds[index],
            jnp.asarray(self.episode),
            jnp.asarray(synchronise),
        )
        return jax.block_until_ready(log)

    def _log(self, writer: SummaryWriter, rate: float) -> None:
        step = self.episode * self.environment.episode_length
        for i, seed in enumerate(self.configuration.seeds):
            for name in ("returns", "critic_loss", "actor_loss", "q"):
                for agent, value in enumerate(self.history[name][-1, i]):
                    writer.add_scalar(f"{name}/seed_{seed}/region_{agent}", float(value), step)
            writer.add_scalar(f"distance/seed_{seed}", float(self.history["distance"][-1, i]), step)
        writer.add_scalar("steps_per_second", rate, step)

    def _report_broken(self) -> None:
        for index, training in enumerate(self.trainings):
            if index in self.broken or not is_broken(training):
                continue
            self.broken.add(index)
            steps = np.asarray(training.broken_at)
            agent = int(np.where(steps == HEALTHY, np.iinfo(steps.dtype).max, steps).argmin())
            self.say(
                f"seed {self.configuration.seeds[index]} stops: agent {agent} has a number that "
                f"is not finite at step {steps[agent]}; the other seeds go on"
            )

    def _save(self) -> None:
        filled = self.episode * self.environment.episode_length
        self.checkpoints.save(self.episode, filled, self.trainings, self.history)

    def _write_results(self) -> None:
        configuration, environment = self.configuration, self.environment
        actors = [training.agents.actor for training in self.trainings]
        local = jax.tree.map(lambda *leaves: jnp.stack(leaves), *actors)
        average = jax.jit(jax.vmap(partial(mean_network, sharing=self.sharing)))(local)
        evaluations = {
            name: evaluate(environment, self.algorithm, actors, configuration.seeds)
            for name, actors in (("local", local), ("global", average))
        }
        weights = {
            f"{name}/{path}": leaf
            for name, actors in (("local", local), ("global", average))
            for path, leaf in flatten(actors).items()
        }
        write_arrays(self.out / "weights.safetensors", weights, {"layout": "seed, agent, …"})
        length = environment.episode_length
        write_dataset(self.out / "returns.nc", returns_dataset(configuration, self.history, length))
        write_dataset(self.out / "skill.nc", skill_dataset(configuration, environment, evaluations))
        self.checkpoints.remove()


def train(
    configuration: Configuration, out: str | Path, resume: bool = False, say: Say = print
) -> Run:
    """Train an experiment into the folder ``out``, or go on with one that was interrupted there."""
    out = Path(out)
    if resume and Run.is_finished(out):
        open_folder(configuration, out, resume)
        return Run(out)
    Session(configuration, out, resume, say).run()
    return Run(out)


def is_broken(training: Training) -> bool:
    """Whether an agent has met a number that is not finite."""
    return bool((np.asarray(training.broken_at) != HEALTHY).any())


def identity(configuration: Configuration) -> str:
    """A hash of everything that the result depends on."""
    text = json.dumps({**configuration.as_dict(), "preset": None}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def open_folder(configuration: Configuration, out: Path, resume: bool) -> None:
    """Make the folder of a run, or make sure that it is this run's."""
    path = out / "configuration.json"
    if path.exists():
        held = from_dict(read_json(path))
        if identity(held) != identity(configuration):
            raise InputError(f"{out}: holds another experiment, {held.name}: choose another --out")
        if not resume:
            raise InputError(f"{out}: holds this experiment already: --resume goes on with it")
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: is not empty, and not the folder of a run: choose another --out")
    else:
        write_json(path, {**configuration.as_dict(), "versions": versions()})
