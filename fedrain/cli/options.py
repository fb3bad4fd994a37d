"""The options of experiments and environments, once for all commands that have them.

Every argument of :func:`fedrain.experiment.configure` and :func:`fedrain.envs.make` has an option
of its name (``settings`` is ``--set``). None means that it was not given: then the default counts,
or, of a run that is resumed, what its folder says.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrain.cli import values
from fedrain.cli.target import add_target, chosen_target
from fedrain.errors import InputError

if TYPE_CHECKING:
    from fedrain.experiment import Configuration
    from fedrain.experiment.configuration import Named

#: Arguments of `make` that are options, and those of `configure` beside them.
ENVIRONMENT = (
    "agents", "model", "latitudes", "backend", "bounds", "static", "learn", "judge",
    "reward_shape", "around", "observe",
    "target", "start", "forcing", "ramp", "noise", "split", "analysis_every", "smooth", "tiles",
    "overlap", "unapplied", "unclipped", "judged_early", "judged_over", "episode_length",
)  # fmt: skip
EXPERIMENT = (
    "env", "sync_every", "algo", "preset", "seeds", "episodes", "sharing", "settings", *ENVIRONMENT,
)  # fmt: skip
#: What may be named again beside a stored experiment.
REFERENCES = ("env", "model", "algo")
#: Options that may be given more than once, by name=value.
_REPEATED = ("bounds", "static", "judge", "around", "start", "forcing", "settings")


def add_experiment(parser: argparse.ArgumentParser, extend: bool = False) -> None:
    """Add the options that say which experiment, and where to; whether it can be extended."""
    add_setting(parser)
    parser.add_argument(
        "--experiment",
        metavar="FILE",
        help="configuration.json of a run, in place of the options of environment and "
        "learning (default: none)",
    )
    parser.add_argument(
        "--out",
        type=values.place,
        metavar="DIR",
        help="folder of the run (default: runs/NAME, with the name of the experiment)",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="resume an interrupted run"
        + ", or extend it with more --episodes" * extend
        + "; options left out are taken from its folder",
    )


def add_watch(parser: argparse.ArgumentParser) -> None:
    """Add the options of a page that shows the run."""
    parser.add_argument(
        "--watch", action="store_true", help="show the run while it trains, in a browser here"
    )
    add_port(parser)


def add_port(parser: argparse.ArgumentParser) -> None:
    """Add the option that says where the page is."""
    parser.add_argument(
        "--port",
        dest="page_port",
        type=int,
        default=0,
        metavar="N",
        help="port of the page on 127.0.0.1 (default: 0, any that is free)",
    )


def add_accept_changes(parser: argparse.ArgumentParser) -> None:
    """Add the option to resume with what has changed."""
    parser.add_argument(
        "--accept-changes",
        action="store_true",
        help="with --resume: accept a model, task or algorithm whose source you have changed",
    )


def add_setting(parser: argparse.ArgumentParser, env: str = "ebm-v3") -> None:
    """Add the options that say which experiment."""
    add_environment(parser, env)
    group = parser.add_argument_group("learning")
    group.add_argument(
        "--algo", metavar="NAME", help="ddpg, td3, tqc, sac, or file.py:Class (default: ddpg)"
    )
    group.add_argument(
        "--preset", metavar="NAME", help="name of a preset, or a TOML file (default: fedrain)"
    )
    add_settings(
        group,
        "KEY=VALUE",
        "change a hyperparameter of the preset, or with model.KEY=VALUE an option of the model; "
        "may be repeated",
    )
    group.add_argument(
        "--sync-every",
        type=int,
        metavar="K",
        help="episodes between averages; 0: never (default: 5)",
    )
    group.add_argument(
        "--sharing",
        metavar="NAME",
        help="whose policies are averaged: all, zones, neighbours, personal (all, except for the "
        "last layer), or shared: one policy for all agents (default: all)",
    )
    group.add_argument(
        "--seeds",
        type=values.seeds,
        metavar="N",
        help="number of seeds, or which: 3,5,8 (default: 1)",
    )
    group.add_argument(
        "--episodes", type=int, metavar="N", help="number of episodes (default: 100)"
    )


def add_settings(parser: Any, form: str, text: str) -> None:
    """Add the option that sets hyperparameters, and options of the model."""
    parser.add_argument(
        "--set", dest="settings", type=values.setting, action="append", metavar=form, help=text
    )


def add_environment(parser: argparse.ArgumentParser, env: str = "ebm-v3") -> None:
    """Add the options that say which environment; ``env`` is what the help calls the default."""
    group = parser.add_argument_group("environment")
    group.add_argument(
        "--env",
        metavar="NAME",
        help=f"task: a name from `fedrain envs`, or file.py:task (default: {env})",
    )
    group.add_argument(
        "--model", metavar="file.py:Class", help="a climate model of your own (default: the task's)"
    )
    group.add_argument(
        "--agents", type=int, metavar="N", help="number of agents (default: the task's)"
    )
    group.add_argument(
        "--tiles",
        type=values.tiles,
        metavar="ROWSxCOLS",
        help="regions of a latitude–longitude grid (default: bands of latitude)",
    )
    group.add_argument(
        "--overlap",
        action="store_true",
        default=None,
        help="let bands overlap where the number of agents does not divide the latitudes",
    )
    group.add_argument(
        "--latitudes", type=int, metavar="N", help="number of latitudes (default: 96)"
    )
    group.add_argument("--backend", metavar="NAME", help="jax or climlab (default: jax)")
    group.add_argument(
        "--episode-length",
        type=int,
        metavar="N",
        help="steps in an episode (default: 200, or the task's)",
    )
    add_target(group)
    add_start(group)
    group.add_argument(
        "--forcing",
        type=values.named(values.bounds),
        action="append",
        metavar="NAME=VALUE",
        help="a forcing of the climate, or NAME=LOW..HIGH to draw it in each episode "
        "(default: none)",
    )
    group.add_argument(
        "--ramp", type=int, metavar="N", help="steps over which the forcing sets in (default: 0)"
    )
    add_noise(group)
    group.add_argument(
        "--split",
        metavar="NAME",
        help="episodes of the task to use: train, validation or test (default: train)",
    )
    group.add_argument(
        "--bounds",
        type=values.named(values.pair),
        action="append",
        metavar="A=LOW..HIGH",
        help="bounds of a parameter (default: the model's)",
    )
    group.add_argument(
        "--static",
        type=values.named(values.number),
        action="append",
        metavar="B=VALUE",
        help="static value of a parameter (default: the model's)",
    )
    group.add_argument(
        "--learn",
        type=values.names,
        metavar="D,A",
        help="parameters that agents set (default: all)",
    )
    group.add_argument(
        "--judge",
        type=values.weights,
        action="append",
        metavar="FIELD=WEIGHT",
        help="fields in the reward, separated by commas (default: the model's first)",
    )
    group.add_argument("--reward-shape", metavar="NAME", help="square or log (default: square)")
    group.add_argument(
        "--around",
        type=values.named(values.number),
        action="append",
        metavar="FIELD=DEGREES",
        help="judged fields for which errors nearby count too, and the e-folding distance of "
        "their weight (default: none)",
    )
    group.add_argument(
        "--observe",
        type=values.names,
        metavar="NAMES",
        help="what agents observe: fields, target, error, season, place (default: the judged "
        "fields)",
    )
    group.add_argument(
        "--analysis-every",
        type=int,
        metavar="N",
        help="steps between analyses, which set the model to the observations; 0: never "
        "(default: 0)",
    )
    group.add_argument(
        "--smooth",
        type=values.number,
        metavar="WEIGHT",
        help="penalty on differences of parameters between neighbouring columns (default: 0)",
    )
    add_judged_over(group)
    add_published(group)


def add_judged_over(group: Any) -> None:
    """Add the option that says over how many steps an evaluation is judged."""
    group.add_argument(
        "--judged-over",
        type=int,
        metavar="N",
        help="last steps whose mean an evaluation is judged by (default: 1, or the task's)",
    )


def add_published(group: Any) -> None:
    """Add the options that make an environment that of the published runs."""
    group.add_argument(
        "--unapplied",
        type=values.names,
        metavar="a0,a2",
        help="parameters that agents set but the model ignores (default: none)",
    )
    group.add_argument(
        "--unclipped",
        action="store_true",
        default=None,
        help="do not clip observations to their bounds",
    )
    group.add_argument(
        "--judged-early",
        type=int,
        metavar="N",
        help="steps before the end at which an evaluation is judged (default: 0)",
    )


def add_start(parser: Any) -> None:
    """Add the option that says where a climate starts."""
    parser.add_argument(
        "--start",
        type=values.start,
        action="append",
        metavar="VALUE",
        help="initial temperature in °C, or LOW..HIGH to draw it in each episode; NAME=VALUE for "
        "a model with several initial values (default: the model's)",
    )


def add_noise(parser: Any) -> None:
    """Add the option that says how sensors err."""
    parser.add_argument(
        "--noise",
        type=values.number,
        metavar="SHARE",
        help="standard deviation of observation errors, as a share of each field's scale "
        "(default: 0)",
    )


def add_references(parser: argparse.ArgumentParser) -> None:
    """Add the options that name again what a run has from outside the package."""
    for name, where, what in (
        ("env", "file.py:task", "task"),
        ("model", "file.py:Class", "model"),
        ("algo", "file.py:Class", "algorithm"),
    ):
        text = f"{what} of the run, if it is not part of the package"
        parser.add_argument(f"--{name}", metavar=where, help=text)


def given(options: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    """What of these arguments was given, in the form in which `configure` and `make` take it."""
    found: dict[str, Any] = {}
    for name in names:
        if name == "target":
            value: Any = chosen_target(options)
        elif name == "start":
            value = _start(values.merged("--start", options.start))
        elif name in _REPEATED:
            option = "--set" if name == "settings" else f"--{name}"
            value = values.merged(option, getattr(options, name))
        else:
            value = getattr(options, name)
        if value is not None:
            found[name] = value
    return found


def _start(start: dict[str, Any] | None) -> Any:
    if start is None or "" not in start:
        return start
    if len(start) > 1:
        raise InputError("--start: name each value, as in temperature=20..50")
    return start[""]


def environment_options(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `fedrain.envs.make`, but its name."""
    return given(options, ENVIRONMENT)


