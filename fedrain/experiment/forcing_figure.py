"""The picture of a policy in other climates."""

import numpy as np
from matplotlib.figure import Figure

from fedrain.experiment.forcing import Forced

#: Key, label, colour and marker.
SERIES = (
    ("static", "static", "#D55E00", "s"),
    ("constant", "best constant, tuned for the standard climate", "0.4", "D"),
    ("policy", "learnt policy (mean and range of the seeds)", "#0072B2", "o"),
)


def forcing_figure(results: dict[str, Forced], title: str) -> Figure:
    """Global error in every scenario."""
    figure = Figure(figsize=(7.0, 0.55 * len(results) + 1.8), layout="constrained")
    axes = figure.subplots()
    rows = np.arange(len(results))[::-1]
    for key, label, colour, marker in SERIES:
        values = [
            np.array([s.globe for s in forced.policy])
            if key == "policy"
            else np.array([getattr(forced, key).globe])
            for forced in results.values()
        ]
        means = [v.mean() for v in values]
        axes.plot(means, rows, marker, color=colour, label=label, linestyle="none")
        if key == "policy":
            axes.hlines(rows, [v.min() for v in values], [v.max() for v in values], color=colour)
    axes.set_yticks(rows, [forced.scenario.text for forced in results.values()])
    axes.set_xlim(left=0)
    axes.set_xlabel("Global areaWRMSE after 200 steps (K)")
    axes.set_title(title)
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(loc="outside lower center", frameon=False)
    return figure
