"""``fedrain train``: train one experiment."""

import argparse
from typing import TYPE_CHECKING, Any

from fedrain.cli.messages import say, say_if_unchecked
from fedrain.cli.options import (
    REFERENCES,
    add_accept_changes,
    add_experiment,
    add_watch,
    folder_and_configuration,
    references,
)

if TYPE_CHECKING:
    from fedrain.experiment import Run


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "train",
        help="train agents on one experiment",
        description="Train agents on one experiment, average their policies as it goes, and show "
        "their skill. The run is a folder with configuration, weights, NetCDF files, TensorBoard "
        "events and figures; an interrupted run is resumed with --resume.",
        examples={
            "Six agents in one climate, averaged every five episodes": "fedrain train",
            "One agent for the whole globe, ten seeds": (
                "fedrain train --env ebm-v1 --algo ddpg --seeds 10"
            ),
            "Two agents with TD3, averaged every ten episodes": (
                "fedrain train --env ebm-v2 --agents 2 --sync-every 10 --algo td3"
            ),
            "Resume a run, or extend it": (
                "fedrain train --out runs/six-agents --resume --episodes 200"
            ),
            "Start from the policies of another run": (
                "fedrain train --from runs/six-agents --out runs/more"
            ),
            "A climate model of your own": (
                "fedrain train --model examples/heat_capacity.py:LandAndSea"
            ),
        },
    )
    add_experiment(parser, extend=True)
    parser.add_argument(
        "--from",
        dest="start_from",
        metavar="RUN",
        help="start from the policies of this run (default: new agents)",
    )
    add_accept_changes(parser)
    add_watch(parser)
    parser.set_defaults(command=_run)


def finish(run: "Run") -> None:
    """Show what a finished run has reached."""
    from fedrain.experiment.report import skill_report, write_figures
    from fedrain.paper.published import published_column

    say_if_unchecked(run)
    print(skill_report(run, published_column(run.configuration)))
    for path in write_figures(run):
        say(f"figure: {path}")


def _run(options: argparse.Namespace) -> None:
    from fedrain.experiment import train
    from fedrain.experiment.folder import accept
    from fedrain.experiment.training import run_before

    if options.accept_changes:
        accept(options.out, options.resume, references(options))
    before = None
    if options.start_from is not None:
        named = {name: getattr(options, name) for name in REFERENCES}
        before = run_before(options.start_from, named)
        say_if_unchecked(before)
    out, configuration = folder_and_configuration(options)
    more: dict[str, Any] = {"start_from": before, "figures": False, "progress": True}
    more |= {"watch": options.watch, "port": options.page_port}
    finish(train(configuration, out, options.resume, say, **more))
