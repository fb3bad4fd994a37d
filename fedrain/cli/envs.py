"""``fedrain envs``: what can be trained on."""

import argparse
from typing import Any

from fedrain.cli.messages import add_json, print_json


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "envs",
        help="list the environments",
        description="List the environments (tasks) that come with the package: number of agents, "
        "sizes of observation and action, reward, and how to make each from Python.",
        examples={
            "All environments": "fedrain envs",
            "The same for a program": "fedrain envs --json",
        },
    )
    add_json(parser)
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from fedrain.envs.listing import environment_rows, environment_table

    if options.json:
        print_json({"environments": environment_rows()})
    else:
        print(environment_table())
