"""The monthly and the vertical climatology: against each other and against plain NumPy."""

import numpy as np
import pytest

from fedrain.climate import Columns, Grid
from fedrain.climate.climatology import FLUX_SHIFT, ncep_table
from fedrain.climate.reanalysis import (
    air_table,
    balanced_months,
    land_fraction,
    longwave_feedback,
    monthly_table,
    on_columns,
    through_the_year,
)


def test_months_make_the_year_of_the_annual_table():
    annual, monthly = ncep_table(), monthly_table()
    np.testing.assert_allclose(monthly["latitude"], annual["lat"], atol=1e-4)
    for name, column in (
        ("skin_temperature", "skt_annual"),
        ("outgoing_longwave", "toa_outgoing_longwave"),
        ("absorbed_shortwave", "toa_absorbed_shortwave"),
    ):
        np.testing.assert_allclose(monthly[name].mean(0), annual[column], atol=0.02)
    july = monthly["skin_temperature"][6]
    np.testing.assert_allclose(july, annual["skt_07"], atol=1e-4)


def test_land_is_where_it_is_on_earth():
    grid = Grid(180)
    land = land_fraction(grid.columns)
    assert grid.mean(land) == pytest.approx(0.29, abs=0.01)
    north = grid.centres > 0
    weights = grid.weights * land
    assert weights[north].sum() / weights.sum() == pytest.approx(0.68, abs=0.02)
    assert land[np.abs(grid.centres + 58) < 2].max() < 0.01  # the Southern Ocean goes all round
    assert land[grid.centres < -86].min() > 0.99


def test_air_is_on_17_levels_and_cools_to_the_tropopause():
    table = air_table()
    assert table["annual"].shape == (17, 73)
    assert table["level"][0] == 1000
    assert (np.diff(table["level"]) < 0).all()
    equator = table["annual"][:, 36]
    assert table["latitude"][36] == 0
    assert table["level"][equator.argmin()] == 100
    np.testing.assert_allclose(table["annual"], (table["january"] + table["july"]) / 2, atol=8)


def test_interpolation_is_linear_in_latitude_and_time():
    latitude = monthly_table()["latitude"]
    columns = Grid(96).columns  # beyond the outermost Gaussian latitude, too
    line = np.stack([latitude * month for month in range(12)])
    expected = np.outer(np.arange(12), columns.latitude)
    np.testing.assert_allclose(on_columns(latitude, line, columns), expected, atol=1e-9)
    monthly = np.random.default_rng(0).normal(size=(12, 5))
    season = np.linspace(0, 1, 37, endpoint=False)
    middles = np.arange(0.5, 12) / 12
    peer = [np.interp(season, middles, one, period=1) for one in monthly.T]
    np.testing.assert_allclose(through_the_year(monthly, season), np.transpose(peer), atol=1e-12)


def test_balanced_fluxes_are_in_balance_and_possible():
    grid = Grid(96)
    months, table = balanced_months(grid.columns), monthly_table()
    longwave, shortwave = months["outgoing_longwave"], months["absorbed_shortwave"]
    assert abs(grid.mean((longwave - shortwave).mean(0))) < 0.2  # W m⁻², of 12 before
    sunlight = on_columns(table["latitude"], table["insolation"], grid.columns)
    assert (shortwave <= np.maximum(sunlight, 0)).all()
    day = sunlight > 50
    raw = on_columns(table["latitude"], table["absorbed_shortwave"], grid.columns)
    np.testing.assert_allclose((shortwave - raw)[day], FLUX_SHIFT, atol=1e-9)


def test_feedback_is_the_slope_of_a_line():
    table = monthly_table()
    T, longwave = table["skin_temperature"], table["outgoing_longwave"]
    assert longwave_feedback() == pytest.approx(np.polyfit(T.ravel(), longwave.ravel(), 1)[0])
    assert longwave_feedback() == pytest.approx(1.6, abs=0.05)
    weights = np.broadcast_to(np.cos(np.deg2rad(table["latitude"])), T.shape)
    anomalies = [(one - one.mean(0)).ravel() for one in (T, longwave)]
    slope = np.polyfit(*anomalies, 1, w=np.sqrt(weights.ravel()))[0]
    assert longwave_feedback(seasonal=True) == pytest.approx(slope)


def test_one_column_is_enough():
    assert balanced_months(Columns(np.array([45.0])))["surface_temperature"].shape == (12, 1)
