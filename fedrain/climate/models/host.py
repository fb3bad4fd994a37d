"""A climate model that computes outside JAX: in NumPy, in Fortran, in anything Python can call.

What is compiled calls it back at every step, so that it trains through the same loop and gives the
same run folder as a model written in JAX. It cannot be differentiated: baselines that need the
gradient of a model say so.
"""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from fedrain.climate.columns import Columns
from fedrain.climate.fields import Field, Forcing
from fedrain.climate.model import Forcings, ModelState, first_line, same_structure
from fedrain.climate.parameters import Parameters, ParameterTable
from fedrain.errors import FailureError, InputError
from fedrain.references import OF_OTHERS

# Code outside JAX may keep its state in a place of its own, as Fortran modules do.
_one_at_a_time = Lock()


class HostFailureError(InputError, FailureError):
    """A model outside JAX failed on its way: one line that says which, and what it said.

    The model is the user's, so that the command line takes it for wrong input.
    """


# JAX logs the traceback of a callback that fails: the line that clear_failures gives is enough.
logging.getLogger("jax._src.callback").addFilter(
    lambda record: not (record.exc_info and record.exc_info[0] is HostFailureError)
)


@contextmanager
def clear_failures() -> Iterator[None]:
    """Raise what a model outside JAX said when it failed, in one line, for what JAX makes of it.

    What is compiled runs on its own: wait for its results inside of this. It also decorates a
    function.
    """
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:  # either, by the way it was called
        said = re.findall(rf"{HostFailureError.__name__}: (.+)", str(error))
        if not said:
            raise
        raise HostFailureError(said[-1]) from None


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
    def init_host(self, rng: np.random.Generator, *args: Any, **start: Any) -> ModelState:
        """The start of an episode. Further arguments, with defaults, may be set by a task.

        Args:
            rng: For a start that is drawn.
            args: Arguments of a model of your own, which have defaults.
            start: Likewise, by name: numbers, or arrays.

        Returns:
            The state: a dictionary of NumPy's arrays, or any other pytree of them.
        """

    @abstractmethod
    def step_host(
        self,
        state: ModelState,
        parameters: Mapping[str, np.ndarray],
        forcing: Mapping[str, float],
        rng: np.random.Generator,
    ) -> ModelState:
        """The state one time step later. ``state`` may be changed in place.

        Args:
            state: A copy of what ``init_host`` or ``step_host`` gave, in double precision.
            parameters: By symbol, in physical units: ``[]``, ``[column]`` or ``[column, level]``,
                by the scope of the row of the table.
            forcing: By name, in physical units: one number each.
            rng: For weather, or whatever else is random.

        Returns:
            The state, with the structure and shapes that it had.
        """

    def observe(self, state: ModelState) -> dict[str, Array]:
        """Every field by name; by default those entries of the state.

        Args:
            state: ``[...]`` arrays of JAX, of one climate.

        Returns:
            Each field in its own unit, ``[column]`` or ``[column, level]``.
        """
        return {field.name: state[field.name] for field in self.fields}

    def init(self, key: Key[Array, ""], **start: Any) -> ModelState:
        """The start, for what is compiled.

        Args:
            key: For what ``init_host`` draws.
            start: Arguments of ``init_host``.

        Returns:
            What ``init_host`` gives.
        """

        def on_host(bits: Any, values: dict[str, Any]) -> ModelState:
            doubles = _unpacked(values, dtype)
            with self._said_in_one_line("init_host"):
                with _one_at_a_time:
                    made = self.init_host(_generator(bits), **jax.tree.map(_number, doubles))
                return _packed_on_host(_like(self._template, made, dtype))

        dtype = jnp.result_type(float)
        given = {name: jnp.asarray(value, dtype) for name, value in start.items()}
        made = jax.pure_callback(
            on_host,
            _packed_shapes(self._template, dtype),
            jax.random.key_data(key),
            _packed(given),
            vmap_method="sequential",
        )
        return _restored(made, dtype)

    def step(
        self, state: ModelState, parameters: Parameters, forcing: Forcings, key: Key[Array, ""]
    ) -> ModelState:
        """One step, for what is compiled; of each climate in turn where there are several.

        Args:
            state: As ``init`` gave it.
            parameters: By symbol, in physical units: ``[]``, ``[column]`` or ``[column, level]``,
                by the scope of the row of the table.
            forcing: By name, in physical units: one number each.
            key: For what ``step_host`` draws.

        Returns:
            What ``step_host`` gives.
        """
        dtype = jax.tree.leaves(state)[0].dtype
        inner = np.ndim(jax.tree.leaves(self._template)[0])

        def on_host(numbers: Any, bits: Any) -> ModelState:
            arrays = (*_unpacked(numbers, dtype), np.asarray(bits))
            first = jax.tree.leaves(arrays[0])[0]
            batch = first.shape[: first.ndim - inner]
            with self._said_in_one_line("step_host"):
                after = [self._step_one(_at(arrays, place), dtype) for place in np.ndindex(batch)]
            return _packed_on_host(
                jax.tree.map(lambda *leaves: np.reshape(leaves, batch + leaves[0].shape), *after)
            )

        given = {row.symbol: parameters[row.symbol] for row in self.table}
        numbers = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), (state, given, dict(forcing)))
        after = jax.pure_callback(
            on_host,
            _packed_shapes(state, dtype),
            _packed(numbers),
            jax.random.key_data(key),
            vmap_method="broadcast_all",
        )
        return _restored(after, dtype)

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
            after = self._step_one((self._template, values, numbers, key), float)
        except OF_OTHERS as error:
            raise InputError(f"{kind}: step_host fails ({first_line(error)})") from None
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after)):
            raise InputError(f"{kind}: step_host gives NaN or infinity in its first step")

    @contextmanager
    def _said_in_one_line(self, what: str) -> Iterator[None]:
        try:
            yield
        except OF_OTHERS as error:
            raise HostFailureError(
                f"{type(self).__name__}: {what} fails ({first_line(error)})"
            ) from error

    @cached_property
    def _template(self) -> ModelState:
        with _one_at_a_time:
            made = self.init_host(np.random.default_rng(0))
        return jax.tree.map(lambda leaf: np.array(leaf, float), made)


