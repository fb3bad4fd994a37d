"""``fedrain stability``: equilibria, spectrum, bifurcation diagram and hysteresis of the model."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrain.cli.messages import add_json, print_json, say
from fedrain.errors import InputError

if TYPE_CHECKING:
    from fedrain.climate.stability import Branch, FeedbackModel

TEXTS = {
    "equilibria": "all equilibria at one solar constant, and whether each is stable",
    "spectrum": "eigenvalues at every equilibrium, and those with a fixed albedo",
    "diagram": "bifurcation diagram through both folds: tipping points and figures",
    "hysteresis": "dim the sun, then restore it: the climate does not recover",
}
#: What each takes for its example, and what that shows.
EXAMPLES = {
    "equilibria": ("--solar 1300", "Under a dimmer sun"),
    "spectrum": ("--latitudes 48", "On a coarser grid"),
    "diagram": ("--width 10 --out stability", "With a smoother albedo"),
    "hysteresis": ("--step 10 --out stability", "In steps of 10 W m⁻²"),
}
#: Options that are numbers: name, default, unit and what it is; the last two for equilibria alone.
NUMBERS = (
    ("--solar", 1365.2, "W m⁻²", "solar constant"),
    ("--low", 700.0, "W m⁻²", "lowest solar constant of the branch"),
    ("--high", 2000.0, "W m⁻²", "highest solar constant of the branch"),
    ("--width", 5.0, "K", "width of the step in albedo, which may be 0"),
    ("--diffusivity", 0.555, "W m⁻² K⁻¹", "diffusivity D"),
    ("--coldest", -273.15, "°C", "lowest global mean to look for"),
    ("--warmest", 200.0, "°C", "highest global mean to look for"),
)
#: Of what is printed for people.
UNITS = {
    "solar": "W m⁻²",
    "jumps": "W m⁻²",
    "mean": "°C",
    "mean_before": "°C",
    "mean_after": "°C",
    "ice_line": "°N",
    "leading_eigenvalue": "yr⁻¹",
    "fixed_albedo": "yr⁻¹",
}


def add(commands: Any) -> None:
    """Add the command to the parser."""
    names = commands.add_parser(
        "stability",
        help="equilibria, bifurcation diagram and hysteresis of the model",
        description="Equilibria of the energy balance model with ice–albedo feedback, their "
        "stability, tipping points and hysteresis.",
        examples={
            "Equilibria under today's sun": "fedrain stability equilibria",
            "Tipping points and figures": "fedrain stability diagram",
        },
    ).add_subparsers(required=True, metavar="WHAT")
    for name, text in TEXTS.items():
        example, shown = EXAMPLES[name]
        parser = names.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            examples={shown: f"fedrain stability {name} {example}"},
        )
        add_json(parser)
        for option, default, unit, what in NUMBERS[: None if name == "equilibria" else -2]:
            text = f"{what}, in {unit} (default: {default:g})"
            parser.add_argument(option, type=float, default=default, metavar="X", help=text)
        parser.add_argument(
            "--latitudes",
            type=int,
            default=96,
            metavar="N",
            help="number of latitudes (default: 96)",
        )
        parser.add_argument(
            "--insolation",
            default="p2",
            metavar="NAME",
            help="p2 (second Legendre polynomial) or annual (default: p2)",
        )
        if name in ("diagram", "hysteresis"):
            parser.add_argument(
                "--out",
                default="stability",
                metavar="DIR",
                help="folder for NetCDF files and figures (default: stability)",
            )
        if name == "hysteresis":
            text = "change of the solar constant at each step, in W m⁻² (default: 5)"
            parser.add_argument("--step", type=float, default=5.0, metavar="X", help=text)
        parser.set_defaults(command=_run, name=name)


def _run(options: argparse.Namespace) -> None:
    from fedrain.climate import Grid
    from fedrain.climate.stability import FeedbackModel, follow

    model = FeedbackModel(
        grid=Grid(options.latitudes),
        D=options.diffusivity,
        width=options.width,
        insolation=options.insolation,
    )
    if options.width == 0 and options.name == "equilibria":
        result = _step_equilibria(model, options)
    else:
        branch = follow(model, options.high, options.low)
        result = {
            "equilibria": _equilibria,
            "spectrum": _spectrum,
            "diagram": _diagram,
            "hysteresis": _hysteresis,
        }[options.name](branch, options)
    if options.json:
        print_json(result)
    else:
        print(_text(result))


def _describe(model: "FeedbackModel", point: Any) -> dict[str, Any]:
    from fedrain.climate.stability import spectrum

    leading = float(spectrum(model, point.temperature, point.solar).eigenvalues[0])
    return {
        "mean": float(model.grid.mean(point.temperature)),
        "ice_line": model.ice_line(point.temperature),
        "leading_eigenvalue": leading,
        "stable": leading < 0,
    }


def _equilibria(branch: "Branch", options: argparse.Namespace) -> dict[str, Any]:
    points = branch.at(options.solar, options.coldest, options.warmest)
    return {"solar": options.solar, "equilibria": [_describe(branch.model, p) for p in points]}


def _step_equilibria(model: "FeedbackModel", options: argparse.Namespace) -> dict[str, Any]:
    from fedrain.climate.stability import step_equilibria

    points = step_equilibria(model, options.solar)
    return {"solar": options.solar, "equilibria": [_describe(model, p) for p in points]}


def _spectrum(branch: "Branch", options: argparse.Namespace) -> dict[str, Any]:
    from fedrain.climate.stability import analytic_eigenvalues, spectrum

    return {
        "solar": options.solar,
        "fixed_albedo": analytic_eigenvalues(branch.model, 10).tolist(),
        "equilibria": [
            {
                **_describe(branch.model, p),
                "eigenvalues": spectrum(branch.model, p.temperature, p.solar)
                .eigenvalues[:10]
                .tolist(),
            }
            for p in branch.at(options.solar)
        ],
    }


def _tipping(branch: "Branch", options: argparse.Namespace) -> dict[str, Any]:
    if not branch.folds:
        raise InputError(
            f"there is no tipping point between {options.low:g} and {options.high:g} W m⁻²"
        )
    grid = branch.model.grid
    return {
        "tipping_points": [
            {"solar": fold.solar, "mean": float(grid.mean(fold.temperature))}
            for fold in branch.folds
        ]
    }


def _diagram(branch: "Branch", options: argparse.Namespace) -> dict[str, Any]:
    from fedrain.climate.stability import global_curve
    from fedrain.climate.stability.figures import diagram_figure, spectrum_figure, states_figure
    from fedrain.climate.stability.records import branch_dataset
    from fedrain.io import write_dataset
    from fedrain.plotting import save_figure

    result = _tipping(branch, options)
    out = Path(options.out)
    write_dataset(out / "equilibria.nc", branch_dataset(branch))
    curve = global_curve(branch.model, float(branch.mean.min()), float(branch.mean.max()))
    points = branch.at(options.solar)
    figures = {
        "diagram.png": diagram_figure(branch, curve),
        "spectrum.png": spectrum_figure(branch, points),
        "states.png": states_figure(branch, points),
    }
    for name, figure in figures.items():
        save_figure(figure, out / name)
        say(f"figure: {out / name}")
    return result


def _hysteresis(branch: "Branch", options: argparse.Namespace) -> dict[str, Any]:
    import numpy as np

    from fedrain.climate.stability import global_curve, hysteresis, stairs
    from fedrain.climate.stability.figures import diagram_figure
    from fedrain.climate.stability.records import hysteresis_dataset
    from fedrain.io import write_dataset
    from fedrain.plotting import save_figure

    result = _tipping(branch, options)
    if not (options.step > 0 and np.isfinite(options.step)):
        raise InputError(f"--step must be positive and finite, not {options.step:g}")
    tips = [fold.solar for fold in branch.folds]
    margin = 4 * options.step
    solar = stairs(max(tips) + margin, min(tips) - margin, options.step)
    run = hysteresis(branch.model, solar, branch.at(float(solar[0]))[0].temperature)
    out = Path(options.out)
    write_dataset(out / "hysteresis.nc", hysteresis_dataset(branch, run))
    curve = global_curve(branch.model, float(branch.mean.min()), float(branch.mean.max()))
    save_figure(diagram_figure(branch, curve, run), out / "hysteresis.png")
    say(f"figure: {out / 'hysteresis.png'}")
    before = int(np.abs(solar - options.solar)[: len(solar) // 2].argmin())
    after = len(solar) - 1 - before
    return {
        **result,
        "jumps": run.jumps(),
        "solar": float(solar[before]),
        "mean_before": float(run.mean[before]),
        "mean_after": float(run.mean[after]),
    }


def _text(result: dict[str, Any]) -> str:
    """What the JSON holds, for people."""
    from fedrain.tables import Table

    parts = []
    for name, value in result.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            keys = [k for k, v in value[0].items() if not isinstance(v, list)]
            rows = [[_cell(row[key]) for key in keys] for row in value]
            parts.append(Table("", list(map(_heading, keys)), rows, words=0).text())
        elif isinstance(value, list):
            parts.append(f"{_heading(name)}: " + " ".join(map(_cell, value)))
        else:
            parts.append(f"{_heading(name)}: {_cell(value)}")
    return "\n".join(parts)


def _heading(key: str) -> str:
    """The name that the JSON has, with its unit."""
    return f"{key} ({UNITS[key]})" if key in UNITS else key


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}".replace("-", "−") if isinstance(value, float) else str(value)
