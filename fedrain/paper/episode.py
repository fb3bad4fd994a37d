"""One episode, step by step, as it is kept: the mean of a cell's seeds, or optimal control."""

import numpy as np
import xarray as xr

from fedrain.climate import ParameterTable
from fedrain.paper.matrix import Cell

#: Environments whose optimal control differs: agents of a shared climate have one limit together.
REFERENCES = {
    "limit-shared": ("ebm-v1", 1),
    "limit-v2-a2": ("ebm-v2", 2),
    "limit-v2-a6": ("ebm-v2", 6),
}
COLDEST, WARMEST = -150.0, 150.0  # °C


def reference_of(cell: Cell) -> str:
    """Name of the optimal control that a cell is measured by."""
    return f"limit-v2-a{cell.agents}" if cell.env == "ebm-v2" else "limit-shared"


def pack_episode(data: xr.Dataset, table: ParameterTable) -> dict[str, xr.DataArray]:
    """Surface temperature and every parameter, in 16 bits over the range that they may have."""
    packed = {"surface_temperature": _pack(data.surface_temperature, COLDEST, WARMEST)}
    return packed | {row.symbol: _pack(data[row.symbol], row.low, row.high) for row in table}


def _pack(values: xr.DataArray, low: float, high: float) -> xr.DataArray:
    values = values.astype(np.float32)
    values.encoding = {
        "dtype": "int16",
        "scale_factor": (high - low) / 60_000,
        "add_offset": (low + high) / 2,
        "_FillValue": np.iinfo(np.int16).min,
    }
    return values
