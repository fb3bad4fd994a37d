"""One clear line, exit status 2, and what was there before is still there."""

import errno
import json
import subprocess
import sys
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from fedrain import io
from fedrain.cli import main
from fedrain.errors import InputError
from fedrain.experiment import configure, train
from fedrain.experiment.checkpoint import Checkpoints
from fedrain.experiment.resolve import changed, from_dict
from fedrain.experiment.trainer import Trainer
from fedrain.experiment.training import Session
from fedrain.federation import Sharing
from fedrain.io import LOCK, alone_in
from fedrain.reading import read_arrays
from tests.experiment.small import SMALL, small_preset


def tree(folder):
    found = [p for p in folder.rglob("*") if p.is_file() and p.name != LOCK]
    return {p.name: p.read_bytes() for p in found}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--env", "ebm-v4"], "no environment 'ebm-v4': did you mean 'ebm-v"),
        (["--algo", "dppg"], "no algorithm 'dppg': did you mean 'ddpg'"),
        (["--preset", "papper"], "no preset 'papper': did you mean 'paper'"),
        (["--agents", "7"], "7 agents do not divide 96 latitudes"),
        (["--env", "ebm-v1", "--agents", "2"], "ebm-v1 has one agent"),
        (["--episodes", "-3"], "episodes must be an integer from 1"),
        (["--episodes", "many"], "invalid int value"),
        (["--seeds", "0"], "seeds are one or more"),
        (["--sync-every", "-1"], "sync_every must be"),
        (["--env", "ebm-v1", "--sync-every", "5"], "sync_every 5 cannot apply: there is one"),
        (["--agents", "1", "--sync-every", "5"], "sync_every 5 cannot apply: there is one"),
        (["--agents", "1", "--sharing", "shared"], "sharing 'shared' cannot apply: there is one"),
        (["--env", "ebm-v1", "--sharing", "zones"], "sharing 'zones' cannot apply: there is one"),
        (["--sharing", "zones", "--sync-every", "0"], "'zones' cannot apply: with sync_every 0"),
        (["--sharing", "personal", "--sync-every", "0"], "'personal' cannot apply: with sync"),
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
    other = configure(preset=preset, episodes=2, settings={"tau": 0.1}, **SMALL)
    for resume in (False, True):
        with pytest.raises(InputError, match=r"\(hyperparameters.tau differs"):
            train(other, out, resume=resume)
    with pytest.raises(InputError, match="can be extended, not shortened"):
        train(configure(preset=preset, episodes=1, **SMALL), out, resume=True)
    with pytest.raises(InputError, match="already holds this experiment"):
        train(first, out)
    assert train(first, out, resume=True).configuration == first
    assert tree(out) == before


@pytest.fixture
def interrupted(tmp_path):
    """A run with a checkpoint after two of three episodes."""
    configuration = configure(preset=small_preset(tmp_path), episodes=3, **SMALL)
    session = Session(configuration, tmp_path / "run", say=print)
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": range(0)}, "one or more different integers"),
        ({"seeds": [0, 0]}, "different integers"),
        ({"agnts": 3}, "^there is no option 'agnts': did you mean 'agents'"),
        ({"agents": 1, "sharing": Sharing(critics=True)}, "there is one agent"),
        ({"sharing": Sharing(layers=(0,)), "sync_every": 0}, "'personal' cannot apply"),
    ],
)
def test_experiments_that_cannot_be(arguments, message):
    with pytest.raises(InputError, match=message):
        configure(**arguments)


#: What a type checker would refuse, and the tests do: it is tried where nobody checks.
WRONG_TYPES = {
    "configure(preset=None)": "preset is the name of a preset, or a TOML file, not None",
    "configure(preset=3)": "preset is the name of a preset, or a TOML file, not 3",
    "configure(settings=3)": "settings are values by name, such as {'knots': 12}, not 3",
    "configure(settings={3: 1})": "settings are values by name",
    "configure(sharing=3)": "there is no sharing 3: use one of all, zones",
    "train('ebm-v1')": "or its arguments by name (env=…), not 'ebm-v1'",
    "train(env='ebm-v1', agnts=3)": "there is no option 'agnts': did you mean 'agents'",
    "Field('snow', 'm', levels=3)": "snow: its levels must be a tuple of numbers, not 3",
    "Field('snow', 'm', levels='deep')": "snow: its levels must be a tuple of numbers",
}


def test_wrong_types_in_python(tmp_path):
    lines = [
        "from fedrain import configure, train",
        "from fedrain.climate import Field",
        "from fedrain.errors import InputError",
        *(f"try: {call}\nexcept InputError as error: print(error)" for call in WRONG_TYPES),
    ]
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    for said, message in zip(done.stdout.splitlines(), WRONG_TYPES.values(), strict=True):
        assert message in said
    assert not list(tmp_path.iterdir())


