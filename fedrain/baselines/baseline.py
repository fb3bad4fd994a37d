"""What every baseline reports, as numbers, as JSON and as NetCDF."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Key

from fedrain.climate import Physics, Skill, band_skill
from fedrain.climate.columns import is_integer, told
from fedrain.climate.layout import Layout
from fedrain.climate.model import ModelState, no_forcing
from fedrain.climate.models.host import clear_failures
from fedrain.envs import Environment, EnvParams, State, rollout
from fedrain.errors import InputError

LARGEST_SEED = 2**32 - 1


@dataclass(frozen=True)
class Baseline:
    """Skill and return of one episode, and what it cost to find its parameters.

    Args:
        name: ``"static"``, ``"constant"``, …
        skill: Of the first judged field after the last step, by bands of latitude.
        errors: Area-weighted root mean square error of each judged field after the last step, and
            of the fluxes at the top of the atmosphere where the model has them.
        physics: How plausible budget and parameters are then.
        returns: Of each agent, ``[agent]``.
        fields: Every field of the globe that the agents are judged by, after each step:
            ``[step, column]`` or ``[step, column, level]``.
        actions: In action units, ``[step, agent, action]``.
        model_runs: Episodes that were integrated.
        seconds: How long it took.
        converged: Of what is searched for by gradient, whether the search had ended by itself; if
            not, there is something better. None of the others.
    """

    name: str
    skill: Skill
    errors: dict[str, float]
    physics: Physics
    returns: Float[np.ndarray, " agent"]
    fields: dict[str, Float[np.ndarray, "step column ..."]]
    actions: Float[np.ndarray, "step agent action"]
    model_runs: int
    seconds: float
    converged: bool | None = None

    @property
    def final(self) -> dict[str, Float[np.ndarray, "column ..."]]:
        """Every field after the last step."""
        return {name: values[-1] for name, values in self.fields.items()}

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "baseline": self.name,
            **self.skill.as_dict(),
            "fields": self.errors,
            "physics": self.physics.as_dict(),
            "return": float(self.returns.mean()),
            "returns": self.returns.tolist(),
            "model_runs": self.model_runs,
            "seconds": self.seconds,
            **({} if self.converged is None else {"converged": self.converged}),
        }


def episode_key(seed: int) -> Key[Array, ""]:
    """What start, forcing and model are drawn from, where they are random; refuses no seed."""
    if not is_integer(seed) or not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"a seed is an integer from 0 to {LARGEST_SEED}, not {told(seed)}")
    return jax.random.key(seed)


@contextmanager
def precise(environment: Environment) -> Iterator[None]:
    """Float64 within this context, for all but models that insist on float32.

    What a model outside JAX says when it fails is one line.
    """
    single = getattr(environment.model, "single_precision", False)
    double = not single and (jnp.result_type(float) == jnp.float64 or _takes_float64(environment))
    with jax.enable_x64(double), clear_failures():
        yield


@lru_cache(maxsize=32)
def _takes_float64(environment: Environment) -> bool:
    """Whether a step with parameters in float64 keeps the types of the state.

    JAX converts a NumPy array that a model holds once, and gives it in the same precision to
    whatever is traced later, so that the two precisions get mixed. Such a model stays in float32:
    traced in float32 first, and again in float64, it shows its constants in float32.
    """
    model = environment.model

    def states(
        key: Key[Array, ""], parameters: Any, forcing: Any, start: Any
    ) -> tuple[ModelState, ModelState]:
        before = model.init(key, **start)
        after = model.step(before, parameters, forcing, key)
        model.observe(after)
        return before, after

    def traced() -> Any:
        parameters = jax.tree.map(jnp.asarray, model.table.static(len(model.columns)))
        start = {name: jnp.asarray(bounds[0]) for name, bounds in environment.params.start.items()}
        return jax.make_jaxpr(states, return_shape=True)(
            jax.random.key(0), parameters, no_forcing(model), start
        )

    single = traced()
    with jax.enable_x64(True):
        try:
            double, (before, after) = traced()
        except (TypeError, ValueError):
            return False
    del single  # which has kept the constants that JAX had converted
    if any(getattr(constant, "dtype", None) == jnp.float32 for constant in double.consts):
        return False
    return jax.tree.map(lambda leaf: leaf.dtype, before) == jax.tree.map(
        lambda leaf: leaf.dtype, after
    )


def hold(
    environment: Environment,
    action: Float[Array, "agent action"],
    params: EnvParams,
    key: Key[Array, ""],
) -> tuple[State, Float[Array, " agent"]]:
    """The end of an episode with constant parameters, and the returns.

    As :func:`fedrain.envs.rollout` of the same action at every step, but it keeps no state on the
    way, of which large ensembles would have too many.
    """

    def advance(
        now: tuple[State, Float[Array, " agent"]], step: Array
    ) -> tuple[tuple[State, Float[Array, " agent"]], None]:
        state, returns = now
        after = environment.step(jax.random.fold_in(key, step + 1), state, action, params)
        return (after.state, returns + after.reward), None

    start, _ = environment.reset(jax.random.fold_in(key, 0), params)
    nothing = jnp.zeros_like(environment.reward(start, params))
    steps = jnp.arange(environment.episode_length)
    return jax.lax.scan(advance, (start, nothing), steps)[0]


def judged_end(
    environment: Environment,
    action: Float[Array, "agent action"],
    params: EnvParams,
    key: Key[Array, ""],
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The judged fields that an episode ends with, and their targets, of each agent its columns.

    Where an evaluation is judged by the mean over several steps, so is this.
    """

    def shown(state: State) -> tuple[dict[str, Array], dict[str, Array]]:
        fields, targets = environment.own_fields(state), environment.targets(state, params)
        names = [name for name, _ in environment.judged]
        own = {name: environment.own(targets[name]) for name in names}
        return {name: fields[name] for name in names}, own

    if environment.judged_over == 1:
        return shown(hold(environment, action, params, key)[0])

    def advance(now: tuple[State, Any], step: Array) -> tuple[tuple[State, Any], None]:
        state, sums = now
        state = environment.step(jax.random.fold_in(key, step + 1), state, action, params).state
        counts = (step >= first) & (step <= environment.last_judged)
        sums = jax.tree.map(lambda total, one: total + counts * one, sums, shown(state))
        return (state, sums), None

    first = environment.judged_steps.start
    start, _ = environment.reset(jax.random.fold_in(key, 0), params)
    nothing = jax.tree.map(jnp.zeros_like, shown(start))
    steps = jnp.arange(environment.episode_length)
    _, sums = jax.lax.scan(advance, (start, nothing), steps)[0]
    return jax.tree.map(lambda total: total / environment.judged_over, sums)


