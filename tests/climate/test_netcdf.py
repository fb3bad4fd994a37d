"""The NetCDF reader on files made from the built-in monthly means, in many shapes."""

import os

import numpy as np
import pytest
import xarray as xr

from fedrain.climate import ncep_zonal_mean, read_zonal_mean
from fedrain.climate.climatology import ncep_table
from fedrain.errors import InputError

LONGITUDE = np.arange(0.0, 360.0, 45.0)
MONTH_STARTS = np.cumsum([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30])
MONTH_LENGTHS = np.diff([*MONTH_STARTS, 365])


def monthly_field(kelvin: bool = False) -> np.ndarray:
    """(month, lat, lon) whose zonal mean is the built-in one."""
    table = ncep_table()
    zonal = np.stack([table[f"skt_{month:02d}"] for month in range(1, 13)])
    wave = 3 * np.cos(np.deg2rad(LONGITUDE))
    return zonal[..., None] + wave + (273.15 if kelvin else 0.0)


def dataset(
    name="skt", lat="lat", lon="lon", time="time", units: str | None = "degC", data=None, **attrs
) -> xr.Dataset:
    values = monthly_field() if data is None else data
    attributes = attrs if units is None else {**attrs, "units": units}
    return xr.Dataset(
        {name: ((time, lat, lon), values, attributes)},
        coords={
            lat: ncep_table()["lat"],
            lon: LONGITUDE,
            time: (time, MONTH_STARTS.astype(float), {"units": "days since 2001-01-01"}),
        },
    )


def write(folder, data: xr.Dataset):
    path = folder / "climatology.nc"
    data.to_netcdf(path, engine="netcdf4")
    return path


EXPECTED = ncep_zonal_mean()


def assert_is_ncep(zonal):
    np.testing.assert_allclose(zonal.latitude, EXPECTED.latitude)
    np.testing.assert_allclose(zonal.temperature, EXPECTED.temperature, atol=2e-4)


@pytest.mark.parametrize(
    "data",
    [
        dataset(),
        dataset(name="ts", lat="latitude", lon="longitude"),
        dataset(name="TS"),
        dataset(data=monthly_field(kelvin=True), units="K"),
        dataset(data=monthly_field(kelvin=True), units=None),
        dataset(units=None),
        dataset(name="field7", standard_name="surface_temperature"),
        dataset(name="surface_temperature"),
        dataset(lat="j", lon="i").assign_coords(
            j=("j", ncep_table()["lat"], {"units": "degrees_north"}),
            i=("i", LONGITUDE, {"standard_name": "longitude"}),
        ),
        dataset(lat="rows").assign_coords(rows=("rows", ncep_table()["lat"], {"axis": "Y"})),
        dataset().isel(lat=slice(None, None, -1)),
        dataset().transpose("lon", "lat", "time"),
        dataset().mean("lon", keep_attrs=True),
        dataset().mean("time", keep_attrs=True).mean("lon", keep_attrs=True),
        dataset().expand_dims("height"),
        dataset().assign(elevation=("lat", np.zeros(94))),
        dataset().drop_vars("lon"),
        dataset().drop_vars("time"),
    ],
    ids=[
        "plain", "other names", "capitals", "kelvin", "kelvin unsaid", "celsius unsaid",
        "standard name", "named as the field", "CF units", "CF axis", "north to south",
        "axes turned", "zonal mean", "annual zonal mean", "single level", "other variables",
        "longitudes unsaid", "months unsaid",
    ],
)  # fmt: skip
def test_usual_files(tmp_path, data):
    assert_is_ncep(read_zonal_mean(write(tmp_path, data)))


def test_packed_integers_with_fill_values(tmp_path):
    path = tmp_path / "packed.nc"
    encoding = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32767}
    dataset(data=monthly_field(kelvin=True), units="K").to_netcdf(path, encoding={"skt": encoding})
    zonal = read_zonal_mean(path)
    np.testing.assert_allclose(zonal.temperature, EXPECTED.temperature, atol=0.01)


def test_months_weighted_by_length(tmp_path):
    path = write(tmp_path, dataset())
    table = ncep_table()
    months = np.stack([table[f"skt_{month:02d}"] for month in range(1, 13)])
    weighted = np.average(months, axis=0, weights=MONTH_LENGTHS)
    zonal = read_zonal_mean(path, weight_months=True)
    np.testing.assert_allclose(zonal.temperature, weighted, atol=1e-9)
    assert np.abs(weighted - EXPECTED.temperature).max() > 0.01


