import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrain.climate import ENERGY_BALANCE_PARAMETERS as TABLE
from fedrain.climate import Parameter, ParameterTable
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


def table(**rows):
    return ParameterTable(tuple(Parameter(s, s, "1", **kw) for s, kw in rows.items()))


def mixed(cells):
    """A parameter of each scope, of which one has a default for each column."""
    each = tuple(map(float, range(cells)))
    return ParameterTable(
        (
            Parameter("g", "global", "1", 1.0, 0.0, 4.0, action_unit=2.0),
            Parameter("c", "column", "1", each, -1.0, 99.0, scope="column"),
            Parameter("f", "fixed", "1", 3.0, 3.0, 3.0),
            Parameter("v", "level", "1", 5.0, 0.0, 9.0, scope="level", levels=2, action_unit=0.5),
        )
    )


@given(latitudes=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_an_action_is_the_parameters_in_their_units(latitudes, seed):
    """Slices, bounds and static action of all scopes agree, for any subset of cells."""
    learnt = mixed(latitudes).learnt()
    cells = np.random.default_rng(seed).permutation(latitudes)[: max(1, latitudes // 2)]
    slices, (low, high) = learnt.action_slices(len(cells)), learnt.action_bounds(len(cells))
    action = learnt.static_action(latitudes, cells)
    assert low.shape == high.shape == action.shape == (1 + len(cells) + 2 * len(cells),)
    assert (low <= action).all()
    assert (action <= high).all()
    static = learnt.static(latitudes)
    for row in learnt:
        part = slices[row.symbol]
        np.testing.assert_allclose(low[part] * row.action_unit, row.low)
        np.testing.assert_allclose(high[part] * row.action_unit, row.high)
        expected = static[row.symbol][cells] if row.by_column else static[row.symbol]
        back = (action[part] * row.action_unit).reshape(row.shape(len(cells)))
        np.testing.assert_allclose(back, expected)


@pytest.mark.parametrize(("scope", "shape"), [("global", ()), ("column", (5,)), ("level", (5, 3))])
def test_shapes_of_the_scopes(scope, shape):
    row = Parameter("x", "x", "1", 1.0, 0.0, 2.0, scope=scope, levels=3)
    assert row.shape(5) == row.static(5).shape == shape
    assert row.by_column == (scope != "global")


def test_defaults_of_each_column_and_level():
    row = Parameter(
        "x", "x", "1", np.array([[1.0, 2.0], [3.0, 4.0]]), 0.0, 9.0, scope="level", levels=2
    )
    np.testing.assert_array_equal(row.static(2), [[1, 2], [3, 4]])
    assert hash(row) == hash(Parameter("x", "x", "1", (1.0, 2.0, 3.0, 4.0), 0.0, 9.0, "level", 2))
    with pytest.raises(InputError, match="x: 4 default values for 3 columns of 2 levels"):
        row.static(3)


def test_equal_bounds_mean_fixed_and_are_no_part_of_the_action():
    changed = TABLE.replace(bounds={"a0": (0.354, 0.354), "D": (0.6, 0.6)})
    assert [row.symbol for row in changed.learnt()] == ["A", "B", "a2"]
    assert changed.learnt().action_bounds(96)[0].shape == (193,)
    assert set(changed.static(96)) == {"D", "A", "B", "a0", "a2"}
    with pytest.raises(InputError, match=r"a0: cannot be learnt, its bounds are both 0\.354"):
        changed.learnt(["a0"])


def test_what_is_learnt_stands_in_the_order_of_the_table():
    assert [row.symbol for row in TABLE.learnt(["a2", "D"])] == ["D", "a2"]
    with pytest.raises(InputError, match="no parameter 'albedo'"):
        TABLE.learnt(["albedo"])


def test_a_default_for_each_column_replaces_one_number():
    profile = np.linspace(200.0, 220.0, 4)
    changed = TABLE.replace(static={"A": profile})
    np.testing.assert_allclose(changed.static(4)["A"], profile)
    np.testing.assert_allclose(changed.static_action(4, np.array([2]))[1], profile[2] / 100)
    with pytest.raises(InputError, match="A: 4 default values for 96 columns"):
        changed.static(96)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"default": (1.0, 2.0), "low": 0.0, "high": 3.0}, "a global parameter has one default"),
        ({"default": 1.0, "low": 0.0, "high": 2.0, "scope": "zone"}, "no scope of a parameter"),
        ({"default": (1.0, 9.0), "low": 0.0, "high": 3.0, "scope": "column"}, "1 to 9 is outside"),
        ({"default": (1.0, np.nan), "low": 0.0, "high": 3.0, "scope": "column"}, "finite"),
    ],
)
def test_bad_rows(row, message):
    with pytest.raises(InputError, match=message):
        table(x=row)


def test_bad_tables():
    row = Parameter("x", "x", "1", 1.0, 0.0, 2.0)
    with pytest.raises(InputError, match="a symbol occurs twice among the parameters x, x"):
        ParameterTable((row, row))
