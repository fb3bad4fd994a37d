"""Interquartile means with bootstrap intervals over the seeds (Agarwal et al. 2021)."""

import numpy as np
from jaxtyping import Float

DRAWS, CONFIDENCE = 2000, 0.95


def interquartile_mean(values: Float[np.ndarray, "..."]) -> float:
    """Mean of the middle half: a quarter of all values is left out at each end."""
    ordered = np.sort(values, axis=None)
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def interval(values: Float[np.ndarray, "seed agent"]) -> tuple[float, float, float]:
    """Interquartile mean over seeds and agents, and its 95 % bootstrap interval.

    Whole seeds are drawn again, since the agents of a seed learn together.
    """
    random = np.random.default_rng(0)
    rows = random.integers(0, len(values), (DRAWS, len(values)))
    means = [interquartile_mean(values[row]) for row in rows]
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(means, [tail, 100 - tail])
    return interquartile_mean(values), float(low), float(high)


def interval_text(values: Float[np.ndarray, "seed agent"]) -> str:
    """For a table."""
    mean, low, high = interval(values)
    return f"{mean:.2f} [{low:.2f}, {high:.2f}]"
