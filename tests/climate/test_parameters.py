import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrain.climate import ENERGY_BALANCE_PARAMETERS as TABLE
from fedrain.climate.parameters import _mapping
from fedrain.errors import InputError


def test_bounds_of_the_paper():
    low, high = TABLE.action_bounds(96)
    assert low.shape == high.shape == (195,)
    np.testing.assert_allclose(
        low[[0, 1, 96, 97, 192, 193, 194]], [0.55, 1.4, 1.4, 1.95, 1.95, 0.3, 0.2]
    )
    np.testing.assert_allclose(
        high[[0, 1, 96, 97, 192, 193, 194]], [0.65, 4.2, 4.2, 2.05, 2.05, 0.4, 0.3]
    )


@given(latitudes=st.integers(1, 96))
def test_slices_cover_the_action_in_order(latitudes):
    slices = TABLE.action_slices(latitudes)
    covered = np.concatenate([np.arange(s.start, s.stop) for s in slices.values()])
    np.testing.assert_array_equal(covered, np.arange(3 + 2 * latitudes))
    assert list(slices) == ["D", "A", "B", "a0", "a2"]


def test_static_action_is_the_static_values():
    action, values = TABLE.static_action(4, np.arange(4)), TABLE.static(4)
    for row in TABLE:
        piece = action[TABLE.action_slices(4)[row.symbol]] * row.action_unit
        np.testing.assert_allclose(piece, values[row.symbol])


def test_symbols_are_needed():
    with pytest.raises(InputError, match="by symbol"):
        _mapping("bounds", [0, 1])


def test_replace_changes_only_what_it_names():
    table = TABLE.replace(bounds={"A": (180.0, 240.0)}, static={"B": 1.98})
    assert (table["A"].low, table["A"].high, table["A"].default) == (180, 240, 210)
    assert table["B"].default == 1.98
    assert table["D"] == TABLE["D"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bounds": {"A": (420.0, 140.0)}}, "A: the lower bound must not exceed"),
        ({"bounds": {"A": (200.0, 200.0)}}, "A: the static value 210 is outside"),
        ({"bounds": {"B": (float("nan"), 2.05)}}, "B: default and bounds must be finite"),
        ({"bounds": {"B": (1.95, float("inf"))}}, "B: default and bounds must be finite"),
        ({"bounds": {"D": (0.61, 0.65)}}, "D: the static value 0.6 is outside"),
        ({"bounds": {"C": (0.0, 1.0)}}, "there is no parameter 'C': .*D, A, B, a0, a2"),
        ({"static": {"a0": 0.5}}, "a0: the static value 0.5 is outside"),
        ({"static": {"albedo": 0.35}}, "no parameter 'albedo'"),
    ],
)
def test_bad_changes(change, message):
    with pytest.raises(InputError, match=message):
        TABLE.replace(**change)
