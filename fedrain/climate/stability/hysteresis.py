"""A sun that is dimmed and restored, in small steps, and the climate that does not come back."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fedrain.climate.stability.feedback import SECONDS_PER_YEAR, FeedbackModel, Profile
from fedrain.errors import InputError

STEPS_PER_YEAR = 90
YEARS = 60.0
MOST_STAIRS = 10_000


class Hysteresis(NamedTuple):
    """Temperature after ``years`` years under each solar constant of a sequence.

    Args:
        solar: Solar constant in W m⁻², ``[stair]``.
        temperature: In °C at the end of each stair, ``[stair, lat]``.
        mean: Of the globe in °C, ``[stair]``.
    """

    solar: Float[np.ndarray, " stair"]
    temperature: Float[np.ndarray, "stair lat"]
    mean: Float[np.ndarray, " stair"]

    def jumps(self, smallest: float = 15.0) -> list[float]:
        """Solar constants at which the global mean jumps by more than so many kelvin."""
        change = np.abs(np.diff(self.mean))
        return [float(self.solar[i + 1]) for i in np.flatnonzero(change > smallest)]


def stairs(high: float, low: float, step: float) -> Float[np.ndarray, " stair"]:
    """From ``high`` down to ``low`` and back, in steps of about ``step``.

    Args:
        high: Solar constant in W m⁻² at both ends.
        low: In the middle.
        step: From one stair to the next.

    Returns:
        In W m⁻², ``[stair]``.
    """
    number = (high - low) / step + 1
    if not 1 <= number <= MOST_STAIRS:
        raise InputError(
            f"from {high:g} to {low:g} W m⁻² in steps of {step:g}: stairs are 1 to {MOST_STAIRS}"
        )
    down = np.linspace(high, low, max(2, round(number)))
    return np.concatenate([down, down[-2::-1]])


def hysteresis(
    model: FeedbackModel,
    solar: Float[np.ndarray, " stair"],
    start: Profile,
    years: float = YEARS,
) -> Hysteresis:
    """Integrate in time, radiation explicit and diffusion implicit, as the environments do.

    Args:
        model: With its parameters.
        solar: Solar constant of each stair in W m⁻², ``[stair]``.
        start: Temperature in °C, ``[lat]``.
        years: On each stair.

    Returns:
        Temperature at the end of each stair.
    """
    with jax.enable_x64(True):
        steps = round(years * STEPS_PER_YEAR)
        temperature = np.asarray(_climb(model, steps, jnp.asarray(start), jnp.asarray(solar)))
    return Hysteresis(np.asarray(solar), temperature, model.grid.mean(temperature))


@partial(jax.jit, static_argnames=("model", "steps"))
def _climb(
    model: FeedbackModel, steps: int, start: Float[Array, " lat"], solar: Float[Array, " stair"]
) -> Float[Array, "stair lat"]:
    ratio = SECONDS_PER_YEAR / STEPS_PER_YEAR / model.heat_capacity
    eigenvalues, vectors, inverse = model.grid.modes
    solve = jnp.asarray(vectors / (1 - ratio * model.D * eigenvalues) @ inverse)

    def stair(temperature: Array, sun: Array) -> tuple[Array, Array]:
        def step(_: object, t: Array) -> Array:
            if model.width == 0:
                water = (t > model.freezing).astype(t.dtype)
            else:
                water = (1 + jnp.tanh((t - model.freezing) / model.width)) / 2
            albedo = model.ice_albedo + (model.water_albedo - model.ice_albedo) * water
            heating = (1 - albedo) * sun * model.share - model.A - model.B * t
            return solve @ (t + ratio * heating)

        after = jax.lax.fori_loop(0, steps, step, temperature)
        return after, after

    return jax.lax.scan(stair, start, solar)[1]
