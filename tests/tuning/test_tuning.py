"""Studies: shared by processes, not lost when one is killed, and ending in a preset that trains."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.agents import ALGORITHMS, Algorithm, load_algorithm
from fedrain.agents.presets import make_algorithm
from fedrain.cli import main
from fedrain.errors import InputError
from fedrain.experiment import configure
from fedrain.tuning import Choice, Range, Tuning, load_space
from fedrain.tuning.trial import TrialTrainer, numbered_episode, score
from tests.experiment.small import SMALL, small_preset

needs_optuna = pytest.mark.skipif(
    importlib.util.find_spec("optuna") is None, reason="needs fedrain[tune]"
)

#: A process that tunes, with a parabola in the place of the training.
PROCESS = """
import sys, time
from pathlib import Path
from fedrain.experiment import configure
from fedrain.tuning import study
from fedrain.tuning.space import Range

def score(configuration, objective, report):
    x = configuration.hyperparameters["tau"]
    time.sleep(0.05)
    return None if report(10, (x - 0.3) ** 2) else (x - 0.3) ** 2

study.score = score
tuning = study.Tuning(configure(preset="paper"), {"tau": Range(0.01, 1.0)})
study.tune(tuning, Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
"""


def start(folder, trials, name):
    command = [sys.executable, "-c", PROCESS, "s.journal", str(trials), name]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)


def lines_of(folder):
    path = folder / "s.journal"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def trials_of(folder):
    import optuna
    from optuna.storages.journal import JournalFileBackend

    storage = optuna.storages.JournalStorage(JournalFileBackend(str(folder / "s.journal")))
    return optuna.load_study(study_name="fedrain", storage=storage).trials


@pytest.mark.slow
@needs_optuna
def test_killed_and_shared(tmp_path):
    """SIGKILL loses one trial; then two processes finish the study without the same trial twice."""
    first = start(tmp_path, 1000, "killed.toml")
    deadline = time.monotonic() + 60
    while len(lines_of(tmp_path)) < 30 and time.monotonic() < deadline:
        time.sleep(0.01)
    first.kill()
    first.communicate()
    assert first.returncode == -signal.SIGKILL
    before = [t for t in trials_of(tmp_path) if t.state.is_finished()]
    assert len(trials_of(tmp_path)) - len(before) <= 1
    goal = len(before) + 12
    others = [start(tmp_path, goal, f"{n}.toml") for n in "ab"]
    said = [process.communicate(timeout=120)[0] for process in others]
    assert [process.returncode for process in others] == [0, 0]
    after = [t for t in trials_of(tmp_path) if t.state.is_finished()]
    assert [t.params for t in after[: len(before)]] == [t.params for t in before]
    assert goal <= len(after) <= goal + 1  # both may be at the last
    done = [line.split(":")[0] for text in said for line in text.splitlines()]
    assert len(done) == len(set(done)) == len(after) - len(before)
    assert load_algorithm("ddpg", tmp_path / "a.toml").tau == pytest.approx(0.3, abs=0.1)


@needs_optuna
def test_a_study_ends_in_a_preset(tmp_path, capsys):
    preset, out = small_preset(tmp_path), tmp_path / "best.toml"
    space = tmp_path / "space.toml"
    space.write_text("[ddpg]\nwidth = [8]\ntau = { low = 0.01, high = 0.1, log = true }\n")
    command = [
        "tune", "--preset", str(preset), "--space", str(space), "--agents", "2", "--episodes", "1",
        "--trials", "2", "--seeds", "1", "--study", str(tmp_path / "s"), "--out", str(out),
        "--json",
    ]  # fmt: skip
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["trials"] == 2
    best = load_algorithm("ddpg", out)
    assert (best.width, best.tau) == (8, found["hyperparameters"]["tau"])
    assert 0.01 <= best.tau <= 0.1
    assert make_algorithm("ddpg", found["hyperparameters"]) == best
    assert main([*command, "--objective", "return"]) == 2
    assert "another experiment or of another space (objective differs)" in capsys.readouterr().err
    assert main([*command, "--episodes", "3", "--set", "batch_size=8"]) == 2
    assert "(episodes, hyperparameters.batch_size differ)" in capsys.readouterr().err
    space.write_text("[ddpg]\nwidth = [8, 16]\ntau = { low = 0.01, high = 0.1, log = true }\n")
    assert main(command) == 2
    assert "another space (space.width differs)" in capsys.readouterr().err
    (tmp_path / "thesis.tex").write_text("years of work")
    command[command.index(str(tmp_path / "s"))] = str(tmp_path / "thesis.tex")
    assert main(command) == 2
    assert "is not the file of a study" in capsys.readouterr().err
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.slow
def test_numbers_as_arguments_change_nothing(tmp_path):
    """A trial gives what a run gives, and trials of one shape are compiled once."""
    preset = small_preset(tmp_path, "shaping = 0.3\n")  # which the discount is a part of
    configuration = configure(preset=preset, agents=2, episodes=4, **SMALL)
    space = {"learning_rate": Range(1e-4, 1e-2), "discount": Range(0.9, 0.99)}
    tuning = Tuning(configuration, space)
    numbered_episode.clear_cache()
    scores = [
        score(tuning.configured(chosen), "skill", lambda *_: False)
        for chosen in ({"learning_rate": 1e-3}, {"learning_rate": 5e-3}, {"discount": 0.9})
    ]
    assert numbered_episode._cache_size() == 1
    assert len(set(scores)) == 3
    from fedrain.experiment import train

    run = train(configuration, tmp_path / "run")
    assert run.summary()["global_mean"] == pytest.approx(scores[0], rel=1e-3)
    assert score(configuration, "return", lambda *_: False) == pytest.approx(
        -float(run.results.returns.sel(policy="local").mean()), rel=1e-3
    )


@pytest.mark.parametrize("algo", ALGORITHMS.names())
def test_what_is_an_argument_is_no_branch(algo):
    """An episode can be traced without knowing the numbers."""
    trainer = TrialTrainer(*_experiment(algo))
    assert trainer.numbers
    assert trainer.template.width == trainer.algorithm.width
    assert type(trainer.template) is type(trainer.algorithm)

    def episode(training):
        fixed = trainer.environment, trainer.algorithm, trainer.sharing, trainer.params
        return trainer.compiled(
            *fixed, training, trainer.seeds[0], jnp.asarray(0), jnp.asarray(False)
        )

    after, _ = jax.eval_shape(episode, trainer.trainings[0])
    assert after.rows.shape == trainer.trainings[0].rows.shape


def _experiment(algo):
    configuration = configure(algo=algo, agents=2, **SMALL)
    return configuration, configuration.make_environment()


def test_a_hopeless_trial_ends_early(tmp_path):
    configuration = configure(preset=small_preset(tmp_path), agents=2, episodes=30, **SMALL)
    reports = []

    def hopeless(episode, value):
        reports.append((episode, value))
        return True

    assert score(configuration, "skill", hopeless) is None
    assert [episode for episode, _ in reports] == [20]
    assert np.isfinite(reports[0][1])


def test_the_published_spaces():
    for algo in ALGORITHMS.names():
        space = load_space(algo)
        Tuning(configure(algo=algo, preset="paper"), space)  # every end is a value that is allowed
        published = load_algorithm(algo, "paper")
        if algo != "sac":  # which the paper does not have
            assert all(dimension.holds(getattr(published, n)) for n, dimension in space.items())
        assert space["tau"] == Range(0.001, 0.1, log=True)
        assert space["batch_size"] == Choice((64, 128))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ddpg]\ntua = [0.1]", "DDPG hyperparameter 'tua': did you mean 'tau'"),
        ("[ddpg]\ntau = 0.1", "a range is"),
        ("[ddpg]\ntau = { low = 1.0, high = 0.1 }", "a range is"),
        ("[ddpg]\ntau = { low = 0.0, high = 0.1, log = true }", "above 0"),
        ("[ddpg]\ntau = { low = 0.1, high = 2.0 }", "tau cannot be 2.0"),
        ("[ddpg]\ntau = { low = 0.1, high = 0.2, step = -0.01 }", "a step is above 0"),
        ("[ddpg]\nwidth = { low = 8, high = 16, step = 0.5 }", "an integer between integers"),
        ("[td3]\ntau = [0.1]", r"no table \[ddpg\]"),
        ("[ddpg", "not a TOML file"),
    ],
)
def test_bad_spaces(tmp_path, text, message):
    path = tmp_path / "space.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Tuning(configure(preset="paper"), load_space("ddpg", path))


OWN = """
from dataclasses import dataclass
from fedrain.agents import DDPG

@dataclass(frozen=True, kw_only=True)
class Bold(DDPG):
    boldness: float = 1.0

    def explore(self, agent, observation, noise, spec):
        wild = 2.0 if self.exploration_noise > 0.2 else 1.0  # a branch: it must be a number here
        return super().explore(agent, observation, wild * self.boldness * noise, spec)
"""


@needs_optuna
def test_an_algorithm_of_ones_own_and_its_parts_can_be_tuned(tmp_path, capsys):
    (tmp_path / "bold.py").write_text(OWN)
    space, out = tmp_path / "space.toml", tmp_path / "best.toml"
    space.write_text("[bold]\nboldness = [0.5, 2.0]\nupdates = [1, 2]\nreward = ['root', 'log']\n")
    algo = f"{tmp_path / 'bold.py'}:Bold"
    command = [
        "tune", "--algo", algo, "--preset", str(small_preset(tmp_path)), "--space", str(space),
        "--agents", "2", "--latitudes", "12", "--episode-length", "10", "--episodes", "3",
        "--trials", "2", "--set", "depth=1", "--study", str(tmp_path / "s"), "--out", str(out),
        "--json",
    ]  # fmt: skip
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)["hyperparameters"]
    best = load_algorithm(algo, out)
    assert best == make_algorithm(algo, found)
    assert (best.depth, best.schedule.updates) == (1, found["schedule"]["updates"])
    assert best.transforms.reward in ("root", "log")
    assert best.boldness in (0.5, 2.0)


def test_without_a_table_the_nearest_built_in_one_counts(tmp_path):
    (tmp_path / "bold.py").write_text(OWN)
    assert load_space(f"{tmp_path / 'bold.py'}:Bold") == load_space("ddpg")


def test_an_algorithm_from_scratch_needs_a_space_of_its_own():
    kind = type("Mine", (Algorithm,), dict.fromkeys(Algorithm.__abstractmethods__))
    with pytest.raises(
        InputError, match=r"^Mine has no search space: give --space FILE, with a ta"
    ):
        load_space(kind)


def test_a_study_is_of_one_experiment_whatever_the_preset_has_of_what_is_searched(tmp_path):
    space = {"tau": Range(0.01, 0.1), "updates": Choice((1, 2))}

    def identity(**more):
        preset = small_preset(tmp_path)
        return Tuning(configure(preset=preset, agents=2, **SMALL, **more), space).identity

    assert identity() == identity(settings={"tau": 0.05, "updates": 2})
    assert identity() != identity(settings={"width": 8})
    assert identity() != identity(settings={"final_rate": 0.5})


def test_bad_studies(tmp_path, capsys, monkeypatch):
    for more, message in (
        (["--objective", "fun"], "no objective 'fun'"),
        (["--trials", "0"], "one or more trials"),
        (["--out", "best.txt"], "ends in .toml"),
    ):
        assert main(["tune", *more]) == 2
        assert message in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main(["tune", "--study", str(tmp_path / "new")]) == 2
    assert "pip install 'fedrain[tune]'" in capsys.readouterr().err


@needs_optuna
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
        (os.mkfifo, "is not a regular file"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.write_text("[" * 100_000), "is not the file of a study"),
        (lambda path: path.write_text('{"op_code": 0}\n'), "is not the file of a study"),
        (lambda path: path.write_bytes(b"\xff\n"), "is not the file of a study"),
    ],
)
def test_a_study_that_is_no_file_of_ours(tmp_path, capsys, make, reason):
    make(path := tmp_path / "s")
    arguments = ["tune", "--preset", str(small_preset(tmp_path)), "--study", str(path)]
    assert main([*arguments, "--trials", "1", "--episodes", "1"]) == 2
    *_, told = capsys.readouterr().err.splitlines()  # after a line that says what begins
    assert told.startswith(f"fedrain: error: {path}: {reason}")
