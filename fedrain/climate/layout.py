"""Fields and parameters of a model as NetCDF variables, by the CF convention.

Zonal means are on ``lat``, a rectangle of columns is on ``lat`` and ``lon``, and any
other columns are on ``column``, with latitude and longitude beside it.
"""

from typing import Any

import numpy as np
import xarray as xr

from fedrain.climate.columns import Columns
from fedrain.climate.fields import Field
from fedrain.climate.model import ClimateModel
from fedrain.climate.parameters import Parameter

NORTH = {"standard_name": "latitude", "long_name": "latitude", "units": "degrees_north"}
EAST = {"standard_name": "longitude", "long_name": "longitude", "units": "degrees_east"}


class Layout:
    """The dimensions and coordinates of what a model shows and of what can be set in it."""

    def __init__(self, model: ClimateModel) -> None:
        self.columns = model.columns
        self.dimensions, self.coordinates = _places(model.columns)
        self._levels: dict[tuple[float, ...], str] = {}
        for field in model.fields:
            levels = tuple(field.levels)
            if levels and levels not in self._levels:
                name = f"level{len(self._levels) + 1}" if self._levels else "level"
                self._levels[levels] = name
                self.coordinates[name] = xr.Variable(
                    name, list(levels), {"long_name": "level", "units": field.level_unit}
                )

    def field(self, field: Field, values: Any, leading: tuple[str, ...] = ()) -> xr.Variable:
        """Values of a field, ``[*leading, column]`` or ``[*leading, column, level]``."""
        level = (self._levels[tuple(field.levels)],) if field.levels else ()
        return self._variable(values, leading, level, field.attributes)

    def parameter(self, row: Parameter, values: Any, leading: tuple[str, ...] = ()) -> xr.Variable:
        """Values of a parameter: ``[*leading]``, and what its scope adds to that."""
        attributes = {"long_name": row.name, "units": row.unit}
        if not row.by_column:
            return xr.Variable(leading, np.asarray(values), attributes)
        level: tuple[str, ...] = ()
        if row.scope == "level":
            same = [name for levels, name in self._levels.items() if len(levels) == row.levels]
            level = (same[0] if same else f"{row.symbol}_level",)
        return self._variable(values, leading, level, attributes)

    def _variable(
        self,
        values: Any,
        leading: tuple[str, ...],
        level: tuple[str, ...],
        attributes: dict[str, str],
    ) -> xr.Variable:
        array = np.asarray(values)
        before, after = array.shape[: len(leading)], array.shape[len(leading) + 1 :]
        shape = self.columns.shape if self.dimensions[0] != "column" else (len(self.columns),)
        return xr.Variable(
            (*leading, *self.dimensions, *level), array.reshape(*before, *shape, *after), attributes
        )


def _places(columns: Columns) -> tuple[tuple[str, ...], dict[str, xr.Variable]]:
    if columns.is_zonal:
        return ("lat",), {"lat": xr.Variable("lat", columns.latitude, {**NORTH, "axis": "Y"})}
    if columns.longitude is not None and len(columns.shape) == 2:
        latitude = columns.latitude.reshape(columns.shape)[:, 0]
        longitude = columns.longitude.reshape(columns.shape)[0]
        return ("lat", "lon"), {
            "lat": xr.Variable("lat", latitude, {**NORTH, "axis": "Y"}),
            "lon": xr.Variable("lon", longitude, {**EAST, "axis": "X"}),
        }
    beside = {"lat": xr.Variable("column", columns.latitude, NORTH)}
    if columns.longitude is not None:
        beside["lon"] = xr.Variable("column", columns.longitude, EAST)
    return ("column",), beside
