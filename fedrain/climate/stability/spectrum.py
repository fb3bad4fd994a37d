"""The spectrum at an equilibrium: how fast small disturbances grow or decay.

Where albedo is fixed the modes are the Legendre polynomials, and λ_n = −(B + D n (n+1)) / C.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from fedrain.climate.stability.feedback import SECONDS_PER_YEAR, FeedbackModel, Profile


class Spectrum(NamedTuple):
    """Eigenvalues, largest first, and the modes that belong to them.

    Args:
        eigenvalues: Per year, ``[mode]``; negative ones decay.
        modes: ``[lat, mode]``; the largest number of each is 1.
    """

    eigenvalues: Float[np.ndarray, " mode"]  # per year
    modes: Float[np.ndarray, "lat mode"]  # the largest number of each is 1

    @property
    def unstable(self) -> int:
        """How many disturbances grow."""
        return int((self.eigenvalues > 0).sum())


def spectrum(model: FeedbackModel, temperature: Profile, solar: float) -> Spectrum:
    """The spectrum of the linearised model at a temperature profile.

    √cos φ J /√cos φ is symmetric, so that all eigenvalues are real.

    Args:
        model: With its parameters.
        temperature: In °C, ``[lat]``: an equilibrium, or any other.
        solar: Solar constant in W m⁻².

    Returns:
        As many eigenvalues and modes as latitudes.
    """
    root = np.sqrt(model.grid.weights)
    symmetric = model.jacobian(temperature, solar) * root[:, None] / root[None, :]
    values, vectors = np.linalg.eigh((symmetric + symmetric.T) / 2)
    modes = (vectors / root[:, None])[:, ::-1]
    largest = modes[np.abs(modes).argmax(axis=0), np.arange(modes.shape[1])]
    return Spectrum(values[::-1] * SECONDS_PER_YEAR / model.heat_capacity, modes / largest)


def analytic_eigenvalues(model: FeedbackModel, number: int) -> Float[np.ndarray, " mode"]:
    """λ_n per year for a fixed albedo on the sphere.

    Args:
        model: With its parameters.
        number: How many, from n = 0 on.

    Returns:
        Per year, ``[mode]``.
    """
    n = np.arange(number)
    return -(model.B + model.D * n * (n + 1)) * SECONDS_PER_YEAR / model.heat_capacity
