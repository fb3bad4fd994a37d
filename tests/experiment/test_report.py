import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from fedrain.cli import main
from fedrain.experiment import configure, load, train
from fedrain.experiment.report import skill_report, write_figures
from fedrain.paper.published import published_cells, published_column, published_skill
from tests.experiment.small import SMALL, small_preset


def test_published_figures():
    cells = published_cells()
    assert len(cells) == 3 + 2 * 2 * 3 * 3  # v1, and v2 and v3 × a2, a6 × schemes, by algorithm
    assert published_skill(configure(env="ebm-v1")).mean == (8.19, 6.30, 6.76, 4.59, 2.65, 3.48)
    assert published_skill(configure()).mean[2] == 1.25
    assert published_skill(configure(latitudes=96)) is not None
    for other in ({"agents": 12}, {"latitudes": 48}, {"target": [0.0] * 96}, {"sharing": "zones"}):
        assert published_skill(configure(**other)) is None, other


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    configuration = configure(preset=small_preset(folder), seeds=2, episodes=4, **SMALL)
    return train(configuration, folder / "run")


def test_table_has_every_policy_beside_static_and_paper(run):
    lines = skill_report(run).splitlines()
    assert lines[0].split()[2:] == ["static", "local", "global"]
    summary = run.summary("local")
    assert f"{summary['bands_mean'][0]:.2f} ± {summary['bands_std'][0]:.2f}" in lines[1]
    lines = skill_report(run, published_column(configure())).splitlines()
    assert lines[0].split()[2:] == ["static", "local", "global", "paper"]
    assert "7.01 ± 2.78" in lines[1]


def test_figures(run):
    paths = write_figures(run)
    assert [path.name for path in paths] == ["returns.png", "parameters.png", "profile.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_times_are_in_days_and_no_legend_covers_a_curve(run):
    """A step of the energy balance model is 365.2422/90 days."""
    figure = run.plot_profile()
    titles = [axes.get_title() for axes in figure.axes if axes.get_visible()]
    assert titles[0] == "step 1 (4.06 days)"
    assert titles[-1] == "step 10 (40.6 days)"
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    (legend,) = figure.legends
    own = legend.get_window_extent()
    for axes in figure.axes:
        assert not own.overlaps(axes.get_tightbbox())


def test_evaluate_prints_the_table(run, capsys):
    assert main(["evaluate", str(run.folder)]) == 0
    assert "global" in capsys.readouterr().out


def test_local_skill_is_that_of_the_stored_profile(run):
    again = load(run.folder)
    target = again.results.target.values
    profile = again.results.surface_temperature.sel(policy="local", seed=1).values[-1]
    weights = np.cos(np.deg2rad(again.results.lat.values))
    expected = np.sqrt(np.average((profile - target) ** 2, weights=weights))
    assert again.skills("local")[1].globe == pytest.approx(expected, rel=1e-5)
