"""Columns, and how regions divide them."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrain.climate import Columns, Grid, Regions
from fedrain.climate.columns import divisors
from fedrain.errors import InputError

#: Columns, how many regions, and their rows and columns of tiles if they are asked for.
DIVISIONS = [
    (Columns.zonal(12), 4, None),
    (Columns.lat_lon(6, 8), 4, None),
    (Columns.lat_lon(6, 8), 6, (3, 2)),
    (Columns.lat_lon(6, 8), 6, (6, 1)),
    (Columns.lat_lon(6, 8), 8, (1, 8)),
    (Columns.lat_lon(24, 48), 18, (3, 6)),
]


def test_a_zonal_grid_is_the_grid_of_the_energy_balance_model():
    columns = Columns.zonal(96)
    np.testing.assert_allclose(columns.latitude, Grid(96).centres, atol=1e-12)
    np.testing.assert_allclose(columns.weights, Grid(96).weights, atol=1e-12)
    assert columns.is_zonal
    assert not Columns.lat_lon(4, 8).is_zonal


@pytest.mark.parametrize(("latitudes", "longitudes"), [(96, 1), (24, 48), (3, 5)])
def test_areas_add_up_to_the_sphere(latitudes, longitudes):
    """cos φ Δφ Δλ over all cells is 4π, at second order; P2 and a wave have no mean."""
    errors = []
    for n in (1, 2):
        columns = Columns.lat_lon(n * latitudes, longitudes)
        cell = np.pi / (n * latitudes) * 2 * np.pi / longitudes
        errors.append(columns.weights.sum() * cell / (4 * np.pi) - 1)
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)
    wave = np.cos(np.deg2rad(columns.longitude))
    assert longitudes == 1 or columns.mean(wave) == pytest.approx(0, abs=1e-12)
    assert columns.mean(np.ones(len(columns))) == pytest.approx(1)


@given(seed=st.integers(0, 2**32 - 1), batch=st.integers(1, 3))
def test_zonal_mean_of_what_does_not_vary_is_itself(seed, batch):
    profile = np.random.default_rng(seed).normal(size=(batch, 6))
    columns = Columns.lat_lon(6, 8)
    latitudes, mean = columns.zonal_mean(np.repeat(profile, 8, axis=-1))
    np.testing.assert_allclose(mean, profile, atol=1e-12)
    np.testing.assert_allclose(latitudes, Columns.zonal(6).latitude)


@pytest.mark.parametrize(("columns", "number", "tiles"), DIVISIONS)
def test_every_column_belongs_to_one_region(columns, number, tiles):
    regions = Regions(columns, number, tiles)
    assert regions.cells.shape == (number, len(columns) // number)
    np.testing.assert_array_equal(np.sort(regions.cells.ravel()), np.arange(len(columns)))
    areas = columns.weights[regions.cells].sum()
    assert areas == pytest.approx(columns.weights.sum())


@pytest.mark.parametrize(("columns", "number", "tiles"), DIVISIONS)
@pytest.mark.parametrize("rest", [(), (3,)])
def test_lay_undoes_take(columns, number, tiles, rest):
    regions = Regions(columns, number, tiles)
    values = np.random.default_rng(0).normal(size=(len(columns), *rest)).astype("f4")
    taken = regions.take(values)
    assert taken.shape == (number, regions.size, *rest)
    np.testing.assert_array_equal(taken, values[regions.cells])
    np.testing.assert_array_equal(regions.lay(taken), values)
    np.testing.assert_array_equal(jax.jit(lambda x: regions.lay(regions.take(x)))(values), values)


@pytest.mark.parametrize(("columns", "number", "tiles"), DIVISIONS)
def test_regions_are_rectangles(columns, number, tiles):
    """A tile is as many latitudes by as many longitudes, without a hole."""
    regions = Regions(columns, number, tiles)
    for cells in regions.cells:
        latitudes = np.unique(columns.latitude[cells])
        every = np.unique(columns.latitude)
        first = np.searchsorted(every, latitudes[0])
        np.testing.assert_array_equal(every[first : first + len(latitudes)], latitudes)
        if columns.longitude is not None:
            across = np.unique(columns.longitude[cells])
            assert len(latitudes) * len(across) == regions.size
            np.testing.assert_allclose(np.diff(across), np.diff(np.unique(columns.longitude))[0])


def test_tiles_that_are_not_asked_for_are_nearly_square():
    """180° of latitude and 360° of longitude: 18 tiles are 3 × 6 of 60° × 60°."""
    assert Regions(Columns.lat_lon(24, 48), 18).layout == (3, 6)
    assert Regions(Columns.lat_lon(24, 48), 2).layout == (1, 2)
    assert Regions(Columns.zonal(96), 6).layout is None


def test_names_and_centres_are_those_of_the_borders():
    bands = Regions(Columns.zonal(96), 6)
    assert [bands.name(i) for i in (0, 2, 5)] == ["90°S to 60°S", "30°S to 0°", "60°N to 90°N"]
    np.testing.assert_allclose(bands.centres[:, 0], [-75, -45, -15, 15, 45, 75])
    np.testing.assert_array_equal(bands.centres[:, 1], 0)
    tiles = Regions(Columns.lat_lon(24, 48), 18)
    assert tiles.name(0) == "90°S to 30°S, 0°E to 60°E"
    assert tiles.name(17) == "30°N to 90°N, 300°E to 360°E"
    np.testing.assert_allclose(tiles.centres[7], [0, 90], atol=1e-12)


def test_names_follow_longitudes_that_start_elsewhere():
    columns = Columns.lat_lon(4, 8)
    west = Columns(columns.latitude, columns.longitude - 180)
    assert Regions(west, 4, (2, 2)).name(0) == "90°S to 0°, 180°E to 360°E"


def test_scattered_columns_are_no_rectangle():
    columns = Columns.lat_lon(4, 8)
    shuffled = columns.longitude.reshape(4, 8).copy()
    shuffled[2] = shuffled[2][::-1]
    scattered = Columns(columns.latitude, shuffled.ravel())
    assert columns.shape == (4, 8)
    assert scattered.shape == (32,)
    assert Regions(scattered, 4).layout is None
    with pytest.raises(InputError, match="latitude–longitude columns"):
        Regions(scattered, 4, (2, 2))


def test_equal_columns_are_equal_and_cannot_be_changed():
    one, other = Columns.lat_lon(4, 8), Columns.lat_lon(4, 8)
    assert one == other
    assert hash(one) == hash(other)
    assert one != Columns.lat_lon(8, 4)
    assert one != Columns(one.latitude, one.longitude, np.ones(32))
    with pytest.raises(ValueError, match="read-only"):
        one.weights[0] = 0


@settings(max_examples=30)
@given(number=st.integers(1, 500))
def test_divisors(number):
    found = divisors(number)
    assert found[0] == 1
    assert found[-1] == number
    assert all(number % d == 0 for d in found)
    assert sum(1 for d in range(1, number + 1) if number % d == 0) == len(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "a latitude each"),
        (([[0.0, 1.0]],), "one dimension"),
        (([0.0, 91.0],), "from -90 to 90"),
        (([0.0, float("nan")],), "from -90 to 90"),
        (([0.0, 1.0], [0.0]), "longitude of columns: needs a finite number for each"),
        (([0.0, 1.0], [0.0, float("inf")]), "longitude of columns"),
        (([0.0, 1.0], None, [1.0]), "weights of columns"),
        (([0.0, 1.0], None, [1.0, -1.0]), "must not be negative"),
        (([0.0, 1.0], None, [0.0, 0.0]), "nor all zero"),
    ],
)
def test_bad_columns(arguments, message):
    with pytest.raises(InputError, match=message):
        Columns(*(None if a is None else np.array(a) for a in arguments))


@pytest.mark.parametrize(
    ("columns", "number", "tiles", "message"),
    [
        (Columns.zonal(96), 7, None, "7 agents do not divide 96 latitudes: use one of 1, 2, 3"),
        (Columns.zonal(96), True, None, "True agents"),
        (Columns.lat_lon(4, 6), 5, None, "5 agents do not divide 24 columns"),
        (Columns.lat_lon(4, 6), 6, (2, 2), r"\(2, 2\) tiles do not make 6 regions"),
        (Columns.lat_lon(4, 6), 6, (-2, -3), "do not make 6 regions"),
        (Columns.lat_lon(4, 6), 8, (8, 1), r"do not divide \(4, 6\) columns equally"),
        (Columns.lat_lon(4, 9), 6, (3, 2), "columns equally"),
        (Columns.zonal(96), 6, (3, 2), "latitude–longitude columns"),
    ],
)
def test_bad_divisions(columns, number, tiles, message):
    with pytest.raises(InputError, match=message):
        Regions(columns, number, tiles)


@settings(max_examples=50)
@given(high=st.integers(1, 12), wide=st.integers(2, 12), data=st.data())
def test_tiles_can_always_be_found(high, wide, data):
    number = data.draw(st.sampled_from(divisors(high * wide)))
    regions = Regions(Columns.lat_lon(high, wide), number)
    np.testing.assert_array_equal(np.sort(regions.cells.ravel()), np.arange(high * wide))
