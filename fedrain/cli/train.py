"""``fedrain train``: train one experiment."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrain.cli.messages import say
from fedrain.cli.target import add_target, chosen_target

if TYPE_CHECKING:
    from fedrain.experiment import Configuration


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("train", help="train one experiment")
    add_experiment(parser)
    add_sharing(parser)
    parser.set_defaults(command=_run)


def add_sharing(parser: argparse.ArgumentParser) -> None:
    """Add the argument that says what federation means."""
    parser.add_argument(
        "--sharing",
        default="all",
        metavar="NAME",
        help="who is averaged: all (default), zones, neighbours, personal (all, but the last layer "
        "stays), or shared: one policy for all agents",
    )


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which experiment, and where to."""
    add_setting(parser)
    parser.add_argument(
        "--experiment", metavar="FILE", help="configuration.json of a run, instead of all these"
    )
    parser.add_argument("--out", metavar="DIR", help="folder of the run (runs/NAME)")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run")


def add_setting(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which experiment."""
    parser.add_argument("--env", default="ebm-v3", help="ebm-v1, ebm-v2 or ebm-v3 (default)")
    parser.add_argument("--agents", type=int, help="number of agents (6; ebm-v1: 1)")
    parser.add_argument(
        "--sync-every",
        type=int,
        default=5,
        metavar="K",
        help="episodes between averages (5); 0: never",
    )
    parser.add_argument("--algo", default="ddpg", help="ddpg (default), td3 or tqc")
    parser.add_argument(
        "--preset", default="fedrain", help="name of a preset (fedrain), or a TOML file"
    )
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="number of seeds (1)")
    parser.add_argument("--episodes", type=int, default=100, metavar="N", help="episodes (100)")
    add_target(parser)


def chosen_configuration(options: argparse.Namespace) -> "Configuration":
    """The experiment that the arguments name."""
    from fedrain.experiment import configure
    from fedrain.experiment.configuration import from_dict
    from fedrain.io import read_json

    if getattr(options, "experiment", None) is not None:
        return from_dict(read_json(Path(options.experiment)))
    target = chosen_target(options)
    return configure(
        env=options.env,
        agents=options.agents,
        sync_every=options.sync_every,
        algo=options.algo,
        preset=options.preset,
        seeds=options.seeds,
        episodes=options.episodes,
        sharing=getattr(options, "sharing", "all"),
        **({} if target is None else {"target": target}),
    )


def finish(folder: Path) -> None:
    """Show what a finished run has reached."""
    from fedrain.experiment import load
    from fedrain.experiment.report import skill_report, write_figures
    from fedrain.paper.published import published_column

    run = load(folder)
    print(skill_report(run, published_column(run.configuration)))
    for path in write_figures(run):
        say(f"picture: {path}")


def _run(options: argparse.Namespace) -> None:
    from fedrain.experiment import train

    configuration = chosen_configuration(options)
    out = Path("runs") / configuration.name if options.out is None else Path(options.out)
    say(f"{configuration.name}, {len(configuration.seeds)} seed(s), into {out}")
    train(configuration, out, options.resume, say)
    finish(out)
