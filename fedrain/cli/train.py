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
    parser = commands.add_parser("train", help="train one experiment")
    add_experiment(parser, extend=True)
    parser.add_argument(
        "--from", dest="start_from", metavar="RUN", help="start from the policies of this run"
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
