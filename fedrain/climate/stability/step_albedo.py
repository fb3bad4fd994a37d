"""Equilibria with a step in albedo, exactly.

For ice down to a given cell in both hemispheres the model is linear, T = S u − w, and the solar
constants for which the cells that are ice lie below freezing and the others above are an interval.
"""

import numpy as np

from fedrain.climate.stability.continuation import Point
from fedrain.climate.stability.feedback import FeedbackModel
from fedrain.errors import InputError


def step_equilibria(model: FeedbackModel, solar: float) -> list[Point]:
    """Every equilibrium whose ice is poleward of one latitude, warmest first.

    Args:
        model: With a step in albedo: ``width`` 0, and ``insolation`` "p2".
        solar: Solar constant in W m⁻².

    Returns:
        Temperature ``[lat]`` in °C and solar constant of each.
    """
    if model.width != 0:
        raise InputError("the albedo is smooth: set its width to 0, or use follow")
    latitudes = model.grid.latitudes
    if latitudes % 2 or model.insolation != "p2":
        raise InputError(
            "ice to the same latitude in both hemispheres needs symmetric sun and grid"
        )
    operator = model.B * np.eye(latitudes) - model.transport
    distance = np.abs(model.grid.centres)
    found = []
    for edge in model.grid.edges[model.grid.edges > -1e-9][::-1]:
        icy = distance > edge
        albedo = np.where(icy, model.ice_albedo, model.water_albedo)
        absorbed = solar * (1 - albedo) * model.share
        temperature = np.linalg.solve(operator, absorbed - model.A)
        if ((temperature <= model.freezing) == icy).all():
            found.append(Point(temperature, solar))
    if not found:
        raise InputError(f"there is no equilibrium at {solar:g} W m⁻²")
    return found
