"""Every example trains from the command line, with all that a model of the package has."""

import json

import numpy as np
import pytest
import xarray as xr

from fedrain.cli import main
from fedrain.experiment import training
from fedrain.reading import read_arrays
from tests.conftest import leave_out_figures
from tests.examples.examples import EXAMPLES, examples

SMALL = ["--episode-length", "12", "--set", "warmup_steps=12", "--set", "batch_size=8"]


def command(example, out, *more):
    named = [example.option, example.reference, "--agents", str(example.agents)]
    kind = ["--algo", "td3", "--sync-every", "1", "--episodes", "3", "--seeds", "1"]
    return ["train", *named, *kind, *SMALL, "--out", str(out), *more]


def stop_after(episodes, monkeypatch):
    """Ctrl-C after so many episodes, each of which has its checkpoint."""
    tell = training.Session._tell

    def interrupted(session):
        tell(session)
        if session.trainer.episode > episodes:
            raise KeyboardInterrupt

    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", -1)
    monkeypatch.setattr(training.Session, "_tell", interrupted)


def learnt(folder):
    arrays, _ = read_arrays(folder / "weights.safetensors")
    with xr.open_dataset(folder / "returns.nc") as data:
        return {**arrays, "returns": data["returns"].values}


@pytest.mark.figures
@examples()
def test_train_interrupt_resume_and_evaluate(example, tmp_path, monkeypatch, capsys):
    assert main(command(example, tmp_path / "whole")) == 0
    printed = capsys.readouterr()
    for text in ("areaWRMSE", "static", "local", "60°N–90°N", "global"):
        assert text in printed.out
    pictures = sorted(path.name for path in (tmp_path / "whole").glob("*.png"))
    assert {"parameters.png", "profile.png", "returns.png"} <= set(pictures)
    assert all(f"{name}" in printed.err for name in pictures)

    leave_out_figures(monkeypatch)
    with monkeypatch.context() as patch:
        stop_after(1, patch)
        assert main(command(example, tmp_path / "stopped")) == 1
    assert "interrupted" in capsys.readouterr().err
    assert not (tmp_path / "stopped" / "skill.nc").exists()
    assert main(command(example, tmp_path / "stopped", "--resume")) == 0
    whole, stopped = learnt(tmp_path / "whole"), learnt(tmp_path / "stopped")
    assert whole.keys() == stopped.keys()
    for name in whole:
        np.testing.assert_array_equal(whole[name], stopped[name], err_msg=name)
    capsys.readouterr()

    # What a folder names is not imported on its word: the user has to name it again.
    folder = str(tmp_path / "stopped")
    assert main(["evaluate", folder, "--json"]) == 2
    assert f"name it again with {example.option.split()[0]}" in capsys.readouterr().err
    assert main(["evaluate", folder, example.option, example.reference, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    environment = example.make()
    judged = list(dict(environment.judged))  # fluxes that the model knows come after them
    assert list(found["fields"])[: len(judged)] == judged
    assert 0 <= found["physics"]["at_bounds"] <= 1
    assert found["global"] == pytest.approx(found["fields"][environment.judged[0][0]])
    assert np.isfinite(found["return"])


def test_agents_are_averaged(tmp_path, capsys):
    """Federated actors are not those of agents that learn alone."""
    example = EXAMPLES["albedo"]
    alone = command(example, tmp_path / "alone")
    alone[alone.index("--sync-every") + 1] = "0"
    assert main(alone) == 0
    assert main(command(example, tmp_path / "together")) == 0
    one, other = learnt(tmp_path / "alone"), learnt(tmp_path / "together")
    assert any(not np.array_equal(one[name], other[name]) for name in one)


def test_a_changed_example_is_not_the_one_that_was_trained(tmp_path, capsys):
    example = EXAMPLES["albedo"]
    assert main(command(example, tmp_path / "run")) == 0
    text = (example.path).read_text(encoding="utf-8")
    (tmp_path / "albedo.py").write_text(text.replace("0.75", "0.7"), encoding="utf-8")
    capsys.readouterr()
    other = ["evaluate", str(tmp_path / "run"), "--env", f"{tmp_path / 'albedo.py'}:task"]
    assert main(other) == 2
    error = capsys.readouterr().err
    assert "its source has changed" in error
    assert error.count("\n") == 1

    # Unless its user accepts that: then the run stays the run it was, and opens with either source.
    # (The fields are still compared.)
    (tmp_path / "albedo.py").write_text(text + "\nmended = True\n", encoding="utf-8")
    before = learnt(tmp_path / "run")
    accept = ["train", "--out", str(tmp_path / "run"), *other[2:], "--accept-changes"]
    assert main(accept) == 2
    assert "give --resume" in capsys.readouterr().err
    assert main([*accept, "--resume"]) == 0
    assert main(other) == 0
    assert main(["evaluate", str(tmp_path / "run"), example.option, example.reference]) == 0
    for name, values in learnt(tmp_path / "run").items():
        np.testing.assert_array_equal(values, before[name], err_msg=name)
    assert main([*accept, "--resume", "--episodes", "4"]) == 0  # and its checkpoint still fits
