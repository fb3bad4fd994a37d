"""The figure of the study ``federation``: gain against data, a panel for each agent."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from iqm import interval
from matplotlib.figure import Figure

from fedrain.plotting import (
    MODELS,
    REGIONS,
    SCHEMES,
    Style,
    band,
    draw,
    latitude_label,
    light_grid,
    new_figure,
    zero_line,
)

LOOKS: dict[str, Style] = {
    "once": MODELS["static"],
    "every1": SCHEMES["ebm-v1"],
    "every5": SCHEMES["fed05"],
    "every10": SCHEMES["fed10"],
    "personal": REGIONS[2],
    "zones": REGIONS[0],
    "neighbours": SCHEMES["nofed"],
    "critics": MODELS["truth"],
    "shared": SCHEMES["shared"],
}
ACROSS = 4


def gain_figure(
    gains: dict[tuple[str, int], np.ndarray],
    titles: dict[str, str],
    data: Sequence[int],
    members: Sequence[int],
    agents: int,
) -> Figure:
    """By how much each agent's error in its own climate is below that of agents on their own.

    Args:
        gains: ``[seed, member]`` in K, by scheme and episodes of data.
        titles: Of each scheme.
        data: Episodes.
        members: The place of each member, from south to north.
        agents: How many places there are.
    """
    figure = new_figure(11.0, 7.5)
    rows = -(-len(members) // ACROSS)
    panels: Any = figure.subplots(rows, ACROSS, sharex=True, sharey=True).ravel()
    edges = np.linspace(-90, 90, agents + 1)
    for axes, (i, place) in zip(panels, enumerate(members), strict=False):
        for scheme, look in LOOKS.items():
            there = [episodes for episodes in data if (scheme, episodes) in gains]
            if not there:
                continue
            found = [interval(gains[scheme, episodes][:, [i]]) for episodes in there]
            mean, low, high = np.array(found).T
            label = titles[scheme] if i == 0 else ""
            draw(axes, look, there, mean, label, marker=look.marker, markersize=4)
            band(axes, look, there, low, high)
        zero_line(axes)
        axes.set_xscale("log")
        axes.set_xticks(data, [str(episodes) for episodes in data])
        axes.minorticks_off()
        light_grid(axes)
        ends = (latitude_label(edges[place + side]) for side in (0, 1))
        axes.set_title("–".join(ends), fontsize="medium")
    for axes in panels[len(members) :]:
        axes.set_visible(False)
    figure.supxlabel("Episodes of data of each agent", fontsize="medium")
    figure.supylabel("Lower error than never averaged (K); above 0 federation helps")
    figure.legend(loc="outside upper center", frameon=False, ncols=3, fontsize="small")
    return figure
