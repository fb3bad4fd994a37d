"""Bounded minimisation through the differentiable model, in float64.

SciPy's L-BFGS-B keeps the bounds exactly; JAX gives it the gradient. Variables are scaled to
[0, 1], so that A in W m⁻² and albedo count alike.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from fedrain.envs import Environment
from fedrain.errors import InputError


class Optimum(NamedTuple):
    """What was found, and what it took."""

    variables: Float[np.ndarray, "..."]
    value: float
    evaluations: int
    converged: bool


def minimise(
    environment: Environment,
    objective: Callable[[Float[Array, "*shape action"]], Float[Array, ""]],
    shape: tuple[int, ...],
    iterations: int,
) -> Optimum:
    """The actions, of ``shape`` and within their bounds, that make ``objective`` smallest.

    From the static values. Call under ``jax.enable_x64(True)``.
    """
    low, high = (np.asarray(bound, float) for bound in environment.action_bounds)
    static = environment.static_action
    if not ((low <= static) & (static <= high)).all():
        raise InputError("the bounds exclude the static values, where the search starts")
    width = np.where(high > low, high - low, 1.0)
    full = (*shape, len(low))

    @jax.jit
    def value_and_slope(scaled: Float[Array, " variable"]) -> tuple[Array, Array]:
        return jax.value_and_grad(lambda s: objective(low + width * s.reshape(full)))(scaled)

    def evaluate(scaled: Float[np.ndarray, " variable"]) -> tuple[float, np.ndarray]:
        value, slope = value_and_slope(jnp.asarray(scaled))
        return float(value), np.asarray(slope, float)

    start = np.broadcast_to((static - low) / width, full).ravel()
    found = minimize(
        evaluate,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(np.zeros_like(start), np.broadcast_to((high - low) / width, full).ravel(),
                        strict=True)),
        options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20, "ftol": 1e-12,
                 "gtol": 1e-9},
    )  # fmt: skip
    return Optimum(
        low + width * found.x.reshape(full), float(found.fun), int(found.nfev), bool(found.success)
    )
