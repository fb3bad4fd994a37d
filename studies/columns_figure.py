"""The figure of the study ``columns``: skill and cost against the number of agents."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedrain.baselines import static
from fedrain.envs import make
from fedrain.plotting import WHITE, draw, level, light_grid, new_figure, style

LIMIT = Path(__file__).parent.parent / "results" / "paper" / "limit-shared.nc"
#: What the study calls a scheme: its style, and what it does.
SCHEMES = {
    "never": ("nofed", "not averaged"),
    "5": ("fed05", "averaged every 5 episodes"),
    "10": ("fed10", "averaged every 10 episodes"),
    "shared": ("shared", "one shared policy"),
}


def columns_figure(
    results: dict[str, dict[str, Any]], agents: tuple[int, ...], schemes: tuple[str, ...]
) -> Figure:
    """Global skill and processor time of a seed, a line for each meaning of federation."""
    figure = new_figure(8.0, 4.2)
    skill, cost = figure.subplots(1, 2)
    for scheme in schemes:
        found = {n: results[f"a{n}-{scheme}"] for n in agents if f"a{n}-{scheme}" in results}
        if not found:
            continue
        key, label = SCHEMES[scheme]
        # Hollow, so that seeds close to their mean are seen.
        look = {"marker": style(key).marker, "markersize": 7, "markerfacecolor": WHITE}
        globe = [np.array(one["global"]) for one in found.values()]
        draw(skill, key, list(found), [values.mean() for values in globe], label, **look)
        for n, values in zip(found, globe, strict=True):
            dots = {"linestyle": "", "marker": "o", "markersize": 3, "zorder": 3}
            draw(skill, key, [n] * len(values), values, "", **dots)
        seconds = [one["core_seconds"] / len(one["seeds"]) for one in found.values()]
        draw(cost, key, list(found), seconds, label, **look)
    _references(skill)
    skill.set_ylabel("areaWRMSE of the globe (K)")
    cost.set_ylabel("Processor time per seed (s)")
    cost.set_yscale("log")
    low, high = cost.get_ylim()
    ticks = [t for t in (10, 20, 50, 100, 200, 500, 1000) if low / 2 < t < high * 2]
    cost.set_yticks(ticks, [str(t) for t in ticks])
    for axes in (skill, cost):
        axes.set_xscale("log", base=2)
        axes.set_xticks(agents, [str(n) for n in agents])
        axes.set_xlabel("Number of agents (latitude bands)")
        axes.minorticks_off()
        light_grid(axes)
    handles, labels = skill.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize="small",
        title="Mean of the seeds; a dot is one seed", title_fontsize="small",
    )  # fmt: skip
    return figure


def _references(axes: Axes) -> None:
    level(axes, "limit", xr.load_dataset(LIMIT).attrs["areawrmse_global"])
    static_model = f"static model: {static(make('ebm-v1')).skill.globe:.1f} K (off the scale)"
    axes.annotate(
        static_model, (1, 1), xycoords="axes fraction", xytext=(-4, -8), ha="right",
        textcoords="offset points", fontsize="small", color=style("static").colour,
    )  # fmt: skip
    axes.set_ylim(bottom=1.3)
