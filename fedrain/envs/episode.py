"""An episode: what may differ from one to the next, its state, and what a step gives."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from fedrain.climate.fields import Forcing
from fedrain.climate.model import ModelState


class Record(NamedTuple):
    """The states of a truth, step by step, on which episodes start and which they are judged by.

    Args:
        states: Of the kind that the model has, with a leading axis of steps.
        training: First steps that an episode may start from: the lowest, and one above the highest.
        test: Likewise, for evaluations: of a part of the record that training never sees.
        parameters: What the truth has of the parameters, where it is known.
    """

    states: ModelState
    training: Int[Array, "2"]
    test: Int[Array, "2"]
    parameters: dict[str, Float[Array, "..."]] | None = None

    def at(self, step: Int[Array, ""]) -> ModelState:
        """The state of one step."""
        return jax.tree.map(lambda every: every[step], self.states)


class EnvParams(NamedTuple):
    """What may differ from episode to episode. Bounds are drawn from when an episode starts.

    Args:
        target: By judged field: ``[column]`` or ``[column, level]``.
        start: By argument of the model's ``init``: lowest and highest, ``[2, ...]``.
        forcing: By name: lowest and highest, ``[2]``, or ``[climate, 2]`` for climates that differ.
        ramp: Steps over which the forcing goes from the model's default to its value; 0: it is
            there from the first step.
        noise: Standard deviation of the error of what agents see, as a share of each field's scale;
            None: there is none.
        analysis_every: Steps after which the model is set to what is observed, its target: the
            agents are judged by the forecasts in between; None: never, it runs free.
        smooth: Weight, in the reward, of the mean square of the differences between neighbouring
            columns of the parameters, in units of their ranges; None: nothing.
        record: Of a truth. With analyses the target is what the truth showed on the same step, and
            an analysis is its state; without, the target is ``target``.
    """

    target: dict[str, Float[Array, "column ..."]]
    start: dict[str, Float[Array, "2 ..."]]
    forcing: dict[str, Float[Array, "... 2"]]
    ramp: Float[Array, ""]
    noise: Float[Array, ""] | None = None
    analysis_every: Int[Array, ""] | None = None
    smooth: Float[Array, ""] | None = None
    record: Record | None = None

    @property
    def free(self) -> "EnvParams":
        """Without analyses: how constants are sought."""
        return self._replace(analysis_every=None)

    @property
    def test(self) -> "EnvParams":
        """The same, on the days of a record that are kept for it: how policies are judged."""
        record = self.record
        if record is not None:
            record = record._replace(training=record.test)
        return self._replace(analysis_every=None, record=record)


class State(NamedTuple):
    """The state of every climate, what forces it, and the number of steps since the start.

    Arrays of ``climate`` and ``truth`` have a leading climate axis.

    Args:
        climate: State of the model, with a leading axis of climates.
        forcing: By name, ``[climate]``: what was drawn for this episode.
        time: Steps since the start.
        truth: State of the model that runs beside it, where there is one; or where the truth is in
            its record.
    """

    climate: ModelState
    forcing: dict[str, Float[Array, " climate"]]
    time: Int[Array, ""]
    truth: ModelState = None


class Transition(NamedTuple):
    """What one step gives: arrays with a leading agent axis, and one end for all agents.

    Args:
        state: After the step.
        observation: ``[agent, obs]``.
        reward: ``[agent]``.
        truncated: Whether the episode ends here.
    """

    state: State
    observation: Float[Array, "agent obs"]
    reward: Float[Array, " agent"]
    truncated: Bool[Array, ""]


def draw(key: Key[Array, ""], bounds: dict[str, Any]) -> dict[str, Array]:
    """A number, or array, between its bounds: exactly the bound where they are the same."""
    names = sorted(bounds)
    lows = [jnp.asarray(bounds[name][0]) for name in names]
    shares = jax.random.uniform(key, (len(names),), jnp.result_type(float, *lows))
    return {
        name: low + (bounds[name][1] - low) * share
        for name, low, share in zip(names, lows, shares, strict=True)
    }


def in_force(
    state: State, params: EnvParams, forcings: tuple[Forcing, ...]
) -> dict[str, Float[Array, " climate"]]:
    """The forcing of every climate in the step to come: on the ramp, or at its value."""
    share = jnp.clip((state.time + 1) / jnp.maximum(params.ramp, 1), 0, 1)
    values = {}
    for one in forcings:
        rise = state.forcing[one.name] - one.default if one.default else state.forcing[one.name]
        values[one.name] = one.default + share * rise if one.default else share * rise
    return values
