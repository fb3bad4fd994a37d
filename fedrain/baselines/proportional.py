"""A proportional controller: no learning, one gain, and a known target.

    A = static + gain × (T − target), within its bounds

It is as good as the best agents of the paper's tasks, and cancels any forcing: what these tasks
reward is a thermostat.
"""

import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from fedrain.baselines.baseline import Baseline, episode_key, play, precise
from fedrain.baselines.response import Control
from fedrain.climate import Skill
from fedrain.climate.columns import is_integer
from fedrain.envs import Environment, EnvParams, State
from fedrain.errors import InputError

#: Action units per kelvin: of A, in hundreds of W m⁻², 300 W m⁻² K⁻¹.
GAIN = 3.0
DIFFUSIVITY = 0.55
CONTROLLED, HELD = "A", "D"


def proportional(
    environment: Environment,
    gain: float = GAIN,
    diffusivity: float | None = None,
    seed: int = 0,
) -> Baseline:
    """One episode in which A follows the error of the temperature; the rest stays as it is.

    Args:
        environment: One whose agents set A in each column, and are judged by the temperature.
        gain: In action units (hundreds of W m⁻²) per kelvin of the error.
        diffusivity: The D that is held; 0.55 if it is left out.
        seed: Draws the episode, where its start, its forcing or the model is random.

    Returns:
        An episode: ``actions`` ``[step, agent, action]`` in action units, ``returns`` ``[agent]``,
        skill, errors, physics and the number of model runs.
    """
    begin, key = time.perf_counter(), episode_key(seed)
    control, held = proportional_control(environment, gain, diffusivity)
    with precise(environment):
        held = jax.tree.map(jnp.asarray, held)
        actions = _actions(environment, control, held, environment.params.free, key)
        return play("proportional", environment, np.asarray(actions), key, 1, begin)


def proportional_skill(environment: Environment, params: EnvParams, seed: int = 0) -> Skill:
    """Skill of the rule in an episode of other params, such as another forcing, in float32."""
    control, held = proportional_control(environment)
    begin, key = time.perf_counter(), episode_key(seed)
    given = jax.tree.map(jnp.asarray, params.test)
    actions = np.asarray(_actions(environment, control, held, given, key))
    return play("proportional", environment, actions, key, 1, begin, given).skill


def can_be_proportional(environment: Environment) -> bool:
    """Whether there is an A in each column to be set, and one temperature to follow."""
    rows = {row.symbol: row for row in environment.learnt}
    first = environment.judged_fields[0]
    return (
        CONTROLLED in rows
        and rows[CONTROLLED].scope == "column"
        and not first.levels
        and first.difference_unit == "K"
    )


def proportional_control(
    environment: Environment, gain: float = GAIN, diffusivity: float | None = None
) -> tuple[Control, Any]:
    """The rule, and the numbers that it holds; refuses what they do not suit."""
    if not can_be_proportional(environment):
        raise InputError(
            f"proportional sets {CONTROLLED} of each column from the error of its temperature, "
            "and this task lacks one of them"
        )
    if is_integer(gain):
        gain = float(gain)
    if not isinstance(gain, float) or not np.isfinite(gain):
        raise InputError(f"gain must be a number, not {gain!r}")
    rows = {row.symbol: row for row in environment.learnt}
    actions = np.empty((len(environment.regions), environment.action_size))
    for symbol, row in rows.items():
        own = environment.action_slices[symbol]
        # What is not controlled stays in the middle of its bounds.
        actions[:, own] = (row.low + row.high) / 2 / row.action_unit
    actions[:, environment.action_slices[CONTROLLED]] = environment.static_actions[
        :, environment.action_slices[CONTROLLED]
    ]
    if HELD in rows:
        row, value = rows[HELD], DIFFUSIVITY if diffusivity is None else diffusivity
        if not row.low <= value <= row.high:
            raise InputError(f"D must be between {row.low:g} and {row.high:g}, not {value!r}")
        actions[:, environment.action_slices[HELD]] = value / row.action_unit
    elif diffusivity is not None:
        raise InputError("D cannot be set: this task does not learn it")
    return _control, (jnp.asarray(actions, jnp.float32), jnp.asarray(gain, jnp.float32))


def _control(
    environment: Environment,
    held: tuple[Float[Array, "agent action"], Float[Array, ""]],
    state: State,
    observation: Float[Array, "agent obs"],
    step: Int[Array, ""],
    params: EnvParams,
) -> Float[Array, "agent action"]:
    del observation, step
    actions, gain = held
    name, part = environment.judged[0][0], environment.action_slices[CONTROLLED]
    seen = jax.vmap(environment.model.observe)(state.climate)[name]
    error = seen - environment.targets(state, params)[name].astype(seen.dtype)
    # In a shared climate an agent sets its own columns, in one of its own all of them.
    own = environment.own(error) if environment.shared_climate else error
    wanted = actions[:, part] + gain * own
    return actions.at[:, part].set(wanted.astype(actions.dtype))


@partial(jax.jit, static_argnames=("environment", "control"))
def _actions(
    environment: Environment, control: Control, held: Any, params: EnvParams, key: Key[Array, ""]
) -> Float[Array, "step agent action"]:
    """What the rule does in one episode."""

    def advance(
        carry: tuple[State, Array], step: Int[Array, ""]
    ) -> tuple[tuple[State, Array], Array]:
        state, observation = carry
        action = control(environment, held, state, observation, step, params)
        action = jnp.clip(
            action, *(jnp.asarray(b, action.dtype) for b in environment.action_bounds)
        )
        after = environment.step(jax.random.fold_in(key, step + 1), state, action, params)
        return (after.state, after.observation), action

    begin = environment.reset(jax.random.fold_in(key, 0), params)
    return jax.lax.scan(advance, begin, jnp.arange(environment.episode_length))[1]
