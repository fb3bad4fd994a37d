"""Latitude grid of equal spacing, and heat diffusion on it.

Cell centres lie half a spacing away from the poles; fluxes live on the cell edges, and the
edges at the poles carry none because a latitude circle has no length there (cos φ = 0).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from fedrain.climate.columns import Columns, frozen, is_integer
from fedrain.errors import InputError

#: Diffusion has the square of it in numbers; 4096 are 5 km.
MOST_LATITUDES = 4096
EARTH_RADIUS = 6.373e6  # m, as climlab


@dataclass(frozen=True)
class Grid:
    """``latitudes`` cells of equal width, south to north.

    Args:
        latitudes: How many cells; their width is 180° over this.
    """

    latitudes: int = 96

    def __post_init__(self) -> None:
        if not is_integer(self.latitudes):
            raise InputError(f"latitudes must be an integer, not {self.latitudes!r}")
        if self.latitudes < 2:
            raise InputError(f"a grid needs at least 2 latitudes, not {self.latitudes}")
        if self.latitudes > MOST_LATITUDES:
            raise InputError(f"a grid has at most {MOST_LATITUDES} latitudes, not {self.latitudes}")

    @cached_property
    def edges(self) -> Float[np.ndarray, " edge"]:
        """Cell edges in °N, the poles among them."""
        return frozen(np.linspace(-90.0, 90.0, self.latitudes + 1))

    @cached_property
    def centres(self) -> Float[np.ndarray, " lat"]:
        """Cell centres in °N."""
        return frozen((self.edges[1:] + self.edges[:-1]) / 2)

    @cached_property
    def weights(self) -> Float[np.ndarray, " lat"]:
        """Area weights cos φ of the cells (not normalised)."""
        return frozen(np.cos(np.deg2rad(self.centres)))

    @cached_property
    def columns(self) -> Columns:
        """The cells as columns of a climate model."""
        return Columns(self.centres, weights=self.weights)

    @cached_property
    def p2(self) -> Float[np.ndarray, " lat"]:
        """Second Legendre polynomial P2(sin φ) at the cell centres."""
        sine = np.sin(np.deg2rad(self.centres))
        return frozen((3 * sine**2 - 1) / 2)

    @cached_property
    def edge_weights(self) -> Float[np.ndarray, " edge"]:
        """Cosine of the edge latitudes, exactly zero at the poles."""
        cosine = np.cos(np.deg2rad(self.edges))
        cosine[[0, -1]] = 0.0
        return frozen(cosine)

    @cached_property
    def laplacian(self) -> Float[np.ndarray, "lat lat"]:
        """L with (L T) = 1/cos φ ∂/∂φ (cos φ ∂T/∂φ), in flux form: Σ cos φ (L T) = 0."""
        conductance = self.edge_weights / self.spacing**2
        symmetric = (
            np.diag(conductance[1:-1], 1)
            + np.diag(conductance[1:-1], -1)
            - np.diag(conductance[1:] + conductance[:-1])
        )
        return frozen(symmetric / self.weights[:, None])

    @property
    def spacing(self) -> float:
        """Width of a cell in radians."""
        return np.pi / self.latitudes

    @cached_property
    def modes(
        self,
    ) -> tuple[
        Float[np.ndarray, " mode"], Float[np.ndarray, "lat mode"], Float[np.ndarray, "mode lat"]
    ]:
        """Eigenvalues of L, its eigenvectors R as columns, and their inverse R⁻¹.

        √cos φ L /√cos φ is symmetric, so all eigenvalues are real (−n(n+1) on the sphere) and
        L = R Λ R⁻¹ holds to rounding. Functions of L are then two matrix products, whatever D is.
        """
        root = np.sqrt(self.weights)
        symmetric = self.laplacian * root[:, None] / root[None, :]
        eigenvalues, vectors = np.linalg.eigh((symmetric + symmetric.T) / 2)
        return (
            frozen(eigenvalues),
            frozen(vectors / root[:, None]),
            frozen(vectors.T * root[None, :]),
        )

    def mean(self, profile: Float[np.ndarray, "... lat"]) -> Float[np.ndarray, "..."]:
        """Area-weighted mean over the globe."""
        return np.asarray(profile @ self.weights / self.weights.sum())
