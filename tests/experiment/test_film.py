"""The course of a run, and the film of it."""

import shutil

import numpy as np
import pytest
from PIL import Image, ImageSequence

from fedrain.cli import main
from fedrain.climate import Columns
from fedrain.errors import InputError
from fedrain.experiment import configure, film, load, train
from fedrain.experiment.course import COURSE, Course, by_latitude, read_course
from fedrain.experiment.trainer import Trainer
from tests.climate.models import AIR, SURFACE, Layered
from tests.experiment.small import SMALL, small_preset


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("film")
    configuration = configure(preset=small_preset(folder), seeds=2, episodes=5, **SMALL)
    return train(configuration, folder / "run", figures=False)


def course_of(run):
    return read_course(run.folder, run.configuration, "weights.safetensors")


@pytest.mark.parametrize("sharing", [{}, {"sharing": "shared", "sync_every": 0}])
def test_course_is_what_the_agents_did(tmp_path, sharing):
    """From the memory of the agents: what each set, and what it saw after the last step."""
    configuration = configure(
        preset=small_preset(tmp_path), agents=3, seeds=1, episodes=3, **SMALL, **sharing
    )
    trainer = Trainer(configuration, environment := configuration.make_environment())
    trainer.begin()
    for episode in range(3):
        trainer.play(False)
        rows = np.asarray(trainer.trainings[0].rows)
        steps = rows.reshape(len(rows), 30, 3 // len(rows), -1)[:, 10 * episode : 10 * episode + 10]
        steps = np.moveaxis(steps, 2, 1).reshape(3, 10, -1)  # agent, step
        seen = environment.observation_size
        setting, after = steps[..., seen : -seen - 1].mean(1), steps[:, -1, -seen:]
        record = trainer.course.records[-1]
        np.testing.assert_allclose(record[SURFACE][0], after.ravel(), rtol=1e-6)
        for row in environment.learnt:
            own = setting[:, environment.action_slices[row.symbol]] * row.action_unit
            expected = own.ravel() if row.by_column else own.mean()
            np.testing.assert_allclose(record[row.symbol][0], expected, rtol=1e-5)
    assert trainer.course.episodes == [1, 2, 3]


def test_course_of_forecasts_is_that_of_a_free_episode(tmp_path):
    """After an analysis the state says nothing of the agents."""
    run = train(
        env="ebm-energy", latitudes=12, agents=12, episode_length=10, analysis_every=5, episodes=2,
        preset=small_preset(tmp_path), sync_every=0, out=tmp_path / "run", figures=False,
    )  # fmt: skip
    last = course_of(run).isel(episode=-1)
    played = run.results.sel(policy="local")
    for field in run.configuration.make_environment().judged_fields:
        np.testing.assert_allclose(last[field.name], played[field.name][:, -1], rtol=1e-5)
    np.testing.assert_allclose(last["A"], played["A"].mean("step"), rtol=1e-5)


def test_long_runs_are_recorded_now_and_then():
    configuration = configure(episodes=1000)
    course = Course(configuration, configuration.make_environment())
    due = [episode for episode in range(1, 1001) if course.is_due(episode)]
    assert due[:3] == [1, 4, 8]
    assert due[-1] == 1000
    assert len(due) <= 257


def test_course_is_that_of_one_go_after_a_resumption(run, tmp_path):
    class StoppedError(Exception):
        pass

    def stop(episode):
        if episode.episode == 3:
            raise StoppedError

    with pytest.raises(StoppedError):
        train(run.configuration, tmp_path / "run", on_episode=stop)
    again = train(run.configuration, tmp_path / "run", resume=True, figures=False)
    assert course_of(again).identical(course_of(run))
    text = (again.folder / COURSE).read_bytes()
    (again.folder / COURSE).write_bytes(text[:-1] + bytes([text[-1] ^ 1]))
    with pytest.raises(InputError, match="damaged or was changed"):
        course_of(again)


def drawn(scene, axes):
    return [np.asarray(line.get_ydata(), float) for line in scene.figure.axes[axes].get_lines()]


def test_frames_hold_the_course(run):
    course, environment = course_of(run), run.configuration.make_environment()
    target = environment.params.target[SURFACE]
    values = course[SURFACE].values.astype(float)
    scene = film.Scene(run, film.make_reel(run), None)
    for frame in (0, 4):
        scene.show(frame)
        shown_target, static, model = drawn(scene, 0)
        np.testing.assert_allclose(shown_target, target)
        np.testing.assert_allclose(static, run.static.fields[SURFACE][0, -1], rtol=1e-6)
        np.testing.assert_allclose(model, values[frame].mean(0))
        errors = np.ma.filled(scene.mesh.get_array(), np.nan)
        np.testing.assert_allclose(
            errors[:, : frame + 1], (values.mean(1) - target)[: frame + 1].T, rtol=1e-6
        )
        assert np.isnan(errors[:, frame + 1 :]).all()
        weights = np.cos(np.deg2rad(course.lat.values))
        each = np.sqrt(((values[frame] - target) ** 2 @ weights) / weights.sum())
        assert (
            f"episode {frame + 1} of 5, error {each.mean():.2f} K (static" in scene.title.get_text()
        )
    panels = {axes.get_title().split(" ")[0]: i for i, axes in enumerate(scene.figure.axes)}
    np.testing.assert_allclose(drawn(scene, panels["A"])[-1], course["A"].values[-1].mean(0))
    np.testing.assert_allclose(drawn(scene, panels["D"])[-1], course["D"].values.mean(1))
    scene.show(1)
    np.testing.assert_allclose(drawn(scene, panels["D"])[-1][2:], np.nan)
    one = film.make_reel(run, seed=1)
    np.testing.assert_allclose(one.profile, values[:, 1])


def test_gif_has_a_frame_for_each_episode(run, tmp_path, capsys):
    path = tmp_path / "it.gif"
    assert main(["film", str(run.folder), "--out", str(path), "--seed", "1", "--fps", "20"]) == 0
    assert "it.gif" in capsys.readouterr().err
    with Image.open(path) as picture:
        times = [one.info["duration"] for one in ImageSequence.Iterator(picture)]
    assert times == [50, 50, 50, 50, 2000]


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs ffmpeg")
def test_mp4(run, tmp_path):
    path = run.film(tmp_path / "it.mp4")
    assert path.read_bytes()[4:8] == b"ftyp"


def test_levels_and_longitudes(tmp_path):
    model = Layered(columns=Columns.lat_lon(3, 2))
    target = {AIR: np.arange(18.0).reshape(6, 3) + 250}
    run = train(
        env="ebm-v3", model=model, agents=3, judge={AIR: 1.0}, target=target, episodes=2,
        episode_length=10, preset=small_preset(tmp_path), out=tmp_path / "run", figures=False,
    )  # fmt: skip
    values = course_of(run)[AIR].values.astype(float)[:, 0]  # episode, lat, lon, level
    assert values.shape == (2, 3, 2, 3)
    error = values - target[AIR].reshape(3, 2, 3)
    np.testing.assert_allclose(film.make_reel(run).errors, error.mean((2, 3)), rtol=1e-5)
    one = film.make_reel(run, level=500.0)
    np.testing.assert_allclose(one.errors, error[..., 1].mean(2), rtol=1e-5)
    with pytest.raises(InputError, match="no level '700'"):
        film.make_reel(run, level=700.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "it.png"], "a film's name ends in one of .gif, .mp4"),
        (["--seed", "7"], "there is no seed 7"),
        (["--field", "wind"], "there is no judged field 'wind'"),
        (["--level", "500"], "there is no level '500'"),
        (["--fps", "0"], "fps must be an integer from 1"),
        (["--fps", "1000"], "fps is at most 60"),
    ],
)
def test_one_line(run, options, message, capsys):
    assert main(["film", str(run.folder), *options]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


def test_without_ffmpeg_or_course_there_is_one_line(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(film.shutil, "which", lambda _: None)
    monkeypatch.setattr(film, "import_module", lambda _: (_ for _ in ()).throw(ImportError))
    assert main(["film", str(run.folder), "--out", str(tmp_path / "it.mp4")]) == 2
    assert "pip install 'fedrain[film]'" in capsys.readouterr().err
    old = tmp_path / "old"
    shutil.copytree(run.folder, old)
    (old / COURSE).unlink()
    assert main(["film", str(old)]) == 2
    assert "keeps no course of its training" in capsys.readouterr().err
    assert load(old).summary()["global"] > 0
    assert main(["film", str(tmp_path / "none")]) == 2
    assert "is not the folder of a run" in capsys.readouterr().err


def test_errors_by_latitude_where_there_is_no_field():
    """Of regions that share a latitude, the mean."""
    environment = configure(agents=4, latitudes=6, overlap=True).make_environment()
    assert environment.division.cells.tolist() == [[0, 1], [1, 2], [3, 4], [4, 5]]
    laid = by_latitude(environment, np.array([[1.0, 3.0, 5.0, 7.0]]))
    np.testing.assert_allclose(laid, [[1, 2, 3, 5, 6, 7]])
