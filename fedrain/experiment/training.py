"""Train one experiment into a folder that explains itself."""

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tensorboardX import SummaryWriter

from fedrain.agents.options import without_off
from fedrain.errors import InputError
from fedrain.experiment.checkpoint import Checkpoints
from fedrain.experiment.configuration import Configuration, from_dict, versions
from fedrain.experiment.progress import Progress
from fedrain.experiment.run import Run
from fedrain.experiment.trainer import Trainer, write_results
from fedrain.federation import Sharing
from fedrain.io import alone_in, is_trace, read_json, write_json

CHECKPOINT_SECONDS = 20.0

Say = Callable[[str], None]


class Session:
    """One experiment on its way from the first episode, or the last checkpoint, to the end."""

    def __init__(self, configuration: Configuration, out: Path, say: Say) -> None:
        open_folder(configuration, out, resume=True)
        self.configuration = configuration
        self.agent_steps = configuration.steps_of_an_episode
        self.out = out
        self.say = say
        self.checkpoints = checkpoints_of(configuration, out)
        self.trainer = Trainer(configuration, configuration.make_environment())
        if (found := self.checkpoints.load(self.trainer.trainings)) is not None:
            self.trainer.restore(*found)
        self.trainer.begin()

    def run(self) -> None:
        """Train to the end, with a checkpoint now and then, and write the results."""
        configuration, trainer = self.configuration, self.trainer
        progress = Progress(configuration.episodes, self.agent_steps, trainer.episode)
        saved = time.monotonic()
        with SummaryWriter(str(self.out / "events"), purge_step=0) as writer:
            for episode in range(trainer.episode):  # a process that was killed may have lost some
                self._log(writer, episode)
            while trainer.episode < configuration.episodes:
                last = trainer.episode + 1 == configuration.episodes
                # The last average makes the global policy; the local ones are those before it.
                synchronise = configuration.synchronises_after(trainer.episode) and not last
                seconds = trainer.play(synchronise)
                self._log(writer, trainer.episode - 1)
                for message in trainer.newly_broken():
                    self.say(message)
                progress.show(trainer.episode, trainer.history["returns"][-1], seconds)
                if time.monotonic() - saved > CHECKPOINT_SECONDS:
                    self._save()
                    saved = time.monotonic()
        self._save()
        write_results(configuration, trainer.actors(), trainer.history, self.out)
        self.checkpoints.remove()

    def _log(self, writer: SummaryWriter, episode: int) -> None:
        history, length = self.trainer.history, self.trainer.environment.episode_length
        step = (episode + 1) * length
        for i, seed in enumerate(self.configuration.seeds):
            if not np.isfinite(history["returns"][episode, i]).all():
                continue  # it has broken
            for name in ("returns", "critic_loss", "actor_loss", "q"):
                for agent, value in enumerate(history[name][episode, i]):
                    writer.add_scalar(f"{name}/seed_{seed}/region_{agent}", float(value), step)
            distance = float(history["distance"][episode, i])
            writer.add_scalar(f"distance/seed_{seed}", distance, step)
        rate = self.agent_steps / float(history["seconds"][episode])
        writer.add_scalar("steps_per_second", rate, step)

    def _save(self) -> None:
        self.trainer.save(self.checkpoints)


def train(
    configuration: Configuration, out: str | Path, resume: bool = False, say: Say = print
) -> Run:
    """Train an experiment into the folder ``out``, or go on with one that was interrupted there."""
    out = Path(out)
    if resume and Run.is_finished(out):
        open_folder(configuration, out, resume)
        checkpoints_of(configuration, out).remove()  # if it was killed there
        return Run(out)
    open_folder(configuration, out, resume)
    with alone_in(out):
        Session(configuration, out, say).run()
    return Run(out)


def checkpoints_of(configuration: Configuration, out: Path) -> Checkpoints:
    """Where an experiment in the folder ``out`` keeps what it needs to go on."""
    return Checkpoints(out / "checkpoint", identity(configuration))


def identity(configuration: Configuration) -> str:
    """A hash of everything that the result depends on.

    What is off is left out: a run stays what it is when options are added to the package.
    """
    values = {**configuration.as_dict(), "preset": None}
    values["hyperparameters"] = without_off(values["hyperparameters"])
    if values["sharing"].get("scheme") == Sharing.scheme:
        del values["sharing"]["scheme"]
    text = json.dumps(values, sort_keys=True)
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
    elif out.exists() and (not out.is_dir() or any(not is_trace(p) for p in out.iterdir())):
        raise InputError(f"{out}: is not empty, and not the folder of a run: choose another --out")
    else:
        write_json(path, {**configuration.as_dict(), "versions": versions()})
