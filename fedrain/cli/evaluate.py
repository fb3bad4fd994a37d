"""``fedrain evaluate``: skill of a trained run."""

import argparse
import json
from typing import Any

from fedrain.cli.messages import add_json


def add(commands: Any) -> None:
    """Add the command to the parser."""
    evaluate = commands.add_parser("evaluate", help="skill of a trained run")
    evaluate.add_argument("run", metavar="RUN", help="folder of the run")
    evaluate.add_argument("--policy", default="local", help="local (default) or global")
    add_json(evaluate)
    evaluate.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from fedrain.experiment import load
    from fedrain.experiment.report import skill_report

    run = load(options.run)
    found = run.summary(options.policy)
    if options.json:
        print(json.dumps({"run": run.configuration.name, **found}))
    else:
        print(skill_report(run))
