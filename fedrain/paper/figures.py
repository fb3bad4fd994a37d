"""Every figure of the benchmark, from the stored results, as PNG and PDF."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedrain.climate import BAND_NAMES, EnergyBalanceModel
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
from fedrain.paper.results import Result, Results, reproduction, static_skill
from fedrain.plotting import (
    INTERVAL,
    WHITE,
    band,
    draw,
    interval,
    light_grid,
    new_figure,
    save_figure,
    step_label,
    style,
)

BARS = (*SCHEMES, "ebm-v1", "static")
FORMATS = ("png", "pdf")
#: Names in the legends of what is drawn on bars.
SEED, BEST, PUBLISHED = "a seed", "best seed", "published mean"


def make_figures(results: Results, out: Path) -> list[Path]:
    """Draw every figure that the results allow.

    Args:
        results: What :func:`load_results` read.
        out: Folder to write to.

    Returns:
        The files: PNG and PDF. The same results give the same bytes on one machine.
    """
    drawn: dict[str, Figure | None] = {"returns": returns_figure(results)}
    for env, agents in DECOMPOSITIONS:
        for algo in PRESETS:
            drawn[f"skill-{env}-a{agents}-{algo}"] = skill_figure(results, env, agents, algo)
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
        for suffix in FORMATS:
            paths.append(out / f"{name}.{suffix}")
            save_figure(figure, paths[-1])
    return paths


def returns_figure(results: Results) -> Figure:
    """Learning curves of the three algorithms in the three environments, on a log scale."""
    figure = new_figure(10.0, 3.6)
    panels = figure.subplots(1, 3, sharey=True)
    losses = []
    for axes, (env, agents, scheme) in zip(
        panels,
        (("ebm-v1", 1, "nofed"), ("ebm-v2", 6, "fed05"), ("ebm-v3", 6, "fed05")),
        strict=True,
    ):
        for algo in PRESETS:
            result = reproduction(results, Cell(env, agents, scheme, algo, "paper"))
            if result is not None:
                loss, half = interval(-result.learning)
                losses.append(loss)
                steps = 1e-3 * EPISODE_STEPS * np.arange(1, len(loss) + 1)
                draw(axes, algo, steps, loss, label="")
                band(axes, algo, steps, loss - half, loss + half)
        axes.set_yscale("log")
        axes.set_xlim(0, 1e-3 * EPISODE_STEPS * EPISODES)
        light_grid(axes)
        axes.set_title(env if env == "ebm-v1" else f"{env}, six agents, {scheme}")
    if losses:  # an interval may reach down to nothing, which a log scale does not
        panels[0].set_ylim(1.5 * np.max(losses), np.min(losses) / 1.5)
    panels[0].set_ylabel("− return of an episode (K²); better is up")
    figure.supxlabel(step_label(EnergyBalanceModel().days_per_step, "thousands"), fontsize="medium")
    for algo in PRESETS:
        draw(panels[0], algo, [], [])
    panels[0].legend(frameon=False, loc="lower right", title=INTERVAL, title_fontsize="small")
    return figure


def skill_figure(results: Results, env: str, agents: int, algo: str) -> Figure | None:
    """Zonal skill of the schemes beside the single agent, the static model and the paper."""
    experiments = {scheme: Cell(env, agents, scheme, algo, "paper") for scheme in SCHEMES}
    shown = {key: reproduction(results, one) for key, one in experiments.items()}
    if not any(shown.values()):
        return None
    shown["ebm-v1"] = reproduction(results, Cell("ebm-v1", 1, "nofed", algo, "paper"))
    figure = new_figure(9.0, 4.4)
    axes = figure.subplots()
    width = 0.86 / len(BARS)
    for i, key in enumerate(BARS):
        at = np.arange(len(BAND_NAMES)) + (i - (len(BARS) - 1) / 2) * width
        if key == "static":
            _bars(axes, key, at, np.array(static_skill().bands), width)
        elif (result := shown[key]) is not None:
            _bars(axes, key, at, result.skill().mean(0), width)
            _details(axes, result, at, width)
    axes.set_xticks(range(len(BAND_NAMES)), BAND_NAMES)
    axes.set_ylabel(f"areaWRMSE (K), {INTERVAL}")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    axes.set_title(f"{style(algo).label} in {env}, {agents} agents, {_presets(shown)}")
    light_grid(axes, "y")
    marks, names = axes.get_legend_handles_labels()
    found = dict(zip(names, marks, strict=True))
    order = sorted(found, key=[SEED, BEST, PUBLISHED].count)  # the bars first
    place: dict[str, Any] = {"loc": "outside upper center", "ncols": len(found)}
    figure.legend([found[n] for n in order], order, frameon=False, fontsize="small", **place)
    return figure


def _presets(shown: dict[str, Result | None]) -> str:
    """Which preset the bars are of, or each of them where they differ."""
    of = {key: result.cell.preset for key, result in shown.items() if result is not None}
    groups = {preset: [key for key in of if of[key] == preset] for preset in REPRODUCTIONS}
    told = [f"{preset} ({', '.join(keys)})" for preset, keys in groups.items() if keys]
    return f"preset {told[0].partition(' ')[0] if len(told) == 1 else ' and '.join(told)}"


def _bars(
    axes: Axes,
    key: str,
    at: Float[np.ndarray, " band"],
    means: Float[np.ndarray, " band"],
    width: float,
) -> None:
    look = style(key)
    axes.bar(
        at,
        means,
        width,
        label=look.label,
        color=look.colour,
        hatch=look.hatch,
        edgecolor=WHITE,
        linewidth=0.5,
    )


def _details(axes: Axes, result: Result, at: Float[np.ndarray, " band"], width: float) -> None:
    """Every seed, the best one, the interval of the mean, and the published mean."""
    ink = style("target").colour
    skill = result.skill()
    means, half = interval(skill)
    seeds = np.broadcast_to(at - 0.3 * width, skill.shape)
    outlined: dict[str, Any] = {"linestyle": "", "markeredgecolor": WHITE}
    axes.plot(
        seeds.ravel(), skill.ravel(), "o", color=ink, markersize=2.6, markeredgewidth=0.4,
        label=SEED, **outlined,
    )  # fmt: skip
    axes.errorbar(at, means, half, fmt="none", ecolor=ink, capsize=1.5, elinewidth=1.0)
    best = skill[result.best_seed]
    axes.plot(at - 0.3 * width, best, "x", color=WHITE, markersize=5, markeredgewidth=2.4)
    axes.plot(
        at - 0.3 * width, best, "x", color=ink, markersize=4.4, markeredgewidth=1.1, label=BEST
    )
    if (published := published_bands(result.cell)) is not None:
        look = style("published")
        axes.plot(
            at + 0.3 * width, [p.mean for p in published], look.marker, color=look.colour,
            markersize=4.4, markeredgewidth=0.7, label=PUBLISHED,
            linestyle="", markeredgecolor=ink,
        )  # fmt: skip


def evolution_figure(result: Result) -> Figure:
    """The profile at six times of an episode, against the static model and the target."""
    figure = new_figure()
    environment = result.cell.configuration().make_environment()
    draw_evolution(figure, environment, result.data.episode_surface_temperature.values)
    figure.suptitle(f"{result.cell.name}, mean profile of the seeds")
    return figure
