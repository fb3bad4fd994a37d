import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from scipy import stats

from fedrain import plotting
from fedrain.climate import Columns, Grid
from fedrain.envs.profile_figure import ProfileFigure
from fedrain.errors import InputError
from fedrain.plotting import (
    ENOUGH_SEEDS,
    draw,
    draw_map,
    draw_seeds,
    half_width,
    interval,
    new_figure,
    style,
)

GROUPS = {
    name: list(getattr(plotting, name).values())
    for name in ("MODELS", "ALGORITHMS", "SCHEMES", "BRANCHES", "STATES")
}
GROUPS["REGIONS"] = list(plotting.REGIONS)
#: What is left of linear red, green and blue in the eye (Machado et al. 2009, complete deficiency),
#: and on a printer that has no colours.
READERS = {
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    "print": [[0.2126, 0.7152, 0.0722]] * 3,
}


def figure():
    grid = Grid(12)
    picture = ProfileFigure(grid.centres, 0 * grid.centres, {"static": "static model"})
    picture.update("title", static=grid.centres)
    return picture


def test_curves_show_profile_and_error():
    picture = figure()
    np.testing.assert_array_equal(picture.profiles["static"].get_ydata(), Grid(12).centres)
    picture.target = np.ones(12)
    picture.update("title", static=Grid(12).centres)
    np.testing.assert_array_equal(picture.errors["static"].get_ydata(), Grid(12).centres - 1)
    low, high = picture.profile_axes.get_ylim()
    assert low < -82.5 < 82.5 < high


@pytest.mark.parametrize("profile", [np.zeros(12), Grid(12).centres, np.full(12, 90.0)])
def test_the_legend_covers_no_curve(profile):
    picture = figure()
    picture.update("title", static=profile)
    picture.rgb_array()
    (legend,) = picture.figure.legends
    for axes in (picture.profile_axes, picture.error_axes):
        assert not legend.get_window_extent().overlaps(axes.get_tightbbox())


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg", "PNG"])
def test_saved_whole(tmp_path, suffix):
    figure().save(tmp_path / "new" / f"profile.{suffix}")
    assert [p.name for p in (tmp_path / "new").iterdir()] == [f"profile.{suffix}"]
    assert (tmp_path / "new" / f"profile.{suffix}").stat().st_size > 5000


def test_unknown_format(tmp_path):
    with pytest.raises(InputError, match="ends in one of"):
        figure().save(tmp_path / "profile.pgf")


