"""A climate model that computes outside JAX: in NumPy, in Fortran, in anything Python can call.

What is compiled calls it back at every step, so that it trains through the same loop and gives the
same run folder as a model written in JAX. It cannot be differentiated: baselines that need the
gradient of a model say so.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from threading import Lock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from fedrain.climate.columns import Columns
from fedrain.climate.fields import Field, Forcing
from fedrain.climate.model import Forcings, ModelState, first_line
from fedrain.climate.parameters import Parameters, ParameterTable
from fedrain.errors import InputError

# Code outside JAX may keep its state in a place of its own, as Fortran modules do.
_one_at_a_time = Lock()


class HostModel(ABC):
    """Inherit from this, and write ``init_host`` and ``step_host`` in NumPy terms.

    Give it ``columns``, ``table`` and ``fields`` (and ``forcings``, if it has any) as of
    :class:`fedrain.climate.ClimateModel`, as class attributes or properties. Arrays are NumPy's, in
    double precision. The state is a dictionary of arrays, or any other pytree; where it has an
    entry for each field, nothing more is needed, otherwise write ``observe`` with ``jax.numpy``.
    One climate is stepped at a time, whatever thread asks for it.
    """

    columns: Columns
    table: ParameterTable
    fields: tuple[Field, ...]
    forcings: tuple[Forcing, ...] = ()

    @abstractmethod
    def init_host(self, rng: np.random.Generator, **start: Any) -> ModelState:
        """The start of an episode, from what a task may set, each with a default."""

    @abstractmethod
    def step_host(
        self,
        state: ModelState,
        parameters: Mapping[str, np.ndarray],
        forcing: Mapping[str, float],
        rng: np.random.Generator,
    ) -> ModelState:
        """The state one time step later. ``state`` may be changed in place."""

    def observe(self, state: ModelState) -> dict[str, Array]:
        """Every field by name; by default those entries of the state."""
        return {field.name: state[field.name] for field in self.fields}

    def init(self, key: Key[Array, ""], **start: Any) -> ModelState:
        """The start, for what is compiled."""

        def on_host(bits: Any, values: dict[str, Any]) -> ModelState:
            with _one_at_a_time:
                made = self.init_host(_generator(bits), **jax.tree.map(_number, values))
            return _like(self._template, made, dtype)

        dtype = jnp.result_type(float)
        given = {name: jnp.asarray(value) for name, value in start.items()}
        shapes = self._shapes(dtype)
        return jax.pure_callback(
            on_host, shapes, jax.random.key_data(key), given, vmap_method="sequential"
        )

    def step(
        self, state: ModelState, parameters: Parameters, forcing: Forcings, key: Key[Array, ""]
    ) -> ModelState:
        """One step, for what is compiled; of each climate in turn where there are several."""
        dtype = jax.tree.leaves(state)[0].dtype
        inner = np.ndim(jax.tree.leaves(self._template)[0])

        def on_host(*arguments: Any) -> ModelState:
            arrays = jax.tree.map(np.asarray, arguments)
            first = jax.tree.leaves(arrays[0])[0]
            batch = first.shape[: first.ndim - inner]
            after = [self._step_one(_at(arrays, place), dtype) for place in np.ndindex(batch)]
            return jax.tree.map(lambda *leaves: np.reshape(leaves, batch + leaves[0].shape), *after)

        shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), state)
        given = {row.symbol: parameters[row.symbol] for row in self.table}
        return jax.pure_callback(
            on_host,
            shapes,
            state,
            jax.tree.map(jnp.asarray, given),
            jax.tree.map(jnp.asarray, dict(forcing)),
            jax.random.key_data(key),
            vmap_method="broadcast_all",
        )

    def _step_one(self, arguments: Any, dtype: Any) -> ModelState:
        state, parameters, forcing, bits = arguments
        doubles = jax.tree.map(lambda leaf: np.array(leaf, float), state)
        values = {symbol: np.array(value, float) for symbol, value in parameters.items()}
        numbers = {name: float(value) for name, value in forcing.items()}
        with _one_at_a_time:
            after = self.step_host(doubles, values, numbers, _generator(bits))
        return _like(self._template, after, dtype)

    def check_host(self) -> None:
        """Take one step with the static values: what is wrong is better said now than in a run."""
        kind, columns = type(self).__name__, len(self.columns)
        values = {symbol: value.copy() for symbol, value in self.table.static(columns).items()}
        numbers = {forcing.name: forcing.default for forcing in self.forcings}
        key = np.zeros(2, np.uint32)
        try:
            self._step_one((self._template, values, numbers, key), float)
        except Exception as error:
            raise InputError(f"{kind}: step_host fails ({first_line(error)})") from None

    @cached_property
    def _template(self) -> ModelState:
        with _one_at_a_time:
            made = self.init_host(np.random.default_rng(0))
        return jax.tree.map(lambda leaf: np.array(leaf, float), made)

    def _shapes(self, dtype: Any) -> ModelState:
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, dtype), self._template)


def _at(arrays: Any, place: tuple[int, ...]) -> Any:
    return jax.tree.map(lambda leaf: leaf[place], arrays)


def _generator(bits: Any) -> np.random.Generator:
    return np.random.default_rng(np.asarray(bits).ravel().astype(np.uint32).tolist())


def _number(value: Any) -> Any:
    array = np.asarray(value, float)
    return array if array.ndim else float(array)


def _like(template: ModelState, made: ModelState, dtype: Any) -> ModelState:
    """What a user's code gave, with the structure and shapes that it should have."""
    leaves, structure = jax.tree.flatten(made)
    if structure != jax.tree.structure(template):
        raise ValueError("a step must give a state of the same structure as init_host")
    arrays = [np.asarray(leaf, dtype) for leaf in leaves]
    for array, like in zip(arrays, jax.tree.leaves(template), strict=True):
        if array.shape != like.shape:
            raise ValueError(f"a step gives an array of shape {array.shape}, not {like.shape}")
    return jax.tree.unflatten(structure, arrays)
