"""The physics: grid, insolation, the energy balance model, its parameters and its target."""

from fedrain.climate.climatology import ncep_zonal_mean, target_profile
from fedrain.climate.diagnostics import diagnostics, heat_transport
from fedrain.climate.grid import Grid
from fedrain.climate.insolation import Orbit, annual_insolation, daily_insolation
from fedrain.climate.models.climlab import ClimlabModel
from fedrain.climate.models.energy_balance import (
    ClimateModel,
    EnergyBalanceModel,
    integrate,
    trajectory,
)
from fedrain.climate.netcdf import ZonalMean, read_zonal_mean
from fedrain.climate.parameters import (
    ENERGY_BALANCE_PARAMETERS,
    Parameter,
    Parameters,
    ParameterTable,
)
from fedrain.climate.skill import BAND_NAMES, Skill, band_skill, skill_table

__all__ = [
    "BAND_NAMES",
    "ENERGY_BALANCE_PARAMETERS",
    "ClimateModel",
    "ClimlabModel",
    "EnergyBalanceModel",
    "Grid",
    "Orbit",
    "Parameter",
    "ParameterTable",
    "Parameters",
    "Skill",
    "ZonalMean",
    "annual_insolation",
    "band_skill",
    "daily_insolation",
    "diagnostics",
    "heat_transport",
    "integrate",
    "ncep_zonal_mean",
    "read_zonal_mean",
    "skill_table",
    "target_profile",
    "trajectory",
]
