"""``fedrain.flower.federate``: what the command does, from Python."""

import subprocess
import sys

import numpy as np
import pytest

from fedrain.cli import main
from fedrain.errors import InputError
from fedrain.experiment import configure, train
from tests.experiment.small import SMALL, small_preset

pytest.importorskip("flwr")
from fedrain.flower import federate

RED = """
from dataclasses import dataclass
from fedrain.agents import DDPG

@dataclass(frozen=True, kw_only=True)
class REDQ(DDPG):
    subset: int = 2
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return {"preset": small_preset(tmp_path), "agents": 2, "episodes": 2, **SMALL}


def quiet(_):
    pass


def test_it_gives_what_training_gives(here):
    configuration = configure(**here)
    fused = train(configuration, "fused", say=quiet, figures=False)
    over = federate(configuration, "over", say=quiet, figures=False)
    np.testing.assert_allclose(over.returns.returns, fused.returns.returns, rtol=1e-5)
    named = federate(**here, engine="local", say=quiet, figures=False)
    assert named.folder.name.endswith("-local")
    again = federate(out=named.folder, resume=True, say=quiet, figures=False)
    assert again.configuration == named.configuration


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"engine": "ray"}, "no engine 'ray'"),
        ({"start_from": "a"}, "a federation starts from new agents"),
        ({"configuration": None, "accept_changes": True}, "for a run that is resumed"),
        ({"algo": "dppg"}, "no algorithm 'dppg'"),
    ],
)
def test_what_cannot_be(tmp_path, monkeypatch, given, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        federate(**given)
    assert list(tmp_path.iterdir()) == []


def test_options_stand_in_the_configuration():
    with pytest.raises(InputError, match="agents: is already part of the configuration"):
        federate(configure(episodes=1), agents=2)


def test_it_starts_from_no_run(capsys):
    for command in (["federate", "--from", "a"], ["federate", "server", "--from", "a"]):
        more = ["--insecure"] if "server" in command else []
        assert main([*command, *more]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert "a federation starts from new agents" in told


def test_changes_are_accepted(here, tmp_path, capsys):
    (tmp_path / "red.py").write_text(RED)
    first = federate(**here, algo="red.py:REDQ", out="run", say=quiet, figures=False)
    (tmp_path / "red.py").write_text(RED.replace("int = 2", "int = 3"))
    again = ["federate", "--out", "run", "--resume", "--algo", "red.py:REDQ"]
    assert main(again) == 2
    assert "its source has changed" in capsys.readouterr().err
    assert main([*again, "--accept-changes"]) == 0
    more = federate(out="run", resume=True, algo="red.py:REDQ", say=quiet, figures=False)
    assert more.configuration.identity == first.configuration.identity
    assert more.configuration.sources["algo"]["accepted"]


def test_the_core_needs_no_flower():
    code = (
        "import sys; sys.modules['flwr'] = None; import fedrain, fedrain.flower as f; f.federate\n"
        "try: f.federate(episodes=1)\n"
        "except fedrain.MissingExtraError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "flwr is not installed: pip install 'fedrain[flower]'" in done.stdout
