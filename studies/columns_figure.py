"""The figure of the study ``columns``: skill and cost against the number of agents."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedrain.baselines import static
from fedrain.envs import make

LIMIT = Path(__file__).parent.parent / "results" / "paper" / "limit-shared.nc"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
MARKS = ("o", "s", "^", "D")
LABELS = {"never": "not averaged", "5": "averaged every 5 episodes",
          "10": "averaged every 10 episodes", "shared": "one shared policy"}  # fmt: skip


def columns_figure(
    results: dict[str, dict[str, Any]], agents: tuple[int, ...], schemes: tuple[str, ...]
) -> Figure:
    """Global skill and core-seconds a seed, a line for each meaning of federation."""
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    skill, cost = figure.subplots(1, 2)
    for scheme, colour, mark in zip(schemes, COLOURS, MARKS, strict=True):
        found = {n: results[f"a{n}-{scheme}"] for n in agents if f"a{n}-{scheme}" in results}
        if not found:
            continue
        globe = [np.array(f["global"]) for f in found.values()]
        style = {"color": colour, "marker": mark, "markersize": 4, "label": LABELS[scheme]}
        skill.plot(list(found), [g.mean() for g in globe], **style)
        for n, values in zip(found, globe, strict=True):
            skill.vlines(n, values.min(), values.max(), color=colour, linewidth=1)
        seconds = [f["core_seconds"] / len(f["seeds"]) for f in found.values()]
        cost.plot(list(found), seconds, **style)
    _references(skill)
    skill.set_ylabel("areaWRMSE of the globe (K)")
    cost.set_ylabel("processor time a seed (s)")
    for axes in (skill, cost):
        axes.set_xscale("log", base=2)
        axes.set_xticks(agents, [str(n) for n in agents])
        axes.set_xlabel("agents (latitude bands)")
        axes.spines[["top", "right"]].set_visible(False)
    cost.set_yscale("log")
    seconds = [10, 20, 50, 100, 200, 500, 1000]
    cost.set_yticks(seconds, [str(s) for s in seconds], minor=False)
    cost.set_ylim(8, 2 * cost.get_ylim()[1])  # room for the legend
    for axes in (skill, cost):
        axes.minorticks_off()
    cost.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _references(axes: Axes) -> None:
    limit = xr.load_dataset(LIMIT).attrs["areawrmse_global"]
    axes.axhline(limit, color="0.4", linewidth=0.8, linestyle="--")
    style = {"textcoords": "offset points", "fontsize": 8, "color": "0.3"}
    axes.annotate("optimal control", (1, limit), xytext=(0, -10), **style)
    static_model = f"static model: {static(make('ebm-v1')).skill.globe:.1f} K (off the scale)"
    axes.annotate(
        static_model, (1, 1), xycoords="axes fraction", xytext=(-4, -8), ha="right", **style
    )
    axes.set_ylim(bottom=1.3)