def play(
    name: str,
    environment: Environment,
    actions: Float[Array | np.ndarray, "step agent action"],
    key: Key[Array, ""],
    model_runs: int,
    begin: float,
    params: EnvParams | None = None,
) -> Baseline:
    """The baseline that these actions are. Call it under :func:`precise`.

    ``params`` are start, target, forcing and noise, if they are not the environment's own.
    """
    params = (params or environment.params).test
    played = rollout(environment, jnp.asarray(actions), params, key)
    shown = jax.vmap(environment.fields)(played.state)
    fields = {one: np.asarray(values) for one, values in shown.items()}
    columns, last = environment.model.columns, environment.last_judged
    action = jnp.asarray(actions[last])

    def judged(end: State) -> tuple[dict[str, Array], dict[str, Array]]:
        return environment.judged_against(end, action, params)

    if environment.judged_over == 1:
        target, given = judged(jax.tree.map(lambda leaf: leaf[last], played.state))
    else:
        ends = jax.tree.map(lambda leaf: leaf[environment.judged_steps], played.state)
        target, given = jax.tree.map(lambda leaf: leaf.mean(0), jax.vmap(judged)(ends))
    fluxes = {one: np.asarray(values, float) for one, values in given.items()}
    skills = {
        one: band_skill(columns, environment.judged_mean(fields[one]), np.asarray(target[one]))
        for one, _ in environment.judged
    } | {
        one: band_skill(columns, fluxes[one], reference)
        for one, reference in environment.flux_references.items()
    }
    own = environment.own_parameters(action)
    return Baseline(
        name=name,
        skill=skills[environment.judged[0][0]],
        errors={one: skill.globe for one, skill in skills.items()},
        physics=environment.physics(
            {symbol: np.asarray(values) for symbol, values in own.items()},
            {one: values[last] for one, values in fields.items()},
            fluxes,
        ),
        returns=np.asarray(played.returns),
        fields=fields,
        actions=np.asarray(actions),
        model_runs=model_runs,
        seconds=time.perf_counter() - begin,
    )


def sequence_dataset(environment: Environment, baseline: Baseline) -> xr.Dataset:
    """Parameters and fields of the globe that the agents are judged by, after every step.

    ``target`` is that of the first judged field; those of others are ``target_<field>``.

    Args:
        environment: Where it was played.
        baseline: What a baseline gave.

    Returns:
        Variables on ``step`` and the columns, and levels where there are some.
    """
    with precise(environment):
        values = jax.vmap(environment.own_parameters)(jnp.asarray(baseline.actions))
    layout = Layout(environment.model)
    variables = {
        row.symbol: layout.parameter(row, values[row.symbol], ("step",))
        for row in environment.model.table
    }
    for field in environment.model.fields:
        variables[field.name] = layout.field(field, baseline.fields[field.name], ("step",))
    searched = baseline.converged is not None
    attributes: dict[str, Any] = {
        "Conventions": "CF-1.11",
        "title": f"FedRAIN baseline {baseline.name}",
        **({"converged": str(baseline.converged).lower()} if searched else {}),
        "return": float(baseline.returns.mean()),
        "areawrmse_global": baseline.skill.globe,
    }
    for i, field in enumerate(environment.judged_fields):
        target = layout.field(field, environment.params.target[field.name])
        target.attrs["long_name"] = f"target of the {field.title}"
        variables[f"target_{field.name}" if i else "target"] = target
        attributes |= {f"areawrmse_{field.name}": baseline.errors[field.name]} if i else {}
    steps = xr.Variable("step", np.arange(1, environment.episode_length + 1), {"long_name": "step"})
    return xr.Dataset(
        variables,
        coords={"step": steps, **layout.coordinates},
        attrs={**attributes, "model_runs": baseline.model_runs},
    )
