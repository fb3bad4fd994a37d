"""A federation from which nothing came has no result, and says so."""

import numpy as np
import pytest
import xarray as xr

from fedrain.cli import main
from fedrain.errors import FailureError
from fedrain.experiment import load
from fedrain.experiment.run import Run
from fedrain.flower import strategy
from fedrain.flower.local import run_local
from fedrain.flower.server import LOST_ROUNDS, Federation
from tests.flower.faulty_nodes import CHANGES
from tests.flower.machines import small

TIMES = ["seconds", "core_seconds"]


def spoiled(region, first, last):
    """A client app whose replies to these training messages, counted from 0, cannot be used."""

    def wrap(app):
        calls = {}

        def client(message, context):
            reply, own = app(message, context), context.node_config["region"]
            if message.metadata.message_type != "train":
                return reply
            calls[own] = calls.get(own, -1) + 1
            chosen = region is None or own == region
            return (
                CHANGES["nan"](reply, message) if chosen and first <= calls[own] <= last else reply
            )

        return client

    return wrap


def federate(configuration, out, wrap, say, resume=False):
    run_local(Federation(configuration, out, resume, say), wrap)
    return load(out)


@pytest.mark.parametrize("first", [0, 1])
def test_every_region_refused_is_a_failure(tmp_path, first):
    """At the beginning or later: nothing is written that looks like a result, and it resumes."""
    configuration, out, said = small(tmp_path, episodes=6), tmp_path / "run", []
    with pytest.raises(FailureError, match=f"in round {first + 1} of 2, tried 3 times"):
        federate(configuration, out, spoiled(None, first, 99), said.append)
    assert sum("update refused" in line for line in said) == 2 * LOST_ROUNDS
    assert not Run.is_finished(out)
    assert not (out / "weights.safetensors").exists()
    whole = federate(configuration, tmp_path / "whole", None, said.append)
    found = federate(configuration, out, None, said.append, resume=True)
    xr.testing.assert_identical(found.returns.drop_vars(TIMES), whole.returns.drop_vars(TIMES))


def test_a_round_that_was_lost_is_played_again(tmp_path):
    """Lost for once by all, it leaves no trace."""
    configuration = small(tmp_path, episodes=6)
    whole = federate(configuration, tmp_path / "whole", None, print)
    found = federate(configuration, tmp_path / "run", spoiled(None, 1, 2), print)
    xr.testing.assert_identical(found.returns.drop_vars(TIMES), whole.returns.drop_vars(TIMES))


def test_a_region_that_never_learnt_is_named(tmp_path):
    said = []
    run = federate(small(tmp_path, episodes=6), tmp_path / "run", spoiled(1, 0, 99), said.append)
    assert said[-1] == "region 1: nothing was learnt; its policy is still the initial one"
    assert np.isfinite(run.returns.returns.sel(agent=0)).all()
    assert np.isnan(run.returns.returns.sel(agent=1)).all()


def test_the_command_fails_and_shows_no_skill(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(strategy, "read_reply", lambda *_: "it is not ours")
    small(tmp_path)  # writes the preset
    out = tmp_path / "run"
    command = ["federate", "--env", "ebm-v2", "--agents", "2", "--episodes", "2", "--sync-every"]
    command += ["1", "--latitudes", "12", "--episode-length", "10", "--out", str(out)]
    assert main([*command, "--preset", str(tmp_path / "small.toml")]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "after 3 attempts; --resume tries it again" in told.err.splitlines()[-1]
    assert main(["evaluate", str(out)]) == 2
    assert "not finished" in capsys.readouterr().err
