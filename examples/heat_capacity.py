"""A heat capacity that varies with latitude: where there is more land, less heat is stored.

    C(φ) ∂T/∂t = (1 − α) Q − (A + B T) + D/cos φ ∂/∂φ (cos φ ∂T/∂φ),   C = f C_land + (1 − f) C_sea

The steady state does not depend on C, but the way to it does, and that is what agents steer.

Train it with ``fedrain train --model examples/heat_capacity.py:LandAndSea``.
"""

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np

from fedrain.climate import EnergyBalanceModel

# Share of land in bands of 10° from south to north (Sellers 1965, Physical Climatology).
LAND = (
    1.00, 0.75, 0.10, 0.01, 0.03, 0.11, 0.23, 0.22, 0.24,
    0.23, 0.26, 0.38, 0.43, 0.52, 0.57, 0.71, 0.29, 0.07,
)  # fmt: skip


@dataclass(frozen=True)
class LandAndSea(EnergyBalanceModel):
    """The energy balance model with one heat capacity for each latitude."""

    land_depth: float = 1.0  # m of water that would store as much heat as the ground does
    water_depth: float = 15.0  # m: the mixed layer of the sea

    @cached_property
    def land(self):
        """Share of land at each latitude."""
        return np.interp(self.grid.centres, np.arange(-85, 90, 10), LAND)

    @property
    def heat_capacity(self):
        """C in J m⁻² K⁻¹ at each latitude; radiation takes it as it takes one number."""
        sea = EnergyBalanceModel(water_depth=self.water_depth).heat_capacity
        land = EnergyBalanceModel(water_depth=self.land_depth).heat_capacity
        return self.land * land + (1 - self.land) * sea

    @cached_property
    def modes(self):
        """Eigenvalues and eigenvectors of C⁻¹ L, which is symmetric if scaled by √(C cos φ)."""
        root = np.sqrt(self.heat_capacity * self.grid.weights)
        rates = self.grid.laplacian / self.heat_capacity[:, None]
        values, vectors = np.linalg.eigh(rates * root[:, None] / root)
        return values, vectors / root[:, None], vectors.T * root

    def diffuse(self, temperature, diffusivity):
        """Solve (I − Δt D C⁻¹ L) T' = T for T': implicit, so that any time step is stable."""
        values, vectors, inverse = (jnp.asarray(a, temperature.dtype) for a in self.modes)
        return vectors @ (inverse @ temperature / (1 - self.time_step * diffusivity * values))
