"""The models of the package's own tasks, made from what a person may say of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedrain.climate import (
    ENERGY_BALANCE_PARAMETERS,
    ClimateModel,
    ClimlabModel,
    EnergyBalanceModel,
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
