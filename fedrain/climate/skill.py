"""How far a temperature profile is from the target, in the six 30° bands of the paper."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from fedrain.climate.columns import Columns
from fedrain.climate.fields import SURFACE_TEMPERATURE, Field, unit_text
from fedrain.tables import Table

#: The bands of 30° in which skill is given, from south to north.
BAND_NAMES = ("90°S–60°S", "60°S–30°S", "30°S–0°", "0°–30°N", "30°N–60°N", "60°N–90°N")
BAND_EDGES = np.linspace(-90.0, 90.0, 7)


@dataclass(frozen=True)
class Skill:
    """areaWRMSE of each band, south to north, and of the globe, in the unit of the field.

    Args:
        bands: One number for each band of 30° latitude, south to north.
        globe: That of all columns.
    """

    bands: tuple[float, ...]
    globe: float

    @classmethod
    def mean(cls, skills: "Sequence[Skill]") -> "Skill":
        """Mean of several, such as those of the seeds."""
        bands = np.mean([skill.bands for skill in skills], axis=0)
        return cls(tuple(bands.tolist()), float(np.mean([skill.globe for skill in skills])))

    def as_dict(self) -> dict[str, Any]:
        """For JSON, under the names that the command line promises."""
        return {"bands": list(self.bands), "global": self.globe}


def area_weighted_rmse(
    error: Float[np.ndarray, " lat"], weights: Float[np.ndarray, " lat"]
) -> float:
    """√(Σ cos φ e² / Σ cos φ)."""
    if not len(error):
        return math.nan
    return float(np.sqrt(np.sum(weights * error**2) / np.sum(weights)))


def band_skill(
    columns: Columns,
    field: Float[np.ndarray, "column ..."],
    target: Float[np.ndarray, "column ..."],
) -> Skill:
    """Skill of a field against its target on the same columns; levels count alike.

    Bands without a column, which there are where a model has fewer than six latitudes, are NaN.

    Args:
        columns: Where: latitudes and area weights.
        field: ``[column]``, or ``[column, level]``.
        target: Of the same shape and unit.

    Returns:
        areaWRMSE of the six bands and of the globe, in the unit of the field.
    """
    error = np.asarray(field, float) - np.asarray(target, float)
    if error.ndim == 2:
        error = np.sqrt((error**2).mean(axis=1))
    band = np.digitize(columns.latitude, BAND_EDGES[1:-1])
    return Skill(
        bands=tuple(
            area_weighted_rmse(error[band == i], columns.weights[band == i])
            for i in range(len(BAND_NAMES))
        ),
        globe=area_weighted_rmse(error, columns.weights),
    )


def skill_table(columns: dict[str, Skill], field: Field = SURFACE_TEMPERATURE) -> str:
    """A plain-text table of areaWRMSE, a column for each named skill.

    Args:
        columns: Skills by name.
        field: What they are of, for the unit.

    Returns:
        Lines of text: a row for each band, and one for the globe.
    """
    figures = [(*skill.bands, skill.globe) for skill in columns.values()]
    rows = [
        [name, *(f"{value:.3f}" for value in values)]
        for name, *values in zip((*BAND_NAMES, "global"), *figures, strict=True)
    ]
    return Table("", [f"areaWRMSE ({unit_text(field.difference_unit)})", *columns], rows).text()
