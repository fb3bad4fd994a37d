"""ebm-v1, ebm-v2 and ebm-v3: one environment with three switches.

::

|        | agents | climates           | observation        | an action sets     |
|--------|--------|--------------------|--------------------|--------------------|
| ebm-v1 | 1      | 1                  | all latitudes      | all latitudes      |
| ebm-v2 | n      | one for each agent | all of its climate | all of its climate |
| ebm-v3 | n      | one, shared        | its own region     | its own region     |
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fedrain.climate import (
    ENERGY_BALANCE_PARAMETERS,
    ClimateModel,
    ClimlabModel,
    EnergyBalanceModel,
    Grid,
    target_profile,
)
from fedrain.climate.climatology import Target
from fedrain.envs.environment import Environment
from fedrain.errors import InputError

BACKENDS = ("jax", "climlab")


class Setting(NamedTuple):
    """The three switches that tell the environments apart."""

    multi_agent: bool
    shared_climate: bool
    local_observation: bool


SETTINGS = {
    "ebm-v1": Setting(multi_agent=False, shared_climate=False, local_observation=False),
    "ebm-v2": Setting(multi_agent=True, shared_climate=False, local_observation=False),
    "ebm-v3": Setting(multi_agent=True, shared_climate=True, local_observation=True),
}


def make(
    name: str,
    *,
    agents: int | None = None,
    region: int | None = None,
    latitudes: int = 96,
    bounds: Mapping[str, Sequence[float]] | None = None,
    static: Mapping[str, float] | None = None,
    start_temperature: float = 50.0,
    episode_length: int = 200,
    target: Target = None,
    backend: str = "jax",
    model: ClimateModel | None = None,
) -> Environment:
    """The environment ``ebm-v1``, ``ebm-v2`` or ``ebm-v3``.

    Args:
        name: Which of :data:`SETTINGS`.
        agents: Number of agents, a divisor of the latitudes; 6 by default (v1: always 1).
        region: Keep only the agent of this region (v2).
        latitudes: Number of latitudes.
        bounds: Other bounds of parameters, by symbol, in physical units: ``{"A": (180, 240)}``.
        static: Other static values of parameters, likewise.
        start_temperature: Temperature in °C everywhere at the start.
        episode_length: Steps in an episode.
        target: NetCDF file or temperatures in °C; the NCEP climatology by default.
        backend: ``"jax"``, or ``"climlab"`` for the same model on climlab.
        model: A climate model of your own instead; ``latitudes``, ``bounds``, ``static`` and
            ``backend`` are then the model's business and must be left out.
    """
    if name not in SETTINGS:
        raise InputError(f"there is no environment {name!r}: use one of {', '.join(SETTINGS)}")
    setting = SETTINGS[name]
    if not setting.multi_agent and agents not in (None, 1):
        raise InputError(f"{name} has one agent, not {agents}; ebm-v2 and ebm-v3 have several")
    if not setting.multi_agent and region is not None:
        raise InputError(f"{name} has no regions; ebm-v2 has")
    if model is None:
        model = _energy_balance(latitudes, bounds, static, backend)
    elif (latitudes, bounds, static, backend) != (96, None, None, "jax"):
        raise InputError("a model of your own has its own latitudes, bounds, static and backend")
    return Environment(
        model=model,
        target=tuple(target_profile(target, model.grid).tolist()),
        agents=(6 if setting.multi_agent else 1) if agents is None else agents,
        shared_climate=setting.shared_climate,
        local_observation=setting.local_observation,
        start_temperature=start_temperature,
        episode_length=episode_length,
        only_region=region,
    )


def _energy_balance(
    latitudes: int,
    bounds: Mapping[str, Sequence[float]] | None,
    static: Mapping[str, float] | None,
    backend: str,
) -> ClimateModel:
    table = ENERGY_BALANCE_PARAMETERS.replace(bounds=bounds, static=static)
    model = EnergyBalanceModel(grid=Grid(latitudes), table=table)
    if backend not in BACKENDS:
        raise InputError(f"there is no backend {backend!r}: use one of {', '.join(BACKENDS)}")
    return model if backend == "jax" else ClimlabModel(model)
