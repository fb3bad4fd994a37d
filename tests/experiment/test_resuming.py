"""A run that is resumed is the one that it was: another is refused, and nothing of it is lost."""

import json

import pytest

from fedrain.cli import main
from fedrain.errors import InputError
from fedrain.experiment import configure, load, train, training
from tests.experiment.small import SMALL, small_preset

RED = """
from dataclasses import dataclass
from fedrain.agents import DDPG

@dataclass(frozen=True, kw_only=True)
class REDQ(DDPG):
    subset: int = 2

    def __post_init__(self):
        if self.subset > 5:
            raise ValueError("too many")
"""


def tree(folder):
    found = [p for p in folder.rglob("*") if p.is_file() and p.name != ".lock"]
    return {str(p.relative_to(folder)): p.read_bytes() for p in found}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_preset(tmp_path)
    return tmp_path


def command(name="train", *more):
    small = ["--preset", "small.toml", "--agents", "2", "--latitudes", "12"]
    small += ["--episode-length", "10", "--episodes", "2", "--out", "run"]
    return [name, *small, *more]


def test_a_changed_default_of_ones_own_algorithm(here, capsys):
    """The run goes on with the value that it was trained with, which its folder has."""
    (here / "red.py").write_text(RED)
    own = ["--algo", "red.py:REDQ"]
    assert main(command("train", *own)) == 0
    (here / "red.py").write_text(RED.replace("int = 2", "int = 3"))
    again = ["train", "--out", "run", "--resume", *own, "--episodes", "3"]
    before = tree(here / "run")
    assert main(again) == 2
    assert "its source has changed" in capsys.readouterr().err
    assert tree(here / "run") == before
    assert main([*again, "--accept-changes"]) == 0
    run = load("run", algo="red.py:REDQ")
    assert run.configuration.make_algorithm().subset == 2
    assert run.returns.sizes["episode"] == 3


def test_nothing_is_written_before_the_checkpoint_is_known_to_be_the_runs(here, capsys):
    """Say because the class has a field that it had not: the finished run stays finished."""
    (here / "red.py").write_text(RED)
    own = ["--algo", "red.py:REDQ"]
    assert main(command("train", *own)) == 0
    before = tree(here / "run")
    (here / "red.py").write_text(RED.replace("int = 2", "int = 2\n    more: int = 1"))
    again = ["train", "--out", "run", "--resume", *own, "--accept-changes"]
    capsys.readouterr()
    for more in ([], ["--episodes", "3"]):
        assert main([*again, *more]) == 2
        assert "the checkpoint belongs to another configuration" in capsys.readouterr().err
        assert tree(here / "run") == before
    (here / "red.py").write_text(RED)
    assert main(["evaluate", "run", *own, "--json"]) == 0


def test_no_run_is_extended_whose_checkpoint_is_another_ones(here):
    first = configure(preset="small.toml", episodes=2, agents=2, **SMALL)
    train(first, "run", figures=False)
    train(configure(preset="small.toml", episodes=2, agents=3, **SMALL), "other", figures=False)
    (state,) = (here / "other" / "checkpoint").glob("state-*")
    (here / "run" / "checkpoint" / state.name).write_bytes(state.read_bytes())
    before = tree(here / "run")
    with pytest.raises(InputError, match="the checkpoint belongs to another configuration"):
        train(out="run", resume=True, episodes=3)
    assert tree(here / "run") == before
    assert load("run").summary()["return"]


@pytest.mark.parametrize(
    ("more", "differs"),
    [
        (["--algo", "td3"], "algo differs"),
        (["--env", "ebm-v2"], "env differs"),
        (["--env", "ebm-v1"], "env differs"),
        (["--env", "ebm-v2", "--algo", "td3"], "env, algo differ"),
        (["--model", "red.py:REDQ"], "model differs"),
        (["--algo", "red.py:REDQ"], "algo differs"),
    ],
)
def test_another_task_or_algorithm_is_another_experiment(here, capsys, more, differs):
    (here / "red.py").write_text(RED)
    assert main(command()) == 0
    before = tree(here / "run")
    for name in ("train", "federate"):
        capsys.readouterr()
        assert main([name, "--out", "run", "--resume", *more]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert "holds another experiment" in told
        assert f"({differs})" in told
    assert tree(here / "run") == before
    assert main(["train", "--out", "run", "--resume", "--env", "ebm-v3", "--algo", "ddpg"]) == 0
    other = configure(preset="small.toml", algo="td3", agents=2, episodes=2, **SMALL)
    with pytest.raises(InputError, match=r"\(algo differs\)"):
        train(other, "run", resume=True)


def test_who_resumes_what_is_not_there_is_told(here, capsys):
    assert main(command("train", "--resume")) == 0
    assert "run: there is no run to resume: starting a new one" in capsys.readouterr().err
    assert main(command("train", "--resume")) == 0
    assert "no run to resume" not in capsys.readouterr().err
    typo = [text if text != "run" else "rnu" for text in command("federate", "--resume")]
    assert main(typo) == 0
    assert "rnu: there is no run to resume: starting a new one" in capsys.readouterr().err


def test_a_callback_that_fails_leaves_the_last_episode(here):
    configuration = configure(preset="small.toml", episodes=5, agents=2, **SMALL)
    whole = train(configuration, "whole", figures=False)

    def fail(episode):
        if episode.episode == 3:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(configuration, "run", figures=False, on_episode=fail)
    assert training.checkpoints_of(configuration, here / "run").episode == 3
    run = train(configuration, "run", resume=True, figures=False)
    assert (run.returns.returns.values == whole.returns.returns.values).all()
    assert json.loads((here / "run" / "configuration.json").read_text())["episodes"] == 5