def test_missing_values_are_skipped(tmp_path):
    """A hole in longitude changes that month's mean only by what is in the hole."""
    holes = monthly_field()
    holes[:, 10, [0, 4]] = np.nan  # two opposite longitudes: the wave still cancels
    holes[3:, 20, :] = np.nan  # months without any value at one latitude
    zonal = read_zonal_mean(write(tmp_path, dataset(data=holes)))
    first_months = np.mean([ncep_table()[f"skt_{m:02d}"][20] for m in (1, 2, 3)])
    expected = EXPECTED.temperature.copy()
    expected[20] = first_months
    np.testing.assert_allclose(zonal.temperature, expected, atol=2e-4)


def test_choice_of_a_variable(tmp_path):
    data = dataset().assign(mine=dataset()["skt"] + 1)
    zonal = read_zonal_mean(write(tmp_path, data), variable="mine")
    # Attributes are lost in the sum, so the unit is inferred.
    np.testing.assert_allclose(zonal.temperature, EXPECTED.temperature + 1, atol=2e-4)


def all_missing_at_a_latitude():
    values = monthly_field()
    values[:, 7] = np.nan
    return dataset(data=values)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (dataset(name="rain"), "no temperature: looked for skt, ts, .* found rain"),
        (dataset(lat="rows").drop_vars("rows"), "no latitude dimension: looked for lat, latitude"),
        (dataset().drop_vars("lat"), "'lat' has no coordinate values"),
        (all_missing_at_a_latitude(), "every value is missing at latitude -75.2"),
        (dataset(units="W m-2"), "'W m-2', neither K nor °C"),
        (dataset(data=monthly_field(kelvin=True)), "units said rightly"),
        (xr.concat([dataset(), dataset()], "level"), "a dimension 'level' of 2"),
        (dataset().sel(lat=slice(-60, 60)), "within 10° of both poles"),
        (dataset().assign_coords(lat=np.linspace(-900, 900, 94)), "from -90 to 90"),
        (dataset().isel(lat=[0, 0, *range(1, 94)]), "a latitude occurs twice"),
    ],
)
def test_unreadable_files(tmp_path, data, message):
    path = write(tmp_path, data)
    with pytest.raises(InputError, match=message) as caught:
        read_zonal_mean(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "unit", ["K", "kelvin", "Kelvins", "degK", "deg_K", "degrees K", "°K", "degree_kelvin"]
)
def test_spellings_of_kelvin(tmp_path, unit):
    data = dataset(data=monthly_field(kelvin=True), units=unit)
    assert_is_ncep(read_zonal_mean(write(tmp_path, data)))


@pytest.mark.parametrize(
    "unit", ["C", "degC", "deg_C", "degreesC", "degrees Celsius", "celsius", "°C", "℃"]
)
def test_spellings_of_celsius(tmp_path, unit):
    assert_is_ncep(read_zonal_mean(write(tmp_path, dataset(units=unit))))


@pytest.mark.parametrize(
    "time",
    [
        ("time", np.arange(12.0)),
        ("time", [np.nan, *range(1, 12)], {"units": "days since 2001-01-01"}),
    ],
    ids=["no units", "no number"],
)
def test_months_without_dates_cannot_be_weighted(tmp_path, time):
    data = dataset().assign_coords(time=time)
    with pytest.raises(InputError, match="months cannot be weighted"):
        read_zonal_mean(write(tmp_path, data), weight_months=True)


def test_unknown_variable(tmp_path):
    with pytest.raises(InputError, match="no variable 'tas', found skt"):
        read_zonal_mean(write(tmp_path, dataset()), variable="tas")


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_zonal_mean(tmp_path / "none.nc")


def test_not_netcdf(tmp_path):
    path = tmp_path / "text.nc"
    path.write_text("lat,temperature\n0,15\n")
    with pytest.raises(InputError, match="not a NetCDF file"):
        read_zonal_mean(path)


def test_file_cut_short(tmp_path):
    path = write(tmp_path, dataset())
    path.write_bytes(path.read_bytes()[:4000])
    with pytest.raises(InputError, match=r"not a NetCDF file|damaged"):
        read_zonal_mean(path)


def test_no_network():
    with pytest.raises(InputError, match="only local files"):
        read_zonal_mean("http://localhost/climatology.nc")


@pytest.mark.skipif(
    "FEDRAIN_NCEP_FILE" not in os.environ,
    reason="set FEDRAIN_NCEP_FILE to NCEP's skt.sfc.mon.1981-2010.ltm.nc",
)
def test_the_reanalysis_file_itself():
    zonal = read_zonal_mean(os.environ["FEDRAIN_NCEP_FILE"])
    np.testing.assert_allclose(zonal.temperature, EXPECTED.temperature, atol=2e-5)
    np.testing.assert_allclose(zonal.latitude, EXPECTED.latitude, atol=1e-4)
