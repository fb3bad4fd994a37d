"""The contract of a climate model: what every model provides.

A model is a pure function ``state, parameters, forcing, key → state`` with fields that can be seen
and judged. Whatever has the parts of :class:`ClimateModel` is one; nothing has to be inherited.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Key

from fedrain.climate.columns import Columns
from fedrain.climate.fields import Field, Forcing
from fedrain.climate.parameters import Parameters, ParameterTable
from fedrain.errors import FailureError, InputError, unknown
from fedrain.references import OF_OTHERS, told

#: Any pytree of arrays.
ModelState = Any
#: Values of the forcings by name.
Forcings = Mapping[str, ArrayLike]


@runtime_checkable
class ClimateModel(Protocol):
    """What every climate model has.

    Models are hashable (make them frozen dataclasses), so that what is compiled for one serves all
    that are equal to it. ``init``, ``step`` and ``observe`` are pure functions of JAX arrays and
    speak of one climate; environments map them over several. One that computes outside JAX
    inherits from :class:`fedrain.climate.HostModel` instead.

    A model may also have ``season(state)``, the fraction of the year that has passed (0 to 1), for
    agents that are to see it; ``days_per_step``, for the axes of figures; ``costly = True`` where
    a step costs more than learning from it: climates are then computed one after the other, and
    cores are left to the model; ``single_precision = True`` where it takes no other; and
    ``differentiable = False`` where its gradient over an episode is of no use.
    """

    @property
    def columns(self) -> Columns:
        """Where: latitude (and longitude) of every column, and area weights."""

    @property
    def table(self) -> ParameterTable:
        """What may be set, at every step."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """What may be seen and judged."""

    @property
    def forcings(self) -> tuple[Forcing, ...]:
        """Named numbers from outside; an empty tuple if there are none."""

    def init(self, key: Key[Array, ""]) -> ModelState:
        """The start of an episode. Further arguments, with defaults, may be set by a task.

        Args:
            key: For a start that is drawn.

        Returns:
            The state: any pytree of arrays, of one climate.
        """

    def step(
        self, state: ModelState, parameters: Parameters, forcing: Forcings, key: Key[Array, ""]
    ) -> ModelState:
        """The state one time step later, with the same structure, shapes and types.

        Args:
            state: As ``init`` and ``step`` give it: any pytree of arrays.
            parameters: By symbol, in physical units: ``[]``, ``[column]`` or ``[column, level]``,
                by the scope of the row of the table.
            forcing: By name, in physical units: one number each.
            key: For weather, or whatever else is random.

        Returns:
            The state one time step later.
        """

    def observe(self, state: ModelState) -> dict[str, Array]:
        """Every field by name: ``[column]``, or ``[column, level]``.

        Args:
            state: As ``init`` and ``step`` give it: any pytree of arrays.

        Returns:
            Each field in its own unit, ``[column]`` or ``[column, level]``.
        """


#: The parts that are called.
FUNCTIONS = ("init", "step", "observe")
PARTS = ("columns", "table", "fields", "forcings", *FUNCTIONS)


def check_model(model: object) -> None:
    """Refuse what is not a climate model, in one line that says what it lacks.

    Args:
        model: Anything; see :class:`ClimateModel`.
    """
    name = getattr(model, "__name__", type(model).__name__)
    if isinstance(model, type):
        raise InputError(f"{name} is a class: a model is an object, {name}()")
    if missing := [part for part in PARTS if not _has(model, part)]:
        raise InputError(
            f"{name} has no {' and no '.join(missing)}: a climate model has {', '.join(PARTS)}"
        )
    for part in FUNCTIONS:
        if not callable(getattr(model, part)):
            raise InputError(f"{name}: its {part} must be a function")
    try:
        hash(model)
    except Exception:
        raise InputError(
            f"{name} must be hashable: make it a frozen dataclass, without lists or arrays as "
            "fields"
        ) from None
    assert isinstance(model, ClimateModel)
    for part, kind, text in (
        ("columns", Columns, "fedrain.climate.Columns"),
        ("table", ParameterTable, "a fedrain.climate.ParameterTable"),
        ("fields", tuple, "a tuple of fedrain.climate.Field"),
        ("forcings", tuple, "a tuple of fedrain.climate.Forcing, empty if there are none"),
    ):
        if not isinstance(getattr(model, part), kind):
            raise InputError(f"{name}: its {part} must be {text}")
    for part, of in (("fields", Field), ("forcings", Forcing)):
        things = getattr(model, part)
        if not all(isinstance(one, of) for one in things):
            raise InputError(f"{name}: its {part} must be a tuple of fedrain.climate.{of.__name__}")
        if len({one.name for one in things}) < len(things):
            names = ", ".join(one.name for one in things)
            raise InputError(f"{name}: a name occurs twice among its {part} {names}")
    if not model.fields:
        raise InputError(f"{name} has no field that could be judged")
    model.table.static(len(model.columns))  # refuses defaults that do not fit the columns
    _check_shapes(model)  # type: ignore[arg-type]  # that it is hashable is known by now
    if (check_host := getattr(model, "check_host", None)) is not None:
        check_host()


def _has(model: object, part: str) -> bool:
    """Whether a model has a part; one that fails is named, with what it says."""
    try:
        getattr(model, part)
    except OF_OTHERS as error:
        if isinstance(error, AttributeError) and not hasattr(type(model), part):
            return False
        said = str(error) if isinstance(error, InputError) else first_line(error)
        raise InputError(f"{type(model).__name__}: {part} fails ({said})") from None
    return True


@lru_cache(maxsize=32)  # tracing takes a while, and environments of one model are many
def _check_shapes(model: ClimateModel) -> None:
    name, columns = type(model).__name__, len(model.columns)
    try:
        state = jax.eval_shape(model.init, jax.eval_shape(lambda: jax.random.key(0)))
    except (InputError, FailureError):
        raise
    except OF_OTHERS as error:
        raise InputError(f"{name}: init fails ({first_line(error)})") from None
    try:
        seen = jax.eval_shape(model.observe, state)
    except OF_OTHERS as error:
        raise InputError(f"{name}: observe fails ({first_line(error)})") from None
    if not isinstance(seen, Mapping):
        raise InputError(f"{name}: observe must give a dictionary of fields by name")
    for field in model.fields:
        if field.name not in seen:
            raise InputError(f"{name}: observe does not give the field {field.name!r}")
        found, expected = tuple(seen[field.name].shape), field.shape(columns)
        if found != expected:
            raise InputError(f"{name}: {field.name} has shape {found} instead of {expected}")
    if (season_of := getattr(model, "season", None)) is not None:
        try:
            season = jax.eval_shape(season_of, state)
        except OF_OTHERS as error:
            raise InputError(f"{name}: season fails ({first_line(error)})") from None
        if (shape := getattr(season, "shape", None)) != ():
            raise InputError(f"{name}: season must be one number, and has shape {shape}")
    parameters = {
        row.symbol: jax.ShapeDtypeStruct(row.shape(columns), jnp.float32) for row in model.table
    }
    forcing = {f.name: jax.ShapeDtypeStruct((), jnp.float32) for f in model.forcings}
    try:
        after = jax.eval_shape(
            model.step, state, parameters, forcing, jax.eval_shape(lambda: jax.random.key(0))
        )
    except OF_OTHERS as error:
        raise InputError(f"{name}: step fails ({first_line(error)})") from None
    if not same_structure(state, after) or _shapes(state) != _shapes(after):
        raise InputError(
            f"{name}: step changes the structure, shapes or types of the state: "
            f"{_shapes(state)} becomes {_shapes(after)}"
        )


def check_start(model: ClimateModel, start: Mapping[str, ArrayLike]) -> None:
    """Refuse a start with numbers that are not finite, or beyond what its fields can show.

    Args:
        model: A climate model.
        start: By argument of ``init``: lowest and highest, both of which are tried.
    """
    kind = type(model).__name__
    pairs = {name: np.asarray(bounds) for name, bounds in start.items()}  # JAX would compile a pick
    ends = [{name: jnp.asarray(pair[end]) for name, pair in pairs.items()} for end in (0, 1)]
    for end in ends if start else ends[:1]:
        try:
            seen = model.observe(model.init(jax.random.key(0), **end))
        except OF_OTHERS as error:
            raise InputError(f"{kind}: cannot start ({first_line(error)})") from None
        for field in model.fields:
            values = np.asarray(seen[field.name])
            if values.shape != field.shape(len(model.columns)):
                raise InputError(f"{kind}: {field.name} starts with shape {values.shape}")
            if not np.isfinite(values).all():
                raise InputError(
                    f"{kind}: {field.name} is NaN or infinite at the start of an episode"
                )
            if values.min() < field.low or values.max() > field.high:
                raise InputError(
                    f"{kind}: {field.name} starts at {values.min():g} to {values.max():g} "
                    f"{field.unit}: it must be within {field.low:g} to {field.high:g}"
                )


def over_climates(model: ClimateModel, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one climate as one of several: side by side, or in turn if it is costly.

    Side by side both branches of a condition are computed, and all states are in memory at once.
    """
    if not getattr(model, "costly", False):
        return jax.vmap(function)
    return lambda *several: jax.lax.map(lambda one: function(*one), several)


