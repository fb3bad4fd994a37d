"""The physics: the contract of a climate model, the models, and what they are judged by."""

from fedrain.climate.climatology import ncep_zonal_mean, target_fields
from fedrain.climate.columns import Columns, Regions
from fedrain.climate.diagnostics import diagnostics, heat_transport
from fedrain.climate.fields import SURFACE_TEMPERATURE, Field, Forcing
from fedrain.climate.grid import Grid
from fedrain.climate.insolation import Orbit, annual_insolation, daily_insolation
from fedrain.climate.model import ClimateModel, check_model, integrate, trajectory
from fedrain.climate.models.climlab import ClimlabModel
from fedrain.climate.models.energy_balance import EnergyBalanceModel
from fedrain.climate.models.energy_budget import EnergyBudgetModel
from fedrain.climate.models.gcm import GeneralCirculationModel
from fedrain.climate.models.gcm_earth import EarthCirculationModel
from fedrain.climate.models.host import HostModel
from fedrain.climate.models.ice_albedo import IceAlbedoModel, TwinModel
from fedrain.climate.models.radiative_convective import RadiativeConvectiveModel
from fedrain.climate.models.seasonal import SeasonalModel
from fedrain.climate.netcdf import ZonalMean, read_zonal_mean
from fedrain.climate.parameters import (
    ENERGY_BALANCE_PARAMETERS,
    Parameter,
    Parameters,
    ParameterTable,
)
from fedrain.climate.physics import Physics
from fedrain.climate.skill import BAND_NAMES, Skill, band_skill, skill_table

__all__ = [
    "BAND_NAMES",
    "ENERGY_BALANCE_PARAMETERS",
    "SURFACE_TEMPERATURE",
    "ClimateModel",
    "ClimlabModel",
    "Columns",
    "EarthCirculationModel",
    "EnergyBalanceModel",
    "EnergyBudgetModel",
    "Field",
    "Forcing",
    "GeneralCirculationModel",
    "Grid",
    "HostModel",
    "IceAlbedoModel",
    "Orbit",
    "Parameter",
    "ParameterTable",
    "Parameters",
    "Physics",
    "RadiativeConvectiveModel",
    "Regions",
    "SeasonalModel",
    "Skill",
    "TwinModel",
    "ZonalMean",
    "annual_insolation",
    "band_skill",
    "check_model",
    "daily_insolation",
    "diagnostics",
    "heat_transport",
    "integrate",
    "ncep_zonal_mean",
    "read_zonal_mean",
    "skill_table",
    "target_fields",
    "trajectory",
]
