"""What an agent is shown: fields, their target and error, the season, and its place."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from fedrain.climate.columns import frozen
from fedrain.climate.fields import Field

#: What agents may be shown beside fields: the target of the judged fields, how far they are from
#: it, the time of year as its sine and cosine, and where their columns are: the latitude over 90°,
#: and sine and cosine of the longitude, if there is one.
EXTRAS = ("target", "error", "season", "place")

#: Sensor noise is drawn from the key of a step folded with this: far from the numbers of the
#: climates, whose own keys come from the same one.
_NOISE = 2**31 - 1


@dataclass(frozen=True)
class Part:
    """A field, or the target or error of one; or season or place, which are of no field."""

    name: str
    field: Field | None
    size: int

    @property
    def limits(self) -> tuple[float, float]:
        """Between which it is shown."""
        if self.field is None:
            return -1.0, 1.0
        return (-np.inf, np.inf) if self.name == "error" else (self.field.low, self.field.high)


@dataclass(frozen=True)
class Observation:
    """What one agent is shown, part by part, in order."""

    parts: tuple[Part, ...]

    @classmethod
    def of(
        cls,
        names: Iterable[str],
        fields: Iterable[Field],
        judged: Iterable[Field],
        columns: int,
        coordinates: int = 1,
    ) -> "Observation":
        """Of these names, in the given number of columns, whose place is so many numbers."""
        known = {field.name: field for field in fields}
        parts: list[Part] = []
        for name in names:
            if name == "season":
                parts.append(Part(name, None, 2))
                continue
            if name == "place":
                parts.append(Part(name, None, columns * coordinates))
                continue
            own = judged if name in EXTRAS else (known[name],)
            parts += [Part(name, one, int(np.prod(one.shape(columns)))) for one in own]
        return cls(tuple(parts))

    @cached_property
    def bounds(self) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, " obs"]]:
        """Lowest and highest of each number."""
        sizes = [part.size for part in self.parts]
        limits = np.array([part.limits for part in self.parts], np.float32).reshape(-1, 2)
        return frozen(np.repeat(limits[:, 0], sizes)), frozen(np.repeat(limits[:, 1], sizes))

    @cached_property
    def scale(self) -> tuple[float, ...]:
        """Typical size of each number: that of its own field."""
        scales = [1.0 if part.field is None else part.field.scale for part in self.parts]
        return tuple(np.repeat(scales, [part.size for part in self.parts]).tolist())

    @cached_property
    def sensed(self) -> tuple[Field, ...]:
        """The fields that are measured, each once, for what is shown of them."""
        of_sensors = [p.field for p in self.parts if p.field is not None and p.name != "target"]
        return tuple(dict.fromkeys(of_sensors))

    def shows(self, name: str) -> bool:
        """Whether this is part of it."""
        return any(part.name == name for part in self.parts)

    def measured(
        self,
        shown: Mapping[str, Float[Array, "agent seen ..."]],
        noise: Float[Array, ""],
        key: Key[Array, ""],
        regions: tuple[int, ...],
    ) -> dict[str, Float[Array, "agent seen ..."]]:
        """The fields with the error of the sensors, which field and error then have in common.

        Each of the ``regions`` draws its own, the same whether or not the others are here.
        """
        key = jax.random.fold_in(key, _NOISE)
        keys = jax.vmap(lambda region: jax.random.fold_in(key, region))(jnp.asarray(regions))
        noisy = dict(shown)
        for i, field in enumerate(self.sensed):
            values = shown[field.name]

            def normal(own: Key[Array, ""], i: int = i, like: Array = values) -> Array:
                return jax.random.normal(jax.random.fold_in(own, i), like.shape[1:], like.dtype)

            drawn = jax.vmap(normal)(keys)
            noisy[field.name] = values + noise.astype(values.dtype) * field.scale * drawn
        return noisy

    def put_together(
        self,
        agents: int,
        shown: Mapping[str, Float[Array, "agent seen ..."]],
        target: Mapping[str, Float[Array, "agent seen ..."]],
        others: Mapping[str, Float[Array, "agent number"]],
    ) -> Float[Array, "agent obs"]:
        """The parts side by side; ``others`` are those of no field, by name."""
        parts = []
        for part in self.parts:
            if part.field is None:
                parts.append(others[part.name])
                continue
            name = part.field.name
            if part.name == "target":
                values = target[name]
            elif part.name == "error":
                values = shown[name] - target[name]
            else:
                values = shown[name]
            parts.append(values.reshape(agents, -1))
        if not parts:
            return jnp.zeros((agents, 0))
        return jnp.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