def experiment_options(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `fedrain.experiment.configure`."""
    return given(options, EXPERIMENT)


def references(options: argparse.Namespace) -> "Named":
    """What a person has named, of what an experiment may have from outside the package."""
    from fedrain.experiment.configuration import Named

    return Named(**{name: getattr(options, name) for name in REFERENCES})


def chosen_configuration(
    options: argparse.Namespace, out: str | Path | None = None
) -> "Configuration":
    """The experiment that the options name.

    Args:
        options: Of :func:`add_experiment`, or of :func:`add_setting` alone.
        out: The folder whose run is resumed, if there is one.
    """
    from fedrain.experiment.resolve import from_dict
    from fedrain.experiment.training import chosen
    from fedrain.reading import read_json

    wanted = experiment_options(options)
    file = getattr(options, "experiment", None)
    if file is None:
        folder = None if out is None else Path(out)
        return chosen(folder, getattr(options, "resume", False), wanted)
    if more := [name for name in wanted if name not in REFERENCES]:
        texts = ", ".join("--set" if m == "settings" else f"--{m.replace('_', '-')}" for m in more)
        raise InputError(f"--experiment holds the whole experiment: drop {texts}")
    return from_dict(read_json(Path(file)), references(options))


def folder_and_configuration(
    options: argparse.Namespace, suffix: str = ""
) -> tuple[Path, "Configuration"]:
    """The folder of the run, which the experiment gives its name to, and the experiment."""
    if options.out is not None:
        return Path(options.out), chosen_configuration(options, options.out)
    configuration = chosen_configuration(options)
    out = Path("runs") / f"{configuration.name}{suffix}"
    return out, chosen_configuration(options, out) if options.resume else configuration
