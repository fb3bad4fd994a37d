"""A run's policies as functions: what they cannot take is said in one line."""

import subprocess
import sys

import numpy as np
import pytest

from fedrain.errors import InputError
from fedrain.experiment import configure, train
from tests.experiment.small import SMALL, small_preset


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    configuration = configure(preset=small_preset(folder), episodes=1, agents=2, **SMALL)
    return train(configuration, folder / "run", say=lambda _: None, figures=False)


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        (np.zeros((0, 6)), r"there is no observation in an array of shape \(0, 6\)"),
        (np.zeros((0, 3)), "has 6 numbers, not 3"),
        (np.zeros(()), "has 6 numbers, not 1"),
        ("x", "an observation is an array of numbers, not 'x'"),
        (None, "an observation is an array of numbers, not None"),
        ([[1.0], [1.0, 2.0]], "an observation is an array of numbers"),
    ],
)
def test_what_is_no_observation(run, seen, message):
    policy = run.policy()
    with pytest.raises(InputError, match=message) as error:
        policy(seen)
    assert "\n" not in str(error.value)


def test_batches_of_any_shape(run):
    policy = run.policy(agent=1)
    assert policy(np.zeros((2, 3, 6))).shape == (2, 3, len(policy.outputs))


def test_what_is_of_another_kind(run):
    """In a process whose annotations are not checked, as a user's is."""
    code = f"""
import fedrain
run = fedrain.load({str(run.folder)!r})
for given in ({{"agent": "x"}}, {{"agent": 1.0}}, {{"agent": 2}}, {{"seed": "x"}}, {{"seed": 0.0}}):
    try:
        run.policy(**given)
    except fedrain.InputError as error:
        print(error)
try:
    fedrain.train(run.configuration, "new", on_episode=3)
except fedrain.InputError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=run.folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "the run has no agent 'x' of seed 0",
        "the run has no agent 1.0 of seed 0",
        "the run has no agent 2 of seed 0",
        "the run has no agent 0 of seed 'x'",
        "the run has no agent 0 of seed 0.0",
        "on_episode is a function of an Episode, not 3",
    ]
    assert not (run.folder / "new").exists()
