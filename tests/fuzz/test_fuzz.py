"""A few of the fuzzer's cases, and all that ever failed: ``python -m tests.fuzz`` plays more."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.fuzz.__main__ import play
from tests.fuzz.mutations import in_json, in_toml

COUNT = 150


def test_nothing_that_a_stranger_sends_breaks_us():
    """Neither traceback, nor hang, nor 2 GB, nor another result where a checksum can tell."""
    command = [sys.executable, "-m", "tests.fuzz", "--count", str(COUNT)]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed: 0" in done.stdout


class Reader:
    """One that fails in a way of its own."""

    checked, right_result = True, "right"

    def __init__(self, error=None, result=None):
        self.error, self.result = error, result

    def play(self, content):
        if self.error is not None:
            raise self.error
        return self.result


def test_the_fuzzer_notices():
    """Whatever it looks for, put before it."""
    from fedrain.errors import InputError

    assert play(Reader(result="right"), b"") == "same"
    assert play(Reader(InputError("one line")), b"") == "refused"
    assert play(Reader(result="wrong"), b"") == "FAILED: another result"
    assert play(Reader(InputError("two\nlines")), b"").startswith("FAILED: not one line")
    assert play(Reader(KeyError("a")), b"").startswith("FAILED: KeyError")
    assert play(Reader(MemoryError()), b"") == "FAILED: MemoryError"


def test_cases_are_the_same_with_the_same_seed():
    json, toml = b'{"a": [1, {"b": 2}], "c": "d"}', b"[ddpg]\nwidth = 3\ntau = 0.1\n"
    for mutate, right in ((in_json, json), (in_toml, toml)):
        cases = [mutate(right, np.random.default_rng([0, i])) for i in range(100)]
        assert cases == [mutate(right, np.random.default_rng([0, i])) for i in range(100)]
        assert len(set(cases)) > 70
