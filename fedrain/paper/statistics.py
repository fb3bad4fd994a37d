"""Tests on means and spreads, which is all that is published."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Bool, Float

LEVEL = 0.05  # below which a p-value decides
WINDOW = 5  # episodes of a running mean; those of random actions are as many


class Sample(NamedTuple):
    """A quantity over the seeds, as the paper gives it: mean and population standard deviation.

    Args:
        mean: Over the seeds.
        std: Over the seeds, divided by their number and not by one less.
        number: How many seeds.
        distances: Absolute distance of each seed from their median, where seeds are known.

    Example:
        >>> Sample(mean=3.0, std=2.0, number=5).variance
        5.0
    """

    mean: float
    std: float
    number: int
    distances: tuple[float, ...] | None = None

    @classmethod
    def of(cls, values: Float[np.ndarray, " seed"]) -> "Sample":
        """From the seeds themselves."""
        distances = np.abs(values - np.median(values)).tolist()
        return cls(float(np.mean(values)), float(np.std(values)), len(values), tuple(distances))

    @property
    def variance(self) -> float:
        """Of the population that the seeds are a sample of."""
        return self.std**2 * self.number / (self.number - 1)

    def times(self, factor: float) -> "Sample":
        """The same quantity, scaled."""
        return Sample(factor * self.mean, abs(factor) * self.std, self.number)

    def log(self) -> "Sample":
        """Its logarithm, whose spread is that of small deviations."""
        return Sample(float(np.log(self.mean)), self.std / self.mean, self.number)


def pooled(samples: Sequence[Sample]) -> Sample:
    """One sample with the mean variance, and no more degrees of freedom than one of them has.

    Those of several bands are of the same seeds, so that they are worth little more than one; the
    distances are those of each seed, averaged over the bands.
    """
    means, stds, numbers, distances = zip(*samples, strict=True)
    together = None if None in distances else tuple(np.mean(distances, axis=0).tolist())
    std = float(np.sqrt(np.mean(np.square(stds))))
    return Sample(float(np.mean(means)), std, min(numbers), together)


def standard_errors(first: Sample, second: Sample) -> float:
    """Difference of two means in standard errors of both together, which is Welch's t."""
    return _welch(first, second.times(-1.0))[0]


def differ(first: Sample, second: Sample) -> float:
    """P-value of Welch's test that two means are the same."""
    t, freedom = _welch(first, second.times(-1.0))
    return float(2 * scipy.stats.t.sf(abs(t), freedom))


def below(first: Sample, second: Sample) -> float:
    """P-value of Welch's test that the first mean is not below the second.

    Against a number, a sample without spread, it is Student's test.
    """
    return sum_below_zero(first, second.times(-1.0))


def sum_below_zero(*samples: Sample) -> float:
    """P-value of the test, after Welch and Satterthwaite, that a sum of means is not negative."""
    return float(scipy.stats.t.cdf(*_welch(*samples)))


def more_variable(first: Sample, second: Sample) -> float:
    """P-value of the test that the first does not vary more than the second.

    Where the seeds are known it is that of Brown and Forsythe, Welch's test of their distances from
    the median, which skewed errors do not mislead; where only spreads are, the F test.
    """
    if first.distances is not None and second.distances is not None:
        return below(*(Sample.of(np.array(s.distances)) for s in (second, first)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.divide(first.variance, second.variance)
    return float(scipy.stats.f.sf(ratio, first.number - 1, second.number - 1))


def more_variable_of_the_same(first: Sample, second: Sample) -> float:
    """The same for two bands of the same seeds, in their order: Student's paired test.

    A seed that is far off in one band often is in the next, which the differences of its distances
    leave out. Where only spreads are known, so is not what bands have in common, and the test is
    the F test, as if they had nothing.
    """
    if first.distances is None or second.distances is None:
        return more_variable(first, second)
    return paired(np.array(first.distances), np.array(second.distances))


def paired(first: Float[np.ndarray, " seed"], second: Float[np.ndarray, " seed"]) -> float:
    """P-value of Student's paired test that the first mean is not above the second."""
    return sum_below_zero(Sample.of(second - first))


def converged_at(
    learning: Float[np.ndarray, "seed episode"], tolerance: float
) -> Float[np.ndarray, " seed"]:
    """Episode from which on each seed stays within a share of its gain from where it ends.

    The gain is from the mean of the first five episodes, whose actions are random, to that of the
    last ten; what stays is a running mean over five episodes, dated by its first. A seed that
    gains nothing, or ends with a jump, has not converged by the last.
    """
    begin, end = _ends(learning)
    running = running_mean(learning)
    settled = np.abs(running - end[:, None]) < tolerance * (end - begin)[:, None]
    lasting = np.logical_and.accumulate(settled[:, ::-1], axis=1).sum(1)
    from_then_on = running.shape[1] - lasting + 1
    return np.where(lasting > 0, from_then_on, learning.shape[1]).astype(float)


def rises_steadily(
    learning: Float[np.ndarray, "seed episode"], tolerance: float
) -> Bool[np.ndarray, " seed"]:
    """Whether each seed never falls back by more than a share of what it gains in all."""
    begin, end = _ends(learning)
    running = running_mean(learning)
    lost = (np.maximum.accumulate(running, axis=1) - running).max(1)
    return lost <= tolerance * (end - begin)


def running_mean(learning: Float[np.ndarray, "seed episode"]) -> Float[np.ndarray, "seed episode_"]:
    """Over five episodes."""
    kernel = np.ones(WINDOW) / WINDOW
    return np.stack([np.convolve(one, kernel, mode="valid") for one in learning])


def earlier(first: Float[np.ndarray, " a"], second: Float[np.ndarray, " b"]) -> float:
    """P-value of the Mann–Whitney test that the first is not the smaller; ½ if all are tied."""
    less, greater = (
        scipy.stats.mannwhitneyu(first, second, alternative=tail).pvalue
        for tail in ("less", "greater")
    )
    return float(less + 1 - greater) / 2


def most(which: Bool[np.ndarray, " seed"]) -> float:
    """Mid-p-value of the sign test that no more than half of the seeds are such."""
    number, such = len(which), int(which.sum())
    return (
        float(scipy.stats.binom.sf(such - 1, number, 0.5) + scipy.stats.binom.sf(such, number, 0.5))
        / 2
    )


def _ends(
    learning: Float[np.ndarray, "seed episode"],
) -> tuple[Float[np.ndarray, " seed"], Float[np.ndarray, " seed"]]:
    return learning[:, :WINDOW].mean(1), learning[:, -2 * WINDOW :].mean(1)


def _welch(*samples: Sample) -> tuple[float, float]:
    """A sum of means in its standard errors, and the degrees of freedom of those."""
    total = sum(sample.mean for sample in samples)
    squares = [sample.variance / sample.number for sample in samples]
    if sum(squares) == 0:
        return float(np.sign(total)) * np.inf, 1.0
    freedom = sum(squares) ** 2 / sum(
        square**2 / (sample.number - 1) for square, sample in zip(squares, samples, strict=True)
    )
    return total / float(np.sqrt(sum(squares))), freedom
