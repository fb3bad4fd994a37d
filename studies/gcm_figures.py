"""Tables and figures of the study of ``gcm-twin``, from its stored results alone."""

from pathlib import Path
from typing import Any

import numpy as np

from fedrain.climate import GeneralCirculationModel
from fedrain.climate.models.gcm_parameters import SPEEDY_PARAMETERS, TWIN, twin_truth
from fedrain.plotting import (
    ERRORS,
    draw,
    draw_seeds,
    latitude_axis,
    light_grid,
    new_figure,
    save_figure,
    zero_line,
)
from fedrain.reading import read_json
from fedrain.tables import Table

HERE = Path(__file__).parent.parent
IMAGES, SCREENING = HERE / "docs" / "images", HERE / "results/studies/gcm/screening.json"
JUDGED = ("outgoing_longwave", "absorbed_shortwave", "precipitation", "air_temperature")
BANDS = 6
Results = dict[str, list[dict[str, Any]]]


def lower(found: Results, cell: str, kind: str) -> np.ndarray:
    """By how much, in per cent, the errors of each seed are lower than those of the defaults.

    Of the judged fields, each in units of the default's error, the mean.
    """
    static = found["static"][0][kind]
    shares = [[one[kind][name] / static[name] for name in JUDGED] for one in found[cell]]
    return 100 * (1 - np.array(shares).mean(1))


def nearer(found: Results, cell: str, symbol: str) -> np.ndarray:
    """Distance from the truth over that of the default, ``[seed, band]``."""
    columns = GeneralCirculationModel().columns
    truth, default = twin_truth(columns)[symbol], SPEEDY_PARAMETERS[symbol].default
    bands = np.array_split(np.arange(len(columns)), BANDS)
    values = np.array([one["parameters"][symbol] for one in found[cell]])
    far = [np.abs(default - truth[own]).mean() for own in bands]
    near = [np.abs(values[:, own] - truth[own]).mean(1) for own in bands]
    return np.stack([n / f for n, f in zip(near, far, strict=True)], axis=1)


def tables(found: Results) -> None:
    """One row for each cell: error, distance from the truth, and what it cost."""
    rows = []
    for cell, seeds in found.items():
        if cell == "static":
            continue
        row = [seeds[0]["label"], str(len(seeds)), str(seeds[0]["days"])]
        for kind in ("forecast-1", "forecast-5", "climate"):
            values = lower(found, cell, kind)
            row.append(f"{values.mean():.0f} ({values.min():.0f} to {values.max():.0f})")
        row += [f"{nearer(found, cell, symbol).mean():.2f}" for symbol in TWIN]
        every = np.concatenate([nearer(found, cell, symbol) for symbol in TWIN], axis=1)
        row.append(f"{(every.mean(0) < 1).sum()} of {every.shape[1]}")
        row.append(f"{np.mean([one.get('core_seconds', 0) for one in seeds]):.0f}")
        rows.append(row)
    header = ["", "seeds", "days a seed", "day", "5 days", "climate", *TWIN, "nearer", "core-s"]
    caption = (
        "Errors lower than with the defaults, in % (lowest and highest seed); distance of the "
        "parameters from the truth over that of the defaults; bands in which they are nearer"
    )
    print(Table(caption, header, rows).markdown())
    if SCREENING.exists():
        print(screening_table())


def screening_table() -> str:
    """What each parameter does at the bound where it does more, over days 10 to 40."""
    rows = []
    for symbol, one in read_json(SCREENING).items():
        end = max(("low", "high"), key=lambda e: one[e]["month"]["absorbed_shortwave"])
        month, day = one[end]["month"], one[end]["day"]
        values = [f"{month[name]:.2f}" for name in JUDGED] + [f"{day[name]:.2f}" for name in JUDGED]
        rows.append([symbol, one["name"], f"{one[end]['value']:g}", *values])
    rows.sort(key=lambda row: -float(row[4]))
    units = ["OLR", "ASR", "precipitation", "T"]
    return Table(
        "Root mean square response: of the means over days 10 to 40, and of the first day",
        ["symbol", "parameter", "at", *units, *[f"day: {unit}" for unit in units]],
        rows,
        words=2,
    ).markdown()


def figures(found: Results) -> None:
    """Parameters by latitude against the truth; errors of the climate; sections of temperature."""
    columns = GeneralCirculationModel().columns
    truth, north = twin_truth(columns), columns.latitude
    cell = "shared" if "shared" in found else next(c for c in found if c not in ("static", "truth"))
    figure = new_figure(8.0, 5.6)
    for axes, symbol in zip(figure.subplots(2, 2).flat, TWIN, strict=True):
        row = SPEEDY_PARAMETERS[symbol]
        draw(axes, "target", north, truth[symbol], "truth")
        draw(axes, "static", north, np.full(len(north), row.default), "default")
        values = np.array([one["parameters"][symbol] for one in found[cell]])
        draw_seeds(axes, "model", north, values, "agents")
        if "enki" in found:
            own = np.array([one["parameters"][symbol] for one in found["enki"]])
            draw_seeds(axes, "enki", north, own)
        axes.set_title(row.name, fontsize="medium")
        axes.set_ylabel(symbol if row.unit == "1" else f"{symbol} ({row.unit})")
        latitude_axis(axes)
        light_grid(axes)
    figure.axes[0].legend(fontsize="small")
    save_figure(figure, IMAGES / "gcm-parameters.png")

    figure = new_figure(8.0, 5.6)
    known = found["truth"][0]["profile"]
    names = {"outgoing_longwave": "Outgoing longwave (W m⁻²)", "absorbed_shortwave":
             "Absorbed shortwave (W m⁻²)", "precipitation": "Precipitation (mm d⁻¹)"}  # fmt: skip
    panels = figure.subplots(2, 2)
    for axes, (name, label) in zip(panels.flat, names.items(), strict=False):
        for key, of in (("static", "static"), ("model", cell)):
            errors = [np.array(one["profile"][name]) - known[name] for one in found[of]]
            draw_seeds(axes, key, north, np.array(errors))
        zero_line(axes)
        axes.set_ylabel(f"Error: {label}")
        latitude_axis(axes)
        light_grid(axes)
    panels[0, 0].legend(fontsize="small")
    panels[1, 1].axis("off")
    save_figure(figure, IMAGES / "gcm-climate.png")

    figure = new_figure(8.0, 3.4)
    sigma = GeneralCirculationModel().sigma
    pair = figure.subplots(1, 2, sharey=True)
    sections = [np.mean([one["profile"]["air_temperature"] for one in found[of]], axis=0)
                - np.array(known["air_temperature"]) for of in ("static", cell)]  # fmt: skip
    most = max(np.abs(one).max() for one in sections)
    for axes, section, title in zip(pair, sections, ("defaults", "agents"), strict=True):
        mesh = axes.pcolormesh(north, sigma, section.T, cmap=ERRORS, vmin=-most, vmax=most)
        axes.set_title(title, fontsize="medium")
        latitude_axis(axes)
    pair[0].set_ylabel("σ")
    pair[0].invert_yaxis()
    figure.colorbar(mesh, ax=pair, label="Error of the temperature (K)")
    save_figure(figure, IMAGES / "gcm-temperature.png")
