import math

import pytest

from fedrain.climate import SURFACE_TEMPERATURE, Field, Forcing
from fedrain.climate.fields import unit_text
from fedrain.errors import InputError


def test_shape_and_attributes():
    surface = Field("snow_depth", "m", long_name="depth of snow")
    layered = Field("air_temperature", "K", levels=(1000.0, 500.0))
    assert surface.shape(12) == (12,)
    assert layered.shape(12) == (12, 2)
    assert layered.title == "air temperature"
    assert surface.attributes == {"long_name": "depth of snow", "units": "m"}
    assert SURFACE_TEMPERATURE.attributes["standard_name"] == "surface_temperature"


@pytest.mark.parametrize(
    ("unit", "difference", "written"),
    [
        ("degC", "K", "°C"),
        ("K", "K", "K"),
        ("g kg-1", "g kg-1", "g kg⁻¹"),
        ("W m-2 K-1", "W m-2 K-1", "W m⁻² K⁻¹"),
        ("(g kg-1)2", "(g kg-1)2", "(g kg⁻¹)²"),
        ("1", "1", "1"),
    ],
)
def test_units(unit, difference, written):
    assert Field("x", unit).difference_unit == difference
    assert unit_text(unit) == written


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": 0.0}, "snow: its scale must be a positive number"),
        ({"scale": math.nan}, "scale"),
        ({"low": 1.0, "high": 1.0}, "nothing between 1.0 and 1.0"),
        ({"low": math.nan}, "nothing between"),
    ],
)
def test_bad_fields(change, message):
    with pytest.raises(InputError, match=message):
        Field("snow", "m", **change)


def test_bad_forcing():
    with pytest.raises(InputError, match="co2: its default must be a number"):
        Forcing("co2", "ppm", math.nan)
