"""The temperature profile that the model is to reach.

The built-in target is the annual and zonal mean skin temperature of the NCEP/NCAR Reanalysis 1,
1981–2010 (``data/README.md`` tells where the figures come from). A user's own comes from a
NetCDF file or an array.
"""

import csv
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
from jaxtyping import Float

from fedrain.climate.grid import Grid, frozen
from fedrain.climate.netcdf import ZonalMean, check_temperatures, read_zonal_mean
from fedrain.errors import InputError

#: The built-in target, a NetCDF file, a zonal mean, or temperatures in °C on the cells of the grid.
Target = str | Path | ZonalMean | Float[np.ndarray, " lat"] | list[float] | tuple[float, ...] | None


@cache
def ncep_table() -> dict[str, Float[np.ndarray, " lat"]]:
    """The built-in climatology on its 94 Gaussian latitudes: columns by name."""
    file = resources.files("fedrain.climate") / "data" / "ncep_zonal_1981-2010.csv"
    with file.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {name: frozen(np.array([float(row[name]) for row in rows])) for name in rows[0]}


def ncep_zonal_mean() -> ZonalMean:
    """Annual mean NCEP skin temperature in °C on the Gaussian latitudes."""
    table = ncep_table()
    return ZonalMean(latitude=table["lat"], temperature=table["skt_annual"])


def interpolate(zonal: ZonalMean, grid: Grid) -> Float[np.ndarray, " lat"]:
    """Linear in latitude to the cells, and extrapolated linearly beyond the outermost latitudes."""
    x, y = zonal.latitude, zonal.temperature
    cell = np.clip(np.searchsorted(x, grid.centres) - 1, 0, len(x) - 2)
    slope = (y[cell + 1] - y[cell]) / (x[cell + 1] - x[cell])
    return y[cell] + slope * (grid.centres - x[cell])


def target_profile(target: Target, grid: Grid) -> Float[np.ndarray, " lat"]:
    """The target in °C on the cells of the grid."""
    if target is None:
        return interpolate(ncep_zonal_mean(), grid)
    if isinstance(target, str | Path):
        target = read_zonal_mean(target)
    if isinstance(target, ZonalMean):
        return interpolate(target, grid)
    try:
        profile = np.array(target, dtype=float)
    except (TypeError, ValueError):
        raise InputError("a target must be numbers in °C, a NetCDF file or None") from None
    if profile.shape != (grid.latitudes,):
        raise InputError(
            f"the target has shape {profile.shape}, but the grid has {grid.latitudes} latitudes"
        )
    check_temperatures(grid.centres, profile)
    return profile
