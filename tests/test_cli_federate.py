"""What a federation cannot do is said in one line, and the folder stays as it was."""

import json

import pytest

from fedrain.cli import main
from fedrain.experiment import configure
from tests.experiment.small import SMALL, small_preset

pytest.importorskip("flwr")


def tree(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(capsys, *arguments):
    assert main(["federate", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    return line


def test_it_starts_from_new_agents(tmp_path, capsys):
    configuration = configure(env="ebm-v2", agents=2, preset=small_preset(tmp_path), **SMALL)
    stored, out = tmp_path / "configuration.json", tmp_path / "run"
    stored.write_text(json.dumps({**configuration.as_dict(), "start_from": 64 * "0"}))
    line = refused(capsys, "--experiment", str(stored), "--out", str(out))
    assert line.endswith("a federation starts from new agents, not from those of another run")
    assert not out.exists()


def test_it_has_as_many_episodes_as_it_was_begun_with(tmp_path, capsys):
    out = str(tmp_path / "run")
    small = ["--latitudes", "12", "--episode-length", "10", "--preset", str(small_preset(tmp_path))]
    begin = ["--env", "ebm-v2", "--agents", "2", "--episodes", "2", *small, "--out", out]
    assert main(["federate", *begin]) == 0
    capsys.readouterr()
    before = tree(tmp_path / "run")
    for episodes in ("1", "3"):
        line = refused(capsys, "--out", out, "--resume", "--episodes", episodes)
        assert f"has 2 episodes, not {episodes}, and a federation cannot be extended" in line
    assert "holds another experiment" in refused(
        capsys, "--out", out, "--resume", "--set", "tau=0.5"
    )
    assert tree(tmp_path / "run") == before
    assert json.loads((tmp_path / "run" / "configuration.json").read_text())["episodes"] == 2
