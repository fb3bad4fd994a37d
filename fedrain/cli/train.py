"""``fedrain train``: train one experiment."""

import argparse
from pathlib import Path
from typing import Any

from fedrain.cli.messages import say


def add(commands: Any) -> None:
    """Add the command to the parser."""
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
    train.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
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
