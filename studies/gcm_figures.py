"""Figures of the studies of the general circulation model, from their stored results alone."""

from pathlib import Path
from typing import Any

import numpy as np
from gcm_tables import FIELDS, WAYS, Results, earth_results, latest, relative, stored
from matplotlib.axes import Axes

from fedrain.climate import EarthCirculationModel, GeneralCirculationModel
from fedrain.climate.models.gcm_parameters import SPEEDY_PARAMETERS, TWIN, twin_truth
from fedrain.plotting import (
    ERRORS,
    INDIGO,
    LONG,
    VALUES,
    Style,
    draw,
    draw_seeds,
    latitude_axis,
    light_grid,
    new_figure,
    save_for_pages,
    threshold,
    zero_line,
)

#: Results of the rivals over the Earth begin with these.
RIVALS = ("enki", "gradient")
IMAGES = Path(__file__).parent.parent / "docs" / "images"
UNITS = {
    "outgoing_longwave": "Outgoing longwave (W m⁻²)",
    "absorbed_shortwave": "Absorbed shortwave (W m⁻²)",
    "precipitation": "Precipitation (mm d⁻¹)",
    "air_temperature": "Temperature of the air (K)",
}
GRADIENT = Style("gradient", INDIGO, LONG, 1.6, "v")
#: What is compared in each panel of the learning curves: agents among themselves, and with rivals.
PANELS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Agents", {"shared": ("shared", "one shared policy"),
                "fed05": ("fed05", "32 agents, averaged every 5 episodes"),
                "never": ("nofed", "32 agents, never averaged")}),
    ("Rivals", {"shared": ("model", "one shared policy"),
                "enki-forecast": ("enki", "ensemble Kalman inversion"),
                "gradient": (GRADIENT, "gradient")}),
)  # fmt: skip


def make() -> None:
    """All of them, into the images of the documentation."""
    every = stored()
    found = {way: latest(every, way) for way in (*WAYS, "static", "truth")}
    found = {way: results for way, results in found.items() if results}
    parameters(found)
    learning(found)
    if all("by_latitude" in one for cell in ("static", "shared", "truth") for one in found[cell]):
        errors(found)
    if len(earth := earth_results()) > 1:
        over_the_earth(earth)


def parameters(found: Results) -> None:
    """What was learnt, by latitude, against the truth."""
    columns = GeneralCirculationModel().columns
    truth, north = twin_truth(columns), columns.latitude
    figure = new_figure(8.0, 5.8)
    for axes, symbol in zip(figure.subplots(2, 2).flat, TWIN, strict=True):
        row = SPEEDY_PARAMETERS[symbol]
        draw(axes, "static", north, np.full(len(north), row.default), "default")
        if "enki-forecast" in found:
            rival = np.array([one["parameters"][symbol] for one in found["enki-forecast"]])
            draw_seeds(axes, "enki", north, rival, "ensemble Kalman inversion")
        values = np.array([one["parameters"][symbol] for one in found["shared"]])
        draw_seeds(axes, "model", north, values, "agents, one shared policy")
        draw(axes, "target", north, truth[symbol], "truth")
        axes.set_title(row.name.capitalize(), fontsize="medium")
        axes.set_ylabel(symbol if row.unit == "1" else f"{symbol} ({row.unit})")
        latitude_axis(axes)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False,
                  fontsize="small")  # fmt: skip
    save_for_pages(figure, IMAGES / "gcm-parameters.png")


def learning(found: Results) -> None:
    """Error of forecasts over that of the defaults, against simulated days."""
    shown = [one for one in PANELS if len(set(one[1]) & set(found)) > 1]
    figure = new_figure(4.4 * len(shown) + 1.0 * (len(shown) == 1), 3.8)
    pair = figure.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (title, cells) in zip(pair, shown, strict=True):
        for cell, (key, label) in cells.items():
            if cell not in found:
                continue
            curves = [one["curve"] for one in found[cell]]
            points = min(len(one) for one in curves)
            days = [0, *(point["days"] for point in curves[0][:points])]
            values = np.array(
                [[1.0, *(relative(found, p) for p in one[:points])] for one in curves]
            )
            draw_seeds(axes, key, days, values, label, logarithmic=True)
        threshold(axes, 0.4)
        axes.annotate("60 % lower", (0, 0.4), xycoords=("axes fraction", "data"), va="top",
                      xytext=(4, -3), textcoords="offset points", fontsize="small")  # fmt: skip
        if len(shown) > 1:
            axes.set_title(title, fontsize="medium")
        axes.set_yscale("log")
        axes.set_yticks([0.1, 0.2, 0.5, 1, 2], ["0.1", "0.2", "0.5", "1", "2"])
        axes.minorticks_off()
        axes.set_ylim(0.08, 2)
        axes.set_xlim(left=0)
        axes.set_xlabel("Simulated days")
        axes.legend(fontsize="small", frameon=False, loc="upper right")
        light_grid(axes)
    pair[0].set_ylabel("Error of a day's forecast\nover that of the defaults")
    save_for_pages(figure, IMAGES / "gcm-learning.png")


