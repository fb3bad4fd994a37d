"""The figure that heads README and documentation: four tasks, and how far each way gets in them.

    python studies/headline.py

From stored results alone: the paper's benchmark and the studies of each task. A dot is a seed.
"""

from pathlib import Path

import energy
import gcm_tables
import numpy as np
import xarray as xr
from cells import stored
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from near_the_limit import published_global
from parameterisation_figure import warmings

from fedrain.baselines import proportional, static
from fedrain.envs import make
from fedrain.plotting import BLACK, WHITE, Style, light_grid, new_figure, save_for_pages, style

ROOT = Path(__file__).parent.parent
IMAGE = ROOT / "docs" / "images" / "headline.png"
NARROW = IMAGE.with_name("headline-narrow.png")  # for phones
LIMIT = ROOT / "results" / "paper" / "limit-shared.nc"

#: What is shown of a way: its style, its name, and the number of each seed.
Row = tuple[Style, str, list[float]]


def paper_rows() -> list[Row]:
    """Global error in the paper's task, K: the ladder from no learning to optimal control."""
    environment, skill = make("ebm-v3"), stored("skill")
    with xr.open_dataset(LIMIT) as limit:
        best = float(limit.attrs["areawrmse_global"])
    return [
        _row("static", [static(environment).skill.globe]),
        _row("published", [published_global()], "published, mean of ten seeds"),
        _row("proportional", [proportional(environment).skill.globe]),
        _row("model", skill["ebm-v3-a6-fed05-ddpg-fedrain"]["global"], "six federated agents"),
        _row("model", skill["ebm-v3-a24-shared-ddpg-fedrain"]["global"], "one shared policy"),
        _row("limit", [best]),
    ]


def energy_rows() -> list[Row]:
    """Error of the temperature where both fluxes have to be right too, K."""
    found = energy.results()
    names = {"static": "static", "enki": "enki", "agents": "model", "gradient": "constant"}
    labels = {"agents": "one shared policy", "gradient": "constants by gradient"}
    return [
        _row(look, energy.column(found[name], energy.TEMPERATURE).tolist(), labels.get(name))
        for name, look in names.items()
    ]


def twin_rows() -> list[Row]:
    """Warming for a doubling of CO₂ where the ice–albedo feedback is missing from the model, K."""
    found = stored("parameterisation")
    fixed = found["constants"]
    return [
        _row("model", warmings(found["every-0"]).tolist(), "judged by free runs"),
        _row("constant", [fixed["response"]["-3.7"]["warming"]]),
        _row("model", warmings(found["default"]).tolist(), "judged by forecasts"),
        _row("truth", [fixed["truth"]["-3.7"]["warming"]]),
    ]


def gcm_rows() -> list[Row]:
    """Error of a day's forecast in the general circulation model, % of that of the defaults."""
    found = gcm_tables.stored()

    def left(cell: str) -> list[float]:
        return [100 * gcm_tables.relative(found, one["forecast-1"]) for one in found[cell]]

    return [
        _row("static", left("static")),
        _row("enki", left("enki-forecast")),
        _row("model", left("fed05"), "32 federated agents"),
        _row("model", left("shared"), "one shared policy"),
        _row("constant", left("gradient"), "constants by gradient"),
    ]


#: Heading, axis, rows, and whether 0 is where the axis begins.
PANELS = (
    ("The paper’s task: a thermostat is enough", "ebm-v3: error of the globe (K)", paper_rows),
    (
        "A closed energy budget: constants are enough",
        "ebm-energy: error of the temperature (K)",
        energy_rows,
    ),
    (
        "Missing physics: agents learn the response",
        "ebm-twin: warming for a doubling of CO₂ (K)",
        twin_rows,
    ),
    ("A general circulation model, 450 days", "gcm-twin: error of a day’s forecast (%)", gcm_rows),
)


def _row(look: str, values: list[float], label: str | None = None) -> Row:
    return style(look), label or style(look).label, list(values)


def draw_rows(axes: Axes, rows: list[Row], unit: str) -> None:
    """A line for each way, the first on top: every seed, and the mean in words."""
    top = max(max(values) for _, _, values in rows)
    for place, (look, _, values) in enumerate(rows):
        mean = float(np.mean(values))
        axes.hlines(place, 0, mean, color=look.colour, linewidth=1.2, alpha=0.5)
        several = len(values) > 1
        axes.plot(values, [place] * len(values), look.marker, color=look.colour, linestyle="none",
                  markerfacecolor=WHITE if several else look.colour, markersize=5.5)  # fmt: skip
        text = f"{mean:.0f}" if unit == "%" else f"{mean:.2f}"
        axes.annotate(text, (max(values), place), (7, 0), textcoords="offset points",
                      va="center", fontsize="small", color=BLACK)  # fmt: skip
    axes.set_yticks(range(len(rows)), [label for _, label, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.17 * top)
    light_grid(axes, "x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def headline_figure(narrow: bool = False) -> Figure:
    """Four panels, one for each task; below each other, if it is to be narrow."""
    figure = new_figure(4.4, 8.8) if narrow else new_figure(9.6, 5.0)
    figure.get_layout_engine().set(hspace=0.06)  # type: ignore[union-attr]
    panels = figure.subplots(4, 1) if narrow else figure.subplots(2, 2)
    for axes, (title, label, rows) in zip(panels.flat, PANELS, strict=True):
        draw_rows(axes, rows(), "%" if "%" in label else "K")
        axes.set_title(title, x=-0.72, ha="left", fontsize="medium", fontweight="bold")
        axes.set_xlabel(label, loc="right")
    return figure


if __name__ == "__main__":
    save_for_pages(headline_figure(), IMAGE)
    save_for_pages(headline_figure(narrow=True), NARROW)
    print(f"figure: {IMAGE}")
