"""Nothing is lost: preset ``paper`` gives the returns that it gave before models became open.

``data/returns_before.json`` was recorded from commit ff4f8ba: 7 episodes, an average every 3,
seed 0. Learning starts in the sixth.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedrain.experiment import load

BEFORE = json.loads((Path(__file__).parent / "data" / "returns_before.json").read_text("utf-8"))
QUICK = ("ebm-v1-a1-ddpg", "ebm-v2-a2-td3", "ebm-v3-a6-tqc")


@pytest.mark.parametrize(
    "cell", [c if c in QUICK else pytest.param(c, marks=pytest.mark.slow) for c in BEFORE]
)
def test_returns_of_before(tmp_path, cell):
    env, agents, algo = cell.rsplit("-", 2)
    out = tmp_path / "run"
    options = ["--env", env, "--algo", algo, "--preset", "paper", "--episodes", "7"]
    if env != "ebm-v1":
        options += ["--agents", agents[1:], "--sync-every", "3"]
    # A process of its own: optimised as for a user, since other code rounds otherwise.
    subprocess.run(
        [sys.executable, "-m", "fedrain", "train", *options, "--out", str(out)],
        check=True,
        capture_output=True,
        env={k: v for k, v in os.environ.items() if k != "XLA_FLAGS"},
    )
    run = load(out)
    found, before = run.returns.returns.values[:, 0], np.array(BEFORE[cell]["returns"])
    np.testing.assert_allclose(found[:5], before[:5], rtol=1e-5)  # random actions
    # Thousands of updates let a difference in the last bit grow.
    np.testing.assert_allclose(found[5:], before[5:], rtol=2e-2)
    evaluation = run.results.returns.values
    np.testing.assert_allclose(evaluation, BEFORE[cell]["evaluation"], rtol=2e-2)
