"""One clear line, exit status 2, and what was there before is still there."""

import errno
import json

import numpy as np
import pytest

from fedrain.cli import main
from fedrain.errors import InputError
from fedrain.experiment import configure, storage, train
from fedrain.experiment.checkpoint import Checkpoints
from fedrain.experiment.training import Session
from tests.experiment.small import SMALL, small_preset


def tree(folder):
    return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--env", "ebm-v4"], "no environment 'ebm-v4': did you mean 'ebm-v"),
        (["--algo", "dppg"], "no algorithm 'dppg': did you mean 'ddpg'"),
        (["--preset", "papper"], "no preset 'papper': did you mean 'paper'"),
        (["--agents", "7"], "7 agents do not divide 96 latitudes"),
        (["--env", "ebm-v1", "--agents", "2"], "ebm-v1 has one agent"),
        (["--episodes", "-3"], "episodes must be a whole number from 1"),
        (["--episodes", "many"], "invalid int value"),
        (["--seeds", "0"], "seeds are one or more"),
        (["--sync-every", "-1"], "sync_every must be"),
        (["--target", "none.nc"], "no such file"),
    ],
)
def test_train(capsys, tmp_path, arguments, message):
    out = tmp_path / "run"
    assert main(["train", "--out", str(out), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert not out.exists()


def test_a_folder_of_something_else(capsys, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    before = tree(tmp_path)
    assert main(["train", "--out", str(tmp_path)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert tree(tmp_path) == before


def test_a_folder_of_another_experiment(tmp_path):
    preset = small_preset(tmp_path)
    out = tmp_path / "run"
    first = configure(preset=preset, episodes=2, **SMALL)
    train(first, out)
    before = tree(out)
    other = configure(preset=preset, episodes=3, **SMALL)
    for resume in (False, True):
        with pytest.raises(InputError, match="holds another experiment"):
            train(other, out, resume=resume)
    with pytest.raises(InputError, match="--resume goes on"):
        train(first, out)
    assert train(first, out, resume=True).configuration == first
    assert tree(out) == before


@pytest.fixture
def interrupted(tmp_path):
    """A run with a checkpoint after two of three episodes."""
    configuration = configure(preset=small_preset(tmp_path), episodes=3, **SMALL)
    session = Session(configuration, tmp_path / "run", resume=False, say=print)
    for _ in range(2):
        session.trainer.play(False)
    session._save()
    return configuration, tmp_path / "run"


@pytest.mark.parametrize("pattern", ["state-*", "rows-*"])
def test_checkpoint_cut_short(interrupted, pattern):
    configuration, out = interrupted
    (path,) = (out / "checkpoint").glob(pattern)
    path.write_bytes(path.read_bytes()[:-100])
    before = tree(out)
    with pytest.raises(InputError, match="cut short or damaged"):
        train(configuration, out, resume=True)
    assert tree(out) == before


def test_checkpoint_of_another_configuration(interrupted):
    configuration, out = interrupted
    session = Session(configuration, out, resume=True, say=print)
    other = Checkpoints(out / "checkpoint", "another")
    with pytest.raises(InputError, match="of another configuration"):
        other.load(session.trainer.trainings)


def test_no_space_left(interrupted, monkeypatch):
    configuration, out = interrupted
    session = Session(configuration, out, resume=True, say=print)
    session.trainer.play(False)
    before = tree(out / "checkpoint")

    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage, "save_file", full)
    with pytest.raises(InputError, match="no space left on the device"):
        session._save()
    assert tree(out / "checkpoint") == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: None, "is not the folder of a run"),
        (lambda folder: (folder / "configuration.json").write_text("{}"), "not finished"),
    ],
)
def test_evaluate(capsys, tmp_path, make, message):
    make(tmp_path)
    assert main(["evaluate", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_damaged_results(capsys, tmp_path):
    out = tmp_path / "run"
    train(configure(preset=small_preset(tmp_path), episodes=2, **SMALL), out)
    (out / "skill.nc").write_bytes(b"not a data set")
    assert main(["evaluate", str(out)]) == 2
    assert "damaged" in capsys.readouterr().err


def test_unknown_policy(capsys, tmp_path):
    out = tmp_path / "run"
    train(configure(preset=small_preset(tmp_path), episodes=2, **SMALL), out)
    assert main(["evaluate", str(out), "--policy", "best"]) == 2
    assert "no policy 'best'" in capsys.readouterr().err
    assert main(["evaluate", str(out), "--policy", "global", "--json"]) == 0
    assert np.isfinite(json.loads(capsys.readouterr().out)["global"])
