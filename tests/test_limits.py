"""Counts that no machine can serve name their limit, and every terminal shows what is said."""

import subprocess
import sys

import pytest

from fedrain.cli import main
from fedrain.errors import InputError
from fedrain.experiment import configure, trainer
from fedrain.experiment.trainer import Trainer
from tests.experiment.small import SMALL, small_preset

HYSTERESIS = ["stability", "hysteresis", "--latitudes", "12", "--step"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--seeds", "4294967296"], "the number of seeds is at most 1000, not 4294967296"),
        (["train", "--seeds", "100000"], "the number of seeds is at most 1000"),
        (["tune", "--seeds", "4294967296"], "the number of seeds is at most 1000"),
        (["train", "--episodes", "1000000000000"], "episodes is at most 1000000"),
        (["train", "--sync-every", "1" * 400], "sync_every is at most 1000000"),
        (["train", "--latitudes", "1000000000"], "at most 4096 latitudes"),
        (["train", "--episode-length", "1000000000"], "episode length is at most 100000"),
        (
            ["train", "--episodes", "1000000", "--episode-length", "100000"],
            "1000000 episodes of 100000 steps are 100000000000: a run has at most 2147483647",
        ),
        (["train", "--ramp", "9" * 400], "ramp is at most 1000000"),
        (["train", "--env", "ebm-twin", "--analysis-every", "99999999999"], "at most 1000000"),
        (["baseline", "random", "--seed", "4294967296"], "from 0 to 4294967295"),
        (["baseline", "enki", "--ensemble", "10000000000"], "the ensemble is at most 100000"),
        (["federate", "certificates", "keys", "--regions", "100000"], "regions is at most 1000"),
        (["train", "--out", "x" * 5000], "a name has at most 200 bytes, not 5000"),
        (["train", "--out", "runs/\udcff"], "is not text in UTF-8"),
        (["evaluate", "x" * 5000], "File name too long"),
        (
            ["stability", "hysteresis", "--latitudes", "12", "--step", "1e-9"],
            "1e-09: stairs are 1 to 10000",
        ),
        (
            ["stability", "hysteresis", "--latitudes", "12", "--step", "inf"],
            "must be positive and finite, not inf",
        ),
    ],
)
def test_what_is_too_large(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.err.count("\n") == 1
    assert len(told.err) < 400
    assert told.out == ""
    assert not list(tmp_path.iterdir())


def test_a_run_that_the_memory_cannot_hold(tmp_path, monkeypatch):
    """What is refused is what would be allocated: 4 bytes for each number of each row."""
    configuration = configure(preset=small_preset(tmp_path), seeds=3, episodes=2, **SMALL)
    environment = configuration.make_environment()
    made = Trainer(configuration, environment)
    needed = sum(training.rows.nbytes for training in made.trainings)
    monkeypatch.setattr(trainer, "memory_there", lambda: needed)
    Trainer(configuration, environment)
    monkeypatch.setattr(trainer, "memory_there", lambda: needed - 1)
    with pytest.raises(InputError, match="3 seeds of 20 steps with 6 agents need"):
        Trainer(configuration, environment)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "utf-8"])
def test_any_terminal_shows_what_is_said(encoding):
    """Tables, units, other people's names, and names that are no text."""
    code = (
        "import sys; from fedrain.cli.messages import say, show_anywhere\n"
        "show_anywhere(sys.stdout, sys.stderr)\n"
        "print('90°S–60°S  −1.5 ± 0.3 W m⁻² λ 東'); say('runs/\\udcff: −3 °C …')"
    )
    command = [sys.executable, "-c", code]
    environment = {"PYTHONIOENCODING": f"{encoding}:strict", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    out, err = (text.decode(encoding) for text in (done.stdout, done.stderr))
    if encoding == "utf-8":
        assert out == "90°S–60°S  −1.5 ± 0.3 W m⁻² λ 東\n"
    if encoding == "ascii":
        assert out == "90 S-60 S  -1.5 +/- 0.3 W m-2 \\u03bb \\u6771\n"
        assert err == "runs/\\udcff: -3  C ...\n"


def test_a_reader_that_has_seen_enough(tmp_path):
    """Such as head: no traceback."""
    code = "import sys; from fedrain.cli import main; sys.exit(main(['envs']))"
    command = f'{sys.executable} -c "{code}" | true'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
