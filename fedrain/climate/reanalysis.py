"""The NCEP/NCAR Reanalysis 1 by month and by level: what models are compared with.

``data/README.md`` tells where the figures come from.
"""

import csv
from functools import cache
from importlib import resources

import numpy as np
from jaxtyping import Float

from fedrain.climate.climatology import FLUX_SHIFT
from fedrain.climate.columns import Columns, frozen
from fedrain.climate.fields import ABSORBED_SHORTWAVE, OUTGOING_LONGWAVE, SURFACE_TEMPERATURE

_MONTHLY = {
    "skin_temperature": "skin_temperature_degC",
    "outgoing_longwave": "outgoing_longwave_Wm2",
    "insolation": "insolation_Wm2",
    "reflected_shortwave": "reflected_shortwave_Wm2",
}


def _rows(file: str) -> dict[str, Float[np.ndarray, " row"]]:
    path = resources.files("fedrain.climate") / "data" / file
    with path.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


@cache
def monthly_table() -> dict[str, Float[np.ndarray, "*month lat"]]:
    """The monthly climatology on its 94 Gaussian latitudes.

    ``latitude`` (°N, south to north) and ``land_fraction`` have shape ``[lat]``; by month,
    ``[month, lat]``: ``skin_temperature`` in °C; ``outgoing_longwave``, ``insolation``,
    ``reflected_shortwave`` and ``absorbed_shortwave`` in W m⁻².
    """
    rows = _rows("ncep_zonal_monthly_1981-2010.csv")
    order = np.lexsort((rows["latitude"], rows["month"]))
    sheets = {name: values[order].reshape(12, -1) for name, values in rows.items()}
    table = {name: sheets[column] for name, column in _MONTHLY.items()}
    table["absorbed_shortwave"] = table["insolation"] - table["reflected_shortwave"]
    for name in ("latitude", "land_fraction"):
        table[name] = sheets[name][0].copy()
    return {name: frozen(values) for name, values in table.items()}


@cache
def air_table() -> dict[str, Float[np.ndarray, "*level lat"]]:
    """Zonal mean air temperature on 17 levels and 73 latitudes.

    ``latitude`` in °N from south to north; ``level`` in hPa from the ground up; ``annual``,
    ``january`` and ``july`` in °C, ``[level, lat]``.
    """
    rows = _rows("ncep_air_zonal_annual_1981-2010.csv")
    levels = len(np.unique(rows["level_hPa"]))
    order = np.lexsort((rows["latitude"], -rows["level_hPa"]))
    sheets = {name: values[order].reshape(levels, -1) for name, values in rows.items()}
    table = {name: sheets[name] for name in ("annual", "january", "july")}
    table["latitude"], table["level"] = sheets["latitude"][0].copy(), sheets["level_hPa"][:, 0]
    return {name: frozen(np.ascontiguousarray(values)) for name, values in table.items()}


def on_columns(
    latitude: Float[np.ndarray, " lat"], values: Float[np.ndarray, "*more lat"], columns: Columns
) -> Float[np.ndarray, "*more column"]:
    """Linear in latitude to the columns, and extrapolated linearly beyond the outermost."""
    cell = np.clip(np.searchsorted(latitude, columns.latitude) - 1, 0, len(latitude) - 2)
    share = (columns.latitude - latitude[cell]) / (latitude[cell + 1] - latitude[cell])
    return (1 - share) * values[..., cell] + share * values[..., cell + 1]


def through_the_year(
    monthly: Float[np.ndarray, "12 place"], season: Float[np.ndarray, " time"]
) -> Float[np.ndarray, "time place"]:
    """Monthly means at fractions of the year: linear between the middles of the months."""
    position = np.asarray(season) * 12 - 0.5
    before = np.floor(position).astype(int)
    share = (position - before)[:, None]
    return (1 - share) * monthly[before % 12] + share * monthly[(before + 1) % 12]


def balanced_months(columns: Columns) -> dict[str, Float[np.ndarray, "12 column"]]:
    """Surface temperature in °C and both fluxes in W m⁻², month by month, with balanced fluxes.

    Outgoing longwave is lowered by :data:`FLUX_SHIFT`, and absorbed shortwave raised by as much
    where there is that much sunlight: nothing can be absorbed in the polar night.
    """
    table = monthly_table()

    def here(name: str) -> Float[np.ndarray, "12 column"]:
        return on_columns(table["latitude"], table[name], columns)

    sunlight = np.maximum(here("insolation"), 0.0)
    return {
        SURFACE_TEMPERATURE.name: here("skin_temperature"),
        OUTGOING_LONGWAVE.name: here("outgoing_longwave") - FLUX_SHIFT,
        ABSORBED_SHORTWAVE.name: np.clip(here("absorbed_shortwave") + FLUX_SHIFT, 0, sunlight),
    }


def land_fraction(columns: Columns) -> Float[np.ndarray, " column"]:
    """The share of land at the columns' latitudes."""
    table = monthly_table()
    return np.clip(on_columns(table["latitude"], table["land_fraction"], columns), 0, 1)


def longwave_feedback(seasonal: bool = False) -> float:
    """Slope of monthly outgoing longwave on monthly skin temperature, in W m⁻² K⁻¹.

    Args:
        seasonal: Over the departures from each latitude's annual mean, weighted by area; otherwise
            over all months and latitudes, each of which counts the same.
    """
    table = monthly_table()
    temperature, longwave = table["skin_temperature"], table["outgoing_longwave"]
    weights = np.ones_like(temperature)
    if seasonal:
        temperature = temperature - temperature.mean(0)
        longwave = longwave - longwave.mean(0)
        weights = weights * np.cos(np.deg2rad(table["latitude"]))
    weights = weights / weights.sum()
    departure = temperature - (weights * temperature).sum()
    return float((weights * departure * longwave).sum() / (weights * departure**2).sum())
