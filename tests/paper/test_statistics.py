"""Tests from means and spreads agree with tests on the seeds themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedrain.paper.statistics import (
    Sample,
    below,
    converged_at,
    differ,
    earlier,
    more_variable,
    more_variable_of_the_same,
    most,
    paired,
    pooled,
    rises_steadily,
    standard_errors,
    sum_below_zero,
)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 20), st.integers(3, 20), st.floats(-2, 2))
def test_against_scipy_on_the_seeds(seed, first_number, second_number, shift):
    random = np.random.default_rng(seed)
    a, b = random.normal(0, 1, first_number), random.normal(shift, 2, second_number)
    first, second = Sample.of(a), Sample.of(b)
    welch = stats.ttest_ind(a, b, equal_var=False)
    assert differ(first, second) == pytest.approx(welch.pvalue)
    less = stats.ttest_ind(a, b, equal_var=False, alternative="less").pvalue
    assert below(first, second) == pytest.approx(less)
    one = stats.ttest_1samp(a, shift, alternative="less").pvalue
    assert below(first, Sample(shift, 0.0, 2)) == pytest.approx(one)
    ratio = np.var(a, ddof=1) / np.var(b, ddof=1)
    expected = stats.f.sf(ratio, first_number - 1, second_number - 1)
    spreads = first._replace(distances=None), second
    assert more_variable(*spreads) == pytest.approx(expected)
    far, near = (np.abs(x - np.median(x)) for x in (a, b))
    robust = stats.ttest_ind(far, near, equal_var=False, alternative="greater").pvalue
    assert more_variable(first, second) == pytest.approx(robust)
    assert standard_errors(first, second) == pytest.approx(welch.statistic)


def test_a_sum_of_four_means_is_negative_as_often_as_said():
    """One case in twenty where it is zero; nearly always where it is not."""
    random = np.random.default_rng(4)

    def share(shift):
        found = []
        for _ in range(1500):
            draws = [random.normal(mean, std, 10) for mean, std in ((1, 1), (-3, 2), (2, 0.5))]
            terms = [*draws, random.normal(shift, 1, 10)]
            found.append(sum_below_zero(*(Sample.of(term) for term in terms)) < 0.05)
        return np.mean(found)

    assert share(0.0) == pytest.approx(0.05, abs=0.02)
    assert share(-4.0) > 0.95


def test_without_any_spread():
    one, two = Sample(1.0, 0.0, 10), Sample(2.0, 0.0, 10)
    assert below(one, two) == 0
    assert below(two, one) == 1
    assert standard_errors(one, two) == -np.inf
    assert np.isnan(below(one, one))
    assert more_variable(Sample(1.0, 1.0, 10), one) == 0


def test_tests_are_right_as_often_as_they_say():
    random = np.random.default_rng(1)
    found = []
    for _ in range(2000):
        one, two = random.normal(3, 1, 10), random.normal(3, 2, 10)
        found.append(differ(Sample.of(one), Sample.of(two)) < 0.05)
    assert np.mean(found) == pytest.approx(0.05, abs=0.02)


def test_skewed_errors_do_not_mislead_the_test_of_variances():
    """Of the same law, one case in twenty is significant; the F test finds many more."""
    random = np.random.default_rng(5)
    robust, plain = [], []
    for _ in range(1500):
        one, two = (Sample.of(random.lognormal(0, 1, 10)) for _ in range(2))
        robust.append(more_variable(one, two) < 0.05)
        plain.append(more_variable(one._replace(distances=None), two) < 0.05)
    assert np.mean(robust) < 0.07
    assert np.mean(plain) > 0.2


def test_bands_of_the_same_seeds_are_pooled_as_one():
    random = np.random.default_rng(6)
    bands = random.normal(0, 1, (4, 10))
    together = pooled([Sample.of(band) for band in bands])
    assert together.number == 10
    assert together.std == pytest.approx(np.sqrt(np.var(bands, axis=1).mean()))
    distances = np.abs(bands - np.median(bands, axis=1, keepdims=True)).mean(0)
    assert together.distances == pytest.approx(distances)
    assert pooled([Sample(1.0, 1.0, 10), Sample.of(bands[0])]).distances is None


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 20), st.floats(-2, 2))
def test_paired_test_against_scipy(seed, number, shift):
    one, two = np.random.default_rng(seed).normal((0, shift), 1, (number, 2)).T
    expected = stats.ttest_rel(one, two, alternative="greater").pvalue
    assert paired(one, two) == pytest.approx(expected)


def test_spreads_of_the_same_seeds_are_compared_seed_by_seed():
    """What two bands have in common hides differences from a test that takes them for strangers."""
    random = np.random.default_rng(8)

    def share(test, spread):
        found = []
        for _ in range(1000):
            common = random.normal(0, 1, 10)  # a seed that is far off, is so in both bands
            one, two = (
                Sample.of(s * (common + 0.3 * random.normal(0, 1, 10))) for s in (spread, 1.0)
            )
            found.append(test(one, two) < 0.05)
        return np.mean(found)

    assert share(more_variable_of_the_same, 1.0) == pytest.approx(0.05, abs=0.02)
    assert share(more_variable, 1.0) < 0.01  # too few decisions
    assert share(more_variable_of_the_same, 1.5) > share(more_variable, 1.5) + 0.3
    known, unknown = Sample.of(random.normal(0, 2, 10)), Sample(0.0, 1.0, 10)
    assert more_variable_of_the_same(known, unknown) == more_variable(known, unknown)


def test_scaled_sample_and_its_logarithm():
    half = Sample(4.0, 2.0, 10).times(0.5)
    assert half[:3] == (2.0, 1.0, 10)
    values = np.random.default_rng(7).normal(5, 0.05, 100_000)
    log = Sample.of(values).log()
    assert log[:2] == pytest.approx((np.log(values).mean(), np.log(values).std()), rel=1e-3)


def test_convergence_of_a_step_and_of_a_ramp():
    episodes = np.arange(100)
    step = np.where(episodes < 30, -100.0, -10.0)
    ramp = np.minimum(-100.0 + episodes, -10.0)
    at = converged_at(np.stack([step, ramp]), 0.1)
    assert at[0] == 31  # the first of the better ones
    assert 77 < at[1] < 92
    assert converged_at(ramp[None], 0.2)[0] < at[1]


def test_what_gets_worse_or_falls_back_has_not_converged():
    episodes = np.arange(100)
    worse = np.where(episodes < 30, -10.0, -100.0)
    assert converged_at(worse[None], 0.1)[0] == 100
    fallen = np.where((episodes < 20) | ((episodes >= 60) & (episodes < 70)), -100.0, -10.0)
    assert converged_at(fallen[None], 0.1)[0] == 71
    peak = np.where(episodes < 20, -100.0, np.where(episodes < 60, -10.0, -50.0))
    assert converged_at(peak[None], 0.1)[0] == 61
    drifting = np.where(episodes < 20, -100.0, -10.0 - 0.5 * episodes)
    assert converged_at(drifting[None], 0.1)[0] > 80
    jump = np.where(episodes < 98, -100.0, -10.0)
    assert converged_at(jump[None], 0.1)[0] == 100


def test_rising_steadily():
    """A ramp does; one that loses a fifth of its gain for a while does not, nor one that falls."""
    ramp = np.linspace(-100, -10, 100)
    dent = np.where((np.arange(100) > 60) & (np.arange(100) < 70), ramp - 30, ramp)
    noisy = ramp + np.random.default_rng(1).normal(0, 3, 100)
    curves = np.stack([ramp, dent, noisy, ramp[::-1]])
    assert rises_steadily(curves, 0.1).tolist() == [True, False, True, False]
    assert rises_steadily(curves, 0.4).tolist() == [True, True, True, False]


@given(st.integers(0, 10))
def test_most_seeds(number):
    """The exact binomial tail, less half of the chance of just so many."""
    which = np.arange(10) < number
    exact = stats.binomtest(number, 10, alternative="greater").pvalue
    assert most(which) == pytest.approx(exact - stats.binom.pmf(number, 10, 0.5) / 2)
    assert most(which) + most(~which) == pytest.approx(1)


def test_earlier():
    random = np.random.default_rng(2)
    found = [earlier(*random.normal(0, 1, (2, 10))) for _ in range(1000)]
    assert np.mean(np.array(found) < 0.05) == pytest.approx(0.05, abs=0.02)
    assert np.mean(np.array(found) > 0.95) == pytest.approx(0.05, abs=0.02)
    assert earlier(np.arange(10.0), np.arange(10.0) + 8) < 0.001
    assert earlier(np.ones(10), np.ones(10)) == 0.5
