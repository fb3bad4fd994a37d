"""``fedrain watch``: a page that shows a run while it trains."""

import argparse
from typing import Any

from fedrain.cli.messages import say
from fedrain.cli.options import REFERENCES, add_port, add_references


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "watch",
        help="serve a page that shows a run while it trains",
        description="Serve a page on this machine (127.0.0.1) that shows a run while it trains. "
        "Ctrl-C ends the page, not the run.",
        examples={"The page of a run": "fedrain watch runs/six-agents --port 8000"},
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    add_port(parser)
    add_references(parser)
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from fedrain.experiment import watch

    named = {name: getattr(options, name) for name in REFERENCES}
    watch(options.run, options.page_port, **named, say=say)
