import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrain.climate import EnergyBalanceModel, Grid, ZonalMean, ncep_zonal_mean, target_fields
from fedrain.climate.climatology import interpolate, ncep_table
from fedrain.errors import InputError
from tests.climate.models import AIR, SURFACE, Layered


def target_profile(target, grid):
    name = "surface_temperature"
    return target_fields(target, EnergyBalanceModel(grid=grid), [name])[name]


def test_annual_mean_is_that_of_the_months():
    table = ncep_table()
    months = np.mean([table[f"skt_{month:02d}"] for month in range(1, 13)], axis=0)
    np.testing.assert_allclose(table["skt_annual"], months, atol=1e-4)


def test_reanalysis_is_near_radiative_balance():
    table = ncep_table()
    weights = np.cos(np.deg2rad(table["lat"]))
    net = table["toa_absorbed_shortwave"] - table["toa_outgoing_longwave"]
    assert abs(np.average(net, weights=weights)) < 15  # W m⁻²; NCEP is known to lose some


@given(slope=st.floats(-2, 2), offset=st.floats(-50, 50), latitudes=st.integers(2, 200))
def test_a_line_stays_a_line_to_the_poles(slope, offset, latitudes):
    grid = Grid(latitudes)
    latitude = ncep_zonal_mean().latitude
    profile = interpolate(latitude, slope * latitude + offset, grid.columns)
    np.testing.assert_allclose(profile, slope * grid.centres + offset, atol=1e-9)


def test_interpolation_meets_the_data():
    grid = Grid(96)
    zonal = ZonalMean(grid.centres, np.random.default_rng(0).normal(size=96))
    np.testing.assert_allclose(
        interpolate(zonal.latitude, zonal.temperature, grid.columns), zonal.temperature, atol=1e-12
    )


def test_the_built_in_target_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        ncep_zonal_mean().temperature[:] = 0


def test_a_zonal_mean_is_a_target():
    np.testing.assert_array_equal(
        target_profile(ncep_zonal_mean(), Grid(96)), target_profile(None, Grid(96))
    )


def test_profile_of_ones_own():
    own = np.linspace(-20, 30, 12)
    np.testing.assert_array_equal(target_profile(own, Grid(12)), own)
    np.testing.assert_array_equal(target_profile(own.tolist(), Grid(12)), own)


def test_a_task_may_have_targets_of_more_fields_than_are_judged():
    model = Layered()
    own = {AIR: np.full((6, 3), 255.0), SURFACE: np.arange(6.0)}
    found = target_fields(own, model, [AIR], strict=False)
    assert list(found) == [AIR]
    np.testing.assert_array_equal(found[AIR], own[AIR])
    with pytest.raises(InputError, match="no judged field"):
        target_fields(own, model, [AIR])
    with pytest.raises(InputError, match="'snow'"):
        target_fields({"snow": 1.0}, model, [AIR], strict=False)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([1.0, 2.0], "shape"),
        ([288.0] * 12, "are they in °C"),
        ([float("nan")] + [0.0] * 11, "missing at latitude -82.5"),
    ],
)
def test_bad_profiles(target, message):
    with pytest.raises(InputError, match=message):
        target_profile(target, Grid(12))
