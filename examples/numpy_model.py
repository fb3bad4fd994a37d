"""A climate model in plain NumPy, which knows nothing of JAX: Budyko's, with ice.

    C ∂T/∂t = (1 − α(T)) Q(φ) − (A + B T) + γ (⟨T⟩ − T),   α from 0.3 to 0.6 around −10 °C

Heat is exchanged with the global mean ⟨T⟩ (Budyko 1969, Tellus 21, 611–619).

Train it with ``fedrain train --model examples/numpy_model.py:Budyko``.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedrain import climate

STEP, HEAT_CAPACITY = 4 * 86_400.0, 4.2e7  # s; J m⁻² K⁻¹: 10 m of water
PARAMETERS = (
    climate.Parameter("A", "outgoing longwave radiation at 0 degC", "W m-2", 205.0, 150.0, 250.0,
                      scope="column", action_unit=100.0),
    climate.Parameter("B", "longwave feedback", "W m-2 K-1", 1.9, 1.5, 2.5),
    climate.Parameter("gamma", "exchange with the global mean", "W m-2 K-1", 3.0, 2.0, 4.5),
)  # fmt: skip


@dataclass(frozen=True)
class Budyko(climate.HostModel):
    """Zonal mean surface temperature in °C. Agents see and set it as they would a model in JAX."""

    latitudes: int = 48
    table: climate.ParameterTable = climate.ParameterTable(PARAMETERS)
    fields = (climate.SURFACE_TEMPERATURE,)
    forcings = (climate.Forcing("solar", "W m-2", 0.0, "change of the solar constant"),)
    days_per_step = STEP / 86_400

    @cached_property
    def columns(self):
        """Bands of equal width, weighted by their area."""
        return climate.Columns.zonal(self.latitudes)

    @cached_property
    def insolation(self):
        """Q in W m⁻²."""
        return climate.annual_insolation(self.columns.latitude)

    def init_host(self, rng, temperature=20.0):
        """A uniform temperature and some weather. Fields are found in the state by their names."""
        return {"surface_temperature": temperature + rng.normal(scale=0.5, size=self.latitudes)}

    def step_host(self, state, parameters, forcing, rng):
        """One step. What comes in and goes out are NumPy arrays in double precision."""
        T = state["surface_temperature"]
        # The ice edge is 4 K wide: a sharp one would make single latitudes flip.
        albedo = 0.45 - 0.15 * np.tanh((T + 10) / 4)
        sun = (1 - albedo) * self.insolation * (1 + forcing["solar"] / 1365.2)
        exchange = parameters["gamma"] * (self.columns.mean(T) - T)
        heating = sun - parameters["A"] - parameters["B"] * T + exchange
        return {"surface_temperature": T + STEP / HEAT_CAPACITY * heating}
