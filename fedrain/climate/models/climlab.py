"""The same energy balance model on climlab, as the oracle behind the same interface.

climlab computes on the host, in float64; an environment runs on either model unchanged.
"""

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Array, Float

from fedrain.climate.columns import Columns
from fedrain.climate.fields import Field, Forcing
from fedrain.climate.grid import Grid
from fedrain.climate.models.energy_balance import EnergyBalanceModel
from fedrain.climate.models.host import HostModel
from fedrain.climate.parameters import Parameters, ParameterTable
from fedrain.errors import MissingExtraError


def import_climlab() -> Any:
    """Import climlab without its warnings of missing Fortran parts, which no EBM needs."""
    try:
        # Recorded as well as ignored: climlab changes the filters while it is imported.
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("ignore")
            return importlib.import_module("climlab")
    except ImportError:
        raise MissingExtraError("climlab", "climlab") from None


@dataclass(frozen=True)
class ClimlabModel(HostModel):
    """``climlab.EBM_annual`` with the grid, orbit and constants of ``settings``.

    Args:
        settings: The energy balance model whose grid, orbit, constants and table it has.
    """

    settings: EnergyBalanceModel = EnergyBalanceModel()
    dtype: ClassVar[str] = "float64"

    def __post_init__(self) -> None:
        import_climlab()

    @property
    def grid(self) -> Grid:
        """The latitudes of the model."""
        return self.settings.grid

    @property
    def columns(self) -> Columns:  # type: ignore[override]
        """The latitudes of the model."""
        return self.settings.columns

    @property
    def table(self) -> ParameterTable:  # type: ignore[override]
        """The parameters that can be set at every step."""
        return self.settings.table

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        """The surface temperature."""
        return self.settings.fields

    @property
    def forcings(self) -> tuple[Forcing, ...]:  # type: ignore[override]
        """Longwave and solar."""
        return self.settings.forcings

    @property
    def days_per_step(self) -> float:
        """Length of a time step."""
        return self.settings.days_per_step

    def observe(self, state: Float[Array, " lat"]) -> dict[str, Float[Array, " lat"]]:
        """The temperature is all that there is to see."""
        return self.settings.observe(state)

    def fluxes(
        self, state: Float[Array, " lat"], parameters: Parameters, forcing: Any = None
    ) -> dict[str, Float[Array, " lat"]]:
        """As of the model on JAX, with which climlab's fluxes agree."""
        return self.settings.fluxes(state, parameters, forcing)

    def init_host(
        self, rng: np.random.Generator, temperature: float = 50.0
    ) -> Float[np.ndarray, " lat"]:
        """The same temperature everywhere, or a profile, in °C."""
        del rng
        return np.broadcast_to(np.asarray(temperature, float), (self.grid.latitudes,)).copy()

    @cached_property
    def process(self) -> Any:
        """The climlab process, a mutable object: :meth:`step` sets its whole state."""
        with np.errstate(invalid="ignore"):  # an arc cosine where the sun does not set
            return self._make_process()

    def _make_process(self) -> Any:
        settings = self.settings
        process = import_climlab().EBM_annual(
            num_lat=settings.grid.latitudes,
            S0=settings.solar_constant,
            water_depth=settings.water_depth,
            timestep=settings.time_step,
        )
        insolation = process.subprocess["insolation"]
        insolation.orb = {
            "ecc": settings.orbit.eccentricity,
            "long_peri": settings.orbit.perihelion,
            "obliquity": settings.orbit.obliquity,
        }
        # climlab computes the insolation of every day of the year again at every step, which is
        # nine tenths of its time; the orbit does not change.
        factors = insolation._daily_insolation_factor_arrays()
        insolation._daily_insolation_factor_arrays = lambda: factors
        return process

    @property
    def insolation(self) -> Float[np.ndarray, " lat"]:
        """Annual mean insolation in W m⁻²."""
        return np.array(self.process.subprocess["insolation"].insolation).reshape(-1)

    def step_host(
        self,
        state: Float[np.ndarray, " lat"],
        parameters: Parameters,
        forcing: Mapping[str, float] | None = None,
        rng: np.random.Generator | None = None,
    ) -> Float[np.ndarray, " lat"]:
        """One step of one climate, in NumPy and float64."""
        del rng
        forced = {"longwave": 0.0, "solar": 0.0, **(forcing or {})}
        parts = self.process.subprocess
        self.process.Ts[:, 0] = state
        sun = self.settings.solar_constant + forced["solar"]
        if sun != parts["insolation"].S0:
            parts["insolation"].S0 = sun
        # A change of A + B T from outside is a change of A.
        longwave = np.asarray(parameters["A"], float) + forced["longwave"]
        parts["LW"].A = longwave[:, None]
        parts["LW"].B = np.asarray(parameters["B"], float)[:, None]
        for part, symbol in (("albedo", "a0"), ("albedo", "a2"), ("diffusion", "D")):
            setattr(parts[part], symbol, float(np.asarray(parameters[symbol])))
        self.process.step_forward()
        return np.array(self.process.Ts[:, 0])
