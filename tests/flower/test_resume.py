"""Federations that are resumed, and those that must not be."""

import numpy as np
import pytest
import xarray as xr

from fedrain.cli import main
from fedrain.errors import InputError
from fedrain.experiment import configure, load, train, training
from fedrain.flower import local
from fedrain.flower.local import run_local
from fedrain.flower.server import Federation
from fedrain.io import alone_in
from tests.experiment.small import SMALL, small_preset
from tests.flower.machines import small


class StopError(Exception):
    pass


def stop_after(federation, rounds):
    """As a process that is killed when so many rounds are kept."""
    keep = federation._done

    def done(learnt, arrays):
        if federation.finished == rounds:
            raise StopError
        keep(learnt, arrays)

    federation._done = done
    with pytest.raises(StopError):
        run_local(federation)


def quiet(configuration, out, resume=False, strategy="FedAvg"):
    return Federation(configuration, out, resume, lambda _: None, strategy)


@pytest.mark.slow
def test_a_finished_federation_is_not_played_again(tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"
    command = ["federate", "--env", "ebm-v2", "--agents", "2", "--episodes", "1", "--out", str(out)]
    command += ["--preset", str(small_preset(tmp_path))]
    assert main(command) == 0
    expected = capsys.readouterr().out
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.nc")}
    monkeypatch.setattr(Federation, "run", None)
    assert main([*command, "--resume"]) == 0
    assert capsys.readouterr().out == expected
    assert {path: path.stat().st_mtime_ns for path in before} == before
    role = ["federate", "server", *command[1:], "--resume", "--insecure"]
    assert main(role) == 0
    assert main([*command, "--resume", "--strategy", "Krum"]) == 2
    assert "was started with --strategy FedAvg" in capsys.readouterr().err
    with alone_in(out):
        pass  # nobody is left there


def test_two_federations_in_one_folder(tmp_path, capsys):
    configuration = small(tmp_path)
    out = tmp_path / "run"
    quiet(configuration, out)
    (tmp_path / "experiment.json").write_text((out / "configuration.json").read_text())
    command = ["federate", "--experiment", str(tmp_path / "experiment.json"), "--out", str(out)]
    with alone_in(out):
        assert main([*command, "--resume"]) == 2
    assert "is in use by another process" in capsys.readouterr().err


def test_a_run_of_train_is_not_resumed(tmp_path, monkeypatch):
    """Nor is a federation by train: what is kept differs."""
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(local, "CHECKPOINT_SECONDS", 0.0)
    configuration = small(tmp_path, episodes=6)

    def die(*_):
        raise StopError

    monkeypatch.setattr(training, "write_results", die)
    with pytest.raises(StopError):
        train(configuration, tmp_path / "train")
    with pytest.raises(InputError, match="is a folder of fedrain train"):
        quiet(configuration, tmp_path / "train", resume=True)
    stop_after(quiet(configuration, tmp_path / "federate"), 1)
    with pytest.raises(InputError, match="belongs to another configuration"):
        train(configuration, tmp_path / "federate", resume=True)


@pytest.mark.parametrize("strategy", ["FedAdam", "FedAvgM"])
def test_a_strategy_resumes_with_its_state(tmp_path, strategy, monkeypatch):
    """It ends as one that was not interrupted."""
    monkeypatch.setattr(local, "CHECKPOINT_SECONDS", 0.0)
    preset = small_preset(tmp_path)
    chosen = {"env": "ebm-v2", "agents": 2, "sync_every": 2, "episodes": 8}
    configuration = configure(preset=preset, **chosen, **SMALL)
    run_local(quiet(configuration, tmp_path / "whole", strategy=strategy))
    stop_after(quiet(configuration, tmp_path / "stopped", strategy=strategy), 2)
    with pytest.raises(InputError, match=f"was started with --strategy {strategy}, not FedAvg"):
        quiet(configuration, tmp_path / "stopped", resume=True)
    run_local(quiet(configuration, tmp_path / "stopped", resume=True, strategy=strategy))
    found, expected = (load(tmp_path / name).returns for name in ("stopped", "whole"))
    xr.testing.assert_identical(found.returns, expected.returns)


def test_fedavgm_has_momentum(tmp_path):
    configuration = small(tmp_path)
    found = []
    for strategy in ("FedAvg", "FedAvgM"):
        run_local(quiet(configuration, tmp_path / strategy, strategy=strategy))
        found.append(load(tmp_path / strategy).returns.returns.values)
    np.testing.assert_allclose(found[1][:6], found[0][:6], rtol=1e-4)  # its first step is plain
    assert not np.allclose(found[1][6:], found[0][6:], rtol=1e-4)


def test_bulyan_takes_no_mean_of_two(tmp_path):
    with pytest.raises(InputError, match="Bulyan needs 3 agents"):
        quiet(small(tmp_path), tmp_path / "run", strategy="Bulyan")


def test_without_an_average_all_continue_from_where_they_are(tmp_path):
    """And not from an older one: here from no average at all."""
    configuration = small(tmp_path)
    never = small(tmp_path, sync_every=0)
    federation = quiet(configuration, tmp_path / "run")
    federation.strategy.combine = lambda *_: (None, None)
    run_local(federation)
    train(never, tmp_path / "never")
    found, expected = (load(tmp_path / name).returns for name in ("run", "never"))
    np.testing.assert_array_equal(found.returns, expected.returns)