def test_a_failed_write_leaves_the_old_figure(tmp_path, monkeypatch):
    path = tmp_path / "profile.png"
    path.write_text("old")
    picture = figure()

    def no_space(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(picture.figure, "savefig", no_space)
    with pytest.raises(InputError, match="no space left on the device"):
        picture.save(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def drawing(path):
    """Every colour of this module in one figure, with text, dots, a legend and an interval."""
    sheet = new_figure(3, 2)
    axes = sheet.subplots()
    for i, look in enumerate(look for group in GROUPS.values() for look in group):
        draw(axes, look, [0, 1], [i, i], "", marker=look.marker)
    plotting.band(axes, "model", [0, 1], [1, 2], [3, 4])
    plotting.shade(axes, 0.2, 0.4)
    axes.plot([0.5], [0.5], "o", color=plotting.WHITE, markeredgecolor=plotting.BLACK)
    axes.set_title("words")
    plotting.light_grid(axes)
    return plotting.save_for_pages(sheet, path)


def test_figures_for_light_and_dark_pages(tmp_path):
    """The same drawing without a background, in no colour that is lost on a dark page."""
    plain, light, dark = drawing(tmp_path / "figure.png")
    assert [path.name for path in (plain, light, dark)] == [
        "figure.png", "figure.svg", "figure-dark.svg",
    ]  # fmt: skip
    texts = light.read_text("utf-8"), dark.read_text("utf-8")
    shown = [set(re.findall(r"#[0-9a-f]{6}", text)) for text in texts]
    assert shown[0] == {colour.lower() for colour in plotting.DARK}
    assert shown[1] == {colour.lower() for colour in plotting.DARK.values()}
    assert texts[1].count(f'<svg fill="{plotting.DARK[plotting.BLACK].lower()}"') == 1  # of text
    backgrounds = re.findall(r'<g id="patch_1">\s*<path[^>]*style="([^"]*)"', texts[0])
    assert backgrounds == ["fill: none; opacity: 0"] or backgrounds == ["fill: none"]


def test_the_same_figure_is_the_same_file(tmp_path):
    first, second = (
        [path.read_bytes() for path in drawing(tmp_path / name / "figure.png")] for name in "ab"
    )
    assert first == second


def contrast(one, other):
    """Ratio of the WCAG."""
    light = []
    for colour in (one, other):
        rgb = np.array(to_rgb(colour))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        light.append(linear @ READERS["print"][0])
    low, high = sorted(light)
    return (high + 0.05) / (low + 0.05)


def test_dark_colours_are_seen():
    """Every curve on a dark page, as on a light one."""
    for looks in GROUPS.values():
        for look in looks:
            assert contrast(plotting.DARK[look.colour], plotting.DARK[plotting.WHITE]) > 4.5, look
    assert len(set(plotting.DARK.values())) == len(plotting.DARK)


def test_no_colours_elsewhere():
    """Whoever draws takes colours from the one module, by their names."""
    root = Path(plotting.__file__).parents[1]
    for path in sorted([*root.glob("fedrain/**/*.py"), *root.glob("studies/*.py")]):
        if path.name == "plotting.py":
            continue
        text = path.read_text("utf-8")
        assert not re.search(r"[\"']#[0-9A-Fa-f]{6}[\"']", text), path
        found = re.search(r"\b(?:(?:edge|face|e)?color|cmap)=[\"'](?!none)", text)
        assert not found, (path, found)


@pytest.mark.parametrize("shape", [(10,), (3, 7), (2, 4, 5)])
def test_interval_is_students(shape):
    values = np.random.default_rng(0).normal(5.0, 2.0, shape)
    mean, half = interval(values)
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(0), stats.sem(values, axis=0))
    np.testing.assert_allclose(mean, values.mean(0))
    np.testing.assert_allclose(mean - half, low)
    np.testing.assert_allclose(mean + half, high)
    np.testing.assert_allclose(half_width(values.std(0, ddof=1), len(values)), half)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_interval_along_any_axis(axis):
    values = np.random.default_rng(2).normal(size=(4, 5, 6))
    for found, expected in zip(
        interval(values, axis), interval(np.moveaxis(values, axis, 0)), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_interval_leaves_diverged_seeds_out():
    values = np.random.default_rng(1).normal(size=(6, 3))
    diverged = np.concatenate([values, [[1.0, np.nan, 2.0], [np.inf, 0.0, 0.0]]])
    for found, expected in zip(interval(diverged), interval(values), strict=True):
        np.testing.assert_array_equal(found, expected)
    mean, half = interval(values[:1])
    np.testing.assert_array_equal(mean, values[0])
    np.testing.assert_array_equal(half, 0.0)
    assert np.isnan(interval(diverged[-2:])).all()


@pytest.mark.parametrize("group", GROUPS)
def test_no_two_look_the_same(group):
    looks = {(one.colour, one.line) for one in GROUPS[group]}
    assert len(looks) == len(GROUPS[group])


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("group", GROUPS)
def test_every_reader_tells_curves_apart(group, reader):
    """By the line style, or else by a colour that is much lighter or of another hue."""
    for one, other in combinations(GROUPS[group], 2):
        if one.line == other.line:
            seen = [lightness_and_hue(s.colour, READERS[reader]) for s in (one, other)]
            assert np.linalg.norm(seen[0] - seen[1]) > 20, (one, other)


@pytest.mark.parametrize("group", ["SCHEMES", "ALGORITHMS"])
def test_bars_differ_in_print(group):
    assert len({one.hatch for one in GROUPS[group]}) == len(GROUPS[group])


def lightness_and_hue(colour, matrix):
    """CIELAB of a colour as a reader sees it: a distance of 20 is plain to see."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1094, 0.8729]]
    x, y, z = np.cbrt(to_xyz @ np.clip(matrix @ linear, 0, 1))  # relative to white
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_fixed_things_have_their_colours():
    """Those of the styleguide; no algorithm, region or climate borrows them."""
    fixed = {
        "target": plotting.BLACK, "static": plotting.GREY, "model": plotting.BLUE,
        "published": plotting.ORANGE, "limit": plotting.GREEN,
    }  # fmt: skip
    assert {key: style(key).colour for key in fixed} == fixed
    for group in ("ALGORITHMS", "REGIONS", "STATES"):
        assert not {one.colour for one in GROUPS[group]} & set(fixed.values())


def test_a_curve_has_the_style_and_name_of_its_thing():
    axes = new_figure(3.0, 2.0).subplots()
    line = draw(axes, "static", [0, 1], [0, 1])
    assert (line.get_color(), line.get_linestyle()) == (plotting.GREY, "--")
    draw(axes, "target", [0, 1], [1, 0], label="")
    draw(axes, plotting.REGIONS[1], [0, 1], [1, 0], "30°S to 0°", linewidth=9.0)
    assert axes.lines[-1].get_linewidth() == 9.0
    assert axes.get_legend_handles_labels()[1] == ["static model", "30°S to 0°"]
    with pytest.raises(KeyError):
        draw(axes, "moon", [0, 1], [0, 1])


def test_axes_say_what_they_show():
    axes = new_figure().subplots()
    plotting.step_axis(axes, 20.0, 365.2422 / 90, "thousands")
    assert axes.get_xlabel() == "Environment steps of 4.06 days (thousands)"
    assert plotting.step_label(1 / 48) == "Environment steps of 0.5 hours"
    plotting.latitude_axis(axes, 45)
    labels = [tick.get_text() for tick in axes.get_xticklabels()]
    assert labels == ["90°S", "45°S", "0°", "45°N", "90°N"]


def test_a_map_shows_every_column_in_its_place():
    """In whatever order the columns come, and with longitudes to the west as negative numbers."""
    columns = Columns.lat_lon(4, 8)
    values = np.arange(32.0)
    order = np.random.default_rng(0).permutation(32)
    east = np.where(columns.longitude > 180, columns.longitude - 360, columns.longitude)
    axes = new_figure().subplots()
    mesh = draw_map(axes, columns.latitude[order], east[order], values[order])
    corners = mesh.get_coordinates()
    middle = (corners[1:, 1:] + corners[:-1, :-1]) / 2
    np.testing.assert_allclose(middle[..., 0].ravel(), columns.longitude)
    np.testing.assert_allclose(middle[..., 1].ravel(), columns.latitude)
    np.testing.assert_array_equal(np.ravel(mesh.get_array()), values)
    assert (corners[0, 0, 1], corners[-1, 0, 1]) == (-90, 90)


def test_a_map_of_errors_is_white_where_there_is_none():
    columns = Columns.lat_lon(4, 8)
    axes = new_figure().subplots()
    mesh = draw_map(axes, columns.latitude, columns.longitude, np.linspace(-1, 3, 32), errors=True)
    assert mesh.get_clim() == (-3, 3)
    np.testing.assert_allclose(mesh.to_rgba(0.0)[:3], 1, atol=0.04)


def test_a_map_needs_a_whole_grid():
    columns = Columns.lat_lon(4, 8)
    with pytest.raises(InputError, match="whole rows of latitude–longitude columns"):
        draw_map(new_figure().subplots(), columns.latitude[1:], columns.longitude[1:], np.zeros(31))
    twice = np.r_[1:32, 1]
    with pytest.raises(InputError, match="whole rows of latitude–longitude columns"):
        draw_map(
            new_figure().subplots(), columns.latitude[twice], columns.longitude[twice], np.zeros(32)
        )


def test_a_target_that_moves_moves_the_errors():
    latitudes = Grid(12).centres
    profiles = ProfileFigure(latitudes, np.zeros(12), {"model": "model"})
    profiles.update("now", model=np.full(12, 3.0))
    profiles.set_target(np.full(12, 1.0))
    np.testing.assert_array_equal(profiles.errors["model"].get_ydata(), 2.0)
    np.testing.assert_array_equal(profiles.target_line.get_ydata(), 1.0)
    profiles.update("later", model=np.full(12, 5.0))
    np.testing.assert_array_equal(profiles.errors["model"].get_ydata(), 4.0)
    low, high = profiles.error_axes.get_ylim()
    assert low <= 0 < 4 < high


def test_no_other_module_has_colours():
    """Names, shades of grey and hexadecimal codes of colours are for this module alone."""
    package = Path(plotting.__file__).parent
    studies = package.parent / "studies"
    colour = re.compile(r"""colou?rs?=(\(?["'])|["']#[0-9A-Fa-f]{6}["']""")
    for path in [*package.rglob("*.py"), *studies.glob("*.py")]:
        if path != Path(plotting.__file__):
            assert not colour.search(path.read_text("utf-8")), path


@pytest.mark.parametrize("logarithmic", [False, True])
def test_few_seeds_are_drawn_one_by_one_and_many_as_an_interval(logarithmic):
    rng = np.random.default_rng(0)
    x = np.arange(7)
    for seeds in (1, 2, 4, 5, 10):
        values = np.exp(rng.normal(size=(seeds, 7)))
        axes = new_figure().subplots()
        draw_seeds(axes, "model", x, values, limits=(0.9, 1.1), logarithmic=logarithmic)
        mean = np.exp(np.log(values).mean(0)) if logarithmic else values.mean(0)
        np.testing.assert_allclose(axes.lines[0].get_ydata(), mean)
        few = seeds < ENOUGH_SEEDS
        assert len(axes.lines) - 1 == (seeds if few and seeds > 1 else 0)
        assert len(axes.collections) == (0 if few else 1)
        for line, one in zip(axes.lines[1:], values, strict=False):
            np.testing.assert_allclose(line.get_ydata(), one)
        for shown in axes.collections:
            corners = shown.get_paths()[0].vertices[:, 1]
            assert corners.min() >= 0.9
            assert corners.max() <= 1.1
