"""Read a zonal mean surface temperature from a user's NetCDF file.

Variables are found by the names and CF attributes that reanalyses and models commonly use. A file
that cannot be read gets one line that says what was looked for and what the file has.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from fedrain.errors import InputError
from fedrain.reading import ARRAYS, GIB, amount, open_dataset

if TYPE_CHECKING:  # slow to import, and most tasks read no file
    import xarray

TEMPERATURE_NAMES = (
    "skt", "ts", "tas", "t2m", "air", "tos", "sst", "tsurf", "temperature", "temp", "t",
)  # fmt: skip
TEMPERATURE_STANDARD_NAMES = (
    "surface_temperature", "air_temperature", "sea_surface_temperature",
)  # fmt: skip
#: What is left of a unit's name without "degrees", signs and blanks.
KELVIN = ("k", "kelvin", "kelvins")
CELSIUS = ("c", "celsius", "centigrade")

#: The most bytes of a file with a target, of which one variable is read.
LARGEST = 64 * GIB
#: How far from a pole the outermost latitude of a file may lie, in degrees.
LARGEST_POLAR_GAP = 10.0


@dataclass(frozen=True)
class Axis:
    """A coordinate and how to recognise it."""

    name: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    letter: str

    def matches(self, variable: "xarray.DataArray") -> bool:
        """Whether a variable is this coordinate by name or CF attribute."""
        attributes = {key: str(variable.attrs.get(key, "")).lower() for key in ("units", "axis")}
        return (
            str(variable.name).lower() in self.names
            or str(variable.attrs.get("standard_name", "")).lower() == self.name
            or attributes["units"] in self.units
            or attributes["axis"] == self.letter
        )


LATITUDE = Axis(
    "latitude", ("lat", "latitude", "nav_lat", "y"),
    ("degrees_north", "degree_north", "degree_n", "degrees_n", "degreen", "degreesn"), "y",
)  # fmt: skip
LONGITUDE = Axis(
    "longitude", ("lon", "longitude", "nav_lon", "x"),
    ("degrees_east", "degree_east", "degree_e", "degrees_e", "degreee", "degreese"), "x",
)  # fmt: skip
TIME = Axis("time", ("time", "t", "month", "valid_time"), (), "t")


@dataclass(frozen=True)
class ZonalMean:
    """Temperature in °C on latitudes in °N, south to north.

    Args:
        latitude: In °N, ``[lat]``.
        temperature: In °C, ``[lat]``.
    """

    latitude: Float[np.ndarray, " lat"]
    temperature: Float[np.ndarray, " lat"]


def read_zonal_mean(
    path: str | Path, variable: str | None = None, weight_months: bool = False
) -> ZonalMean:
    """Zonal and time mean of the surface temperature in a local NetCDF file.

    Missing values are skipped: first in the mean over longitude, then in that over time.
    With ``weight_months`` each month counts by its length, otherwise all count alike.

    Args:
        path: A local file.
        variable: Name of the temperature in it; found by its attributes, if left out.
        weight_months: Whether months count by their length.

    Returns:
        Temperature ``[lat]`` in °C, and the latitudes of the file ``[lat]`` in °N, south to north.
    """
    if "://" in str(path):
        raise InputError(f"{path}: only local files are read")
    path = Path(path)
    with open_dataset(path, most=LARGEST) as dataset:
        try:
            return _zonal_mean(dataset, variable, weight_months)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def zonal_mean_of(data: "xarray.DataArray", weight_months: bool = False) -> ZonalMean:
    """As :func:`read_zonal_mean`, of a field that is in memory."""
    name = str(data.name or "temperature")
    dataset = data.to_dataset(name=name)
    # Of dates, the mean over them is all that is wanted.
    dates = [key for key in dataset.variables if dataset[key].dtype.kind in "Mm"]
    dataset = dataset.drop_vars(dates)
    try:
        return _zonal_mean(dataset, name, weight_months)
    except InputError as error:
        raise InputError(f"the target: {error}") from None


def _zonal_mean(dataset: "xarray.Dataset", variable: str | None, weight_months: bool) -> ZonalMean:
    field = _temperature(dataset, variable)
    if field.nbytes > ARRAYS:  # a file may hold little and unpack to whatever it says
        raise InputError(
            f"{field.name!r} has {amount(field.nbytes)} of numbers, and {amount(ARRAYS)} is the "
            "most that is read: average it first"
        )
    latitude = _dimension(dataset, field, LATITUDE)
    if latitude is None:
        raise InputError(
            f"{field.name!r} has no latitude dimension: looked for {', '.join(LATITUDE.names)} or "
            f"units degrees_north, found {_listed(field.dims)}"
        )
    if latitude not in dataset.variables:
        raise InputError(f"the dimension {latitude!r} has no coordinate values")
    longitude = _dimension(dataset, field, LONGITUDE)
    time = _dimension(dataset, field, TIME)
    field = field.squeeze([d for d in field.dims if field.sizes[d] == 1 and d != latitude])
    others = [d for d in field.dims if d not in (latitude, longitude, time)]
    if others:
        raise InputError(
            f"{field.name!r} has a dimension {others[0]!r} of {field.sizes[others[0]]} that is "
            "neither latitude, longitude nor time: choose a surface field"
        )
    field = _to_celsius(field)
    if longitude in field.dims:
        field = field.mean(longitude)
    if time in field.dims:
        if weight_months:
            field = field.weighted(_month_lengths(dataset, str(time))).mean(time)
        else:
            field = field.mean(time)
    return _checked(np.asarray(dataset[latitude], float), np.asarray(field, float))


def _temperature(dataset: "xarray.Dataset", variable: str | None) -> "xarray.DataArray":
    """The temperature variable: as asked, or by name, then by CF standard name."""
    fields = {
        str(name): field
        for name, field in dataset.data_vars.items()
        if np.issubdtype(field.dtype, np.number)
    }
    if variable is not None:
        if variable not in fields:
            raise InputError(f"no variable {variable!r}, found {_listed(dataset.data_vars)}")
        return fields[variable]
    by_name = {name.lower(): field for name, field in reversed(fields.items())}
    for name in TEMPERATURE_NAMES:
        if name in by_name:
            return by_name[name]
    for standard in TEMPERATURE_STANDARD_NAMES:
        for called, field in fields.items():
            if standard in (called.lower(), field.attrs.get("standard_name")):
                return field
    raise InputError(
        f"no temperature: looked for {', '.join(TEMPERATURE_NAMES)}, or a name or standard_name "
        f"{', '.join(TEMPERATURE_STANDARD_NAMES)}, found {_listed(dataset.data_vars)}"
    )


def _dimension(dataset: "xarray.Dataset", field: "xarray.DataArray", axis: Axis) -> str | None:
    """The dimension of the field along an axis."""
    import xarray

    for name in field.dims:
        coordinate = dataset[name] if name in dataset.variables else xarray.DataArray(name=name)
        if axis.matches(coordinate):
            return str(name)
    return None


def _to_celsius(field: "xarray.DataArray") -> "xarray.DataArray":
    said = str(field.attrs.get("units", "")).strip()
    unit = re.sub(r"degrees|degree|deg|[°_\s]", "", said.lower().replace("℃", "c"))
    if not said:  # no surface is colder than 150 °C below zero or as hot as 150 °C
        unit = "k" if float(field.mean()) > 150 else "c"
    if unit in KELVIN:
        return field - 273.15
    if unit in CELSIUS:
        return field
    raise InputError(f"{field.name!r} is in {said!r}, neither K nor °C")


def _month_lengths(dataset: "xarray.Dataset", time: str) -> "xarray.DataArray":
    import cftime
    import xarray

    try:
        stamps = dataset[time]
        calendar = stamps.attrs.get("calendar", "standard")
        dates = np.atleast_1d(cftime.num2date(stamps.values, stamps.attrs["units"], calendar))
        return xarray.DataArray([float(date.daysinmonth) for date in dates], dims=(time,))
    except (AttributeError, KeyError, ValueError, OverflowError):
        raise InputError(
            f"months cannot be weighted: {time!r} is not dates in units such as "
            "'days since 1900-01-01'"
        ) from None


def _checked(
    latitude: Float[np.ndarray, " lat"], temperature: Float[np.ndarray, " lat"]
) -> ZonalMean:
    if len(latitude) < 2 or not np.isfinite(latitude).all() or np.abs(latitude).max() > 90:
        raise InputError("latitudes must be two or more numbers from -90 to 90")
    order = np.argsort(latitude)
    latitude, temperature = latitude[order], temperature[order]
    if not (np.diff(latitude) > 0).all():
        raise InputError("a latitude occurs twice")
    if latitude[0] > LARGEST_POLAR_GAP - 90 or latitude[-1] < 90 - LARGEST_POLAR_GAP:
        raise InputError(
            f"latitudes reach from {latitude[0]:g} to {latitude[-1]:g} only: a target must come "
            f"within {LARGEST_POLAR_GAP:g}° of both poles"
        )
    check_temperatures(latitude, temperature)
    return ZonalMean(latitude, temperature)


def check_temperatures(
    latitude: Float[np.ndarray, " lat"], temperature: Float[np.ndarray, " lat"]
) -> None:
    """Refuse what no surface temperature in °C can be."""
    if np.isnan(temperature).any():
        first = latitude[np.isnan(temperature)][0]
        raise InputError(f"every value is missing at latitude {first:g}")
    if temperature.min() < -150 or temperature.max() > 100:
        raise InputError(
            f"temperatures from {temperature.min():g} to {temperature.max():g} °C: "
            "are they in °C, or is their units attribute wrong?"
        )


def _listed(names: object) -> str:
    listed = ", ".join(map(str, names))  # type: ignore[call-overload]
    return listed or "none"
