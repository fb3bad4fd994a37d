import numpy as np
import pytest

from fedrain.climate import Grid
from fedrain.errors import InputError
from fedrain.plotting import ProfileFigure


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


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg", "PNG"])
def test_saved_whole(tmp_path, suffix):
    figure().save(tmp_path / "new" / f"profile.{suffix}")
    assert [p.name for p in (tmp_path / "new").iterdir()] == [f"profile.{suffix}"]
    assert (tmp_path / "new" / f"profile.{suffix}").stat().st_size > 5000


def test_unknown_format(tmp_path):
    with pytest.raises(InputError, match="ends in one of"):
        figure().save(tmp_path / "profile.pgf")


def test_a_failed_write_leaves_the_old_picture(tmp_path, monkeypatch):
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
