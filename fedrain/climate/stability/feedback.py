"""The energy balance model with ice–albedo feedback.

    C ∂T/∂t = F(T, S) = (1 − α(T, φ)) S q(φ) − (A + B T) + D L T

    α = a_w(φ)                                     where T > T_f, a_i elsewhere   (``width`` = 0)
    α = a_i + (a_w − a_i) ½ (1 + tanh((T − T_f)/w))                               (``width`` = w)

with a_w = a0 + a2 P2(sin φ), S the solar constant and q(φ) the share of it that reaches a latitude:
(1 + s2 P2)/4, or the annual mean insolation of the real orbit. The defaults are climlab's ``EBM``.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from fedrain.climate.columns import frozen
from fedrain.climate.grid import Grid
from fedrain.climate.insolation import DAYS_PER_YEAR, Orbit, annual_insolation
from fedrain.climate.models.energy_balance import WATER_HEAT_CAPACITY
from fedrain.errors import InputError

Profile = Float[np.ndarray, " lat"]

SECONDS_PER_YEAR = DAYS_PER_YEAR * 86_400.0
INSOLATIONS = ("p2", "annual")


@dataclass(frozen=True)
class FeedbackModel:
    """Parameters of the model; all in the units of the energy balance model.

    Args:
        grid: The latitudes.
        A: Outgoing longwave radiation at 0 °C, W m⁻².
        B: Longwave feedback, W m⁻² K⁻¹.
        D: Heat diffusivity, W m⁻² K⁻¹.
        a0: Albedo of open water: global mean.
        a2: Its contrast between equator and pole.
        ice_albedo: Albedo of ice.
        freezing: Temperature, in °C, below which there is ice.
        width: K over which albedo changes; 0: a step.
        insolation: ``"p2"``: (1 + s2 P2)/4; ``"annual"``: of the real orbit.
        s2: Contrast of insolation, for ``"p2"``.
        water_depth: Depth, in m, of the water that has the heat capacity.
    """

    grid: Grid = Grid()
    A: float = 210.0  # W m⁻²
    B: float = 2.0  # W m⁻² K⁻¹
    D: float = 0.555  # W m⁻² K⁻¹
    a0: float = 0.3
    a2: float = 0.078
    ice_albedo: float = 0.62
    freezing: float = -10.0  # °C
    width: float = 5.0  # K; 0: a step
    insolation: str = "p2"
    s2: float = -0.48
    water_depth: float = 10.0  # m

    def __post_init__(self) -> None:
        if self.insolation not in INSOLATIONS:
            raise InputError(f"insolation is one of {', '.join(INSOLATIONS)}")
        numbers = (self.A, self.B, self.D, self.width, self.water_depth, self.freezing)
        if not np.isfinite(numbers).all():
            raise InputError("the parameters of the model must be finite numbers")
        if self.B <= 0 or self.D < 0 or self.width < 0 or self.water_depth <= 0:
            raise InputError("B and the water's depth must be positive, D and width not negative")
        if not 0 <= self.a0 < self.ice_albedo <= 1:
            raise InputError("albedo must rise from water (a0) to ice, within 0 and 1")

    @property
    def heat_capacity(self) -> float:
        """C in J m⁻² K⁻¹."""
        return self.water_depth * WATER_HEAT_CAPACITY

    @cached_property
    def share(self) -> Profile:
        """q(φ), the share of the solar constant that reaches a latitude."""
        if self.insolation == "p2":
            return frozen((1 + self.s2 * self.grid.p2) / 4)
        return frozen(annual_insolation(self.grid.centres, Orbit(), 1.0, 90))

    @cached_property
    def water_albedo(self) -> Profile:
        """a_w(φ)."""
        return frozen(self.a0 + self.a2 * self.grid.p2)

    @cached_property
    def transport(self) -> Float[np.ndarray, "lat lat"]:
        """D L in W m⁻² K⁻¹."""
        return frozen(self.D * self.grid.laplacian)

    def albedo(self, temperature: Profile) -> Profile:
        """α(T, φ)."""
        return self.ice_albedo + (self.water_albedo - self.ice_albedo) * self.openness(temperature)

    def openness(self, temperature: Profile) -> Profile:
        """How much of a cell is water: 0 for ice, 1 for none."""
        if self.width == 0:
            return (temperature > self.freezing).astype(float)
        return (1 + np.tanh((temperature - self.freezing) / self.width)) / 2

    def albedo_slope(self, temperature: Profile) -> Profile:
        """dα/dT in K⁻¹; zero for a step, but at the step."""
        if self.width == 0:
            return np.zeros_like(temperature)
        scaled = np.clip((temperature - self.freezing) / self.width, -300, 300)
        return (self.water_albedo - self.ice_albedo) / (2 * self.width * np.cosh(scaled) ** 2)

    def absorbed_share(self, temperature: Profile) -> Profile:
        """(1 − α) q = ∂F/∂S."""
        return (1 - self.albedo(temperature)) * self.share

    def tendency(self, temperature: Profile, solar: float) -> Profile:
        """F in W m⁻²."""
        outgoing = self.A + self.B * temperature
        moved = self.transport @ temperature
        return solar * self.absorbed_share(temperature) - outgoing + moved

    def effective_damping(self, temperature: Profile, solar: float) -> Profile:
        """B_eff = B + S q dα/dT in W m⁻² K⁻¹: negative where the feedback outdoes the damping."""
        return self.B + solar * self.share * self.albedo_slope(temperature)

    def jacobian(self, temperature: Profile, solar: float) -> Float[np.ndarray, "lat lat"]:
        """∂F/∂T in W m⁻² K⁻¹."""
        return self.transport - np.diag(self.effective_damping(temperature, solar))

    def ice_line(self, temperature: Profile) -> float:
        """Latitude in °N down to which ice reaches in the north; 90 without ice, 0 if all is.

        The edge of the southernmost cell of the northern hemisphere from which on all is ice.
        """
        north = self.grid.centres > 0
        frozen_cells = temperature[north] <= self.freezing
        open_cells = np.flatnonzero(~frozen_cells)
        edges = self.grid.edges[self.grid.edges > -1e-9]
        first = 0 if open_cells.size == 0 else int(open_cells[-1]) + 1
        return float(edges[first])
