"""Equilibria of the latitudinal model, followed through its folds.

Pseudo-arclength continuation: the solar constant is an unknown beside the temperatures, and each
new point lies at a given distance along the curve, so that the curve may turn back. Newton's method
with the exact Jacobian solves the bordered system. A fold, where it turns, is a tipping point.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq

from fedrain.climate.stability.feedback import FeedbackModel, Profile
from fedrain.climate.stability.spectrum import spectrum
from fedrain.errors import InputError

SOLAR_SCALE = 10.0  # W m⁻² that count as much as 1 K along the curve
TOLERANCE = 1e-9  # K
FIRST_STEP, LONGEST_STEP, SHORTEST_STEP = 0.3, 1.0, 1e-6
STRAIGHT = 0.95  # cosine of the largest turn within a step
MOST_POINTS = 20_000


@dataclass(frozen=True)
class Branch:
    """Equilibria along the curve, from the warm end to the cold one.

    Args:
        model: With its parameters.
        solar: Solar constant in W m⁻², ``[point]``.
        temperature: In °C, ``[point, lat]``.
        leading: Largest eigenvalue, per year, ``[point]``.
        unstable: How many eigenvalues are above zero, ``[point]``.
        folds: Where the curve turns back: the tipping points.
    """

    model: FeedbackModel
    solar: Float[np.ndarray, " point"]  # W m⁻²
    temperature: Float[np.ndarray, "point lat"]  # °C
    leading: Float[np.ndarray, " point"]  # largest eigenvalue, per year
    unstable: Float[np.ndarray, " point"]  # number of eigenvalues above zero
    folds: tuple["Point", ...]

    @property
    def mean(self) -> Float[np.ndarray, " point"]:
        """Global mean temperature in °C."""
        return self.model.grid.mean(self.temperature)

    def at(self, solar: float, coldest: float = -np.inf, warmest: float = np.inf) -> list["Point"]:
        """Every equilibrium at one solar constant, warmest first, in a range of global means."""
        excess = self.solar - solar
        found = []
        for i in np.flatnonzero(np.sign(excess[1:]) != np.sign(excess[:-1])):
            part = excess[i] / (excess[i] - excess[i + 1])
            guess = (1 - part) * self.temperature[i] + part * self.temperature[i + 1]
            point = Point(newton(self.model, guess, solar), solar)
            if coldest <= self.model.grid.mean(point.temperature) <= warmest:
                found.append(point)
        if not found:
            span = "" if not np.isfinite([coldest, warmest]).any() else (
                f" with a global mean between {coldest:g} and {warmest:g} °C"
            )  # fmt: skip
            raise InputError(f"there is no equilibrium at {solar:g} W m⁻²{span}")
        return found


@dataclass(frozen=True)
class Point:
    """One equilibrium.

    Args:
        temperature: In °C, ``[lat]``.
        solar: Solar constant in W m⁻².
    """

    temperature: Profile
    solar: float


def newton(model: FeedbackModel, guess: Profile, solar: float) -> Profile:
    """The equilibrium near a guess, at one solar constant.

    Args:
        model: With its parameters.
        guess: Temperature in °C, ``[lat]``.
        solar: Solar constant in W m⁻².

    Returns:
        Temperature in °C, ``[lat]``.
    """
    temperature = guess
    for _ in range(100):
        change = np.linalg.solve(
            model.jacobian(temperature, solar), -model.tendency(temperature, solar)
        )
        temperature = temperature + change
        if np.abs(change).max() < TOLERANCE:
            return temperature
    raise InputError(f"no equilibrium was found near the guess at {solar:g} W m⁻²")


def follow(model: FeedbackModel, high: float = 2000.0, low: float = 700.0) -> Branch:
    """The curve from a warm equilibrium at the solar constant ``high`` until it passes ``low``.

    Args:
        model: With its parameters.
        high: Solar constant in W m⁻² where the curve begins.
        low: Where it ends.

    Returns:
        All equilibria on the way, stable and unstable, with the folds in between.
    """
    if model.width == 0:
        raise InputError("a step in albedo has no Jacobian: use a width, or step_equilibria")
    if not 0 < low < high or not np.isfinite(high):
        raise InputError(f"the range of solar constants must rise from above 0: {low:g}, {high:g}")
    open_water = np.linalg.solve(
        model.B * np.eye(model.grid.latitudes) - model.transport,
        high * (1 - model.water_albedo) * model.share - model.A,
    )
    here = Point(newton(model, open_water, high), high)
    down = np.append(np.zeros(model.grid.latitudes), -1.0)
    tangent = _tangent(model, here, down)
    points, slopes, folds = [here], [tangent[-1]], []
    step = FIRST_STEP
    while low <= here.solar <= high and len(points) < MOST_POINTS:
        found = _advance(model, here, tangent, step)
        turned = None if found is None else _tangent(model, found[0], tangent)
        # A sharp turn within one step may be a leap to another part of the curve.
        if found is None or turned is None or _cosine(model, tangent, turned) < STRAIGHT:
            step /= 2
            if step < SHORTEST_STEP:
                raise InputError(f"the curve cannot be followed beyond {here.solar:g} W m⁻²")
            continue
        after, iterations = found
        if np.sign(turned[-1]) != np.sign(tangent[-1]):
            folds.append(_fold(model, here, tangent, step))
        here, tangent = after, turned
        points.append(here)
        slopes.append(tangent[-1])
        step = min(1.3 * step, LONGEST_STEP) if iterations <= 4 else 0.7 * step
    spectra = [spectrum(model, point.temperature, point.solar) for point in points]
    return Branch(
        model,
        np.array([point.solar for point in points]),
        np.stack([point.temperature for point in points]),
        np.array([s.eigenvalues[0] for s in spectra]),
        np.array([s.unstable for s in spectra], float),
        tuple(folds),
    )


def _weights(model: FeedbackModel) -> Float[np.ndarray, " unknown"]:
    """Of temperatures and solar constant in the length of a step."""
    latitudes = model.grid.latitudes
    return np.append(np.full(latitudes, 1 / latitudes), SOLAR_SCALE**-2)


def _bordered(
    model: FeedbackModel, point: Point, row: Float[np.ndarray, " unknown"]
) -> Float[np.ndarray, "unknown unknown"]:
    """The Jacobian with ∂F/∂S as last column and ``row`` below."""
    column = model.absorbed_share(point.temperature)[:, None]
    return np.vstack([np.hstack([model.jacobian(point.temperature, point.solar), column]), row])


def _tangent(
    model: FeedbackModel, point: Point, before: Float[np.ndarray, " unknown"]
) -> Float[np.ndarray, " unknown"]:
    """Direction of the curve, of length 1, onwards from ``before``."""
    weights = _weights(model)
    unit = np.zeros(len(weights))
    unit[-1] = 1.0
    direction = np.linalg.solve(_bordered(model, point, weights * before), unit)
    return direction / np.sqrt(weights @ direction**2)


def _cosine(
    model: FeedbackModel, one: Float[np.ndarray, " unknown"], two: Float[np.ndarray, " unknown"]
) -> float:
    return float(_weights(model) @ (one * two))


def _advance(
    model: FeedbackModel, here: Point, tangent: Float[np.ndarray, " unknown"], step: float
) -> tuple[Point, int] | None:
    """The point at a distance along the curve, and the iterations it took; None without success."""
    weights = _weights(model)
    begin = np.append(here.temperature, here.solar)
    now = begin + step * tangent
    for iteration in range(1, 12):
        point = Point(now[:-1], float(now[-1]))
        residual = np.append(
            model.tendency(point.temperature, point.solar),
            (weights * tangent) @ (now - begin) - step,
        )
        change = np.linalg.solve(_bordered(model, point, weights * tangent), -residual)
        now = now + change
        if np.abs(change).max() < TOLERANCE:
            return Point(now[:-1], float(now[-1])), iteration
    return None


def _fold(
    model: FeedbackModel, here: Point, tangent: Float[np.ndarray, " unknown"], step: float
) -> Point:
    """The point within a step where the solar constant turns."""

    def slope(length: float) -> float:
        found = _advance(model, here, tangent, length)
        assert found is not None
        return float(_tangent(model, found[0], tangent)[-1])

    length = brentq(slope, 0.0, step, xtol=1e-10)
    found = _advance(model, here, tangent, length)
    assert found is not None
    return found[0]
