"""How a climate answers a forcing: what a parameterisation must get right, and a thermostat hides.

A climate runs free to its equilibrium, once as it is and once with more longwave radiation kept in,
from the same start and without weather. What a policy does in it, it does as it was learnt.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from fedrain.climate.columns import Columns
from fedrain.climate.fields import SURFACE_TEMPERATURE
from fedrain.climate.insolation import DAYS_PER_YEAR
from fedrain.envs import Environment, EnvParams, State
from fedrain.errors import InputError

#: W m⁻² of outgoing longwave radiation: what a doubling of CO₂ takes away.
DOUBLING = -3.7
FORCING = "longwave"
#: Steps to equilibrium, and steps over which the climate is averaged then, where a year is unknown.
STEPS, WINDOW = 2000, 500
#: Degrees of latitude from which a column counts as polar.
POLAR = 60.0


@runtime_checkable
class Control(Protocol):
    """What acts in a climate. It is hashable: what is compiled for it serves all that are equal."""

    def __call__(
        self,
        environment: Environment,
        held: Any,
        state: State,
        observation: Float[Array, "agent obs"],
        step: Int[Array, ""],
        params: EnvParams,
    ) -> Float[Array, "agent action"]:
        """The actions of all agents; ``held`` is what may differ: weights, or actions."""


def hold_actions(
    environment: Environment,
    held: Float[Array, "agent action"],
    state: State,
    observation: Float[Array, "agent obs"],
    step: Int[Array, ""],
    params: EnvParams,
) -> Float[Array, "agent action"]:
    """The same actions at every step."""
    del environment, state, observation, step, params
    return held


@dataclass(frozen=True)
class Response:
    """What a forcing does to the surface temperature at equilibrium.

    Args:
        forcing: W m⁻² added to the outgoing longwave radiation.
        warming: Of the global mean, in K.
        polar_amplification: Mean warming of the columns poleward of 60° over that of the globe.
        profile: Warming of each column, in K.
    """

    forcing: float
    warming: float
    polar_amplification: float
    profile: Float[np.ndarray, " column"]

    @classmethod
    def of(
        cls, columns: Columns, forcing: float, profile: Float[np.ndarray, " column"]
    ) -> "Response":
        """Of the warming of each column."""
        warming = float(columns.mean(profile))
        polar = profile[np.abs(columns.latitude) >= POLAR]
        share = float(polar.mean()) / warming if len(polar) and warming else np.nan
        return cls(forcing, warming, share, profile)

    @property
    def feedback(self) -> float:
        """W m⁻² that the climate loses more for each K that it is warmer."""
        return -self.forcing / self.warming if self.warming else np.inf

    @classmethod
    def mean(cls, several: "list[Response]") -> "Response":
        """Mean over climates, such as those of the seeds."""
        profile = np.mean([one.profile for one in several], axis=0)
        warming = float(np.mean([one.warming for one in several]))
        polar = float(np.mean([one.polar_amplification for one in several]))
        return cls(several[0].forcing, warming, polar, profile)

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        return {
            "warming": self.warming,
            "feedback": self.feedback,
            "polar_amplification": self.polar_amplification,
        }


def respond(
    environment: Environment,
    control: Control,
    held: Any,
    forcings: tuple[float, ...] = (DOUBLING,),
    seed: int = 0,
    steps: int = STEPS,
) -> dict[str, dict[float, Response]]:
    """The responses of the model and, where the task has one, of the truth: by forcing.

    Args:
        environment: Any whose model has the forcing ``longwave`` and a surface temperature.
        control: What acts in it.
        held: What it needs, such as weights.
        forcings: In W m⁻² of outgoing longwave radiation.
        seed: Draws the start and the weather, the same for all forcings.
        steps: Until the climate is in equilibrium.

    Returns:
        ``{"model": {-3.7: …}, "truth": {-3.7: …}}``.
    """
    check_response(environment)
    environment = calm(environment)
    window = _window(environment)
    params = jax.tree.map(jnp.asarray, environment.params.free)
    added = jnp.asarray((0.0, *forcings))
    base = params.forcing[FORCING].mean()
    several = params._replace(
        ramp=jnp.zeros_like(params.ramp),
        noise=None,
        forcing={
            **{n: jnp.broadcast_to(v.mean(), (len(added), 2)) for n, v in params.forcing.items()},
            FORCING: jnp.broadcast_to((base + added)[:, None], (len(added), 2)),
        },
    )
    found = _equilibria(environment, control, held, several, jax.random.key(seed), steps, window)
    columns = environment.model.columns
    return {
        name: {
            forcing: Response.of(columns, forcing, np.asarray(values[i + 1] - values[0], float))
            for i, forcing in enumerate(forcings)
        }
        for name, values in found.items()
    }


def calm(environment: Environment) -> Environment:
    """The environment without weather, where its model and truth can be had without it."""
    models: dict[str, Any] = {"model": environment.model, "truth": environment.truth}
    quiet = {name: one.calm for name, one in models.items() if hasattr(one, "calm")}
    return replace(environment, **quiet) if quiet else environment


def check_response(environment: Environment) -> None:
    """Refuse an environment whose response cannot be measured."""
    model, name = environment.model, type(environment.model).__name__
    if FORCING not in {one.name for one in model.forcings}:
        raise InputError(f"{name} has no forcing {FORCING}, by which a response is measured")
    if SURFACE_TEMPERATURE.name not in {one.name for one in model.fields}:
        raise InputError(f"{name} has no {SURFACE_TEMPERATURE.name}, in which a response shows")


def _window(environment: Environment) -> int:
    """Steps of the years nearest to the usual number, so that seasons cancel."""
    days = getattr(environment.model, "days_per_step", None)
    if days is None:
        return WINDOW
    year = max(1, round(DAYS_PER_YEAR / float(days)))
    return year * max(1, round(WINDOW / year))


@partial(jax.jit, static_argnames=("environment", "control", "steps", "window"))
def _equilibria(
    environment: Environment,
    control: Control,
    held: Any,
    params: EnvParams,
    key: Key[Array, ""],
    steps: int,
    window: int,
) -> dict[str, Float[Array, "forcing column"]]:
    """Mean surface temperature over the last steps, under every forcing."""
    name = SURFACE_TEMPERATURE.name

    def shown(state: State) -> dict[str, Float[Array, " column"]]:
        found = {"model": environment.fields(state)[name]}
        if environment.truth is not None:
            truth = jax.vmap(environment.truth.observe)(state.truth)[name]
            found["truth"] = truth.mean(axis=0)
        return found

    def one(forcing: dict[str, Float[Array, "2"]]) -> dict[str, Float[Array, " column"]]:
        own = params._replace(forcing=forcing)

        def advance(carry: Any, step: Int[Array, ""]) -> tuple[Any, None]:
            state, observation, total = carry
            action = control(environment, held, state, observation, step, own)
            after = environment.step(jax.random.fold_in(key, step + 1), state, action, own)
            counts = step >= steps
            total = jax.tree.map(
                lambda a, b: a + jnp.where(counts, b, 0), total, shown(after.state)
            )
            return (after.state, after.observation, total), None

        state, observation = environment.reset(jax.random.fold_in(key, 0), own)
        nothing = jax.tree.map(jnp.zeros_like, shown(state))
        carry = (state, observation, nothing)
        (_, _, total), _ = jax.lax.scan(advance, carry, jnp.arange(steps + window))
        return jax.tree.map(lambda values: values / window, total)

    return jax.vmap(one)(params.forcing)
