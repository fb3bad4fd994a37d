"""Through the year and with height: the study of ``ebm-seasonal`` and ``rce-zonal``.

Agents that see their place (and the season) learn the parameters of their column in short
forecasts; running free, they are held against the static values and the best constants, in episodes
of the training and in those that are kept from it. Each result is stored in
``results/studies/worlds`` as soon as it is there; a command that is started again computes only
what is missing. Usage:

    python studies/worlds.py train [--only PATTERN]
    python studies/worlds.py tables|figure

``tables`` and ``figure`` need the stored results alone. Set up on the seeds 100 to 103.
"""

import argparse
from fnmatch import fnmatch
from typing import Any

import energy
import numpy as np
from cells import RESULTS, Result, kept, markdown, stored, trained
from matplotlib.axes import Axes

from fedrain.baselines import constant, static
from fedrain.climate.skill import BAND_NAMES
from fedrain.experiment import Configuration, configure
from fedrain.experiment.held_out import held_out_of
from fedrain.plotting import WHITE, draw, light_grid, new_figure, save_figure, style

FOLDER, SPLIT = "worlds", "test"
SHARED = {"preset": "constants", "sync_every": 0, "sharing": "shared"}
#: What is trained; an exploration lasts a forecast, and no run has more than 20 000 steps.
WORLDS: dict[str, dict[str, Any]] = {
    "ebm-energy": {"episodes": 50},
    "ebm-seasonal": {"episodes": 110, "settings": {"hold": 30}},
    "rce-zonal": {"episodes": 100, "settings": {"hold": 50}},
}
FINDERS = {"static": energy.finder(static), "gradient": energy.finder(constant)}
FIGURE = RESULTS.parent.parent / "docs" / "images" / "worlds.png"
#: Of the figure: what each panel is called, and how each of the three ways looks.
PANELS = {
    "ebm-seasonal": "ebm-seasonal: surface, through the year",
    "rce-zonal": "rce-zonal: air, on 17 levels",
}
LOOKS = {"static": "static", "gradient": "constant", "agents": "model"}
LABELS = {"static": "static values", "gradient": "best constants", "agents": "agents"}
#: Of ``ebm-energy`` only the episodes that are kept from training: ``energy.py`` has the rest.
SEEDS = {"ebm-energy": 3, "ebm-seasonal": 5, "rce-zonal": 5}


def configuration(world: str, seeds: list[int]) -> Configuration:
    """The experiment of these seeds."""
    return configure(env=world, **SHARED, **WORLDS[world], seeds=seeds)


def train(only: str) -> None:
    """What is missing."""
    for world in WORLDS:
        for name, find in FINDERS.items():
            if world != "ebm-energy" and fnmatch(f"{world}-{name}", only):
                kept(FOLDER, f"{world}-{name}", configuration(world, [0]), find)
        for seed in range(SEEDS[world]):
            if fnmatch(stem := f"{world}-agents-{seed}", only):
                kept(FOLDER, stem, configuration(world, [seed]), _agents)


def _agents(cell: Configuration) -> Result:
    trainer = trained(cell)
    held = held_out_of(cell, cell.seeds, trainer.actors(), SPLIT)
    shown = {split: {who: held[split][who] for who in ("policy", "static")}
             for split in ("train", SPLIT)}  # fmt: skip
    return {**energy.measured(trainer), "held_out": shown}


def results(world: str, name: str) -> list[Result]:
    """Those of every seed."""
    every = stored(FOLDER)
    return [one for stem, one in every.items() if stem.startswith(f"{world}-{name}")]


def column(found: list[Result], name: str) -> np.ndarray:
    """A number of every seed."""
    return np.concatenate([energy.column(one, name) for one in found])


def skill_table(world: str, field: str) -> str:
    """Errors at the end of a free run, physics and response."""
    rows = []
    for name, label in LABELS.items():
        if not (found := results(world, name)):
            continue
        row = [label, str(len(found))]
        row += [energy.spread(column(found, n), 2)
                for n in (field, energy.LONGWAVE, energy.SHORTWAVE)]  # fmt: skip
        row.append(f"{column(found, 'above_black_body').max():.0f}")
        row.append(energy.spread(100 * column(found, "roughness"), 1))
        row.append(energy.spread(column(found, "warming"), 2))
        rows.append(row)
    header = ["", "seeds", "T (K)", "longwave (W m⁻²)", "shortwave (W m⁻²)",
              "columns above a black body, worst seed", "roughness (% of the range)",
              "warming for 2 × CO₂ (K)"]  # fmt: skip
    return markdown(rows, header)


def held_out_table() -> str:
    """Episodes of the training beside those that are kept from it."""
    rows = []
    for world in WORLDS:
        found = [one["held_out"] for one in results(world, "agents")]
        if not found:
            continue
        field = "air_temperature" if world == "rce-zonal" else "surface_temperature"
        known = {(s, w): np.mean([one[s][w][field] for one in found])
                 for s in ("train", SPLIT) for w in ("static", "policy")}  # fmt: skip
        gap = known[SPLIT, "policy"] - known["train", "policy"]
        rows.append([f"`{world}`", *(f"{value:.2f}" for value in known.values()), f"{gap:+.2f}"])
    header = ["temperature (K)", "train: static", "agents", "test: static", "agents", "gap"]
    return markdown(rows, header)


def tables() -> None:
    """All tables of the documentation."""
    print(skill_table("ebm-seasonal", "surface_temperature"), end="\n\n")
    print(skill_table("rce-zonal", "air_temperature"), end="\n\n")
    print(held_out_table())


def bands(world: str, name: str) -> np.ndarray:
    """Of every seed the error of the temperature in the six bands and of the globe."""
    found = results(world, name)
    return np.concatenate([np.column_stack([one["bands"], one["global"]]) for one in found])


def draw_bands(axes: Axes, world: str) -> None:
    """The means of each way by band, and the seeds where there are several."""
    for number, (name, look) in enumerate(LOOKS.items()):
        values, label = bands(world, name), LABELS[name]
        across = np.arange(values.shape[1]) + 0.16 * (number - 1)
        marks = {"linestyle": "none", "marker": style(look).marker}
        draw(axes, look, across, values.mean(0), label, **marks)
        small = {"markersize": 4, "markerfacecolor": WHITE, "markeredgewidth": 0.8}
        for one in values if len(values) > 1 else ():
            draw(axes, look, across + 0.14, one, "", **marks, **small)
    names = [*(name.replace("–", "–\n") for name in BAND_NAMES), "globe"]
    axes.set_xticks(range(len(names)), names, fontsize="small")
    axes.axvline(len(BAND_NAMES) - 0.5, color="0.9", linewidth=1.0)
    axes.set_ylim(bottom=0)
    light_grid(axes, "y")


def figure() -> None:
    """Where on the globe each way is how far off."""
    sheet = new_figure(9.0, 3.8)
    panels = sheet.subplots(1, 2, sharey=True)
    for axes, (world, title) in zip(panels, PANELS.items(), strict=True):
        draw_bands(axes, world)
        axes.set_title(title, fontsize="medium")
    panels[0].set_ylabel("Error of the temperature (rms, K)")
    panels[1].legend(fontsize="small", loc="lower right")
    save_figure(sheet, FIGURE)
    print(f"figure: {FIGURE}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("train", "tables", "figure"))
    parser.add_argument("--only", default="*", metavar="PATTERN", help="some cells of it")
    options = parser.parse_args()
    if options.what == "train":
        train(options.only)
    elif options.what == "tables":
        tables()
    else:
        figure()


if __name__ == "__main__":
    main()