def same_structure(one: Any, other: Any) -> bool:
    """Whether two pytrees differ in their leaves only."""
    return bool(jax.tree.structure(one) == jax.tree.structure(other))  # type: ignore[operator]


def _shapes(tree: Any) -> str:
    return ", ".join(f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(tree))


def first_line(error: BaseException) -> str:
    """What an error of somebody else's code says, and where, for a message of one line."""
    return told(error)


def no_forcing(model: ClimateModel) -> Forcings:
    """Every forcing at its default."""
    return {forcing.name: jnp.asarray(forcing.default) for forcing in model.forcings}


@partial(jax.jit, static_argnames=("model", "steps"))
def integrate(
    model: ClimateModel,
    state: ModelState,
    parameters: Parameters,
    steps: int,
    forcing: Forcings | None = None,
    key: Key[Array, ""] | None = None,
) -> ModelState:
    """The state after ``steps`` steps with constant parameters and forcing.

    Args:
        model: A climate model.
        state: Where to start, of one climate.
        parameters: By symbol, in physical units, for all of the time.
        steps: How many.
        forcing: By name; the defaults if it is left out.
        key: For models that draw random numbers.
    """
    return _advance(model, state, parameters, steps, forcing, key)[0]


@partial(jax.jit, static_argnames=("model", "steps"))
def trajectory(
    model: ClimateModel,
    state: ModelState,
    parameters: Parameters,
    steps: int,
    forcing: Forcings | None = None,
    key: Key[Array, ""] | None = None,
) -> ModelState:
    """The state after each of ``steps`` steps, as :func:`integrate`: with a leading time axis."""
    return _advance(model, state, parameters, steps, forcing, key, keep=True)[1]


def _advance(
    model: ClimateModel,
    state: ModelState,
    parameters: Parameters,
    steps: int,
    forcing: Forcings | None,
    key: Key[Array, ""] | None,
    keep: bool = False,
) -> tuple[ModelState, ModelState | None]:
    forced = {**no_forcing(model), **(forcing or {})}
    for name in forced:
        if name not in (known := [one.name for one in model.forcings]):
            raise unknown(f"forcing of {type(model).__name__}", name, known)
    first = jax.random.key(0) if key is None else key

    def advance(before: ModelState, step: Array) -> tuple[ModelState, ModelState | None]:
        after = model.step(before, parameters, forced, jax.random.fold_in(first, step))
        return after, after if keep else None

    return jax.lax.scan(advance, state, jnp.arange(steps))
