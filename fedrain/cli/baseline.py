"""``fedrain baseline``: skill of the non-learning baselines."""

import argparse
from typing import TYPE_CHECKING, Any

from fedrain.cli import values
from fedrain.cli.messages import add_json, print_json, say
from fedrain.cli.options import add_environment, add_settings, environment_options
from fedrain.errors import InputError

if TYPE_CHECKING:
    from fedrain.baselines import Baseline
    from fedrain.climate import Field
    from fedrain.envs import Environment

TEXTS = {
    "static": "the model with its static parameters",
    "constant": "the best constant parameters, by gradient descent",
    "proportional": "a proportional controller: A follows the temperature error",
    "enki": "constant parameters by ensemble Kalman inversion",
    "limit": "optimal control: an upper bound for every agent",
    "random": "uniform random actions",
}
#: Iterations of those that search.
ITERATIONS = {"enki": 8, "constant": 2000, "limit": 600}
#: What each takes for its example.
EXAMPLES = {
    "static": "",
    "constant": " --goal return",
    "proportional": " --gain 3 --D 0.55",
    "enki": " --ensemble 20 --iterations 3",
    "limit": " --env ebm-v2 --agents 2 --out limit.nc",
    "random": " --seed 3 --figure random.png",
}


def add(commands: Any) -> None:
    """Add the command to the parser."""
    names = commands.add_parser(
        "baseline",
        help="show the skill of a baseline that does not learn",
        description="Show the skill of a non-learning baseline: what agents have to beat, and the "
        "most that they could reach.",
        examples={
            "The model with its static parameters": "fedrain baseline static",
            "The most that agents could reach": "fedrain baseline limit",
        },
    ).add_subparsers(required=True, metavar="NAME")
    for name, text in TEXTS.items():
        parser = names.add_parser(
            name,
            help=text,
            description=f"Show the skill of {text}.",
            examples={_upper(text): f"fedrain baseline {name}{EXAMPLES[name]}"},
        )
        add_json(parser)
        add_environment(parser, "ebm-v1")
        add_settings(parser, "model.KEY=VALUE", "an option of the model; may be repeated")
        parser.add_argument(
            "--figure", metavar="FILE", help="file for a figure of the zonal means (default: none)"
        )
        parser.add_argument(
            "--out", metavar="FILE", help="NetCDF file for parameters and fields (default: none)"
        )
        parser.add_argument(
            "--seed",
            type=int,
            default=0,
            metavar="N",
            help="seed of all random numbers (default: 0)",
        )
        parser.set_defaults(command=_run, name=name)
        if name == "constant":
            text = "what is optimised: the error of the final state, or the return: final or return"
            parser.add_argument(
                "--goal", default="final", metavar="NAME", help=f"{text} (default: final)"
            )
        if name == "proportional":
            parser.add_argument(
                "--gain",
                type=float,
                metavar="G",
                help="gain, in 100 W m⁻² for each K of error (default: 3)",
            )
            parser.add_argument(
                "--D",
                dest="diffusivity",
                type=float,
                metavar="D",
                help="diffusivity in W m⁻² K⁻¹ (default: 0.55)",
            )
        if name == "enki":
            parser.add_argument(
                "--ensemble", type=int, metavar="N", help="number of members (default: 300)"
            )
        if name in ITERATIONS:
            parser.add_argument(
                "--iterations",
                type=int,
                metavar="N",
                help=f"maximum number of iterations (default: {ITERATIONS[name]})",
            )


def _run(options: argparse.Namespace) -> None:
    from fedrain import baselines
    from fedrain.envs import make
    from fedrain.io import write_dataset

    env = "ebm-v1" if options.env is None else options.env
    environment = make(env, model_options=_model_options(options), **environment_options(options))
    keys = ("goal", "seed", "ensemble", "iterations", "gain", "diffusivity")
    given = {k: v for k in keys if (v := getattr(options, k, None)) is not None}
    result = getattr(baselines, options.name)(environment, **given)
    if options.out is not None:
        write_dataset(options.out, baselines.sequence_dataset(environment, result))
    if options.figure is not None:
        _draw(environment, result, options.seed, options.figure)
    if options.json:
        print_json({"env": env, **result.as_dict()})
        return
    _print(environment, result)
    for path in (options.out, options.figure):
        if path is not None:
            say(f"written: {path}")


def _model_options(options: argparse.Namespace) -> dict[str, Any] | None:
    given = values.merged("--set", options.settings)
    for name in given or {}:
        if not name.startswith("model."):
            raise InputError(f"--set {name}: a baseline learns nothing; set model.{name}?")
    return given and {name.removeprefix("model."): value for name, value in given.items()}


def _print(environment: "Environment", result: "Baseline") -> None:
    from fedrain.climate import skill_table
    from fedrain.experiment.report import physics_table
    from fedrain.tables import counted

    first, *others = environment.judged_fields
    name = result.name
    print(skill_table({name: result.skill}, first))
    print(physics_table(environment, {name: result.errors}, {name: result.physics.as_dict()}))
    alone = not others and environment.judged[0][1] == 1
    unit = f" {_unit(first)}²" if alone else ""
    print(f"return         {result.returns.mean():.0f}{unit}")
    print(f"found with {counted(result.model_runs, 'model run')} in {result.seconds:.1f} s")
    if result.converged is False:
        say(f"{result.name} has not converged: a larger --iterations N finds a better result")


def _unit(field: "Field") -> str:
    """Of a difference, as people write it."""
    from fedrain.climate.fields import unit_text

    return unit_text(field.difference_unit)


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


def _draw(environment: "Environment", result: "Baseline", seed: int, path: str) -> None:
    import numpy as np

    from fedrain.baselines import static
    from fedrain.climate.fields import unit_text
    from fedrain.envs.profile_figure import ProfileFigure
    from fedrain.plotting import MODELS

    field, columns = environment.judged_fields[0], environment.model.columns

    def profile(values: Any) -> Any:
        array = np.asarray(values, float)
        return columns.zonal_mean(array.mean(-1) if field.levels else array)[1]

    fixed = result if result.name == "static" else static(environment, seed)
    curves = {one.name: profile(one.final[field.name]) for one in (fixed, result)}
    latitudes, _ = columns.zonal_mean(columns.latitude)
    unit = _unit(field)
    figure = ProfileFigure(
        latitudes,
        profile(environment.params.target[field.name]),
        {name: MODELS[name].label for name in curves},
        quantity=f"{_upper(field.title)} ({unit_text(field.unit)})",
        unit=unit,
    )
    figure.update(
        f"{_upper(MODELS[result.name].label)} after {environment.episode_length} steps: "
        f"global error {result.skill.globe:.2f} {unit}",
        **curves,
    )
    figure.save(path)
