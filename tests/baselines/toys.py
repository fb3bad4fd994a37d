"""A model of two fields on latitude–longitude columns, whose best parameters are known.

    T' = T + (heat + shift + push − T) / 2,   q' = q + (source − q) / 2

It is linear: constant parameters reach a target where heat + shift and source are the target, and
optimal control is there after one step, if the bounds leave it free to aim beyond.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from fedrain.climate import Columns, Field, Forcing, HostModel, Parameter, ParameterTable
from fedrain.envs import Task

COLUMNS = Columns.lat_lon(4, 6)
TABLE = ParameterTable(
    (
        Parameter("shift", "the same everywhere", "K", 0.0, -2.0, 2.0),
        Parameter("heat", "of each column", "K", 5.0, -100.0, 100.0, scope="column"),
        Parameter("source", "of each level", "g kg-1", 1.0, -40.0, 40.0, scope="level", levels=2),
    )
)
FIELDS = (
    Field("warmth", "K", scale=10.0),
    Field("humidity", "g kg-1", scale=2.0, levels=(850.0, 500.0)),
)
WARMTH = 10 * np.cos(np.deg2rad(COLUMNS.latitude)) + np.sin(np.deg2rad(COLUMNS.longitude))
HUMIDITY = np.stack([0.3 * WARMTH, 0.1 * WARMTH], axis=1)
TARGET = {"warmth": WARMTH, "humidity": HUMIDITY}
BOTH = {"warmth": 1.0, "humidity": 4.0}


@dataclass(frozen=True)
class Toy:
    table: ParameterTable = TABLE
    columns = COLUMNS
    fields = FIELDS
    forcings = (Forcing("push", "K"),)

    def init(self, key, warmth=-3.0):
        start = jnp.broadcast_to(jnp.asarray(warmth, float), (len(COLUMNS),))
        return {"T": start, "q": jnp.zeros((len(COLUMNS), 2))}

    def step(self, state, parameters, forcing, key):
        aim = parameters["heat"] + parameters["shift"] + forcing["push"]
        return {
            "T": state["T"] + (aim - state["T"]) / 2,
            "q": state["q"] + (parameters["source"] - state["q"]) / 2,
        }

    def observe(self, state):
        return {"warmth": state["T"], "humidity": state["q"]}


@dataclass(frozen=True)
class Noisy(Toy):
    """Weather, drawn at every step and at the start."""

    def init(self, key, warmth=-3.0):
        state = super().init(key, warmth)
        return {**state, "T": state["T"] + jax.random.normal(key, state["T"].shape)}

    def step(self, state, parameters, forcing, key):
        after = super().step(state, parameters, forcing, key)
        return {**after, "T": after["T"] + jax.random.normal(key, after["T"].shape)}


@dataclass(frozen=True)
class Single(Toy):
    """A state that is always in float32, which parameters in float64 would change."""

    def init(self, key, warmth=-3.0):
        return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), super().init(key, warmth))


@dataclass(frozen=True)
class Refuses(Single):
    """Fails where its parameters are in float64."""

    def step(self, state, parameters, forcing, key):
        if parameters["heat"].dtype != jnp.float32:
            raise TypeError("float32, please")
        return super().step(state, parameters, forcing, key)


@dataclass(frozen=True)
class Fragile(Toy):
    """Diverges above a value of ``heat``."""

    above: float = 30.0

    def step(self, state, parameters, forcing, key):
        after = super().step(state, parameters, forcing, key)
        failed = parameters["heat"].max() > self.above
        return {**after, "T": jnp.where(failed, jnp.nan, after["T"])}


@dataclass(frozen=True)
class Loop(Toy):
    """What JAX cannot differentiate backwards."""

    def step(self, state, parameters, forcing, key):
        after = super().step(state, parameters, forcing, key)
        warm = jax.lax.while_loop(lambda t: (t > 1e3).any(), lambda t: t / 2, after["T"])
        return {**after, "T": warm}


@dataclass(frozen=True)
class Host(HostModel):
    """The same as :class:`Toy`, in NumPy."""

    table: ParameterTable = TABLE
    columns = COLUMNS
    fields = FIELDS
    forcings = Toy.forcings

    def init_host(self, rng, warmth=-3.0):
        start = np.broadcast_to(warmth, (len(COLUMNS),))
        return {"warmth": start, "humidity": np.zeros((len(COLUMNS), 2))}

    def step_host(self, state, parameters, forcing, rng):
        aim = parameters["heat"] + parameters["shift"] + forcing["push"]
        state["warmth"] += (aim - state["warmth"]) / 2
        state["humidity"] += (parameters["source"] - state["humidity"]) / 2
        return state


SMALL = {"agents": 4, "judge": BOTH, "target": TARGET, "episode_length": 8}
TASK = Task(model=Toy(), **SMALL)
HOST_TASK = Task(model=Host(), **SMALL)
