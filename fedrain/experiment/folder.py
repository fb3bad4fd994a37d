"""The folder of a run: made, opened, extended, and which changes it accepts."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fedrain.agents.networks import Network
from fedrain.errors import InputError
from fedrain.experiment.checkpoint import Checkpoints
from fedrain.experiment.configuration import Configuration, Named, difference, versions
from fedrain.experiment.outside import accepted
from fedrain.experiment.resolve import check_same_experiment, from_dict
from fedrain.experiment.results import episodes_learnt
from fedrain.experiment.run import Run
from fedrain.io import flatten, is_trace, write_arrays, write_json
from fedrain.reading import read_json

START = "start.safetensors"  # the actors that a run starts from, if they are another run's

Say = Callable[[str], None]


def say_if_new(out: Path, say: Say) -> None:
    """Tell who wants to resume a run that there is none; a mistyped name is a new run."""
    if not (out / "configuration.json").exists():
        say(f"{out}: there is no run to resume: starting a new one")


def check_checkpoint(configuration: Configuration, out: Path) -> None:
    """Refuse a checkpoint of another experiment than this."""
    checkpoints_of(configuration, out).check()


def accept(
    out: str | Path | None,
    resume: bool,
    named: Named,
    check: Callable[[Configuration, Path], None] = check_checkpoint,
) -> None:
    """Note in a run's folder that it continues with the sources that these things have now."""
    if out is None or not resume:
        raise InputError("--accept-changes is for a run that is resumed: give --resume and --out")
    path = Path(out) / "configuration.json"
    values = read_json(path)
    if (new := accepted(values, named)) != values:
        # Nothing is written before it is known that the run continues with it.
        check(from_dict(new, named), Path(out))
        write_json(path, new)


def checkpoints_of(configuration: Configuration, out: Path) -> Checkpoints:
    """Where an experiment in the folder ``out`` keeps what it needs to resume."""
    return Checkpoints(out / "checkpoint", configuration.lineage)


def found_end(out: Path) -> int:
    """The episodes that a run in this folder had when it was finished; 0 if it never was."""
    return episodes_learnt(out) or 0


def open_folder(
    configuration: Configuration,
    out: Path,
    resume: bool,
    actors: Network | None = None,
    say: Say | None = None,
) -> Configuration:
    """Make the folder of a run, or make sure that it is this run's, and of as many episodes.

    Returns:
        The experiment, with what the folder tells of its earlier ends.
    """
    path = out / "configuration.json"
    if not path.exists():
        if out.exists() and (not out.is_dir() or any(not is_trace(p) for p in out.iterdir())):
            raise InputError(
                f"{out}: is not empty, and not the folder of a run: choose another --out"
            )
        _check_straight(configuration)
        if actors is not None:
            write_arrays(out / START, flatten(actors), {"layout": "seed, agent, …"})
        _write(configuration, path)
        return configuration
    held = from_dict(read_json(path), configuration.named)
    if configuration.extended_from != held.extended_from:
        configuration = replace(configuration, extended_from=held.extended_from)
    if difference(held, configuration) == ["episodes"] and resume:
        return _extended(held, configuration, out, say)
    check_same_experiment(held, configuration, out)
    if not resume:
        raise InputError(f"{out}: already holds this experiment: resume it with --resume")
    return configuration


def _check_straight(configuration: Configuration) -> None:
    """A run that was extended cannot be trained at once: its schedule had other ends."""
    if configuration.extended_from and configuration.depends_on_length:
        ends = [end if isinstance(end, int) else end[1] for end in configuration.extended_from]
        more = ", ".join(map(str, (*ends[1:], configuration.episodes)))
        raise InputError(
            f"this experiment was extended: train {ends[0]} episodes, then --resume with {more}"
        )


def _write(configuration: Configuration, path: Path) -> None:
    write_json(path, {**configuration.as_dict(), "versions": versions()})


def _extended(
    held: Configuration, configuration: Configuration, out: Path, say: Say | None
) -> Configuration:
    """The experiment with more episodes, written to its folder."""
    if configuration.episodes < held.episodes:
        raise InputError(
            f"{out}: has {held.episodes} episodes; a run can be extended, not shortened"
        )
    checkpoints = checkpoints_of(held, out)
    checkpoints.check()
    done = checkpoints.episode
    if Run.is_finished(out) and not done:
        raise InputError(f"{out}: has no checkpoint to extend it from: train into another folder")
    before = held.extended_from
    reached = 0 if not before else before[-1] if isinstance(before[-1], int) else before[-1][0]
    if done > reached:  # otherwise no episode has been played with the end that it had
        end = held.episodes if done >= held.episodes else (done, held.episodes)
        configuration = replace(configuration, extended_from=(*before, end))
    _write(configuration, out / "configuration.json")
    if say is not None and done:
        new = configuration.episodes
        differs = f", unlike {new} trained at once: noise or learning rates decay over the run"
        say(f"extended from {held.episodes} to {new} episodes{differs * held.depends_on_length}")
    return configuration
