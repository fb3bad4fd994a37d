"""What may be seen and judged of a climate model, and what forces it from outside."""

import math
import re
from dataclasses import dataclass

from fedrain.errors import InputError


@dataclass(frozen=True)
class Field:
    """A quantity that a model shows at every column, and at every level if it has levels.

    Args:
        name: ``"surface_temperature"``; that of the CF convention where there is one.
        unit: As NetCDF writes it: ``"degC"``.
        scale: Size of its typical variations: what learners divide it by.
        levels: Values of the vertical coordinate; none for a field of the surface.
        level_unit: Unit of the levels.
        low: What an agent is shown is kept above this.
        high: And below this.
        long_name: What people call it; its name, without underscores, if it is left out.
        standard_name: That of the CF convention.
    """

    name: str
    unit: str
    scale: float = 1.0
    levels: tuple[float, ...] = ()
    level_unit: str = "hPa"
    low: float = -math.inf
    high: float = math.inf
    long_name: str = ""
    standard_name: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise InputError(f"{self.name}: its scale must be a positive number, not {self.scale}")
        if not self.low < self.high:
            raise InputError(f"{self.name}: there is nothing between {self.low} and {self.high}")
        try:
            levels = tuple(float(level) for level in self.levels)  # a list cannot be hashed
        except (TypeError, ValueError):
            raise InputError(
                f"{self.name}: its levels must be a tuple of numbers, not {self.levels!r}"
            ) from None
        object.__setattr__(self, "levels", levels)

    @property
    def title(self) -> str:
        """What people call it."""
        return self.long_name or self.name.replace("_", " ")

    @property
    def difference_unit(self) -> str:
        """Unit of a difference of two of its values: of degrees Celsius it is the kelvin."""
        return "K" if self.unit == "degC" else self.unit

    def shape(self, columns: int) -> tuple[int, ...]:
        """Of its values in a model with that many columns."""
        return (columns, len(self.levels)) if self.levels else (columns,)

    @property
    def attributes(self) -> dict[str, str]:
        """For NetCDF, by the CF convention."""
        standard = {"standard_name": self.standard_name} if self.standard_name else {}
        return {**standard, "long_name": self.title, "units": self.unit}


def unit_text(unit: str) -> str:
    """A unit as people write it: ``"degC"`` is °C, ``"W m-2"`` is W m⁻²."""
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    powers = r"(?<=[A-Za-z)])-?\d+"
    return re.sub(powers, lambda power: power[0].translate(raised), unit).replace("degC", "°C")


@dataclass(frozen=True)
class Forcing:
    """A number that acts on a model from outside, such as ``longwave`` or ``solar``.

    Args:
        name: ``"longwave"``, ``"solar"``, or any other; scenarios know these two.
        unit: As NetCDF writes it: ``"W m-2"``.
        default: Its value where nobody sets it.
        long_name: What people call it; its name, if it is left out.
    """

    name: str
    unit: str
    default: float = 0.0
    long_name: str = ""

    def __post_init__(self) -> None:
        if not math.isfinite(self.default):
            raise InputError(f"{self.name}: its default must be a number, not {self.default}")


#: The field that the energy balance model shows, in °C, with a scale of 30 K.
SURFACE_TEMPERATURE = Field(
    "surface_temperature",
    "degC",
    scale=30.0,
    low=-90.0,
    high=90.0,
    standard_name="surface_temperature",
)
#: What leaves at the top of the atmosphere, and what enters and stays.
OUTGOING_LONGWAVE = Field(
    "outgoing_longwave",
    "W m-2",
    scale=50.0,
    low=-500.0,
    high=1000.0,
    long_name="outgoing longwave radiation",
    standard_name="toa_outgoing_longwave_flux",
)
ABSORBED_SHORTWAVE = Field(
    "absorbed_shortwave",
    "W m-2",
    scale=50.0,
    low=-500.0,
    high=1000.0,
    long_name="absorbed shortwave radiation",
    standard_name="toa_net_downward_shortwave_flux",
)
