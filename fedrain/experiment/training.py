"""Train one experiment into a folder that explains itself."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from tensorboardX import SummaryWriter

from fedrain.agents.networks import Network
from fedrain.climate.models.host import clear_failures
from fedrain.errors import InputError
from fedrain.experiment.configuration import KINDS, Configuration, Named
from fedrain.experiment.folder import (
    START,
    Say,
    accept,
    checkpoints_of,
    found_end,
    open_folder,
    say_if_new,
)
from fedrain.experiment.integrity import check_configuration
from fedrain.experiment.live import Live
from fedrain.experiment.outside import stored_sources
from fedrain.experiment.progress import Progress
from fedrain.experiment.resolve import changed, check_same_names, configure, from_dict
from fedrain.experiment.results import WEIGHTS, read_weights_note, write_results
from fedrain.experiment.run import Run
from fedrain.experiment.trainer import Trainer
from fedrain.experiment.watching import watched
from fedrain.io import alone_in, unflatten
from fedrain.reading import file_digest, read_arrays, read_json
from fedrain.tables import counted

CHECKPOINT_SECONDS = 20.0


class Episode(NamedTuple):
    """What a callback receives after each episode.

    Args:
        episode: Its number, from 1.
        returns: ``[seed, agent]``.
        critic_loss: ``[seed, agent]``; NaN where there was no update.
        actor_loss: ``[seed, agent]``, likewise.
        seconds: That it took.
    """

    episode: int  # from 1
    returns: Float[np.ndarray, "seed agent"]
    critic_loss: Float[np.ndarray, "seed agent"]
    actor_loss: Float[np.ndarray, "seed agent"]
    seconds: float


OnEpisode = Callable[[Episode], None]


class Session:
    """One experiment on its way from the first episode, or the last checkpoint, to the end."""

    def __init__(
        self,
        configuration: Configuration,
        out: Path,
        say: Say,
        on_episode: OnEpisode | None = None,
        progress: bool = True,
        live: Live | None = None,
    ) -> None:
        self.configuration = configuration = open_folder(configuration, out, resume=True)
        self.agent_steps = configuration.steps_of_an_episode
        self.out = out
        self.say = say
        self.on_episode = on_episode
        self.progress = progress
        self.live = Live(configuration, out) if live is None else live
        self.live.write("starting")
        self.checkpoints = checkpoints_of(configuration, out)
        environment = configuration.make_environment()
        environment.check_start()
        self.trainer = trainer = Trainer(configuration, environment)
        if configuration.start_from is not None:
            arrays, _ = read_arrays(out / START)
            trainer.start_from(unflatten(trainer.actors(), arrays, str(out / START)))
        if (found := self.checkpoints.load(trainer.trainings)) is not None:
            trainer.restore(*found)
            # A run that is extended had left out the average after what was its last episode.
            if trainer.episode == found_end(out) and configuration.averages_after(
                trainer.episode - 1
            ):
                trainer.synchronise()
        trainer.begin()

    def run(self) -> None:
        """Train to the end, with a checkpoint now and then, and write the results."""
        configuration, trainer = self.configuration, self.trainer
        self.say(
            f"{configuration.name}, {counted(len(configuration.seeds), 'seed')}, into {self.out}"
        )
        if configuration.warning is not None:
            self.say(configuration.warning)
        progress = Progress(
            configuration.episodes, self.agent_steps, trainer.episode, days=self._days
        )
        self._tell_watchers()
        with self._saved_at_last(), SummaryWriter(str(self.out / "events"), purge_step=0) as writer:
            for episode in range(trainer.episode):  # a process that was killed may have lost some
                self._log(writer, episode)
            while trainer.episode < configuration.episodes:
                seconds = trainer.play(configuration.averages_after(trainer.episode))
                self._log(writer, trainer.episode - 1)
                for message in trainer.newly_diverged():
                    self.say(message)
                if self.progress:
                    progress.show(trainer.episode, trainer.history["returns"][-1], seconds)
                self._tell()
                self._tell_watchers()
                if time.monotonic() - self._saved > CHECKPOINT_SECONDS:
                    self._save()
        self.live.write("writing")
        write_results(
            configuration, trainer.actors(), trainer.history, self.out, course=trainer.course
        )
        self.live.write("finished")

    @contextmanager
    def _saved_at_last(self) -> Iterator[None]:
        """Whatever ends the run, such as a callback that fails: its last whole episode stays."""
        self._saved, before = time.monotonic(), self.trainer.episode
        try:
            yield
        except BaseException:
            self.live.write("stopped")
            if self.trainer.whole and self.trainer.episode > before:
                with suppress(Exception):  # what ended the run is what is reported
                    self._save()
            raise
        self._save()

    @property
    def _days(self) -> float | None:
        """Days that an episode simulates, over all seeds, where they are what costs."""
        environment = self.trainer.environment
        days = getattr(environment.model, "days_per_step", None)
        if days is None or not getattr(environment.model, "costly", False):
            return None
        steps = len(self.configuration.seeds) * environment.climates * environment.episode_length
        return float(days) * steps

    def _tell(self) -> None:
        if self.on_episode is not None:
            latest = {name: values[-1] for name, values in self.trainer.history.items()}
            told = (latest["returns"], latest["critic_loss"], latest["actor_loss"])
            self.on_episode(Episode(self.trainer.episode, *told, float(latest["seconds"])))

    def _tell_watchers(self) -> None:
        trainer, seeds = self.trainer, self.configuration.seeds
        lost = [seeds[index] for index in sorted(trainer.diverged)]
        self.live.tell(trainer.episode, trainer.history, trainer.course, lost)

    def _log(self, writer: SummaryWriter, episode: int) -> None:
        history, length = self.trainer.history, self.trainer.environment.episode_length
        step = (episode + 1) * length
        for i, seed in enumerate(self.configuration.seeds):
            if not np.isfinite(history["returns"][episode, i]).all():
                continue  # it has diverged
            values = {
                f"{name}/seed_{seed}/region_{agent}": float(value)
                for name in ("returns", "critic_loss", "actor_loss", "q")
                for agent, value in enumerate(history[name][episode, i])
            }
            values[f"distance/seed_{seed}"] = float(history["distance"][episode, i])
            for name, value in values.items():
                if np.isfinite(value):  # an algorithm may have no such loss
                    writer.add_scalar(name, value, step)
        seconds = float(history["seconds"][episode])
        writer.add_scalar("steps_per_second", self.agent_steps / seconds, step)
        if self._days is not None:
            writer.add_scalar("simulated_days_per_second", self._days / seconds, step)

    def _save(self) -> None:
        self.trainer.save(self.checkpoints)
        self._saved = time.monotonic()


@clear_failures()
def train(
    configuration: Configuration | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    say: Say = print,
    on_episode: OnEpisode | None = None,
    start_from: str | Path | Run | None = None,
    figures: bool = True,
    progress: bool | None = None,
    accept_changes: bool = False,
    watch: bool = False,
    port: int = 0,
    **options: Any,
) -> Run:
    """Train an experiment into a folder, or resume or extend the one that is there.

    Args:
        configuration: The experiment, of :func:`configure`; or give its arguments instead:
            ``train(env="ebm-v3", agents=2)``.
        out: The folder; ``runs/NAME`` if it is left out.
        resume: Resume an interrupted run. What is not given stays what the folder says; with more
            ``episodes`` than it has, the run is extended.
        say: What is said to people goes here.
        on_episode: Called after each episode with an :class:`Episode`.
        start_from: A finished run, whose policies the agents start from.
        figures: Whether figures are drawn in the folder at the end.
        progress: Whether standard error shows episode, returns and time left; by default it does
            unless ``say`` is a function of your own.
        accept_changes: Resume with a model, task or algorithm of your own whose source has changed
            since, a mended one say; the run's configuration lists what was accepted.
        watch: Whether a page on this machine shows the run while it trains, as
            :func:`fedrain.watch` does.
        port: Of the page; 0: any that is free.
        options: Arguments of :func:`configure`.

    Returns:
        The finished run.
    """
    if configuration is not None and not isinstance(configuration, Configuration):
        raise InputError(
            "train takes an experiment of fedrain.configure, or its arguments by name (env=…), "
            f"not {configuration!r}"
        )
    if on_episode is not None and not callable(on_episode):
        raise InputError(f"on_episode is a function of an Episode, not {on_episode!r}")
    if configuration is not None and options:
        raise InputError(f"{', '.join(options)}: is already part of the configuration")
    if accept_changes:
        accept(out, resume, Named(*(options.get(kind) for kind in KINDS)))
    if configuration is None:
        configuration = chosen(Path(out) if out is not None else None, resume, options)
    actors = None
    if start_from is not None:
        if not isinstance(start_from, Run):
            made = {kind: getattr(configuration.named, kind) for kind in KINDS}
            start_from = run_before(start_from, {k: options.get(k, made[k]) for k in KINDS})
        configuration, actors = _starting_from(configuration, start_from)
    out = Path("runs") / configuration.name if out is None else Path(out)
    if configuration.start_from is not None and actors is None and not (out / START).is_file():
        raise InputError("this experiment starts from the policies of a run: name it with --from")
    if resume:
        say_if_new(out, say)
    fixed = None
    with watched(out, watch, port, say):
        configuration = open_folder(configuration, out, resume, actors, say)
        if not (resume and Run.is_finished(out)):
            with alone_in(out):
                shown = say is print if progress is None else progress
                live = Live(configuration, out)
                if watch:
                    fixed = live.hold_static()
                Session(configuration, out, say, on_episode, shown, live).run()
    named = configuration.named
    run = Run(out, named.env, named.model, named.algo)
    path = out / "configuration.json"
    check_configuration(path, read_json(path), read_weights_note(out))
    run.__dict__["configuration"] = configuration
    if fixed is not None and run.is_whole:  # the same episodes: they need not be played again
        run.__dict__["static"] = fixed
    if figures:
        from fedrain.experiment.report import write_figures

        write_figures(run)
    return run


def run_before(folder: str | Path, named: Mapping[str, Any]) -> Run:
    """The run to start from; what it has from outside the package is what was named for this."""
    Run(folder)  # refuses a folder that is no run's
    outside = stored_sources(read_json(Path(folder) / "configuration.json"))
    return Run(folder, **{kind: thing for kind, thing in named.items() if kind in outside})


def chosen(out: Path | None, resume: bool, options: dict[str, Any]) -> Configuration:
    """The experiment that options name; where a run is resumed, what its folder says counts."""
    path = None if out is None else out / "configuration.json"
    if not resume or path is None or not path.exists():
        return configure(**{k: v for k, v in options.items() if v is not None})
    values = read_json(path)
    known = {kind: options.get(kind) for kind in KINDS}
    outside = stored_sources(values)
    kept = {k: v for k, v in known.items() if v is not None and k in outside}
    held = from_dict(values, Named(**kept))
    given = {k: v for k, v in options.items() if v is not None and k not in kept}
    check_same_names(held, given, out)
    return changed(held, **given) if given else held


def _starting_from(configuration: Configuration, run: Run) -> tuple[Configuration, Network]:
    """The experiment, marked as one that starts from a run, and the actors that it starts with.

    As many agents start each from its own policy, others from the average of all. Seeds take the
    run's in turn, those that diverged left out.
    """
    same = run.configuration.agents == configuration.agents
    policy = "local" if same else "global"
    whole, actors = run.whole_actors(policy)
    seeds = np.arange(len(configuration.seeds)) % len(whole)
    agents = np.arange(configuration.agents) if same else np.zeros(configuration.agents, int)
    picked = jax.tree.map(lambda leaf: np.asarray(leaf)[seeds][:, agents], actors)
    fresh = Trainer(configuration, configuration.make_environment()).actors()
    shapes = [leaf.shape for leaf in jax.tree.leaves(fresh)]
    if [leaf.shape for leaf in jax.tree.leaves(picked)] != shapes:
        raise InputError(
            f"{run.folder}: its policies do not fit: observations or actions differ in size"
        )
    return replace(configuration, start_from=file_digest(run.folder / WEIGHTS)), picked
