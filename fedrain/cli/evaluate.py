"""``fedrain evaluate``: skill of a trained run."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from fedrain.cli.messages import add_json, say

if TYPE_CHECKING:
    from fedrain.experiment import Run


def add(commands: Any) -> None:
    """Add the command to the parser."""
    evaluate = commands.add_parser("evaluate", help="skill of a trained run")
    evaluate.add_argument("run", metavar="RUN", help="folder of the run")
    evaluate.add_argument("--policy", default="local", help="local (default) or global")
    add_json(evaluate)
    evaluate.add_argument(
        "--forcing", action="store_true", help="in climates that the policy has not seen"
    )
    evaluate.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> None:
    from fedrain.experiment import load
    from fedrain.experiment.report import share_of_limit, skill_report
    from fedrain.paper.published import published_column

    run = load(options.run)
    found = run.summary(options.policy)
    if options.forcing:
        _forcing(run, options)
    elif options.json:
        share = share_of_limit(run, options.policy)
        print(json.dumps({"run": run.configuration.name, **found, "share_of_limit": share}))
    else:
        print(skill_report(run, published_column(run.configuration)))


def _forcing(run: "Run", options: argparse.Namespace) -> None:
    from fedrain.experiment.forcing import evaluate_forced, forcing_table
    from fedrain.experiment.forcing_figure import forcing_figure
    from fedrain.plotting import save_figure

    results = evaluate_forced(run, options.policy)
    path = run.folder / "forcing.png"
    save_figure(forcing_figure(results, f"{run.configuration.name}, {options.policy} policy"), path)
    if options.json:
        scenarios = {name: forced.as_dict() for name, forced in results.items()}
        print(json.dumps({"run": run.configuration.name, "scenarios": scenarios}))
    else:
        print(forcing_table(results))
        say(f"picture: {path}")
