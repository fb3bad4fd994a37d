"""Bounded minimisation through a differentiable model.

SciPy's L-BFGS-B keeps the bounds exactly; JAX gives it the gradient. Variables are scaled to
[0, 1], so that A in W m⁻² and albedo count alike.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float, Key

from fedrain.climate import HostModel
from fedrain.climate.model import first_line
from fedrain.envs import Environment, EnvParams
from fedrain.errors import InputError

#: What is to be small, of environment, actions, params and key: a function of a module, so that
#: what is compiled for it serves other starts, targets and forcings too.
Objective = Callable[[Environment, Array, EnvParams, Key[Array, ""]], Float[Array, ""]]

#: Times the value at the start: what a search gets for actions with which the model diverges.
WORST = 1e6


class Optimum(NamedTuple):
    """What was found, what it took, and whether the search ended because nothing was left to gain.

    It has not converged where it ran out of iterations, or could not improve further.
    """

    actions: Float[np.ndarray, "*shape"]
    evaluations: int
    converged: bool


def has_gradient(environment: Environment) -> bool:
    """Whether its model has a gradient that is of use: not outside JAX, nor through chaos."""
    useful = getattr(environment.model, "differentiable", True)
    return useful and not isinstance(environment.model, HostModel)


def minimise(
    name: str,
    environment: Environment,
    objective: Objective,
    shape: tuple[int, ...],
    iterations: int,
    key: Key[Array, ""],
) -> Optimum:
    """The actions, of ``shape`` and within their bounds, that make ``objective`` smallest.

    The search starts from the static values. ``name`` is that of the baseline, for messages.
    """
    model = type(environment.model).__name__
    if not has_gradient(environment):
        raise InputError(
            f"{name} needs the gradient of the model, which {model} does not have: "
            "use enki, random or static"
        )
    if iterations < 1:
        raise InputError(f"at least 1 iteration is needed, not {iterations}")
    low, high = environment.action_bounds
    start = np.broadcast_to((environment.static_actions - low) / (high - low), shape)

    def evaluate(scaled: Float[np.ndarray, " variable"]) -> tuple[float, np.ndarray]:
        given = jnp.asarray(scaled.reshape(shape))
        value, slope = _value_and_slope(environment, objective, given, environment.params.free, key)
        return float(value), np.asarray(slope, float).ravel()

    try:
        first, slope = evaluate(start.ravel())
    except InputError:
        raise
    except Exception as error:  # whatever JAX says of what it cannot differentiate
        raise InputError(
            f"{name}: {model} cannot be differentiated ({first_line(error)})"
        ) from None
    if not np.isfinite(first) or not np.isfinite(slope).all():
        what = "return" if not np.isfinite(first) else "gradient"
        raise InputError(f"{name}: with the static values of {model}, its {what} is not finite")

    def guarded(scaled: Float[np.ndarray, " variable"]) -> tuple[float, np.ndarray]:
        value, slope = evaluate(scaled)
        if np.isfinite(value) and np.isfinite(slope).all():
            return value, slope
        return WORST * (1 + abs(first)), np.zeros_like(slope)

    found = scipy.optimize.minimize(
        guarded,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * start.size,
        options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20, "ftol": 1e-12,
                 "gtol": 1e-9},
    )  # fmt: skip
    actions = low + (high - low) * found.x.reshape(shape)
    return Optimum(actions, int(found.nfev), bool(found.success))


@partial(jax.jit, static_argnames=("environment", "objective"))
def _value_and_slope(
    environment: Environment,
    objective: Objective,
    scaled: Array,
    params: EnvParams,
    key: Key[Array, ""],
) -> tuple[Array, Array]:
    low, high = environment.action_bounds
    return jax.value_and_grad(
        lambda at: objective(environment, low + (high - low) * at, params, key)
    )(scaled)
