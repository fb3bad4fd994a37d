"""Tests on means and spreads, which is all that is published."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

LEVEL = 0.05  # below which a p-value decides


class Sample(NamedTuple):
    """Mean and population standard deviation over the seeds, as the paper gives them."""

    mean: float
    std: float
    number: int

    @classmethod
    def of(cls, values: Float[np.ndarray, " seed"]) -> "Sample":
        """From the seeds themselves."""
        return cls(float(np.mean(values)), float(np.std(values)), len(values))

    @property
    def unbiased_std(self) -> float:
        """Standard deviation of the population that the seeds are a sample of."""
        return self.std * float(np.sqrt(self.number / (self.number - 1)))

    def times(self, factor: float) -> "Sample":
        """The same quantity, scaled."""
        return Sample(factor * self.mean, abs(factor) * self.std, self.number)


def standard_errors(first: Sample, second: Sample) -> float:
    """Difference of two means in standard errors of both together."""
    error = np.sqrt(first.std**2 / first.number + second.std**2 / second.number)
    return float((first.mean - second.mean) / error)


def differ(first: Sample, second: Sample) -> float:
    """P-value of Welch's test that two means are the same."""
    return _welch(first, second, "two-sided")


def below(first: Sample, second: Sample) -> float:
    """P-value of Welch's test that the first mean is not below the second."""
    return _welch(first, second, "less")


def below_constant(sample: Sample, constant: float) -> float:
    """P-value of Student's test that a mean is not below a number."""
    t = (sample.mean - constant) / (sample.unbiased_std / np.sqrt(sample.number))
    return float(stats.t.cdf(t, sample.number - 1))


def more_variable(first: Sample, second: Sample) -> float:
    """P-value of the F test that the first variance is not above the second."""
    ratio = (first.unbiased_std / second.unbiased_std) ** 2
    return float(stats.f.sf(ratio, first.number - 1, second.number - 1))


def converged_at(learning: Float[np.ndarray, "seed episode"]) -> Float[np.ndarray, " seed"]:
    """Episode after which each seed has gained nine tenths of what it gains in all.

    From the mean of the first five episodes, whose actions are random, to that of the last ten, by
    a running mean over five episodes.
    """
    window = 5
    begin, end = learning[:, :window].mean(1), learning[:, -10:].mean(1)
    kernel = np.ones(window) / window
    running = np.stack([np.convolve(one, kernel, mode="valid") for one in learning])
    reached = running >= (end - 0.1 * np.abs(end - begin))[:, None]
    return np.where(reached.any(1), reached.argmax(1) + window, learning.shape[1]).astype(float)


def _welch(first: Sample, second: Sample, alternative: str) -> float:
    return float(
        stats.ttest_ind_from_stats(
            first.mean,
            first.unbiased_std,
            first.number,
            second.mean,
            second.unbiased_std,
            second.number,
            equal_var=False,
            alternative=alternative,
        ).pvalue
    )
