"""What may be set in a climate model, as one table: symbol, name, unit, default, bounds and scope.

Action spaces, clipping, plots and NetCDF attributes all read this table.
Physical bounds stand here and nowhere else.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float, Int

from fedrain.errors import InputError, unknown

#: Values of the parameters by symbol, in physical units: one number for scope ``global``,
#: ``(..., columns)`` for ``column``, ``(..., columns, levels)`` for ``level``.
Parameters = Mapping[str, ArrayLike]

SCOPES = ("global", "column", "level")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a climate model, in physical units.

    Args:
        symbol: What the model calls it: ``"A"``.
        name: What people call it.
        unit: As NetCDF writes it: ``"W m-2"``.
        default: The static value; one number, or one for each column (and level).
        low: The lowest value; with ``high`` the same, the parameter is fixed.
        high: The highest value.
        scope: ``"global"``, one number; ``"column"``, one for each column; ``"level"``, one for
            each column and level.
        levels: How many levels, for scope ``"level"``.
        action_unit: Size of one unit of the action in physical units: agents set A in hundreds of
            W m⁻², as in the paper, so that all actions are of order one.
    """

    symbol: str
    name: str
    unit: str
    default: float | Sequence[float] | np.ndarray
    low: float
    high: float
    scope: str = "global"
    levels: int = 1
    action_unit: float = 1.0

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            raise unknown("scope of a parameter", self.scope, SCOPES)
        if np.ndim(self.default):  # a list or an array cannot be hashed
            object.__setattr__(self, "default", tuple(np.ravel(self.default).tolist()))
        if self.scope == "global" and np.ndim(self.default):
            raise InputError(f"{self.symbol}: a global parameter has one default, not several")
        values = self._defaults
        if not np.isfinite(values).all() or not all(map(math.isfinite, (self.low, self.high))):
            raise InputError(
                f"{self.symbol}: default and bounds must be finite numbers, "
                f"not {_brief(values)} in ({self.low:g}, {self.high:g})"
            )
        if self.low > self.high:
            raise InputError(
                f"{self.symbol}: the lower bound must not exceed the upper one, "
                f"not ({self.low:g}, {self.high:g})"
            )
        if values.min() < self.low or values.max() > self.high:
            raise InputError(
                f"{self.symbol}: the static value {_brief(values)} is outside "
                f"the bounds ({self.low:g}, {self.high:g})"
            )

    @property
    def _defaults(self) -> Float[np.ndarray, " value"]:
        return np.atleast_1d(np.asarray(self.default, float))

    @property
    def is_fixed(self) -> bool:
        """Whether its bounds leave it no choice."""
        return self.low == self.high

    @property
    def by_column(self) -> bool:
        """Whether each column has its own."""
        return self.scope != "global"

    def shape(self, columns: int) -> tuple[int, ...]:
        """Of its values in a model with that many columns."""
        shapes = {"global": (), "column": (columns,), "level": (columns, self.levels)}
        return shapes[self.scope]

    def static(self, columns: int) -> Float[np.ndarray, "..."]:
        """Its default in a model with that many columns."""
        shape = self.shape(columns)
        values = self._defaults
        if len(values) not in (1, math.prod(shape)):
            raise InputError(
                f"{self.symbol}: {len(values)} default values for {columns} columns"
                + (f" of {self.levels} levels" if self.scope == "level" else "")
            )
        return np.full(shape, values[0]) if len(values) == 1 else values.reshape(shape)


def _brief(values: Float[np.ndarray, " value"]) -> str:
    return f"{values[0]:g}" if len(values) == 1 else f"{values.min():g} to {values.max():g}"


