"""Where a climate model computes: its columns, and the regions that agents divide them into.

A zonal mean model has a column for each latitude; a model with longitudes has one for
each cell, latitude by latitude from south to north, and eastwards within each.
"""

import reprlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from fedrain.errors import InputError


def frozen(array: np.ndarray) -> np.ndarray:
    """The same array, read-only: what is computed once and shared must not change."""
    array.flags.writeable = False
    return array


def is_integer(value: object) -> bool:
    """Whether a value is an integer, and not a truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_count(what: str, value: object, least: int, most: int) -> None:
    """Refuse what is no integer from ``least`` on, and what is above ``most``, which is named."""
    if not is_integer(value) or value < least:  # type: ignore[operator]
        raise InputError(f"{what} must be an integer from {least}, not {told(value)}")
    if value > most:  # type: ignore[operator]
        raise InputError(f"{what} is at most {most}, not {told(value)}")


def told(value: object) -> str:
    """A value in a message: of a number with hundreds of digits, or a long list, its ends."""
    try:
        return reprlib.repr(value)
    except ValueError:  # Python writes no integer of thousands of digits
        return "a longer number"


@dataclass(frozen=True, eq=False)
class Columns:
    """Latitude, and longitude if there is one, of every column in degrees; and area weights.

    Args:
        latitude: In °N, shape ``(columns,)``.
        longitude: In °E, the same shape; None for zonal means.
        weights: Relative areas; cos φ if they are left out.
    """

    latitude: np.ndarray
    longitude: np.ndarray | None = None
    weights: np.ndarray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        latitude = np.array(self.latitude, float)
        if latitude.ndim != 1 or not len(latitude):
            raise InputError("columns need a latitude each: an array of one dimension")
        if not np.isfinite(latitude).all() or np.abs(latitude).max() > 90:
            raise InputError("latitudes of columns must be numbers from -90 to 90")
        weights = np.cos(np.deg2rad(latitude)) if self.weights is None else self.weights
        for name, values in (
            ("latitude", latitude), ("longitude", self.longitude), ("weights", weights)
        ):  # fmt: skip
            if values is None:
                continue
            array = np.array(values, float)
            if array.shape != latitude.shape or not np.isfinite(array).all():
                raise InputError(f"{name} of columns: needs a finite number for each column")
            object.__setattr__(self, name, frozen(array))
        if (self.weights < 0).any() or not self.weights.sum() > 0:
            raise InputError("area weights of columns must not be negative, nor all zero")

    @classmethod
    def lat_lon(cls, latitudes: int, longitudes: int) -> "Columns":
        """Cells of equal width in latitude and longitude, ``latitudes × longitudes`` of them."""
        centres = ((np.arange(latitudes) + 0.5) / latitudes - 0.5) * 180
        east = (np.arange(longitudes) + 0.5) * 360 / longitudes
        return cls(np.repeat(centres, longitudes), np.tile(east, latitudes))

    @classmethod
    def zonal(cls, latitudes: int) -> "Columns":
        """Zonal means of cells of equal width in latitude."""
        return cls(((np.arange(latitudes) + 0.5) / latitudes - 0.5) * 180)

    def __len__(self) -> int:
        return len(self.latitude)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    @cached_property
    def _bytes(self) -> tuple[bytes, ...]:
        longitude = b"" if self.longitude is None else self.longitude.tobytes()
        return self.latitude.tobytes(), longitude, self.weights.tobytes()

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """``(latitudes,)``, or ``(latitudes, longitudes)`` where they form a rectangle."""
        if self.longitude is None:
            return (len(self),)
        across = len(np.unique(self.longitude))
        if len(self) % across:
            return (len(self),)
        rows, east = (a.reshape(-1, across) for a in (self.latitude, self.longitude))
        regular = (
            (rows == rows[:, :1]).all()
            and (np.diff(rows[:, 0]) > 0).all()
            and (east == east[:1]).all()
            and (np.diff(east[0]) > 0).all()
        )
        return rows.shape if regular else (len(self),)

    @cached_property
    def is_zonal(self) -> bool:
        """Whether there is one column for each latitude, from south to north."""
        return self.longitude is None and bool((np.diff(self.latitude) > 0).all())

    @cached_property
    def coordinates(self) -> Float[np.ndarray, "column number"]:
        """Where each column is, in [−1, 1]: latitude over 90°, sine and cosine of the longitude."""
        parts = [self.latitude / 90]
        if self.longitude is not None:
            east = np.deg2rad(self.longitude)
            parts += [np.sin(east), np.cos(east)]
        return frozen(np.stack(parts, axis=1))

    @cached_property
    def neighbours(self) -> Int[np.ndarray, "pair 2"]:
        """Pairs of columns that lie side by side: along a meridian and, if there are, parallels.

        Columns that form neither a line nor a rectangle have none.
        """
        order = np.arange(len(self), dtype=np.int32)
        if self.longitude is None:
            return frozen(np.stack([order[:-1], order[1:]], axis=1))
        if len(self.shape) == 1:
            return frozen(np.zeros((0, 2), np.int32))
        cells = order.reshape(self.shape)
        north = np.stack([cells[:-1].ravel(), cells[1:].ravel()], axis=1)
        east = np.stack([cells.ravel(), np.roll(cells, -1, axis=1).ravel()], axis=1)
        return frozen(np.concatenate([north, east]))

    def mean(self, values: Float[np.ndarray, "... column"]) -> Float[np.ndarray, "..."]:
        """Area-weighted mean over the globe."""
        return np.asarray(values @ self.weights / self.weights.sum())

    def zonal_mean(
        self, values: Float[np.ndarray, "... column"]
    ) -> tuple[Float[np.ndarray, " lat"], Float[np.ndarray, "... lat"]]:
        """Latitudes from south to north, and the mean over the columns of each."""
        latitudes, index = np.unique(self.latitude, return_inverse=True)
        share = (index == np.arange(len(latitudes))[:, None]).astype(float)
        return latitudes, values @ (share / share.sum(1, keepdims=True)).T


@dataclass(frozen=True)
class Regions:
    """A division of columns among agents: as many to each.

    ``cells`` are the columns of each region. With ``overlap``, bands that do not divide the
    latitudes equally share some with their neighbours: there the mean of what they set counts.

    Args:
        columns: Those of the model.
        number: How many regions: a divisor of the columns.
        tiles: Rows and columns of tiles; None: bands from south to north.
        overlap: Whether bands may share latitudes, where they do not divide them equally.
    """

    columns: Columns
    number: int
    tiles: tuple[int, int] | None = None  # rows and columns of tiles, of a rectangle of columns
    overlap: bool = False

    def __post_init__(self) -> None:
        fits = is_integer(self.number) and 1 <= self.number <= len(self.columns)
        if not fits or not (self.overlaps or len(self.columns) % self.number == 0):
            raise InputError(
                f"{self.number!r} agents do not divide {len(self.columns)} "
                f"{'latitudes' if self.columns.is_zonal else 'columns'}: "
                f"use one of {', '.join(map(str, divisors(len(self.columns))))}"
            )
        if self.tiles is not None:
            shape = self.columns.shape
            if len(shape) != 2:
                raise InputError("tiles divide rows of latitude–longitude columns, not others")
            if min(self.tiles) < 1 or self.tiles[0] * self.tiles[1] != self.number:
                raise InputError(f"{self.tiles} tiles do not make {self.number} regions")
            if shape[0] % self.tiles[0] or shape[1] % self.tiles[1]:
                raise InputError(f"{self.tiles} tiles do not divide {shape} columns equally")

    @cached_property
    def cells(self) -> Int[np.ndarray, "region cell"]:
        """The columns of each region: bands from south to north, or tiles."""
        # In 32 bits: JAX mixes up the types of indices in 64 where double precision comes and goes.
        order = np.arange(len(self.columns), dtype=np.int32)
        if self.overlaps:
            first = np.linspace(0, len(order) - self.size, self.number)
            first = np.where(first < first.mean(), np.floor(first), np.ceil(first))  # symmetric
            return frozen(first.astype(np.int32)[:, None] + order[: self.size])
        if self.layout is None:
            return frozen(order.reshape(self.number, -1))
        rows, across = self.layout
        high, wide = (n // t for n, t in zip(self.columns.shape, (rows, across), strict=True))
        tiles = order.reshape(rows, high, across, wide).transpose(0, 2, 1, 3)
        return frozen(np.ascontiguousarray(tiles).reshape(self.number, -1))

    @cached_property
    def layout(self) -> tuple[int, int] | None:
        """Rows and columns of tiles: as asked, or those nearest to squares; None for bands."""
        if self.tiles is not None or len(self.columns.shape) == 1:
            return self.tiles
        high, wide = self.columns.shape
        fitting = [
            (rows, self.number // rows)
            for rows in divisors(self.number)
            if high % rows == 0 and wide % (self.number // rows) == 0
        ]
        # There always is one: gcd(number, high) rows.
        return min(fitting, key=lambda pair: abs(np.log(180 / pair[0] * pair[1] / 360)))

    @property
    def overlaps(self) -> bool:
        """Whether bands share latitudes."""
        bands = self.overlap and self.tiles is None and self.columns.is_zonal
        return bands and len(self.columns) % self.number > 0

    @property
    def in_order(self) -> bool:
        """Whether the regions, one after the other, are the columns in their own order."""
        return not self.overlaps and (self.layout is None or self.layout[1] == 1)

    @property
    def size(self) -> int:
        """Columns in one region."""
        return -(-len(self.columns) // self.number)

    def take(self, values: Any) -> Any:
        """``[column, *rest]`` → ``[region, cell, *rest]``: the values of each region."""
        if self.in_order:
            return values.reshape(self.number, self.size, *values.shape[1:])
        return jnp.asarray(values)[self.cells]

    def lay(self, values: Any) -> Any:
        """``[region, cell, *rest]`` → ``[column, *rest]``: each region's values in their place."""
        if self.overlaps:
            owners = np.bincount(self.cells.ravel(), minlength=len(self.columns))
            sums = jnp.zeros((len(self.columns), *values.shape[2:]), values.dtype)
            sums = sums.at[self.cells].add(values)
            return sums / jnp.asarray(owners, sums.dtype).reshape(-1, *[1] * (sums.ndim - 1))
        flat = values.reshape(len(self.columns), *values.shape[2:])
        return flat if self.in_order else jnp.asarray(flat)[self._places]

    @cached_property
    def _places(self) -> Int[np.ndarray, " column"]:
        return frozen(np.argsort(self.cells.ravel()).astype(np.int32))

    @cached_property
    def centres(self) -> Float[np.ndarray, "region 2"]:
        """Latitude and longitude of the middle of each region; longitude 0 for bands."""
        latitude = self.columns.latitude[self.cells].mean(1)
        longitude = np.zeros_like(latitude)
        if self.columns.longitude is not None and self.layout is not None and self.layout[1] > 1:
            longitude = self.columns.longitude[self.cells].mean(1)
        return frozen(np.stack([latitude, longitude], axis=1))

    def name(self, region: int) -> str:
        """Its borders, for people: ``90°S to 60°S``."""
        latitudes = np.unique(self.columns.latitude)
        middle = (latitudes[1:] + latitudes[:-1]) / 2
        edges = np.concatenate([[-90.0], middle, [90.0]])
        own = np.searchsorted(latitudes, self.columns.latitude[self.cells[region]])
        text = f"{_latitude(edges[own.min()])} to {_latitude(edges[own.max() + 1])}"
        if self.layout is None or self.layout[1] == 1:
            return text
        assert self.columns.longitude is not None
        own_east = self.columns.longitude[self.cells[region]]
        wide = 360 / self.columns.shape[1]
        west = (own_east.min() - wide / 2) % 360
        return f"{text}, {west:g}°E to {west + 360 / self.layout[1]:g}°E"


