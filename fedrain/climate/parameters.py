"""The parameters of a climate model as one table: symbol, name, unit, default and bounds.

Action spaces, clipping, plots and NetCDF attributes all read this table.
Physical bounds stand here and nowhere else.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float

from fedrain.errors import InputError

#: Values of the parameters by symbol, in physical units. Parameters of each latitude have shape
#: ``(..., latitudes)``, the others ``(...)``.
Parameters = Mapping[str, ArrayLike]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a climate model, in physical units.

    ``action_unit`` is the size of one unit of the action in physical units: agents set A in
    hundreds of W m⁻², as in the paper, so that all actions are of order one.
    """

    symbol: str
    name: str
    unit: str
    default: float
    low: float
    high: float
    per_latitude: bool = False
    action_unit: float = 1.0

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.default, self.low, self.high))):
            raise InputError(
                f"{self.symbol}: default and bounds must be finite numbers, "
                f"not {self.default:g} in ({self.low:g}, {self.high:g})"
            )
        if not self.low < self.high:
            raise InputError(
                f"{self.symbol}: the lower bound must be below the upper one, "
                f"not ({self.low:g}, {self.high:g})"
            )
        if not self.low <= self.default <= self.high:
            raise InputError(
                f"{self.symbol}: the static value {self.default:g} is outside "
                f"the bounds ({self.low:g}, {self.high:g})"
            )


@dataclass(frozen=True)
class ParameterTable:
    """The parameters of a model, in the order in which an action lists them."""

    rows: tuple[Parameter, ...]

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.rows)

    def __getitem__(self, symbol: str) -> Parameter:
        for row in self.rows:
            if row.symbol == symbol:
                return row
        known = ", ".join(row.symbol for row in self.rows)
        raise InputError(f"there is no parameter {symbol!r}; the model has {known}")

    def replace(
        self,
        bounds: Mapping[str, Sequence[float]] | None = None,
        static: Mapping[str, float] | None = None,
    ) -> "ParameterTable":
        """The same table with other bounds or other static values, in physical units."""
        bounds, static = _mapping("bounds", bounds), _mapping("static", static)
        for symbol in (*bounds, *static):
            self[symbol]  # refuses an unknown one
        rows = []
        for row in self.rows:
            low, high = _pair(row.symbol, bounds.get(row.symbol, (row.low, row.high)))
            default = _number(row.symbol, static.get(row.symbol, row.default))
            rows.append(replace(row, low=low, high=high, default=default))
        return ParameterTable(tuple(rows))

    def static(self, latitudes: int) -> dict[str, Float[np.ndarray, "..."]]:
        """The default values, for a model with that many latitudes."""
        return {
            row.symbol: np.full((latitudes,) if row.per_latitude else (), row.default)
            for row in self.rows
        }

    def action_slices(self, latitudes: int) -> dict[str, slice]:
        """Where in an action that sets ``latitudes`` latitudes each parameter stands."""
        slices, start = {}, 0
        for row in self.rows:
            stop = start + (latitudes if row.per_latitude else 1)
            slices[row.symbol] = slice(start, stop)
            start = stop
        return slices

    def action_bounds(
        self, latitudes: int
    ) -> tuple[Float[np.ndarray, " action"], Float[np.ndarray, " action"]]:
        """Lowest and highest action, in action units."""
        repeats = [latitudes if row.per_latitude else 1 for row in self.rows]
        low = np.repeat([row.low / row.action_unit for row in self.rows], repeats)
        high = np.repeat([row.high / row.action_unit for row in self.rows], repeats)
        return low, high

    def static_action(self, latitudes: int) -> Float[np.ndarray, " action"]:
        """The action that sets the default values."""
        repeats = [latitudes if row.per_latitude else 1 for row in self.rows]
        return np.repeat([row.default / row.action_unit for row in self.rows], repeats)


def _mapping(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping | None):
        raise InputError(f"{name} are given by symbol, as {{'A': …}}")
    return dict(value or {})


def _number(symbol: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{symbol}: a {type(value).__name__} is not a number") from None


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
            per_latitude=True,
            action_unit=100.0,
        ),
        Parameter("B", "longwave feedback", "W m-2 K-1", 2.0, 1.95, 2.05, per_latitude=True),
        Parameter("a0", "global mean albedo", "1", 0.354, 0.3, 0.4),
        Parameter("a2", "equator-to-pole albedo contrast", "1", 0.25, 0.2, 0.3),
    )
)