def test_one_agent_by_default():
    """The default of a task that may have several does not apply to one, and is no error."""
    alone = configure(agents=1)
    assert (alone.sync_every, configure("ebm-v1").sync_every, configure().sync_every) == (5, 0, 5)
    assert changed(alone, episodes=200) == replace(alone, episodes=200)
    assert changed(configure("ebm-v1"), episodes=200).sync_every == 0
    never = configure(agents=1, sync_every=0)
    assert changed(never, episodes=200) == replace(never, episodes=200)
    assert from_dict(alone.as_dict()) == alone


def test_a_pull_to_an_average_needs_one(tmp_path):
    preset = small_preset(tmp_path, "proximal = 0.1\n")
    assert configure(preset=preset).make_algorithm().schedule.proximal == 0.1
    for without in ({"sync_every": 0}, {"sharing": "shared"}, {"env": "ebm-v1"}):
        with pytest.raises(InputError, match="proximal"):
            configure(preset=preset, **without)


def test_numbers_of_numpy_are_numbers():
    ours = configure(seeds=np.arange(3), bounds={"A": np.array([180.0, 240.0])})
    assert ours == configure(seeds=3, bounds={"A": [180.0, 240.0]})
    assert from_dict(ours.as_dict()) == ours


def test_two_at_once(interrupted):
    """The one that comes second is told so, and changes nothing."""
    configuration, out = interrupted
    before = tree(out)
    with alone_in(out), pytest.raises(InputError, match="is in use by another process"):
        train(configuration, out, resume=True)
    assert tree(out) == before
    assert train(configuration, out, resume=True).returns.sizes["episode"] == 3


def test_a_place_that_cannot_be_written(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with (
        pytest.raises(InputError, match=r"file/deeper/\.lock: cannot be written"),
        alone_in(file / "deeper"),
    ):
        pass


def test_a_checkpoint_of_before_is_refused(interrupted):
    """In one line that says why."""
    configuration, out = interrupted
    (path,) = (out / "checkpoint").glob("state-*")
    arrays, note = read_arrays(path)
    io.write_arrays(path, arrays, {k: v for k, v in note.items() if k != "format"})
    before = tree(out)
    with pytest.raises(InputError, match="by another version of FedRAIN and cannot be resumed"):
        train(configuration, out, resume=True)
    assert tree(out) == before


def test_seeds_of_which_some_are_behind(tmp_path):
    """Rows that a seed fills late are in the checkpoint all the same."""
    configuration = configure(preset=small_preset(tmp_path), seeds=2, episodes=3, **SMALL)
    trainer = Trainer(configuration, configuration.make_environment())
    random = np.random.default_rng(0)
    full = [random.normal(size=t.rows.shape).astype(np.float32) for t in trainer.trainings]
    folder = tmp_path / "checkpoint"
    checkpoints = Checkpoints(folder, "mine")
    for episode, filled in enumerate([(7, 10), (17, 20), (17, 30), (30, 30)]):
        trainings = [
            training._replace(rows=jnp.asarray(rows).at[:, steps:].set(0))
            for training, rows, steps in zip(trainer.trainings, full, filled, strict=True)
        ]
        checkpoints.save(episode, (min(filled), max(filled)), trainings, {})
        checkpoints = Checkpoints(folder, "mine")
        _, found, _ = checkpoints.load(
            Trainer(configuration, configuration.make_environment()).trainings
        )
        for one, other in zip(found, trainings, strict=True):
            np.testing.assert_array_equal(one.rows, other.rows)
    (folder / "rows-000000007.safetensors").unlink()
    with pytest.raises(InputError, match="rows-000000010"):
        checkpoints.load(trainer.trainings)


def test_checkpoint_of_another_configuration(interrupted):
    configuration, out = interrupted
    session = Session(configuration, out, say=print)
    other = Checkpoints(out / "checkpoint", "another")
    with pytest.raises(InputError, match="belongs to another configuration"):
        other.load(session.trainer.trainings)


def test_no_space_left(interrupted, monkeypatch):
    configuration, out = interrupted
    session = Session(configuration, out, say=print)
    session.trainer.play(False)
    before = tree(out / "checkpoint")

    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(io, "save_file", full)
    with pytest.raises(InputError, match="no space left on the device"):
        session._save()
    assert tree(out / "checkpoint") == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: None, "is not the folder of a run"),
        (
            lambda folder: (folder / "configuration.json").write_text("{}"),
            "not the configuration of",
        ),
        (
            lambda folder: (folder / "configuration.json").write_text(
                json.dumps(configure().as_dict())
            ),
            "not finished",
        ),
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
