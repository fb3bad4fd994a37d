"""Equilibria as NetCDF."""

import numpy as np
import xarray as xr

from fedrain.climate.stability.continuation import Branch
from fedrain.climate.stability.hysteresis import Hysteresis

SOLAR = {"long_name": "solar constant", "units": "W m-2"}
TEMPERATURE = {"long_name": "surface temperature", "standard_name": "surface_temperature",
               "units": "degC"}  # fmt: skip


def branch_dataset(branch: Branch) -> xr.Dataset:
    """The curve of equilibria with stability and tipping points."""
    model = branch.model
    return xr.Dataset(
        {
            "temperature": (("point", "lat"), branch.temperature, TEMPERATURE),
            "albedo": (
                ("point", "lat"),
                np.stack([model.albedo(t) for t in branch.temperature]),
                {"long_name": "surface albedo", "standard_name": "surface_albedo", "units": "1"},
            ),
            "mean": ("point", branch.mean, {"long_name": "global mean", "units": "degC"}),
            "leading": (
                "point",
                branch.leading,
                {"long_name": "largest eigenvalue", "units": "year-1"},
            ),
            "unstable": (
                "point",
                branch.unstable,
                {"long_name": "number of eigenvalues above zero", "units": "1"},
            ),
            "tipping_solar": ("fold", np.array([f.solar for f in branch.folds]), SOLAR),
            "tipping_temperature": (
                ("fold", "lat"),
                np.array([f.temperature for f in branch.folds]).reshape(-1, model.grid.latitudes),
                TEMPERATURE,
            ),
        },
        coords={"solar": ("point", branch.solar, SOLAR), "lat": latitude(branch)},
        attrs={"Conventions": "CF-1.11", **_model_attributes(branch)},
    )


def hysteresis_dataset(branch: Branch, run: Hysteresis) -> xr.Dataset:
    """Temperatures along a sequence of solar constants."""
    return xr.Dataset(
        {
            "temperature": (("stair", "lat"), run.temperature, TEMPERATURE),
            "mean": ("stair", run.mean, {"long_name": "global mean", "units": "degC"}),
        },
        coords={"solar": ("stair", run.solar, SOLAR), "lat": latitude(branch)},
        attrs={"Conventions": "CF-1.11", **_model_attributes(branch)},
    )


def latitude(branch: Branch) -> tuple[str, np.ndarray, dict[str, str]]:
    """The coordinate."""
    attributes = {"long_name": "latitude", "standard_name": "latitude", "units": "degrees_north"}
    return "lat", branch.model.grid.centres, attributes


def _model_attributes(branch: Branch) -> dict[str, float | str]:
    model = branch.model
    names = ("A", "B", "D", "a0", "a2", "ice_albedo", "freezing", "width", "insolation", "s2",
             "water_depth")  # fmt: skip
    return {f"model_{name}": getattr(model, name) for name in names}
