"""The general circulation model over the Earth, and the reanalysis through the year as its target.

Outgoing longwave and absorbed shortwave are the monthly climatology, its fluxes in balance. Air
temperature is known for January, July and the year: between them it goes as the cosine of the time
of year. The model's layers are of σ: the target of a layer is the reanalysis at σ times the surface
pressure that the model has there at the time, so that mountains do not count as errors.
"""

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fedrain.climate.columns import frozen
from fedrain.climate.fields import ABSORBED_SHORTWAVE, OUTGOING_LONGWAVE
from fedrain.climate.insolation import DAYS_PER_YEAR
from fedrain.climate.models.gcm import SURFACE_PRESSURE, CirculationState, GeneralCirculationModel
from fedrain.climate.reanalysis import air_table, balanced_months, on_columns, through_the_year

#: Times of year of the middle of January, when the first harmonic of the temperature turns.
TURN = 15.5 / DAYS_PER_YEAR


@dataclass(frozen=True)
class EarthCirculationModel(GeneralCirculationModel):
    """Land, mountains, and sea and ice of jcm's climatology through the year; judged by NCEP."""

    surface: str = "earth"
    start: str = "2001-01-01"
    perpetual: bool = False
    spin_up: int = 365

    @cached_property
    def _days(self) -> dict[str, Float[np.ndarray, "day lat"]]:
        """The fluxes of the reanalysis on every day of the year."""
        season = np.arange(366) / DAYS_PER_YEAR
        months = balanced_months(self.columns)
        names = (OUTGOING_LONGWAVE.name, ABSORBED_SHORTWAVE.name)
        return {name: frozen(through_the_year(months[name], season)) for name in names}

    @cached_property
    def _air(self) -> tuple[Float[np.ndarray, " level"], Float[np.ndarray, "2 lat level"]]:
        """Logarithm of the pressure, rising; and annual mean and half of January minus July, °C."""
        table = air_table()
        annual, january, july = (
            on_columns(table["latitude"], table[name], self.columns).T[:, ::-1]
            for name in ("annual", "january", "july")
        )
        pressure = np.log(table["level"][::-1])
        return frozen(pressure), frozen(np.stack([annual, (january - july) / 2]))

    def target_at(self, state: CirculationState) -> dict[str, Float[Array, "lat ..."]]:
        """The reanalysis at the time, and on the layers, of what :meth:`observe` shows."""
        season = self.season(state)
        day = (season * DAYS_PER_YEAR).astype(jnp.int32)
        found = {name: jnp.asarray(one, jnp.float32)[day] for name, one in self._days.items()}
        pressure, (annual, swing) = self._air
        air = annual + swing * jnp.cos(2 * jnp.pi * (season - TURN))
        sigma = jnp.asarray(self.sigma, jnp.float32)
        at = jnp.log(sigma * state["shown"][SURFACE_PRESSURE.name][:, None])
        known = jnp.asarray(pressure, jnp.float32)
        layers = jax.vmap(lambda p, own: jnp.interp(p, known, own))(at, air.astype(jnp.float32))
        return {**found, "air_temperature": layers}
