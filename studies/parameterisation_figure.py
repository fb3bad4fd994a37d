"""The figure of the study of ``ebm-twin``: warming against how the agents are judged."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedrain.envs import make
from fedrain.plotting import ANALYSES, WHITE, Style, draw, level, light_grid, new_figure, zero_line

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "parameterisation.png"
FORCING = "-3.7"


def warmings(result: dict[str, Any], forcing: str = FORCING) -> np.ndarray:
    """Of every seed of a cell."""
    return np.array([one["response"][forcing]["warming"] for one in result["seeds"].values()])


def parameterisation_figure(
    results: dict[str, dict[str, Any]],
    every: tuple[int, ...],
    ends: tuple[int, ...],
    discounts: tuple[float, ...],
) -> Figure:
    """Warming for a doubling of CO₂ against the time between analyses, and the discount."""
    figure = new_figure(8.4, 4.4)
    by_time, by_discount = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    model = make("ebm-twin").model
    days, never = model.days_per_step, 200 * model.days_per_step
    found = {k: results.get(f"every-{k}") for k in every}
    times = [k * days if k else never for k in every if found[k]]
    values = [warmings(one) for one in found.values() if one]
    draw(by_time, "model", times, [one.mean() for one in values])
    for k, time, seeds in zip([k for k in every if found[k]], times, values, strict=True):
        _dots(by_time, ANALYSES.get(k, ANALYSES[None]), time, seeds)
    by_time.set_xscale("log")
    by_time.set_xticks(
        [k * days if k else never for k in every],
        [f"{k * days:.0f}" if k else "never" for k in every],
    )
    by_time.minorticks_off()
    by_time.set_xlabel(f"Time between analyses (days; a step is {days:.3g})")
    by_time.set_ylabel("Warming for a doubling of CO₂ (K)")
    for k in ends:
        names = [f"every-{k}" + (f"-discount-{d:g}" if d else "") for d in discounts]
        held = [(d, warmings(results[n])) for d, n in zip(discounts, names, strict=True)
                if n in results]  # fmt: skip
        look = ANALYSES[k]
        draw(by_discount, look, [d for d, _ in held], [v.mean() for _, v in held], look.label)
        for discount, seeds in held:
            _dots(by_discount, look, discount, seeds)
    by_discount.set_xticks(discounts, [f"{d:g}" for d in discounts])
    by_discount.set_xlim(-0.05, 0.95)
    by_discount.set_xlabel("Discount of a step")
    for axes in (by_time, by_discount):
        constants = results["constants"]
        level(axes, "truth", constants["truth"][FORCING]["warming"])
        level(axes, "constant", constants["response"][FORCING]["warming"], "constant parameters")
        zero_line(axes)
        light_grid(axes)
    handles, labels = by_discount.get_legend_handles_labels()
    legend = figure.legend(
        handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize="small",
        title="Lines join means of the seeds; a dot is one seed", title_fontsize="small",
    )  # fmt: skip
    for handle, k in zip(legend.legend_handles, ends, strict=False):
        handle.set(marker=ANALYSES[k].marker, markerfacecolor=WHITE)
    return figure


def _dots(axes: Axes, look: Style, x: float, values: np.ndarray) -> None:
    dots = {"linestyle": "", "marker": look.marker, "markersize": 5, "zorder": 3}
    draw(axes, look, [x] * len(values), values, "", markerfacecolor=WHITE, **dots)
