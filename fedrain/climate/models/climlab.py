"""The same energy balance model on climlab, as the oracle behind the same interface.

climlab computes on the host, in float64. :meth:`ClimlabModel.step` calls it from compiled code,
so that an environment runs on either model unchanged; any other host model (a Fortran GCM, say)
can be wrapped in the same way.
"""

import importlib
import warnings
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from fedrain.climate.grid import Grid
from fedrain.climate.models.energy_balance import EnergyBalanceModel
from fedrain.climate.parameters import Parameters, ParameterTable
from fedrain.errors import MissingExtraError

_one_at_a_time = Lock()  # a process holds the state of the climate that it steps


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
class ClimlabModel:
    """``climlab.EBM_annual`` with the grid, orbit and constants of ``settings``."""

    settings: EnergyBalanceModel = EnergyBalanceModel()
    dtype: ClassVar[str] = "float64"

    def __post_init__(self) -> None:
        import_climlab()

    @property
    def grid(self) -> Grid:
        """The latitudes of the model."""
        return self.settings.grid

    @property
    def table(self) -> ParameterTable:
        """The parameters that can be set at every step."""
        return self.settings.table

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
        # climlab computes the insolation of every day of the year anew at every step, which is
        # nine tenths of its time; the orbit does not change.
        factors = insolation._daily_insolation_factor_arrays()
        insolation._daily_insolation_factor_arrays = lambda: factors
        return process

    @property
    def insolation(self) -> Float[np.ndarray, " lat"]:
        """Annual mean insolation in W m⁻²."""
        return np.array(self.process.subprocess["insolation"].insolation).reshape(-1)

    def step_host(
        self, temperature: Float[np.ndarray, " lat"], parameters: Parameters
    ) -> Float[np.ndarray, " lat"]:
        """One step of one climate, in NumPy and float64; threads take turns."""
        with _one_at_a_time:
            parts = self.process.subprocess
            self.process.Ts[:, 0] = temperature
            for part, symbol in (("LW", "A"), ("LW", "B")):
                setattr(parts[part], symbol, np.asarray(parameters[symbol], float)[:, None])
            for part, symbol in (("albedo", "a0"), ("albedo", "a2"), ("diffusion", "D")):
                setattr(parts[part], symbol, float(np.asarray(parameters[symbol])))
            self.process.step_forward()
            return np.array(self.process.Ts[:, 0])

    def step(
        self, temperature: Float[Array, "*batch lat"], parameters: Parameters
    ) -> Float[Array, "*batch lat"]:
        """The temperature one time step later, for each climate of the batch in turn."""
        shape = temperature.shape
        values = {
            row.symbol: jnp.broadcast_to(
                parameters[row.symbol], shape if row.per_latitude else shape[:-1]
            )
            for row in self.table
        }

        def on_host(states: ArrayLike, values: Parameters) -> Float[np.ndarray, "..."]:
            batch = np.asarray(states)
            given = {symbol: np.asarray(value) for symbol, value in values.items()}
            after = np.empty_like(batch)
            for index in np.ndindex(batch.shape[:-1]):
                after[index] = self.step_host(
                    batch[index], {symbol: value[index] for symbol, value in given.items()}
                )
            return after

        result = jax.ShapeDtypeStruct(shape, temperature.dtype)
        return jax.pure_callback(on_host, result, temperature, values, vmap_method="broadcast_all")
