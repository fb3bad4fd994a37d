"""How a climate answers a forcing: what a parameterisation must get right, and a thermostat hides.

A climate runs free to its equilibrium, once as it is and once with more longwave radiation kept in,
from the same start and without weather. What a policy does in it, it does as it was learnt.

Where the temperature of the sea is given, as in a general circulation model of the atmosphere, the
question is turned round (Cess et al. 1990): how much more radiation leaves when the sea is warmer?
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from fedrain.climate.columns import Columns
from fedrain.climate.fields import ABSORBED_SHORTWAVE, OUTGOING_LONGWAVE, SURFACE_TEMPERATURE
from fedrain.climate.insolation import DAYS_PER_YEAR
from fedrain.climate.model import over_climates
from fedrain.envs import Environment, EnvParams, State
from fedrain.errors import InputError

#: W m⁻² of outgoing longwave radiation: what a doubling of CO₂ takes away.
DOUBLING = -3.7
FORCING = "longwave"
#: Steps to equilibrium, and steps over which the climate is averaged then, where a year is unknown.
STEPS, WINDOW = 2000, 500
#: K by which a sea is warmer whose temperature is given, and days until the air has followed.
WARMER, SEA, SETTLE = 4.0, "sst", 60.0
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


@dataclass(frozen=True)
class SeaResponse:
    """What a warmer sea does to the radiation at the top of the atmosphere.

    Its temperature is given, so nothing warms that was not told to: ``warming`` and
    ``polar_amplification`` are None.

    Args:
        forcing: K by which sea and land are warmer.
        longwave: W m⁻² of the global mean more that go out as longwave radiation.
        shortwave: W m⁻² more that are absorbed of sunlight.
    """

    forcing: float
    longwave: float
    shortwave: float

    warming: ClassVar[None] = None
    polar_amplification: ClassVar[None] = None

    @property
    def feedback(self) -> float:
        """W m⁻² that the climate loses more for each K that it is warmer."""
        return (self.longwave - self.shortwave) / self.forcing if self.forcing else np.nan

    @classmethod
    def mean(cls, several: "list[SeaResponse]") -> "SeaResponse":
        """Mean over climates, such as those of the seeds."""
        longwave = float(np.mean([one.longwave for one in several]))
        shortwave = float(np.mean([one.shortwave for one in several]))
        return cls(several[0].forcing, longwave, shortwave)

    def as_dict(self) -> dict[str, float | None]:
        """For JSON."""
        return {
            "warming": None,
            "feedback": self.feedback,
            "polar_amplification": None,
            "sst": self.forcing,
            "longwave": self.longwave,
            "shortwave": self.shortwave,
        }


AnyResponse = Response | SeaResponse


def respond(
    environment: Environment,
    control: Control,
    held: Any,
    forcings: tuple[float, ...] | None = None,
    seed: int = 0,
    steps: int | None = None,
) -> dict[str, dict[float, Any]]:
    """The responses of the model and, where the task has one, of the truth: by forcing.

    Args:
        environment: Any whose model has the forcing ``longwave`` and a surface temperature; or the
            forcing ``sst`` and the fluxes at the top of the atmosphere.
        control: What acts in it.
        held: What it needs, such as weights.
        forcings: In W m⁻² of outgoing longwave radiation (−3.7), or in K of the sea (4).
        seed: Draws the start and the weather, the same for all forcings.
        steps: Until the climate is in equilibrium; 2000, or 60 days where the sea is given.

    Returns:
        ``{"model": {-3.7: …}, "truth": {-3.7: …}}``, of :class:`Response` or :class:`SeaResponse`.
    """
    forcing, names = check_response(environment)
    by_sea = forcing == SEA
    if forcings is None:
        forcings = usual_forcings(environment)
    environment = calm(environment)
    window = _window(environment, 1 if by_sea else WINDOW)
    if steps is None:
        days = float(getattr(environment.model, "days_per_step", 1.0))
        steps = round(SETTLE / days) if by_sea else STEPS
    params = jax.tree.map(jnp.asarray, environment.params.test)
    added = jnp.asarray((0.0, *forcings))
    base = params.forcing[forcing].mean()
    several = params._replace(
        ramp=jnp.zeros_like(params.ramp),
        noise=None,
        forcing={
            **{n: jnp.broadcast_to(v.mean(), (len(added), 2)) for n, v in params.forcing.items()},
            forcing: jnp.broadcast_to((base + added)[:, None], (len(added), 2)),
        },
    )
    key = jax.random.key(seed)
    found = _equilibria(environment, control, held, several, key, steps, window, names)
    columns = environment.model.columns

    def answer(i: int, value: float, fields: dict[str, Array]) -> AnyResponse:
        change = [np.asarray(fields[n][i + 1], float) - np.asarray(fields[n][0]) for n in names]
        if by_sea:
            return SeaResponse(value, *(float(columns.mean(one)) for one in change))
        return Response.of(columns, value, change[0])

    return {
        name: {value: answer(i, value, fields) for i, value in enumerate(forcings)}
        for name, fields in found.items()
    }


def usual_forcings(environment: Environment) -> tuple[float, ...]:
    """A doubling of CO₂, in W m⁻² of longwave radiation; or a sea that is 4 K warmer."""
    return (WARMER,) if check_response(environment)[0] == SEA else (DOUBLING,)


def calm(environment: Environment) -> Environment:
    """The environment without weather, where its model and truth can be had without it."""
    models: dict[str, Any] = {"model": environment.model, "truth": environment.truth}
    quiet = {name: one.calm for name, one in models.items() if hasattr(one, "calm")}
    return replace(environment, **quiet) if quiet else environment


def check_response(environment: Environment) -> tuple[str, tuple[str, ...]]:
    """The forcing that a response is measured by, and the fields that it shows in.

    An environment that has neither is refused.
    """
    model, name = environment.model, type(environment.model).__name__
    forcings = {one.name for one in model.forcings}
    fields = {one.name for one in model.fields}
    if FORCING in forcings:
        if SURFACE_TEMPERATURE.name not in fields:
            raise InputError(
                f"{name} has no {SURFACE_TEMPERATURE.name}, which a response is measured by"
            )
        return FORCING, (SURFACE_TEMPERATURE.name,)
    fluxes = (OUTGOING_LONGWAVE.name, ABSORBED_SHORTWAVE.name)
    if SEA in forcings and fields.issuperset(fluxes):
        return SEA, fluxes
    raise InputError(f"{name} has no forcing {FORCING}, which a response is measured with")


def _window(environment: Environment, steps: int) -> int:
    """Steps of the years nearest to a number, one at least, so that seasons cancel."""
    days = getattr(environment.model, "days_per_step", None)
    if days is None:
        return steps
    year = max(1, round(DAYS_PER_YEAR / float(days)))
    return year * max(1, round(steps / year))


@partial(jax.jit, static_argnames=("environment", "control", "steps", "window", "names"))
def _equilibria(
    environment: Environment,
    control: Control,
    held: Any,
    params: EnvParams,
    key: Key[Array, ""],
    steps: int,
    window: int,
    names: tuple[str, ...],
) -> dict[str, dict[str, Float[Array, "forcing column"]]]:
    """Means of these fields over the last steps, under every forcing."""

    def shown(state: State) -> dict[str, dict[str, Float[Array, " column"]]]:
        fields = environment.fields(state)
        found = {"model": {name: fields[name] for name in names}}
        if environment.truth is not None:
            truth = jax.vmap(environment.truth.observe)(state.truth)
            found["truth"] = {name: truth[name].mean(axis=0) for name in names}
        return found

    def one(forcing: dict[str, Float[Array, "2"]]) -> dict[str, Any]:
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

    return over_climates(environment.model, one)(params.forcing)