def errors(found: Results) -> None:
    """Errors of forecasts by latitude, and of the temperature by latitude and height."""
    model = GeneralCirculationModel()
    north = model.columns.latitude
    shared = [one["by_latitude"] for one in found["shared"]]
    static = found["static"][0]["by_latitude"]
    figure = new_figure(8.4, 5.6)
    grid = figure.add_gridspec(2, 6)
    for panel, name in enumerate(list(FIELDS)[:3]):
        axes = figure.add_subplot(grid[0, 2 * panel : 2 * panel + 2])
        draw(axes, "static", north, static[name], "defaults")
        draw_seeds(axes, "model", north, np.array([one[name] for one in shared]), "agents")
        known = found["truth"][0]["by_latitude"][name]
        draw(axes, "truth", north, known, "the truth's own parameters")
        axes.set_ylim(bottom=0)
        axes.set_title(UNITS[name], fontsize="medium")
        latitude_axis(axes, 45)
        if not panel:
            axes.set_ylabel("Error of a day's forecast")
            handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False,
                  fontsize="small")  # fmt: skip
    sections = [np.array(static["air_temperature"]),
                np.mean([one["air_temperature"] for one in shared], axis=0)]  # fmt: skip
    most = max(one.max() for one in sections)
    spots = [grid[1, :3], grid[1, 3:]]
    before_and_after(figure, spots, model, sections, "Error of a day's forecast (K)",
                     cmap=VALUES, vmin=0, vmax=most)  # fmt: skip
    save_for_pages(figure, IMAGES / "gcm-errors.png")


def over_the_earth(found: dict[str, dict[str, Any]]) -> None:
    """Biases against the reanalysis in the judged year, before and after."""
    model = EarthCirculationModel()
    north = model.columns.latitude
    static = found["static"]["bias"]
    others = ("static", *RIVALS)
    learnt = [one["bias"] for name, one in found.items() if not name.startswith(others)]
    through_the_year(north, static, learnt)
    figure = new_figure(8.4, 5.8)
    grid = figure.add_gridspec(2, 2)
    for panel, name in enumerate(list(FIELDS)[:2]):
        axes = figure.add_subplot(grid[0, panel])
        draw(axes, "static", north, np.mean(static[name], axis=0), "defaults")
        draw_seeds(axes, "model", north, np.mean([o[name] for o in learnt], axis=1), "agents")
        zero_line(axes)
        axes.set_title(UNITS[name], fontsize="medium")
        axes.set_ylabel("Model minus reanalysis")
        latitude_axis(axes)
        if not panel:
            axes.legend(fontsize="small", frameon=False)
    sections = [np.mean(static["air_temperature"], axis=0),
                np.mean([one["air_temperature"] for one in learnt], axis=(0, 1))]  # fmt: skip
    most = max(np.abs(one).max() for one in sections)
    spots = [grid[1, 0], grid[1, 1]]
    before_and_after(figure, spots, model, sections, "Model minus reanalysis (K)",
                     cmap=ERRORS, vmin=-most, vmax=most)  # fmt: skip
    save_for_pages(figure, IMAGES / "gcm-earth.png")


def through_the_year(north: Any, static: dict[str, Any], learnt: list[dict[str, Any]]) -> None:
    """Maps of the fluxes' biases by latitude and time of year, before and after."""
    figure = new_figure(8.4, 5.8)
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    for row, name in zip(grid, list(FIELDS)[:2], strict=True):
        pair = [np.array(static[name]), np.mean([one[name] for one in learnt], axis=0)]
        most = max(np.abs(one).max() for one in pair)
        for axes, bias, title in zip(row, pair, ("defaults", "agents"), strict=True):
            days = 15 + 30 * np.arange(len(bias))
            mesh = axes.pcolormesh(days, north, bias.T, cmap=ERRORS, vmin=-most, vmax=most)
            axes.set_title(f"{UNITS[name].split(' (')[0]}: {title}", fontsize="medium")
        row[0].set_ylabel("Latitude (°N)")
        figure.colorbar(mesh, ax=list(row), label="Model minus reanalysis (W m⁻²)")
    for axes in grid[1]:
        axes.set_xlabel("Day of the judged year")
    save_figure(figure, IMAGES / "gcm-earth-year.png")


def before_and_after(
    figure: Any, spots: list[Any], model: Any, sections: list[Any], label: str, **colours: Any
) -> None:
    """The temperature by latitude and height: with the defaults, and with what agents learnt."""
    pair: list[Axes] = []
    for spot, section, title in zip(spots, sections, ("defaults", "agents"), strict=True):
        axes = figure.add_subplot(spot, **({"sharey": pair[0]} if pair else {}))
        mesh = axes.pcolormesh(model.columns.latitude, model.sigma, section.T, **colours)
        axes.set_title(f"Temperature of the air: {title}", fontsize="medium")
        latitude_axis(axes)
        pair.append(axes)
    pair[0].set_ylabel("σ = p/pₛ")
    pair[0].invert_yaxis()
    figure.colorbar(mesh, ax=pair, label=label)
