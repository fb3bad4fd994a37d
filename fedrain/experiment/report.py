"""What a person sees when a run has finished: the skill table and the figures."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from fedrain.baselines import static, unknown_limit
from fedrain.climate import BAND_NAMES, Field, Parameter, Physics, Skill
from fedrain.climate.fields import ABSORBED_SHORTWAVE, OUTGOING_LONGWAVE, unit_text
from fedrain.envs import Environment
from fedrain.errors import InputError
from fedrain.experiment.results import POLICIES, read_columns
from fedrain.experiment.run import Run
from fedrain.plotting import (
    REGIONS,
    band,
    draw,
    draw_map,
    draw_seeds,
    duration,
    interval,
    latitude_axis,
    level,
    light_grid,
    new_figure,
    save_figure,
    seeds_label,
    step_axis,
    threshold,
)
from fedrain.tables import GAP, Table

FLUXES = (OUTGOING_LONGWAVE, ABSORBED_SHORTWAVE)
#: What :class:`fedrain.climate.Physics` says: key, what people call it, digits.
PHYSICS_ROWS = (
    ("above_black_body", "columns above a black body", 1),
    ("roughness", "roughness (share of the range)", 3),
    ("at_bounds", "at bounds (share of values)", 3),
)
TIMES = (1, 40, 80, 120, 160, 200)


def skill_report(run: Run, beside: Mapping[str, list[str]] | None = None) -> str:
    """Errors of both policies beside the static model, and beside columns of one's own.

    Bands of latitude are of the first judged field. Beside skill stand the other fields, the
    energy budget, and how plausible the parameters are.
    """
    environment = run.configuration.make_environment()
    fixed = Skill.mean(run.static.skill(environment))
    errors = run.static.errors(environment)
    columns = {"static": [_figure(v) for v in (*fixed.bands, fixed.globe)]}
    budget = {"static": {name: float(values.mean()) for name, values in errors.items()}}
    physics = {"static": Physics.mean(run.static.physics(environment)).as_dict()}
    lines = []
    for policy in POLICIES:
        found = run.summary(policy)
        single = len(found["per_seed"]) == 1
        pairs = zip(
            (*found["bands_mean"], found["global_mean"]),
            (*found["bands_std"], found["global_std"]),
            strict=True,
        )
        columns[policy] = [
            _figure(m, 2) if single or not np.isfinite(m) else f"{m:.2f} ± {s:.2f}"
            for m, s in pairs
        ]
        budget[policy], physics[policy] = found["fields"], found["physics"]
        if (share := found["share_of_limit"]) is not None:
            lines.append(
                f"return of the {policy} policy: {100 * share:.0f} % of the way from the static "
                "model to optimal control"
            )
    columns |= beside or {}
    unit = unit_text(environment.judged_fields[0].difference_unit)
    bands = [[b, *(c[i] for c in columns.values())] for i, b in enumerate((*BAND_NAMES, "global"))]
    shown = [row for row in bands if any(cell != GAP for cell in row[1:])]
    parts = [Table("", [f"areaWRMSE ({unit})", *columns], shown).text()]
    parts.append(physics_table(environment, budget, physics))
    note = run.climate_note or unknown_limit(environment)
    if note is not None:
        lines.append(note)
    return "\n".join([*parts, *lines])


def physics_table(
    environment: Environment,
    errors: Mapping[str, Mapping[str, float]],
    physics: Mapping[str, Mapping[str, Any]],
) -> str:
    """What has to be right beside the first judged field, a column for each model.

    Args:
        environment: Where they were played.
        errors: Global error of each field, by model.
        physics: :meth:`fedrain.climate.Physics.as_dict`, by model.
    """
    known = {one.name: one for one in (*environment.model.fields, *FLUXES)}
    first, *others = next(iter(errors.values()))
    del first  # stands above, by bands
    rows = []
    for name in others:
        title = f"{known[name].title} ({unit_text(known[name].difference_unit)})"
        rows.append([title, *(_figure(one[name], 2) for one in errors.values())])
    for key, title, digits in PHYSICS_ROWS:
        values = [one[key] for one in physics.values()]
        if any(value is not None for value in values):
            rows.append([title, *(GAP if v is None else _figure(v, digits) for v in values)])
    return Table("", ["global error, and physics", *errors], rows).text()


def _figure(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else GAP


def write_figures(run: Run) -> list[Path]:
    """Draw all figures of a run into its folder."""
    environment = run.configuration.make_environment()
    figures = {"returns": returns_figure(run), "parameters": parameters_figure(run)}
    has_map = len(environment.model.columns.shape) == 2
    for i, (name, _) in enumerate(environment.judged):
        suffix = f"-{name}" if i else ""
        figures[f"profile{suffix}"] = profile_figure(run, name)
        if has_map:
            figures[f"map{suffix}"] = map_figure(run, name)
    paths = []
    for name, figure in figures.items():
        paths.append(run.folder / f"{name}.png")
        save_figure(figure, paths[-1])
    return paths


def _days_per_step(environment: Environment) -> float | None:
    days = getattr(environment.model, "days_per_step", None)
    return None if days is None else float(days)


def returns_figure(run: Run) -> Figure:
    """Minus the return of every region over the run, with its confidence interval."""
    data = run.returns.returns.transpose("agent", "seed", "episode").values
    environment = run.configuration.make_environment()
    figure = new_figure(7.0, 4.2)
    axes = figure.subplots()
    steps = run.returns.step.values
    named = len(data) <= len(REGIONS)
    finite = data[np.isfinite(data)]
    logarithmic = bool(finite.size and (finite < 0).all())
    if named:
        for agent, values in enumerate(data):
            label = environment.division.name(environment.regions[agent])
            draw_seeds(axes, REGIONS[agent], steps, -values, label, logarithmic=logarithmic)
    else:  # too many to distinguish
        draw_seeds(axes, "model", steps, -data.mean(0), "", logarithmic=logarithmic)
    if logarithmic:
        axes.set_yscale("log")
    axes.invert_yaxis()
    days = _days_per_step(environment)
    if days is None:
        axes.set_xlim(0, steps[-1])
        axes.set_xlabel("Environment steps")
        light_grid(axes)
    else:
        step_axis(axes, steps[-1], days)
    unit = unit_text(run.results.returns.attrs.get("units", "K2"))
    axes.set_ylabel(f"− return of an episode{'' if unit == '1' else f' ({unit})'}; better is up")
    many = "" if named else f", mean of {len(data)} regions"
    axes.set_title(
        f"{run.configuration.name}: {seeds_label(data.shape[1])}{many}", fontsize="medium"
    )
    if named:
        axes.legend(frameon=False, ncols=2, fontsize="small")
    return figure


def _judged(run: Run, name: str | None) -> Field:
    environment = run.configuration.make_environment()
    for field in environment.judged_fields:
        if name in (None, field.name):
            return field
    known = ", ".join(one for one, _ in environment.judged)
    raise InputError(f"the run has no judged field {name!r}: use one of {known}")


def profile_figure(run: Run, field: str | None = None) -> Figure:
    """Zonal mean of a judged field at six times, against static model and target."""
    environment = run.configuration.make_environment()
    shown = _judged(run, field)
    learnt = read_columns(environment, run.results, shown.name, "local")
    mean, half = interval(learnt)
    figure = new_figure(9.0, 5.4)
    draw_evolution(figure, environment, mean, half, shown, _static_of(run, shown))
    return figure


def draw_evolution(
    figure: Figure,
    environment: Environment,
    mean: Float[np.ndarray, "step column"],
    half: Float[np.ndarray, "step column"] | None = None,
    field: Field | None = None,
    fixed: Float[np.ndarray, "step column"] | None = None,
) -> None:
    """A field at six times of an episode, with its interval, against static model and target.

    ``fixed`` is the static model's; that of the first episode, if it is left out.
    """
    field = environment.judged_fields[0] if field is None else field
    columns = environment.model.columns
    fixed = static_trajectory(environment, field.name) if fixed is None else fixed
    target = np.asarray(environment.params.target[field.name], float)
    target = target.reshape(len(columns), -1).mean(1)
    figure.set(figwidth=9.0, figheight=5.4)
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    length, days = environment.episode_length, _days_per_step(environment)
    times = [t for t in TIMES if t <= length]
    if len(times) < len(TIMES):
        times = sorted({max(1, round(share * length)) for share in np.linspace(0, 1, 6)})
    for axes, time in zip(panels.flat, times, strict=False):
        for key, values in (
            ("target", target),
            ("static", fixed[time - 1]),
            ("model", mean[time - 1]),
        ):
            draw(axes, key, *columns.zonal_mean(values))
        if half is not None:
            low, high = mean[time - 1] - half[time - 1], mean[time - 1] + half[time - 1]
            latitudes, low = columns.zonal_mean(low)
            band(axes, "model", latitudes, low, columns.zonal_mean(high)[1])
        after = "" if days is None else f" ({duration(time * days)})"
        axes.set_title(f"step {time}{after}")
        latitude_axis(axes, 45)
    for axes in panels.flat[len(times) :]:
        axes.set_visible(False)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=3, loc="outside lower center")
    for axes in panels[-1]:  # a label of the figure would lie on the legend
        axes.set_xlabel("Latitude")
    zonal = "" if columns.is_zonal else ", zonal mean"
    figure.supylabel(f"{field.title.capitalize()}{zonal} ({unit_text(field.unit)})")


def static_trajectory(
    environment: Environment, field: str | None = None
) -> Float[np.ndarray, "step column"]:
    """A field of the static model after every step of an episode; levels are averaged."""
    name = environment.judged[0][0] if field is None else field
    values = static(environment).fields[name]
    return values.reshape(*values.shape[:2], -1).mean(-1)


def _static_of(run: Run, field: Field) -> Float[np.ndarray, "step column"]:
    """A field of the static model, mean over the episodes of the seeds and over the levels."""
    values = np.asarray(run.static.fields[field.name], float).mean(0)
    return values.reshape(*values.shape[:2], -1).mean(-1)


def map_figure(run: Run, field: str | None = None) -> Figure:
    """The error of a field after the last step, of static model and agents."""
    environment = run.configuration.make_environment()
    columns, shown = environment.model.columns, _judged(run, field)
    if columns.longitude is None or len(columns.shape) != 2:
        raise InputError(
            "there is no map: the columns are not complete rows of a latitude–longitude grid"
        )
    target = np.asarray(environment.params.target[shown.name], float)
    target = target.reshape(len(columns), -1).mean(1)
    learnt, _ = interval(read_columns(environment, run.results, shown.name, "local")[:, -1])
    errors = {
        "static model": _static_of(run, shown)[-1] - target,
        "model with agents": learnt - target,
    }
    largest = max(float(np.nanmax(np.abs(error))) for error in errors.values()) or 1.0
    figure = new_figure(9.0, 3.4)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (title, error) in zip(panels, errors.items(), strict=True):
        mesh = draw_map(
            axes, columns.latitude, columns.longitude, error,
            limits=(-largest, largest), errors=True,
        )  # fmt: skip
        axes.set_title(title)
    label = f"error of the {shown.title} ({unit_text(shown.difference_unit)})"
    figure.colorbar(mesh, ax=panels, label=label, shrink=0.8, location="bottom")
    return figure


def parameters_figure(run: Run) -> Figure:
    """What was learnt: profiles after the last step, and single numbers over the episode."""
    environment = run.configuration.make_environment()
    rows, days = list(environment.learnt), _days_per_step(environment)
    figure = new_figure(7.0, 2.4 * len(rows) + 0.6)
    panels = np.atleast_1d(figure.subplots(len(rows), 1))
    for axes, row in zip(panels, rows, strict=True):
        if row.by_column:
            _draw_profile(axes, run, row)
        else:
            values = run.results[row.symbol].sel(policy="local").values
            steps = run.results.step.values
            draw_seeds(axes, "model", steps, values, "learnt", (row.low, row.high))
            level(axes, "static", float(row.static(1)), "static value")
            axes.set_xlim(steps[0], max(steps[-1], steps[0] + 1))
            each = "" if days is None else f" ({duration(days)} each)"
            axes.set_xlabel(f"Step of the episode{each}")
            light_grid(axes)
        for bound in (row.low, row.high):
            threshold(axes, bound)
        axes.set_ylabel(row.symbol + ("" if row.unit == "1" else f" ({unit_text(row.unit)})"))
    panels[0].legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    seeds = seeds_label(len(run.configuration.seeds))
    figure.supxlabel(f"Dotted: bounds of the parameter; {seeds}", fontsize="small")
    return figure


def _draw_profile(axes: object, run: Run, row: Parameter) -> None:
    """A parameter of each column after the last step, zonal and vertical mean."""
    environment = run.configuration.make_environment()
    columns = environment.model.columns
    values = read_columns(environment, run.results, row.symbol, "local")[:, -1]
    zonal = [columns.zonal_mean(one) for one in values]
    latitudes, means = zonal[0][0], np.stack([mean for _, mean in zonal])
    bounds = (row.low, row.high)
    draw_seeds(axes, "model", latitudes, means, "learnt, last step", bounds)  # type: ignore[arg-type]
    fixed = row.static(len(columns)).reshape(len(columns), -1).mean(1)
    draw(axes, "static", *columns.zonal_mean(fixed), "static value")  # type: ignore[arg-type]
    latitude_axis(axes)  # type: ignore[arg-type]
    axes.set_xlabel("Latitude")  # type: ignore[attr-defined]
