"""The command line: ``fedrain COMMAND``.

Results for machines (``--json``) go to standard output and nothing else does; messages for people
go to standard error. Exit status 0 means that it worked, 2 that the input was wrong, 1 that it
failed.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from fedrain import __version__
from fedrain.errors import InputError


class _Parser(argparse.ArgumentParser):
    """Wrong arguments get one line, as every other bad input does."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see: {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    try:
        options = _parser().parse_args(arguments)
        command: Callable[[argparse.Namespace], None] = options.command
        command(options)
    except InputError as error:
        say(f"fedrain: error: {error}")
        return 2
    except KeyboardInterrupt:
        say("fedrain: interrupted")
        return 1
    return 0


def say(message: str) -> None:
    """A message for people."""
    print(message, file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="fedrain", description="Climate models that learn their own parameters.")
    parser.add_argument("--version", action="version", version=f"fedrain {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    envs = commands.add_parser("envs", help="list the environments")
    envs.add_argument("--json", action="store_true", help="one JSON object on standard output")
    envs.set_defaults(command=_envs)

    train = commands.add_parser("train", help="train one experiment")
    train.add_argument("--env", default="ebm-v3", help="ebm-v1, ebm-v2 or ebm-v3 (default)")
    train.add_argument("--agents", type=int, help="number of agents (6; ebm-v1: 1)")
    train.add_argument(
        "--sync-every",
        type=int,
        default=5,
        metavar="K",
        help="episodes between averages (5); 0: never",
    )
    train.add_argument("--algo", default="ddpg", help="ddpg (default), td3 or tqc")
    train.add_argument("--preset", default="paper", help="name of a preset, or a TOML file")
    train.add_argument("--seeds", type=int, default=1, metavar="N", help="number of seeds (1)")
    train.add_argument("--episodes", type=int, default=100, metavar="N", help="episodes (100)")
    train.add_argument("--target", metavar="FILE", help="NetCDF file with your own climatology")
    train.add_argument("--out", metavar="DIR", help="folder of the run (runs/NAME)")
    train.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    train.set_defaults(command=_train)

    evaluate = commands.add_parser("evaluate", help="skill of a trained run")
    evaluate.add_argument("run", metavar="RUN", help="folder of the run")
    evaluate.add_argument("--policy", default="local", help="local (default) or global")
    evaluate.add_argument("--json", action="store_true", help="one JSON object on standard output")
    evaluate.set_defaults(command=_evaluate)

    baseline = commands.add_parser("baseline", help="skill of what needs no agent")
    names = baseline.add_subparsers(required=True, metavar="NAME")
    static = names.add_parser("static", help="the model with its static parameters")
    static.add_argument("--json", action="store_true", help="one JSON object on standard output")
    static.add_argument("--target", metavar="FILE", help="NetCDF file with your own climatology")
    static.add_argument("--variable", metavar="NAME", help="the temperature in that file")
    static.add_argument(
        "--weight-months", action="store_true", help="months of that file count by their length"
    )
    static.add_argument("--latitudes", type=int, default=96, help="number of latitudes (96)")
    static.add_argument("--backend", default="jax", help="jax (default) or climlab")
    static.add_argument("--figure", metavar="FILE", help="save the picture of the profiles")
    static.set_defaults(command=_baseline_static)
    return parser


def _envs(options: argparse.Namespace) -> None:
    from fedrain.envs.listing import environment_rows, environment_table

    if options.json:
        print(json.dumps({"environments": environment_rows()}))
    else:
        print(environment_table())


def _train(options: argparse.Namespace) -> None:
    from fedrain.experiment import configure, train
    from fedrain.experiment.report import skill_report, write_figures

    configuration = configure(
        env=options.env,
        agents=options.agents,
        sync_every=options.sync_every,
        algo=options.algo,
        preset=options.preset,
        seeds=options.seeds,
        episodes=options.episodes,
        **({} if options.target is None else {"target": options.target}),
    )
    out = Path("runs") / configuration.name if options.out is None else Path(options.out)
    say(f"{configuration.name}, {len(configuration.seeds)} seed(s), into {out}")
    run = train(configuration, out, options.resume, say)
    print(skill_report(run))
    for path in write_figures(run):
        say(f"picture: {path}")


def _evaluate(options: argparse.Namespace) -> None:
    from fedrain.experiment import load
    from fedrain.experiment.report import skill_report

    run = load(options.run)
    found = run.summary(options.policy)
    if options.json:
        print(json.dumps({"run": run.configuration.name, **found}))
    else:
        print(skill_report(run))


def _baseline_static(options: argparse.Namespace) -> None:
    import numpy as np

    from fedrain.baselines import static
    from fedrain.climate import read_zonal_mean, skill_table
    from fedrain.climate.figures import ProfileFigure
    from fedrain.envs import make

    target = None
    if options.target is not None:
        target = read_zonal_mean(options.target, options.variable, options.weight_months)
    elif options.variable is not None or options.weight_months:
        raise InputError("--variable and --weight-months go with --target")
    environment = make(
        "ebm-v1", latitudes=options.latitudes, target=target, backend=options.backend
    )
    result = static(environment)
    if options.figure is not None:
        picture = ProfileFigure(
            environment.model.grid, np.array(environment.target), {"static": "static model"}
        )
        picture.update(
            f"Static model after {environment.episode_length} steps: "
            f"global error {result.skill.globe:.2f} K",
            static=result.profile,
        )
        picture.save(options.figure)
    if options.json:
        print(json.dumps(result.as_dict()))
        return
    print(skill_table({"static": result.skill}))
    print(f"return         {result.returns.mean():.0f} K²")
    if options.figure is not None:
        say(f"picture: {options.figure}")
