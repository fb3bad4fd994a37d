import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrain.climate import BAND_NAMES, Columns, Field, Grid, Skill, band_skill, skill_table


@given(offset=st.floats(-40, 40), latitudes=st.sampled_from([6, 24, 90, 96]))
def test_a_constant_error_is_its_own_size(offset, latitudes):
    grid = Grid(latitudes)
    skill = band_skill(grid.columns, np.full(latitudes, offset), np.zeros(latitudes))
    np.testing.assert_allclose([*skill.bands, skill.globe], abs(offset), atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1))
def test_bands_add_up_to_the_globe(seed):
    grid = Grid(96)
    error = np.random.default_rng(seed).normal(0, 5, 96)
    skill = band_skill(grid.columns, error, np.zeros(96))
    area = grid.weights.reshape(6, 16).sum(1)
    assert skill.globe == pytest.approx(np.sqrt(np.average(np.square(skill.bands), weights=area)))


def test_an_error_counts_in_its_own_band():
    error = np.zeros(96)
    error[32:48] = 2.0
    skill = band_skill(Grid(96).columns, error, np.zeros(96))
    np.testing.assert_allclose(skill.bands, [0, 0, 2, 0, 0, 0])


def test_a_band_without_a_latitude_has_no_skill():
    skill = band_skill(Grid(4).columns, np.full(4, 2.0), np.zeros(4))
    np.testing.assert_allclose(skill.bands, [2, np.nan, 2, 2, np.nan, 2])
    assert skill.globe == pytest.approx(2)


def test_longitudes_count_by_their_area():
    """A field that does not vary along a latitude has the skill of its zonal mean."""
    error = np.random.default_rng(1).normal(0, 5, 24)
    zonal = band_skill(Columns.zonal(24), error, np.zeros(24))
    globe = band_skill(Columns.lat_lon(24, 8), np.repeat(error, 8), np.zeros(192))
    np.testing.assert_allclose([*globe.bands, globe.globe], [*zonal.bands, zonal.globe])


def test_levels_count_alike():
    error = np.stack([np.full(12, 3.0), np.full(12, 4.0)], axis=1)
    skill = band_skill(Columns.zonal(12), error, np.zeros((12, 2)))
    np.testing.assert_allclose([*skill.bands, skill.globe], np.sqrt(12.5))


def test_table_has_all_figures():
    text = skill_table({"static": Skill((1.0, 2.0, 3.0, 4.0, 5.0, 6.5), 3.25)})
    lines = text.splitlines()
    assert [line.split()[-1] for line in lines[1:]] == [
        "1.000", "2.000", "3.000", "4.000", "5.000", "6.500", "3.250",
    ]  # fmt: skip
    assert all(name in text for name in BAND_NAMES)
    assert text.startswith("areaWRMSE (K) ")
    wet = skill_table({"static": Skill((1.0,) * 6, 1.0)}, Field("humidity", "g kg-1"))
    assert wet.startswith("areaWRMSE (g kg⁻¹) ")


def test_mean_of_skills():
    bands = np.random.default_rng(2).uniform(size=(3, 6))
    mean = Skill.mean([Skill(tuple(row), row.max()) for row in bands])
    np.testing.assert_allclose(mean.bands, bands.mean(0))
    assert mean.globe == pytest.approx(bands.max(1).mean())


def test_area_weights_by_hand():
    """Four columns of which two lie in one band: √(Σ w e² / Σ w)."""
    columns = Columns(np.array([-45.0, 5.0, 25.0, 70.0]), weights=np.array([2.0, 3.0, 1.0, 0.5]))
    skill = band_skill(columns, np.array([1.0, 2.0, -4.0, 6.0]), np.array([0.0, 0.0, 0.0, 1.0]))
    expected = [np.nan, 1.0, np.nan, np.sqrt((3 * 4 + 16) / 4), np.nan, 5.0]
    np.testing.assert_allclose(skill.bands, expected)
    assert skill.globe == pytest.approx(np.sqrt((2 * 1 + 3 * 4 + 16 + 0.5 * 25) / 6.5))
