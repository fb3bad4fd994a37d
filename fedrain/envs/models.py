"""The models of the package's own tasks, made from what a person may say of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from fedrain.climate import (
    ENERGY_BALANCE_PARAMETERS,
    ClimateModel,
    ClimlabModel,
    EarthCirculationModel,
    EnergyBalanceModel,
    GeneralCirculationModel,
    Grid,
    ParameterTable,
)
from fedrain.climate.models.energy_budget import EnergyBudgetModel, budget_parameters
from fedrain.climate.models.ice_albedo import IceAlbedoModel, TwinModel, twin_parameters
from fedrain.climate.models.radiative_convective import (
    RadiativeConvectiveModel,
    column_parameters,
)
from fedrain.climate.models.seasonal import SeasonalModel, seasonal_parameters
from fedrain.errors import unknown

#: What computes the energy balance model: this package or climlab.
BACKENDS = ("jax", "climlab")


def energy_balance(
    latitudes: int = 96,
    bounds: Mapping[str, Sequence[float]] | None = None,
    static: Mapping[str, Any] | None = None,
    backend: str = "jax",
) -> ClimateModel:
    """The annual energy balance model, on JAX or on climlab."""
    table = ENERGY_BALANCE_PARAMETERS.replace(bounds=bounds, static=static)
    model = EnergyBalanceModel(grid=Grid(latitudes), table=table)
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS)
    return model if backend == "jax" else ClimlabModel(model)


def _on_grid(
    kind: Callable[..., ClimateModel],
    parameters: Callable[[Grid], ParameterTable],
    latitudes: int,
    bounds: Mapping[str, Sequence[float]] | None,
    static: Mapping[str, Any] | None,
    **more: Any,
) -> ClimateModel:
    """A model whose table is made for its grid."""
    grid = Grid(latitudes)
    table = parameters(grid).replace(bounds=bounds, static=static)
    return kind(grid=grid, table=table, **more)


def energy_budget(
    latitudes: int = 96,
    bounds: Mapping[str, Sequence[float]] | None = None,
    static: Mapping[str, Any] | None = None,
) -> ClimateModel:
    """The energy balance model with D, A, B and albedo by latitude, and its fluxes."""
    return _on_grid(EnergyBudgetModel, budget_parameters, latitudes, bounds, static)


#: K: standard deviation of the noise that the weather of ``ebm-twin`` adds in a step.
WEATHER = 0.4


def twin(
    latitudes: int = 96,
    bounds: Mapping[str, Sequence[float]] | None = None,
    static: Mapping[str, Any] | None = None,
    weather: float = WEATHER,
) -> ClimateModel:
    """The model without ice, whose albedo agents set."""
    return _on_grid(TwinModel, twin_parameters, latitudes, bounds, static, weather=weather)


def twin_truth(model: Any) -> ClimateModel:
    """The climate with ice, under the same weather."""
    return IceAlbedoModel(grid=model.grid, weather=model.weather)


def seasonal(
    latitudes: int = 96,
    bounds: Mapping[str, Sequence[float]] | None = None,
    static: Mapping[str, Any] | None = None,
) -> ClimateModel:
    """Land and ocean through the year."""
    return _on_grid(SeasonalModel, seasonal_parameters, latitudes, bounds, static)


def radiative_convective(
    latitudes: int = 36,
    bounds: Mapping[str, Sequence[float]] | None = None,
    static: Mapping[str, Any] | None = None,
) -> ClimateModel:
    """Radiation and convection on 17 levels at each latitude."""
    return _on_grid(RadiativeConvectiveModel, column_parameters, latitudes, bounds, static)


def general_circulation(
    bounds: Mapping[str, Sequence[float]] | None = None,
    static: Mapping[str, Any] | None = None,
    **options: Any,
) -> ClimateModel:
    """Jcm's atmosphere over an aquaplanet, at T21; options are those of its class."""
    return _circulation(GeneralCirculationModel, bounds, static, options)


def earth_circulation(
    bounds: Mapping[str, Sequence[float]] | None = None,
    static: Mapping[str, Any] | None = None,
    **options: Any,
) -> ClimateModel:
    """The same over the Earth, with seasons."""
    return _circulation(EarthCirculationModel, bounds, static, options)


def _circulation(
    kind: type[GeneralCirculationModel],
    bounds: Mapping[str, Sequence[float]] | None,
    static: Mapping[str, Any] | None,
    options: dict[str, Any],
) -> ClimateModel:
    allowed = [one.name for one in fields(kind) if one.name != "table"]
    for name in options:
        if name not in allowed:
            raise unknown("option of the general circulation model", name, allowed)
    model = kind(**options)
    return replace(model, table=model.table.replace(bounds=bounds, static=static))
