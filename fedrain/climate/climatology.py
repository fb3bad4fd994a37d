"""The temperature profile that the model is to reach.

The built-in target is the annual and zonal mean skin temperature of the NCEP/NCAR Reanalysis 1,
1981–2010 (``data/README.md`` tells where the figures come from). A user's own comes from a
NetCDF file or an array.
"""

import csv
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from fedrain.climate.columns import Columns, frozen
from fedrain.climate.fields import ABSORBED_SHORTWAVE, OUTGOING_LONGWAVE, SURFACE_TEMPERATURE, Field
from fedrain.climate.model import ClimateModel
from fedrain.climate.netcdf import (
    ZonalMean,
    check_temperatures,
    read_zonal_mean,
    zonal_mean_of,
)
from fedrain.errors import InputError, unknown

#: None for the built-in climatology, or what a model brings along; a NetCDF file; a zonal mean; an
#: xarray DataArray; or values on the columns of the model. Of one field, or by name of field.
Target = Any


@cache
def ncep_table() -> dict[str, Float[np.ndarray, " lat"]]:
    """The built-in climatology on its 94 Gaussian latitudes: columns by name."""
    file = resources.files("fedrain.climate") / "data" / "ncep_zonal_1981-2010.csv"
    with file.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {name: frozen(np.array([float(row[name]) for row in rows])) for name in rows[0]}


def ncep_zonal_mean() -> ZonalMean:
    """Annual mean NCEP skin temperature in °C on the Gaussian latitudes.

    Returns:
        Temperature ``[lat]`` in °C, and its latitudes ``[lat]`` in °N.
    """
    table = ncep_table()
    return ZonalMean(latitude=table["lat"], temperature=table["skt_annual"])


#: W m⁻². At the top of the atmosphere the reanalysis loses 12.0 W m⁻² more than it gets in the
#: global mean. No model in balance can have both fluxes: the target takes this from the outgoing
#: longwave everywhere, and adds it to the absorbed shortwave.
FLUX_SHIFT = 6.0


def ncep_profiles(columns: Columns) -> dict[str, Float[np.ndarray, " column"]]:
    """Annual mean temperature (°C), and outgoing longwave and absorbed shortwave (W m⁻²).

    The fluxes are shifted to be in balance; :data:`FLUX_SHIFT` says by how much.
    """
    table = ncep_table()
    longwave = table["toa_outgoing_longwave"] - FLUX_SHIFT
    shortwave = table["toa_absorbed_shortwave"] + FLUX_SHIFT
    profiles = {
        SURFACE_TEMPERATURE.name: table["skt_annual"],
        OUTGOING_LONGWAVE.name: longwave,
        ABSORBED_SHORTWAVE.name: shortwave,
    }
    return {
        name: frozen(interpolate(table["lat"], values, columns))
        for name, values in profiles.items()
    }


def interpolate(
    latitude: Float[np.ndarray, " lat"], values: Float[np.ndarray, " lat"], columns: Columns
) -> Float[np.ndarray, " column"]:
    """Linear in latitude to the columns, and extrapolated linearly beyond the outermost."""
    x, y = latitude, values
    cell = np.clip(np.searchsorted(x, columns.latitude) - 1, 0, len(x) - 2)
    slope = (y[cell + 1] - y[cell]) / (x[cell + 1] - x[cell])
    return y[cell] + slope * (columns.latitude - x[cell])


def target_fields(
    target: Target, model: ClimateModel, judged: Iterable[str], strict: bool = True
) -> dict[str, Float[np.ndarray, "column ..."]]:
    """The target of every judged field, on the columns (and levels) of the model.

    Args:
        target: See :data:`Target`. A model's own is its attribute ``target``, by field.
        model: The climate model.
        judged: Names of its fields.
        strict: Refuse a target of a field that is not judged. A task may have targets of more
            fields than an experiment judges.

    Returns:
        By field, ``[column]`` or ``[column, level]``, in the unit of the field.
    """
    known = {field.name: field for field in model.fields}
    names = list(judged)
    for name in names:
        if name not in known:
            raise unknown("field to judge", name, list(known))
    given = target if isinstance(target, Mapping) else {names[0]: target}
    for name in given:
        if name not in (names if strict else known):
            raise unknown("judged field", name, names)
    own = getattr(model, "target", {})
    found = {}
    for name in names:
        one = given.get(name)
        one = own.get(name) if one is None else one
        found[name] = _target(one, known[name], model)
    return found


def _target(target: Target, field: Field, model: ClimateModel) -> Float[np.ndarray, "column ..."]:
    if target is None and field.name != SURFACE_TEMPERATURE.name:
        raise InputError(
            f"no target for {field.name}: there is a built-in one for "
            f"{SURFACE_TEMPERATURE.name} only"
        )
    if target is None:
        target = ncep_zonal_mean()
    elif isinstance(target, str | Path):
        target = read_zonal_mean(target)
    elif hasattr(target, "to_dataset"):
        target = zonal_mean_of(target)
    if isinstance(target, ZonalMean):
        return _zonal_target(target, field, model)
    try:
        values = np.array(target, dtype=float)
    except (TypeError, ValueError):
        raise InputError("a target must be numbers, a NetCDF file, a DataArray or None") from None
    expected = field.shape(len(model.columns))
    if values.shape != expected:
        what = "latitudes" if model.columns.is_zonal and len(expected) == 1 else "columns"
        raise InputError(
            f"the target has shape {values.shape}, but the model has {expected[0]} {what}"
            + (f" of {expected[1]} levels" if len(expected) > 1 else "")
        )
    if field.name == SURFACE_TEMPERATURE.name and field.unit == "degC" and values.ndim == 1:
        check_temperatures(model.columns.latitude, values)
    if not np.isfinite(values).all():
        raise InputError(f"the target of {field.name} has a value that is missing or not finite")
    return values


def _zonal_target(
    zonal: ZonalMean, field: Field, model: ClimateModel
) -> Float[np.ndarray, " column"]:
    """A surface temperature in °C on the columns, in the unit of the field."""
    if field.levels or field.unit not in ("degC", "K"):
        raise InputError(
            f"the target of {field.name} cannot be a zonal mean of the surface temperature: "
            "give its values in every column" + (" and level" if field.levels else "")
        )
    profile = interpolate(zonal.latitude, zonal.temperature, model.columns)
    return profile + (273.15 if field.unit == "K" else 0.0)
