"""Every figure of the benchmark, from the stored results, as PNG, PDF and SVG."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedrain.climate import BAND_NAMES, EnergyBalanceModel, Skill
from fedrain.experiment.report import draw_evolution
from fedrain.paper.matrix import (
    DECOMPOSITIONS,
    EPISODE_STEPS,
    EPISODES,
    PRESETS,
    REPRODUCTIONS,
    SCHEMES,
    Cell,
)
from fedrain.paper.published import published_bands
from fedrain.paper.results import (
    Result,
    Results,
    optimal_skill,
    reference_of,
    reproduction,
    static_skill,
)
from fedrain.plotting import (
    BLACK,
    GRID,
    INTERVAL,
    Style,
    band,
    draw,
    duration,
    interval,
    level,
    light_grid,
    new_figure,
    save_figure,
    save_for_pages,
    style,
)

ERROR_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)  # K
LAST = 10  # episodes, whose mean is where a seed ends
#: Name in the legend of what is drawn beside means.
PUBLISHED = "published mean"


def make_figures(results: Results, out: Path, folder: str | Path | None = None) -> list[Path]:
    """Draw every figure that the results allow.

    Args:
        results: What :func:`load_results` read.
        out: Folder to write to.
        folder: Where results were read from. Optimal control is read from there too, and left out
            of the figures where it is missing.

    Returns:
        The files: PNG, PDF, and SVG for light and for dark pages. The same results give the same
        bytes on one machine.
    """
    drawn: dict[str, Figure | None] = {"returns": returns_figure(results)}
    optimal = {} if folder is None else optimal_skill(folder)
    for algo in PRESETS:
        drawn[f"skill-{algo}"] = skill_figure(results, algo, optimal)
    for one in (
        Cell("ebm-v1", 1, "nofed", "ddpg", "paper"),
        Cell("ebm-v3", 6, "fed05", "ddpg", "paper"),
    ):
        if (result := reproduction(results, one)) is not None:
            drawn[f"evolution-{result.cell.name}"] = evolution_figure(result)
    paths = []
    for name, figure in drawn.items():
        if figure is None:
            continue
        paths += save_for_pages(figure, out / f"{name}.png")
        paths.append(out / f"{name}.pdf")
        save_figure(figure, paths[-1])
    return paths


def returns_figure(results: Results) -> Figure:
    """Learning curves of the three algorithms in the three environments, on a log scale."""
    figure = new_figure(10.0, 4.0)
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    days = EnergyBalanceModel().days_per_step
    end = 1e-3 * days * EPISODE_STEPS * EPISODES
    losses = []
    for axes, (env, agents, scheme) in zip(
        panels,
        (("ebm-v1", 1, "nofed"), ("ebm-v2", 6, "fed05"), ("ebm-v3", 6, "fed05")),
        strict=True,
    ):
        shown = {}
        for i, algo in enumerate(PRESETS):
            result = reproduction(results, Cell(env, agents, scheme, algo, "paper"))
            shown[algo] = result
            if result is not None:
                loss, half = interval(-result.learning)
                losses.append(loss)
                x = np.linspace(0, end, len(loss) + 1)[1:]
                draw(axes, algo, x, loss, label="")
                band(axes, algo, x, loss - half, loss + half)
                ends = -result.learning[:, -LAST:].mean(1)
                _dots(axes, style(algo), (1.03 + 0.035 * i) * end, ends)
                losses.append(ends)
        if (last := next((one for one in shown.values() if one is not None), None)) is not None:
            for key, value in zip(("static", "limit"), last.ends, strict=True):
                level(axes, key, -value, "")
                losses.append(np.array([-value]))
        axes.set_yscale("log")
        axes.set_xlim(0, 1.13 * end)
        light_grid(axes)
        name = env if env == "ebm-v1" else f"{env}, six agents, {scheme}"
        axes.set_title(f"{name}\n{_presets(shown)}", fontsize="small")
    if losses:  # an interval may reach down to nothing, which a log scale does not
        low, high = (extreme([extreme(one) for one in losses]) for extreme in (np.min, np.max))
        panels[0].set_ylim(1.2 * high, low / 1.2)
    panels[0].set_ylabel("− return of an episode (K²); better is up")
    told = f"Simulated time (thousands of days; a step is {duration(days)})"
    figure.supxlabel(told, fontsize="medium")
    for key in (*PRESETS, "static", "limit"):
        draw(panels[0], key, [], [])
    figure.legend(frameon=False, loc="outside upper center", ncols=5)
    return figure


def error_limits(results: Results) -> tuple[float, float]:
    """Of the axis that all figures of zonal skill have in common, in K."""
    shown = [result.skill() for cell, result in results.items() if cell.preset in REPRODUCTIONS]
    low, high = (extreme([extreme(one) for one in shown]) for extreme in (np.min, np.max))
    return float(low) / 1.3, float(high) * 1.15


def skill_figure(
    results: Results,
    algo: str,
    optimal: Mapping[str, Skill] | None = None,
    limits: tuple[float, float] | None = None,
) -> Figure | None:
    """Zonal skill of the schemes beside the single agent, the static model and the paper.

    Args:
        results: What :func:`load_results` read.
        algo: Whose; a panel for each environment and number of agents.
        optimal: Skill of optimal control, by the names of :data:`REFERENCES`.
        limits: Of the axis of errors; by default those of all results.

    Returns:
        None where no panel has a result.
    """
    groups = {where: _schemes(results, *where, algo) for where in DECOMPOSITIONS}
    if not any(any(shown.values()) for shown in groups.values()):
        return None
    single = reproduction(results, Cell("ebm-v1", 1, "nofed", algo, "paper"))
    figure = new_figure(10.0, 7.0)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    bands = np.arange(len(BAND_NAMES))
    for axes, ((env, agents), found) in zip(panels.flat, groups.items(), strict=True):
        shown = found | {"ebm-v1": single}
        axes.set_yscale("log")
        low, high = limits or error_limits(results)
        axes.set_ylim(low, high)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_yticks([tick for tick in ERROR_TICKS if low < tick < high])
        axes.minorticks_off()
        for i, (key, result) in enumerate(shown.items()):
            if result is not None:
                at = bands + (i - (len(shown) - 1) / 2) * 0.86 / len(shown)
                _column(axes, style(key), result, at, 0.86 / len(shown))
        _stairs(axes, "static", static_skill())
        some = next((result for result in found.values() if result is not None), None)
        if some is not None and (best := (optimal or {}).get(reference_of(some.cell))) is not None:
            _stairs(axes, "limit", best)
        axes.set_title(f"{env}, {agents} agents, {_presets(shown)}", fontsize="medium")
        axes.set_xlim(-0.5, len(bands) - 0.5)
        axes.set_xticks(bands, BAND_NAMES, fontsize="small")
        light_grid(axes, "y")
        for edge in bands[1:]:
            axes.axvline(edge - 0.5, color=GRID, linewidth=0.6)
    figure.suptitle(f"{style(algo).label}: areaWRMSE (K), {INTERVAL}")
    entries: dict[str, Any] = {}
    for axes in panels.flat:
        marks, names = axes.get_legend_handles_labels()
        entries |= dict(zip(names, marks, strict=True))
    order = sorted(entries, key=PUBLISHED.__eq__)  # ours first
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": len(order)}
    marks = [entries[name] for name in order]
    figure.legend(marks, order, frameon=False, fontsize="small", columnspacing=1.2, **place)
    return figure


def _schemes(results: Results, env: str, agents: int, algo: str) -> dict[str, Result | None]:
    return {s: reproduction(results, Cell(env, agents, s, algo, "paper")) for s in SCHEMES}


def _presets(shown: Mapping[str, Result | None]) -> str:
    """Which preset is shown, or which is of what where they differ."""
    of = {key: result.cell.preset for key, result in shown.items() if result is not None}
    groups = {preset: [key for key in of if of[key] == preset] for preset in REPRODUCTIONS}
    told = [f"{preset} ({', '.join(keys)})" for preset, keys in groups.items() if keys]
    if not told:
        return "not run yet"
    return f"preset {told[0].partition(' ')[0] if len(told) == 1 else ' and '.join(told)}"


def _column(
    axes: Axes, look: Style, result: Result, at: Float[np.ndarray, " band"], width: float
) -> None:
    """Every seed, their mean with its interval, and the published mean."""
    skill = result.skill()
    means, half = interval(skill)
    _dots(axes, look, (at - 0.25 * width)[None, :], skill)
    low = np.clip(means - half, 1e-3, None)  # below any axis of errors
    axes.vlines(at, low, means + half, color=look.colour, linewidth=1.1)
    axes.plot(
        at, means, look.marker, color=look.colour, markersize=4.6, linestyle="",
        markeredgecolor=BLACK, markeredgewidth=0.6, label=look.label,
    )  # fmt: skip
    if (published := published_bands(result.cell)) is not None:
        paper = style("published")
        axes.plot(
            at + 0.27 * width, [p.mean for p in published], paper.marker, color=paper.colour,
            markersize=3.6, markeredgewidth=0.5, label=PUBLISHED,
            linestyle="", markeredgecolor=BLACK,
        )  # fmt: skip


def _dots(axes: Axes, look: Style, at: Any, values: Float[np.ndarray, "..."]) -> None:
    """A dot for each seed."""
    axes.plot(
        np.broadcast_to(at, values.shape).ravel(), values.ravel(), "o", color=look.colour,
        markersize=2.2, alpha=0.65, markeredgewidth=0, linestyle="", label="_seeds",
    )  # fmt: skip


def _stairs(axes: Axes, key: str, skill: Skill) -> None:
    """One number for each band, as a line across it; an arrow where it is below the axis."""
    look, lowest = style(key), axes.get_ylim()[0]
    edges = np.arange(len(skill.bands)) - 0.5
    for i, (left, value) in enumerate(zip(edges, skill.bands, strict=True)):
        if value < lowest:
            axes.plot(left + 0.5, 1.12 * lowest, "v", color=look.colour, markersize=5, label="")
        axes.plot(
            [left + 0.04, left + 0.96], [value, value], linestyle=look.line, color=look.colour,
            linewidth=1.2, label="" if i else look.label,
        )  # fmt: skip


def evolution_figure(result: Result) -> Figure:
    """The profile at six times of an episode, against the static model and the target."""
    figure = new_figure()
    environment = result.cell.configuration().make_environment()
    draw_evolution(figure, environment, result.data.episode_surface_temperature.values)
    figure.suptitle(f"{result.cell.name}, mean profile of the seeds")
    return figure
