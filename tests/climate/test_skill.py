import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrain.climate import BAND_NAMES, Grid, Skill, band_skill, skill_table
from fedrain.errors import InputError


@given(offset=st.floats(-40, 40), latitudes=st.sampled_from([6, 24, 90, 96]))
def test_a_constant_error_is_its_own_size(offset, latitudes):
    grid = Grid(latitudes)
    skill = band_skill(grid, np.full(latitudes, offset), np.zeros(latitudes))
    np.testing.assert_allclose([*skill.bands, skill.globe], abs(offset), atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1))
def test_bands_add_up_to_the_globe(seed):
    grid = Grid(96)
    error = np.random.default_rng(seed).normal(0, 5, 96)
    skill = band_skill(grid, error, np.zeros(96))
    area = grid.weights.reshape(6, 16).sum(1)
    assert skill.globe == pytest.approx(np.sqrt(np.average(np.square(skill.bands), weights=area)))


def test_an_error_counts_in_its_own_band():
    error = np.zeros(96)
    error[32:48] = 2.0
    skill = band_skill(Grid(96), error, np.zeros(96))
    np.testing.assert_allclose(skill.bands, [0, 0, 2, 0, 0, 0])


def test_too_few_latitudes():
    with pytest.raises(InputError, match="use 6 or more"):
        band_skill(Grid(4), np.zeros(4), np.zeros(4))


def test_table_has_all_figures():
    text = skill_table({"static": Skill((1.0, 2.0, 3.0, 4.0, 5.0, 6.5), 3.25)})
    lines = text.splitlines()
    assert [line.split()[-1] for line in lines[1:]] == [
        "1.000", "2.000", "3.000", "4.000", "5.000", "6.500", "3.250",
    ]  # fmt: skip
    assert all(name in text for name in BAND_NAMES)