def degrees_apart(places: Float[np.ndarray, "place 2"]) -> Float[np.ndarray, "place place"]:
    """Between places (°N, °E): along the meridian if they share one, or the great circle."""
    latitude, longitude = places.T
    if np.ptp(longitude) == 0:
        return np.abs(latitude[:, None] - latitude)
    phi, around = np.deg2rad(latitude), np.deg2rad(longitude)
    cosine = np.sin(phi)[:, None] * np.sin(phi) + np.cos(phi)[:, None] * np.cos(phi) * np.cos(
        around[:, None] - around
    )
    return np.rad2deg(np.arccos(np.clip(cosine, -1, 1)))


def closeness(
    places: Float[np.ndarray, "place 2"], reach: float
) -> Float[np.ndarray, "place place"]:
    """How much each place counts for each: e times less every ``reach`` degrees; 0: all alike."""
    apart = degrees_apart(places)
    weights = np.exp(-apart / reach) if reach else np.ones_like(apart)
    return frozen(weights / weights.sum(axis=1, keepdims=True))


def divisors(number: int) -> list[int]:
    """The numbers of agents that divide so many columns equally."""
    return [d for d in range(1, number + 1) if number % d == 0]


def _latitude(degrees: float) -> str:
    rounded = round(float(degrees), 2)
    return f"{abs(rounded):g}°" + ("S" if rounded < 0 else "N" if rounded > 0 else "")