# JAX calls back in a thread of its own, which does not know of `jax.enable_x64`: there it would
# round what is in double precision. Such numbers cross as pairs of 32 bits, which it leaves alone.


def _is_double(leaf: Any) -> bool:
    return bool(leaf.dtype == np.float64)


def _packed(tree: Any) -> Any:
    def pack(leaf: Array) -> Array:
        return jax.lax.bitcast_convert_type(leaf, jnp.uint32) if _is_double(leaf) else leaf

    return jax.tree.map(pack, tree)


def _packed_shapes(tree: Any, dtype: Any) -> Any:
    like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), dtype), tree)
    return jax.eval_shape(_packed, like)


def _unpacked(tree: Any, dtype: Any) -> Any:
    def unpack(leaf: Any) -> np.ndarray:
        array = np.ascontiguousarray(leaf)
        if array.dtype != np.uint32 or dtype != np.float64:
            return array.reshape(np.shape(leaf))
        return array.view(np.float64).reshape(array.shape[:-1])

    return jax.tree.map(unpack, tree)


def _packed_on_host(tree: Any) -> Any:
    def pack(leaf: np.ndarray) -> np.ndarray:
        if not _is_double(leaf):
            return leaf
        return np.ascontiguousarray(leaf).view(np.uint32).reshape(*leaf.shape, 2)

    return jax.tree.map(pack, tree)


def _restored(tree: Any, dtype: Any) -> Any:
    if dtype != np.float64:
        return tree
    return jax.tree.map(lambda leaf: jax.lax.bitcast_convert_type(leaf, dtype), tree)


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
    if not same_structure(made, template):
        raise ValueError("the state no longer has the structure that init_host gave it")
    arrays = [np.asarray(leaf, dtype) for leaf in leaves]
    for array, like in zip(arrays, jax.tree.leaves(template), strict=True):
        if array.shape != like.shape:
            raise ValueError(f"the state has an array of shape {array.shape}, not {like.shape}")
    return jax.tree.unflatten(structure, arrays)
