"""Whether a climate is right for the right reasons: its energy budget and its parameters.

A policy can reach the right temperature with fluxes that no planet has and with parameters that
jump from one column to the next. What is computed here stands beside skill wherever skill stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Bool, Float

from fedrain.climate.columns import Columns
from fedrain.climate.parameters import ParameterTable

STEFAN_BOLTZMANN = 5.670374419e-8  # W m⁻² K⁻⁴
ZERO_CELSIUS = 273.15
#: Share of its range within which a parameter counts as being at a bound.
NEAR_BOUND = 0.01


def above_black_body(
    temperature: Float[np.ndarray, "*cell"], outgoing_longwave: Float[np.ndarray, "*cell"]
) -> Bool[np.ndarray, "*cell"]:
    """Whether more leaves than a black body at the surface temperature (°C) could emit."""
    return outgoing_longwave > STEFAN_BOLTZMANN * (temperature + ZERO_CELSIUS) ** 4


@dataclass(frozen=True)
class Physics:
    """How plausible one climate and its parameters are.

    Args:
        above_black_body: Columns that emit more than a black body; None where fluxes are unknown.
        roughness: Mean absolute difference between neighbouring columns of each learnt parameter of
            columns, in units of its range.
        at_bounds: Share of the values of each learnt parameter within 1 % of a bound.
    """

    above_black_body: float | None
    roughness: dict[str, float]
    at_bounds: dict[str, float]

    @classmethod
    def of(
        cls,
        learnt: ParameterTable,
        columns: Columns,
        parameters: Mapping[str, ArrayLike],
        temperature: Float[np.ndarray, " column"] | None = None,
        outgoing_longwave: Float[np.ndarray, " column"] | None = None,
    ) -> "Physics":
        """Of the parameters in force, and of the temperature (°C) and flux they led to."""
        rough, bounded = {}, {}
        first, second = columns.neighbours.T
        for row in learnt:
            scaled = (np.asarray(parameters[row.symbol], float) - row.low) / (row.high - row.low)
            bounded[row.symbol] = float((np.abs(scaled - 0.5) >= 0.5 - NEAR_BOUND).mean())
            if row.by_column and len(first):
                rough[row.symbol] = float(np.abs(scaled[first] - scaled[second]).mean())
        above = None
        if temperature is not None and outgoing_longwave is not None:
            above = float(above_black_body(temperature, outgoing_longwave).sum())
        return cls(above, rough, bounded)

    @classmethod
    def mean(cls, several: "list[Physics]") -> "Physics":
        """Mean of several, such as those of the seeds."""
        first = several[0]
        above = [one.above_black_body for one in several]
        return cls(
            None if first.above_black_body is None else float(np.mean(above)),  # type: ignore[arg-type]
            {s: float(np.mean([one.roughness[s] for one in several])) for s in first.roughness},
            {s: float(np.mean([one.at_bounds[s] for one in several])) for s in first.at_bounds},
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON: each as one number, the mean over the parameters, and by parameter."""
        return {
            "above_black_body": self.above_black_body,
            "roughness": _mean(self.roughness),
            "at_bounds": _mean(self.at_bounds),
            "roughness_of": self.roughness,
            "at_bounds_of": self.at_bounds,
        }


def _mean(values: Mapping[str, float]) -> float | None:
    return float(np.mean(list(values.values()))) if values else None
