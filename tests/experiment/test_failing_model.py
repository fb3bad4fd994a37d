"""A model outside JAX that fails on the way: one line, and nothing is lost."""

import re

import numpy as np
import pytest

from fedrain.cli import main
from fedrain.errors import InputError
from fedrain.experiment import configure, load, train, training
from tests.experiment.small import small_preset

MODEL = """
from dataclasses import dataclass
from pathlib import Path
from tests.climate.models import HostLayered

@dataclass(frozen=True)
class Frail(HostLayered):
    def step_host(self, state, parameters, forcing, rng):
        if state["clock"] >= 3 and Path("failing").exists():
            raise OSError("the disk is gone\\nand so on")
        return super().step_host(state, parameters, forcing, rng)
"""
SAID = r"^Frail: step_host fails \(OSError: the disk is gone; frail.py:10\)$"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("frail")


@pytest.fixture
def frail(folder, monkeypatch):
    """Fails from the fourth step on while there is this file."""
    monkeypatch.chdir(folder)
    (folder / "frail.py").write_text(MODEL)
    (folder / "failing").unlink(missing_ok=True)
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", -1.0)
    return folder / "failing"


@pytest.fixture
def whole(frail, folder):
    """A run that did not fail."""
    preset, small = small_preset(folder), {"agents": 2, "episodes": 4, "episode_length": 8}
    configuration = configure(model="frail.py:Frail", preset=preset, **small)
    return train(configuration, "whole", resume=True, figures=False)


def test_training_resumes_when_the_model_is_mended(frail, folder, whole):
    configuration = whole.configuration

    def break_down(episode):
        if episode.episode == 2:
            frail.touch()

    with pytest.raises(InputError, match=SAID):
        train(configuration, "run", on_episode=break_down)
    before = {path: path.read_bytes() for path in (folder / "run" / "checkpoint").iterdir()}
    assert before
    with pytest.raises(InputError, match=SAID):
        train(configuration, "run", resume=True)
    assert {path: path.read_bytes() for path in before} == before
    frail.unlink()
    run = train(configuration, "run", resume=True, figures=False)
    np.testing.assert_array_equal(run.returns.returns, whole.returns.returns)
    frail.touch()
    with pytest.raises(InputError, match=SAID):
        load("run", model="frail.py:Frail").evaluate(start=5.0)


def test_the_last_whole_episode_stays_when_the_model_fails(frail, folder, whole, monkeypatch):
    """However long ago the last checkpoint was: here there was none."""
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 1e9)
    configuration = whole.configuration

    def break_down(episode):
        if episode.episode == 2:
            frail.touch()

    with pytest.raises(InputError, match=SAID):
        train(configuration, "long", on_episode=break_down)
    assert training.checkpoints_of(configuration, folder / "long").episode == 2
    frail.unlink()
    run = train(configuration, "long", resume=True, figures=False)
    np.testing.assert_array_equal(run.returns.returns, whole.returns.returns)


def test_the_command_line_says_one_line(frail, folder, whole, capsys):
    frail.touch()
    model = ["--model", "frail.py:Frail"]
    small = [
        "--agents",
        "2",
        "--episodes",
        "4",
        "--episode-length",
        "8",
        "--preset",
        str(small_preset(folder)),
    ]
    for command in (
        ["train", *model, *small, "--out", "new"],
        ["federate", *model, *small, "--out", "nodes"],
        ["evaluate", "whole", *model, "--start", "5"],
        ["evaluate", "whole", *model, "--forcing"],
        ["baseline", "static", *model],
        ["baseline", "enki", *model, "--ensemble", "3"],
    ):
        capsys.readouterr()
        assert main(command) == 2, command
        told = capsys.readouterr()
        *others, last = told.err.splitlines()
        assert re.match(SAID, last.removeprefix("fedrain: error: "))
        begins = command[0] in ("train", "federate")  # which is said, and where
        assert len(others) == begins
        assert told.out == ""
