import numpy as np
import pytest

from fedrain.climate import Grid, Orbit, annual_insolation, daily_insolation
from fedrain.climate.insolation import SOLAR_CONSTANT, solar_longitude
from fedrain.errors import InputError


def test_southernmost_cells_of_the_paper():
    insolation = annual_insolation(Grid(96).centres)
    np.testing.assert_allclose(insolation[:3], [172.9764, 173.3760, 174.1839], atol=5e-5)


def test_equinox_is_day_80():
    longitude = solar_longitude(np.array([80.0]), Orbit())
    np.testing.assert_allclose(np.sin(longitude), 0, atol=1e-5)
    np.testing.assert_allclose(np.cos(longitude), 1, atol=1e-5)


def test_circular_orbit_without_tilt_has_no_seasons():
    latitude = np.array([-60.0, 0.0, 45.0])
    orbit = Orbit(eccentricity=0.0, perihelion=0.0, obliquity=0.0)
    daily = daily_insolation(latitude, np.linspace(0, 360, 7), orbit)
    expected = SOLAR_CONSTANT / np.pi * np.cos(np.deg2rad(latitude))
    np.testing.assert_allclose(daily, np.repeat(expected[:, None], 7, 1))


@pytest.mark.parametrize("orbit", [Orbit(), Orbit(0.05, 90.0, 24.5), Orbit(0.0, 0.0, 22.0)])
def test_global_annual_mean_is_that_of_the_ellipse(orbit):
    grid = Grid(720)
    mean = grid.mean(annual_insolation(grid.centres, orbit, samples=3600))
    expected = SOLAR_CONSTANT / 4 / np.sqrt(1 - orbit.eccentricity**2)
    np.testing.assert_allclose(mean, expected, rtol=2e-5)


def test_annual_mean_without_eccentricity_is_symmetric():
    annual = annual_insolation(Grid(40).centres, Orbit(0.0, 0.0, 23.0), samples=3600)
    np.testing.assert_allclose(annual, annual[::-1], rtol=1e-4)


def test_polar_night_and_day():
    june = daily_insolation(np.array([-80.0, 80.0]), np.array([172.0]), Orbit())
    assert june[0, 0] == 0.0
    assert june[1, 0] > 480


@pytest.mark.parametrize("orbit", [{"eccentricity": 1.0}, {"obliquity": float("nan")}])
def test_bad_orbit(orbit):
    with pytest.raises(InputError):
        Orbit(**orbit)
