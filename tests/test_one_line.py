"""Code of one's own that fails, or is not what it should be: one line, and status 2."""

import pytest

from fedrain.cli import main

CODE = """
from dataclasses import dataclass
from fedrain.agents import DDPG
from fedrain.climate import EnergyBalanceModel
from fedrain.envs import Task
from tests.climate.models import HostLayered

def failing():
    raise KeyError("no such key")

def leaving():
    raise SystemExit(3)

def asking(depth):
    return Task()

def giving():
    return 3

@dataclass(frozen=True)
class NoStep(EnergyBalanceModel):
    step = None

@dataclass(frozen=True)
class LateStep(EnergyBalanceModel):
    def __post_init__(self):
        object.__setattr__(self, "observe", 3)

@dataclass(frozen=True, kw_only=True)
class Strict(DDPG):
    subset: int = 2

    def __post_init__(self):
        raise ValueError("subset is odd\\\\nand more")

class Leaves(HostLayered):
    def step_host(self, state, parameters, forcing, rng):
        raise SystemExit(3)

class LeavesLater(HostLayered):
    def step_host(self, state, parameters, forcing, rng):
        if state["clock"] >= 3:
            raise SystemExit(3)
        return super().step_host(state, parameters, forcing, rng)

class LeavesAtOnce(HostLayered):
    def init_host(self, *given, **more):
        raise SystemExit(3)
""".replace("\\\\n", "\\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--env", "subprocess:Popen"], "but the class Popen"),
        (["baseline", "static", "--env", "subprocess:Popen"], "but the class Popen"),
        (["train", "--model", "subprocess:Popen"], "Popen has no columns and no table"),
        (["train", "--env", "own.py:failing"], "cannot be made (KeyError: 'no such key'; own.py:9"),
        (["baseline", "static", "--env", "own.py:failing"], "own.py:failing: cannot be made"),
        (["train", "--env", "own.py:leaving"], "cannot be made (SystemExit: 3; own.py:12)"),
        (["train", "--env", "own.py:asking"], "own.py:asking: needs depth: a task is"),
        (["train", "--env", "own.py:giving"], "is not a fedrain.envs.Task, but a int"),
        (["train", "--model", "own.py:NoStep"], "NoStep: its step must be a function"),
        (["train", "--model", "own.py:LateStep"], "LateStep: its observe must be a function"),
        (["train", "--algo", "own.py:Strict"], "cannot be made (ValueError: subset is odd; own.py"),
        (["train", "--model", "own.py:leaving"], "leaving cannot be made (SystemExit: 3"),
        (["train", "--model", "own.py:Leaves"], "Leaves: step_host fails (SystemExit: 3; own.py"),
        (["baseline", "static", "--model", "own.py:LeavesLater"], "fails (SystemExit: 3; own.py"),
        (["train", "--model", "own.py:LeavesAtOnce"], "LeavesAtOnce: init fails (SystemExit: 3"),
    ],
)
def test_one_line_and_status_2(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(CODE)
    more = ["--agents", "2", "--out", "run"] if arguments[0] == "train" else []
    assert main([*arguments, *more]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert not (tmp_path / "run").exists()
