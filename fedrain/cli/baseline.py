"""``fedrain baseline``: skill of what needs no agent."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from fedrain.cli.messages import add_json, say
from fedrain.cli.target import add_target, chosen_target

if TYPE_CHECKING:
    from fedrain.baselines import Baseline
    from fedrain.envs import Environment

TEXTS = {
    "static": "the model with its static parameters",
    "constant": "the best constant parameters, by gradient",
    "enki": "constant parameters by ensemble Kalman inversion",
    "limit": "optimal control: the ceiling for every agent",
    "random": "uniform random actions",
}


def add(commands: Any) -> None:
    """Add the command to the parser."""
    names = commands.add_parser("baseline", help="skill of what needs no agent").add_subparsers(
        required=True, metavar="NAME"
    )
    for name, text in TEXTS.items():
        parser = names.add_parser(name, help=text)
        add_json(parser)
        parser.add_argument("--env", default="ebm-v1", help="ebm-v1 (default), ebm-v2 or ebm-v3")
        parser.add_argument("--agents", type=int, metavar="N", help="number of agents")
        add_target(parser)
        parser.add_argument("--latitudes", type=int, default=96, help="number of latitudes (96)")
        parser.add_argument("--figure", metavar="FILE", help="save the picture of the profiles")
        parser.add_argument("--out", metavar="FILE", help="parameters and temperature, as NetCDF")
        parser.set_defaults(command=_run, name=name)
        if name in ("static", "random"):
            parser.add_argument("--backend", default="jax", help="jax (default) or climlab")
        if name == "constant":
            parser.add_argument("--goal", default="final", help="final (default) or return")
        if name in ("enki", "random"):
            parser.add_argument("--seed", type=int, default=0, help="random seed (0)")
        if name == "enki":
            parser.add_argument("--ensemble", type=int, metavar="N", help="members")
        if name in ("enki", "limit", "constant"):
            parser.add_argument("--iterations", type=int, metavar="N", help="most iterations")


def _run(options: argparse.Namespace) -> None:
    from fedrain import baselines
    from fedrain.baselines.records import sequence_dataset
    from fedrain.climate import skill_table
    from fedrain.io import write_dataset

    environment = _environment(options)
    keys = ("goal", "seed", "ensemble", "iterations")
    given = {k: v for k in keys if (v := getattr(options, k, None)) is not None}
    result = getattr(baselines, options.name)(environment, **given)
    if options.out is not None:
        write_dataset(options.out, sequence_dataset(environment, result))
    if options.figure is not None:
        _picture(environment, result, options.figure)
    if options.json:
        print(json.dumps({"env": options.env, **result.as_dict()}))
        return
    print(skill_table({options.name: result.skill}))
    print(f"return         {result.returns.mean():.0f} K²")
    print(f"found with {result.model_runs} model run(s) in {result.seconds:.1f} s")
    for path in (options.out, options.figure):
        if path is not None:
            say(f"written: {path}")


def _environment(options: argparse.Namespace) -> "Environment":
    from fedrain.envs import make

    return make(
        options.env,
        agents=options.agents,
        latitudes=options.latitudes,
        target=chosen_target(options),
        backend=getattr(options, "backend", "jax"),
    )


def _picture(environment: "Environment", result: "Baseline", path: str) -> None:
    import numpy as np

    from fedrain.baselines import static
    from fedrain.plotting import ProfileFigure

    curves = {"static": static(environment).profile}
    labels = {"static": "static model"}
    if result.name != "static":
        curves["model"], labels["model"] = result.profile, result.name
    picture = ProfileFigure(environment.model.grid.centres, np.array(environment.target), labels)
    picture.update(
        f"{result.name.capitalize()} parameters after {environment.episode_length} steps: "
        f"global error {result.skill.globe:.2f} K",
        **curves,
    )
    picture.save(path)
