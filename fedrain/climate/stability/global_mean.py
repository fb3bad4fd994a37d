"""Equilibria of the global mean: (1 − α(T)) S/4 = A + B T.

The curve S(T) = 4 (A + B T) / (1 − α(T)) is explicit; it is S-shaped when the feedback is strong.
An equilibrium is stable where dS/dT > 0: more sun, more warmth.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import brentq

from fedrain.climate.stability.feedback import FeedbackModel
from fedrain.errors import InputError


class GlobalCurve(NamedTuple):
    """Equilibria of the global mean along the temperature.

    Args:
        temperature: Global mean in °C, ``[point]``.
        solar: Solar constant in W m⁻², ``[point]``.
        stable: Whether a small deviation dies out, ``[point]``.
    """

    temperature: Float[np.ndarray, " point"]  # °C
    solar: Float[np.ndarray, " point"]  # W m⁻²
    stable: Bool[np.ndarray, " point"]


def global_curve(model: FeedbackModel, low: float, high: float, points: int = 2001) -> GlobalCurve:
    """Equilibria with temperatures between ``low`` and ``high``.

    Args:
        model: With its parameters.
        low: Coldest global mean in °C.
        high: Warmest.
        points: How many temperatures between them.

    Returns:
        For each temperature, the solar constant that holds it, and whether that is stable.
    """
    temperature = np.linspace(low, high, points)
    return GlobalCurve(temperature, _solar(model, temperature), _slope(model, temperature) > 0)


def global_equilibria(
    model: FeedbackModel, solar: float, low: float = -100.0, high: float = 100.0
) -> list[tuple[float, bool]]:
    """Every equilibrium at one solar constant, coldest first, and whether it is stable.

    Args:
        model: With its parameters.
        solar: Solar constant in W m⁻².
        low: Coldest global mean in °C that is looked for.
        high: Warmest.

    Returns:
        Pairs of a temperature in °C and whether it is stable.
    """
    curve = global_curve(model, low, high)
    excess = curve.solar - solar
    found = []
    for i in np.flatnonzero(np.sign(excess[1:]) != np.sign(excess[:-1])):
        root = brentq(
            lambda t: float(_solar(model, np.array([t]))[0]) - solar,
            curve.temperature[i],
            curve.temperature[i + 1],
            xtol=1e-12,
        )
        found.append((float(root), bool(_slope(model, np.array([root]))[0] > 0)))
    if not found:
        raise InputError(
            f"the global mean has no equilibrium between {low:g} and {high:g} °C at {solar:g} W m⁻²"
        )
    return found


def _solar(
    model: FeedbackModel, temperature: Float[np.ndarray, " point"]
) -> Float[np.ndarray, " point"]:
    albedo = model.ice_albedo + (model.a0 - model.ice_albedo) * model.openness(temperature)
    return 4 * (model.A + model.B * temperature) / (1 - albedo)


def _slope(
    model: FeedbackModel, temperature: Float[np.ndarray, " point"]
) -> Float[np.ndarray, " point"]:
    """dS/dT."""
    openness = model.openness(temperature)
    contrast = model.a0 - model.ice_albedo
    absorbed = 1 - model.ice_albedo - contrast * openness
    change = np.zeros_like(temperature)
    if model.width > 0:
        change = 2 * openness * (1 - openness) / model.width * contrast
    return 4 * (model.B * absorbed + (model.A + model.B * temperature) * change) / absorbed**2
