"""``fedrain federate``: the same experiments over Flower."""

import argparse
import logging
from pathlib import Path
from typing import Any

from fedrain.cli.messages import say
from fedrain.cli.train import add_experiment, chosen_configuration, finish
from fedrain.errors import InputError, MissingExtraError


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("federate", help="the same experiments over Flower")
    add_experiment(parser)
    parser.add_argument("--engine", default="local", help="local (default): in one process")
    parser.add_argument(
        "--strategy", default="FedAvg", metavar="NAME", help="Flower's strategy (FedAvg)"
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    if options.engine != "local":
        raise InputError(f"there is no engine {options.engine!r}: use local")
    try:
        import flwr  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("flwr", "flower") from None
    # Flower's own lines are for those who look for them; ours tell what matters.
    logging.getLogger("flwr").setLevel(logging.ERROR)
    from fedrain.federation.flower.local import run_local
    from fedrain.federation.flower.server import Federation

    configuration = chosen_configuration(options)
    out = Path("runs") / f"{configuration.name}-{options.engine}"
    out = out if options.out is None else Path(options.out)
    say(f"{configuration.name} over Flower ({options.engine}), into {out}")
    federation = Federation(configuration, out, options.resume, say, options.strategy)
    run_local(federation)
    finish(out)
