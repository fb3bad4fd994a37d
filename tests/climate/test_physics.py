"""What stands beside skill: black body, roughness, bounds."""

import numpy as np
import pytest

from fedrain.climate import Columns, Parameter, ParameterTable, Physics
from fedrain.climate.physics import STEFAN_BOLTZMANN, above_black_body

TABLE = ParameterTable(
    (
        Parameter("A", "a", "W m-2", 0.0, -10.0, 10.0, "column"),
        Parameter("D", "d", "1", 0.5, 0.0, 1.0),
    )
)


def test_a_black_body_is_the_limit():
    temperature = np.linspace(-60.0, 40.0, 11)
    limit = STEFAN_BOLTZMANN * (temperature + 273.15) ** 4
    assert not above_black_body(temperature, limit * (1 - 1e-9)).any()
    assert above_black_body(temperature, limit * (1 + 1e-9)).all()


def test_roughness_is_the_mean_step_over_the_range():
    columns = Columns.zonal(5)
    values = {"A": np.array([0.0, 2.0, 2.0, -2.0, 0.0]), "D": np.array(0.995)}
    found = Physics.of(TABLE, columns, values)
    assert found.roughness == {"A": pytest.approx((2 + 0 + 4 + 2) / 4 / 20)}
    assert found.at_bounds == {"A": 0.0, "D": 1.0}
    assert found.above_black_body is None
    assert found.as_dict()["at_bounds"] == pytest.approx(0.5)


def test_neighbours_on_a_sphere_meet_at_the_date_line():
    columns = Columns.lat_lon(3, 4)
    pairs = {tuple(sorted(pair)) for pair in columns.neighbours.tolist()}
    assert len(columns.neighbours) == 2 * 4 + 3 * 4
    assert (0, 3) in pairs
    assert (0, 4) in pairs
    assert (0, 8) not in pairs  # nothing lies beyond a pole
    values = {"A": np.repeat([0.0, 1.0, 5.0], 4), "D": np.array(0.5)}
    found = Physics.of(TABLE, columns, values)
    assert found.roughness["A"] == pytest.approx((4 * 1 + 4 * 4) / 20 / 20)


def test_the_mean_of_several():
    columns = Columns.zonal(2)
    one, other = (
        Physics.of(TABLE, columns, {"A": np.array([0.0, step]), "D": np.array(0.5)}, hot, flux)
        for step, hot, flux in (
            (4.0, np.zeros(2), np.array([100.0, 500.0])),
            (0.0, np.zeros(2), np.zeros(2)),
        )
    )
    mean = Physics.mean([one, other])
    assert mean.roughness["A"] == pytest.approx(0.1)
    assert mean.above_black_body == pytest.approx(0.5)


def test_at_bounds_is_within_one_per_cent():
    """Of a range of 20, from −10: what is 0.2 or less from an end."""
    values = {"A": np.array([-10.0, -9.81, -9.79, 9.79, 9.81]), "D": np.array(0.5)}
    assert Physics.of(TABLE, Columns.zonal(5), values).at_bounds == {"A": 3 / 5, "D": 0.0}
