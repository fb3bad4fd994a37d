"""Insolation at the top of the atmosphere from the orbit of the Earth.

Daily mean insolation of a latitude φ when the sun stands at declination δ (Berger 1978):

    Q = S0/π (1 + e cos(λ − ϖ))² / (1 − e²)² (h sin φ sin δ + cos φ cos δ sin h)

with λ the longitude of the sun, ϖ that of perihelion, and h the hour angle of sunset.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from fedrain.errors import InputError

SOLAR_CONSTANT = 1365.2  # W m⁻², as climlab
DAYS_PER_YEAR = 365.2422
VERNAL_EQUINOX = 80.0  # day of the calendar year


@dataclass(frozen=True)
class Orbit:
    """Orbital elements; the default is the present day (as climlab).

    Args:
        eccentricity: Of the ellipse, from 0 to below 1.
        perihelion: Longitude of perihelion from the vernal equinox, °.
        obliquity: Tilt of the axis, °.
    """

    eccentricity: float = 0.017236
    perihelion: float = 281.37  # longitude of perihelion from the vernal equinox, °
    obliquity: float = 23.446  # °

    def __post_init__(self) -> None:
        if not 0 <= self.eccentricity < 1:
            raise InputError(f"eccentricity must be in [0, 1), not {self.eccentricity}")
        if not np.isfinite([self.perihelion, self.obliquity]).all():
            raise InputError("perihelion and obliquity must be finite numbers of degrees")


def solar_longitude(day: Float[np.ndarray, " day"], orbit: Orbit) -> Float[np.ndarray, " day"]:
    """True longitude of the sun in radians on a day of the year (Berger 1978, to e³)."""
    e = orbit.eccentricity
    perihelion = np.deg2rad(orbit.perihelion)
    beta = np.sqrt(1 - e**2)
    mean_at_equinox = 2 * (
        (e / 2 + e**3 / 8) * (1 + beta) * np.sin(perihelion)
        - e**2 / 4 * (1 / 2 + beta) * np.sin(2 * perihelion)
        + e**3 / 8 * (1 / 3 + beta) * np.sin(3 * perihelion)
    )
    anomaly = mean_at_equinox + (day - VERNAL_EQUINOX) * 2 * np.pi / DAYS_PER_YEAR - perihelion
    return (
        anomaly
        + perihelion
        + (2 * e - e**3 / 4) * np.sin(anomaly)
        + 5 / 4 * e**2 * np.sin(2 * anomaly)
        + 13 / 12 * e**3 * np.sin(3 * anomaly)
    )


def daily_insolation(
    latitude: Float[np.ndarray, " lat"],
    day: Float[np.ndarray, " day"],
    orbit: Orbit,
    solar_constant: float = SOLAR_CONSTANT,
) -> Float[np.ndarray, "lat day"]:
    """Daily mean insolation in W m⁻² at latitudes (°N) on days of the year.

    Args:
        latitude: In °N, ``[lat]``.
        day: Of the year, from 0, ``[day]``.
        orbit: Orbital elements.
        solar_constant: In W m⁻².

    Returns:
        In W m⁻², ``[lat, day]``.
    """
    longitude = solar_longitude(day, orbit)
    declination = np.arcsin(np.sin(np.deg2rad(orbit.obliquity)) * np.sin(longitude))
    e = orbit.eccentricity
    inverse_distance = (1 + e * np.cos(longitude - np.deg2rad(orbit.perihelion))) / (1 - e**2)
    phi = np.deg2rad(latitude)[:, None]
    # Beyond ±1 the sun does not set, or does not rise.
    sunset = np.arccos(np.clip(-np.tan(phi) * np.tan(declination), -1, 1))
    cosine_zenith = (
        sunset * np.sin(phi) * np.sin(declination)
        + np.cos(phi) * np.cos(declination) * np.sin(sunset)
    ) / np.pi
    return solar_constant * inverse_distance**2 * np.maximum(cosine_zenith, 0.0)


def annual_insolation(
    latitude: Float[np.ndarray, " lat"],
    orbit: Orbit | None = None,
    solar_constant: float = SOLAR_CONSTANT,
    samples: int = 90,
) -> Float[np.ndarray, " lat"]:
    """Annual mean insolation in W m⁻²: the mean over equally spaced days, as climlab takes it.

    Args:
        latitude: In °N, ``[lat]``.
        orbit: Orbital elements; those of the present day, if left out.
        solar_constant: In W m⁻².
        samples: How many days of the year.

    Returns:
        In W m⁻², ``[lat]``.
    """
    days = np.arange(samples) * (DAYS_PER_YEAR / samples)
    return daily_insolation(latitude, days, orbit or Orbit(), solar_constant).mean(axis=1)
