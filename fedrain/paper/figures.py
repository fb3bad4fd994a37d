"""Every figure of the benchmark, from the stored results, as PNG and PDF.

Colours are from the Okabe–Ito palette; algorithms and schemes also differ in line style or
hatching, for print.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedrain.climate import BAND_NAMES
from fedrain.experiment.report import draw_evolution, spread
from fedrain.paper.matrix import SCHEMES, Cell
from fedrain.paper.results import Result, Results, static_skill
from fedrain.plotting import save_figure

ALGORITHMS = {
    "tqc": ("#0072B2", "-.", "TQC"),
    "ddpg": ("#D55E00", "-", "DDPG"),
    "td3": ("#009E73", "--", "TD3"),
}
BARS = {
    "fed05": ("#0072B2", ""),
    "fed10": ("#56B4E9", "//"),
    "nofed": ("#E69F00", "\\\\"),
    "ebm-v1": ("#CC79A7", ".."),
    "static": ("0.6", ""),
}
FORMATS = ("png", "pdf")


def make_figures(results: Results, out: Path) -> list[Path]:
    """Draw all that the results allow."""
    drawn: dict[str, Figure | None] = {"returns": returns_figure(results)}
    for env in ("ebm-v2", "ebm-v3"):
        for agents in (2, 6):
            for algo in ALGORITHMS:
                name = f"skill-{env}-a{agents}-{algo}"
                drawn[name] = skill_figure(results, env, agents, algo)
    for cell in (
        Cell("ebm-v1", 1, "nofed", "ddpg", "paper"),
        Cell("ebm-v3", 6, "fed05", "ddpg", "paper"),
    ):
        drawn[f"evolution-{cell.name}"] = evolution_figure(results, cell)
    paths = []
    for name, figure in drawn.items():
        if figure is None:
            continue
        for suffix in FORMATS:
            paths.append(out / f"{name}.{suffix}")
            save_figure(figure, paths[-1])
    return paths


def returns_figure(results: Results) -> Figure:
    """Return curves of the three algorithms in the three environments, on a log scale."""
    figure = Figure(figsize=(10.0, 3.6), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, (env, agents, scheme) in zip(
        panels,
        (("ebm-v1", 1, "nofed"), ("ebm-v2", 6, "fed05"), ("ebm-v3", 6, "fed05")),
        strict=True,
    ):
        for algo, (colour, style, _) in ALGORITHMS.items():
            result = results.get(Cell(env, agents, scheme, algo, "paper"))
            if result is not None:
                _curve(axes, result, colour, style)
        axes.set_yscale("log")
        axes.set_xlim(0, 20)
        axes.set_xlabel("Environment steps (thousands)")
        axes.set_title(env if env == "ebm-v1" else f"{env}, six agents, {scheme}")
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
    panels[0].invert_yaxis()
    panels[0].set_ylabel("− return of an episode (K²); better is up")
    for colour, style, label in ALGORITHMS.values():
        panels[0].plot([], [], color=colour, linestyle=style, label=label)
    panels[0].legend(frameon=False, loc="lower right")
    return figure


def _curve(axes: Axes, result: Result, colour: str, style: str) -> None:
    loss = -result.learning
    steps = 0.2 * np.arange(1, loss.shape[1] + 1)
    mean, half = spread(loss)
    axes.plot(steps, mean, color=colour, linestyle=style, linewidth=1.4)
    axes.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)


def skill_figure(results: Results, env: str, agents: int, algo: str) -> Figure | None:
    """Zonal skill of the schemes beside the single agent and the static model."""
    found = {scheme: results.get(Cell(env, agents, scheme, algo, "paper")) for scheme in SCHEMES}
    found["ebm-v1"] = results.get(Cell("ebm-v1", 1, "nofed", algo, "paper"))
    if not any(found[scheme] for scheme in SCHEMES):
        return None
    figure = Figure(figsize=(8.0, 4.0), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(BAND_NAMES))
    width = 0.8 / len(BARS)
    for i, (name, (colour, hatch)) in enumerate(BARS.items()):
        at = places + (i - (len(BARS) - 1) / 2) * width
        look: dict[str, Any] = {
            "color": colour,
            "hatch": hatch,
            "edgecolor": "white",
            "linewidth": 0.5,
        }
        if name == "static":
            axes.bar(at, static_skill().bands, width, label="static model", **look)
        elif (result := found[name]) is not None:
            means, half = spread(result.skill())
            error: dict[str, Any] = {
                "ecolor": "black",
                "capsize": 1.5,
                "error_kw": {"linewidth": 0.8},
            }
            axes.bar(at, means, width, yerr=half, label=name, **look, **error)
            best = result.skill()[result.best_seed]
            axes.plot(at, best, "x", color="black", markersize=4, markeredgewidth=2.2)
            axes.plot(at, best, "x", color="white", markersize=4, markeredgewidth=1.0)
    (cross,) = axes.plot([], [], "x", color="black", markersize=4, linestyle="", label="best seed")
    axes.set_xticks(places, BAND_NAMES)
    axes.set_ylabel("areaWRMSE (K), mean and 95 % spread")
    axes.set_ylim(bottom=0)
    axes.set_title(f"{ALGORITHMS[algo][2]} in {env}, {agents} agents")
    axes.grid(axis="y", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    bars = [handle for handle in axes.get_legend_handles_labels()[0] if handle is not cross]
    place: dict[str, Any] = {"loc": "outside upper center", "ncols": len(bars) + 1}
    figure.legend(handles=[*bars, cross], frameon=False, fontsize="small", **place)
    return figure


def evolution_figure(results: Results, cell: Cell) -> Figure | None:
    """The profile at six times of an episode, against the static model and the target."""
    if (result := results.get(cell)) is None:
        return None
    figure = Figure(layout="constrained")
    environment = cell.configuration().make_environment()
    draw_evolution(figure, environment, result.data.episode_surface_temperature.values)
    figure.suptitle(f"{cell.name}, mean profile of the seeds")
    return figure