@dataclass(frozen=True)
class ParameterTable:
    """The parameters of a model, in the order in which an action lists them.

    Args:
        rows: One for each parameter; symbols are distinct.
    """

    rows: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.rows, tuple) or not all(isinstance(r, Parameter) for r in self.rows):
            raise InputError("a table of parameters is a tuple of fedrain.climate.Parameter")
        symbols = [row.symbol for row in self.rows]
        if len(set(symbols)) < len(symbols):
            raise InputError(f"a symbol occurs twice among the parameters {', '.join(symbols)}")

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, symbol: str) -> Parameter:
        for row in self.rows:
            if row.symbol == symbol:
                return row
        raise unknown("parameter", symbol, [row.symbol for row in self.rows])

    def learnt(self, symbols: Iterable[str] | None = None) -> "ParameterTable":
        """The rows that agents set: those named, or all; what is fixed by its bounds is not."""
        if symbols is None:
            return ParameterTable(tuple(row for row in self.rows if not row.is_fixed))
        named = [self[symbol] for symbol in symbols]
        for row in named:
            if row.is_fixed:
                raise InputError(f"{row.symbol}: cannot be learnt, its bounds are both {row.low:g}")
        return ParameterTable(tuple(row for row in self.rows if row in named))

    def replace(
        self,
        bounds: Mapping[str, Sequence[float]] | None = None,
        static: Mapping[str, float | Sequence[float] | np.ndarray] | None = None,
    ) -> "ParameterTable":
        """The same table with other bounds or other static values, in physical units."""
        bounds, static = _mapping("bounds", bounds), _mapping("static", static)
        for symbol in (*bounds, *static):
            self[symbol]  # refuses an unknown one
        rows = []
        for row in self.rows:
            low, high = _pair(row.symbol, bounds.get(row.symbol, (row.low, row.high)))
            default = row.default
            if row.symbol in static:
                default = _default(row.symbol, static[row.symbol])
            rows.append(replace(row, low=low, high=high, default=default))
        return ParameterTable(tuple(rows))

    def static(self, columns: int) -> dict[str, Float[np.ndarray, "..."]]:
        """The default values, for a model with that many columns."""
        return {row.symbol: row.static(columns) for row in self.rows}

    def action_slices(self, cells: int) -> dict[str, slice]:
        """Where in an action that sets ``cells`` columns each parameter stands."""
        slices, start = {}, 0
        for row in self.rows:
            stop = start + math.prod(row.shape(cells))
            slices[row.symbol] = slice(start, stop)
            start = stop
        return slices

    def action_bounds(
        self, cells: int
    ) -> tuple[Float[np.ndarray, " action"], Float[np.ndarray, " action"]]:
        """Lowest and highest action, in action units."""
        repeats = [math.prod(row.shape(cells)) for row in self.rows]
        low = np.repeat([row.low / row.action_unit for row in self.rows], repeats)
        high = np.repeat([row.high / row.action_unit for row in self.rows], repeats)
        return low, high

    def static_action(
        self, columns: int, cells: Int[np.ndarray, " cell"]
    ) -> Float[np.ndarray, " action"]:
        """The action that sets these cells, of all the columns, to the default values."""
        parts = [np.zeros(0)]
        for row in self.rows:
            values = row.static(columns)
            parts.append(np.ravel(values[cells] if row.by_column else values) / row.action_unit)
        return np.concatenate(parts)


def _mapping(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping | None):
        raise InputError(f"{name} are given by symbol, as {{'A': …}}")
    return dict(value or {})


def _number(symbol: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{symbol}: a {type(value).__name__} is not a number") from None


def _default(symbol: str, value: object) -> float | tuple[float, ...]:
    if isinstance(value, tuple | list | np.ndarray) and np.ndim(value):
        return tuple(_number(symbol, one) for one in np.ravel(value))
    return _number(symbol, value)


def _pair(symbol: str, pair: object) -> tuple[float, float]:
    if not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2:
        raise InputError(f"{symbol}: bounds are a pair (low, high)")
    return _number(symbol, pair[0]), _number(symbol, pair[1])


#: Bounds and static values of the paper's experiments.
ENERGY_BALANCE_PARAMETERS = ParameterTable(
    (
        Parameter("D", "meridional heat diffusivity", "W m-2 K-1", 0.6, 0.55, 0.65),
        Parameter(
            "A",
            "outgoing longwave radiation at 0 degC",
            "W m-2",
            210.0,
            140.0,
            420.0,
            scope="column",
            action_unit=100.0,
        ),
        Parameter("B", "longwave feedback", "W m-2 K-1", 2.0, 1.95, 2.05, scope="column"),
        Parameter("a0", "global mean albedo", "1", 0.354, 0.3, 0.4),
        Parameter("a2", "equator-to-pole albedo contrast", "1", 0.25, 0.2, 0.3),
    )
)
