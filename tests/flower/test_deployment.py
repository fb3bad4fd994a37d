"""Federations of real processes, with TLS and keys, on this machine."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from fedrain.cli import main
from fedrain.experiment import load
from fedrain.flower.credentials import make_credentials
from fedrain.reading import read_arrays
from tests.flower.machines import ROOT, Machine, Machines, assert_same, local, processes, small


def test_two_nodes_and_a_climate(tmp_path):
    """One command starts a federation over TLS, with keys, and leaves nothing behind."""
    configuration = small(tmp_path, env="ebm-v3", episodes=6)
    experiment = tmp_path / "experiment.json"
    experiment.write_text(json.dumps(configuration.as_dict()), encoding="utf-8")
    out = tmp_path / "run"
    command = ["federate", "--engine", "deployment", "--experiment", str(experiment)]
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "fedrain", *command, "--out", str(out)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begin < 200
    assert "90°S–60°S" in done.stdout
    assert_same(load(out), local(configuration, tmp_path))
    assert not list(tmp_path.glob("fedrain-*"))
    assert not processes(str(tmp_path))


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["server"], "--credentials"),
        (["server", "--insecure", "--listen", "0.0.0.0:9000"], "127.0.0.1 only"),
        (["server", "--credentials", "nowhere", "--listen", "127.0.0.1:9000"], "is missing"),
        (["server", "--credentials", "nowhere", "--listen", "here"], "ADDRESS:PORT"),
        (["node", "--region", "0", "--server", "192.0.2.1:9", "--insecure"], "127.0.0.1 only"),
        (["climate", "--insecure", "--listen", "[::]:9001"], "127.0.0.1 only"),
        (["climate", "--insecure", "--listen", "127.0.0.1:1", "--late", "never"], "static"),
        (["certificates", "keys", "--regions", "0"], "at least one region"),
        (["--agents", "2", "server", "--insecure"], "--agents is given before server"),
        (["--resume", "server", "--insecure"], "--resume is given before server"),
        (["--target", "era5.nc", "climate", "--insecure"], "--target is given before climate"),
        (["server", "--insecure", "--listen", "[::1]:9000"], "listens on 0.0.0.0"),
    ],
)
def test_bad_input(tmp_path, monkeypatch, capsys, command, reason):
    monkeypatch.chdir(tmp_path)
    assert main(["federate", *command]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert reason in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ["--listen", "10.0.0.1:9000"],
            "listens on 0.0.0.0, 127.0.0.1, localhost, not on 10.0.0.1",
        ),
        (["--credentials", "keys/climate"], "nodes/region-0.pub: is not the public key"),
    ],
)
def test_a_server_looks_before_it_makes_a_folder(tmp_path, monkeypatch, capsys, options, reason):
    """So that the command can be corrected, and given again."""
    monkeypatch.chdir(tmp_path)
    make_credentials(tmp_path / "keys", 1)
    (tmp_path / "keys" / "climate" / "nodes").mkdir()
    (tmp_path / "keys" / "climate" / "nodes" / "region-0.pub").write_text("")
    command = ["federate", "server", "--out", "run", "--credentials", "keys/server", *options]
    assert main(command) == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_messages_that_come_twice_change_nothing(tmp_path):
    """A server that asks again after 0.3 s, long before any region has played its round."""
    configuration = small(tmp_path, env="ebm-v2", episodes=6)
    experiment = tmp_path / "experiment.json"
    experiment.write_text(json.dumps(configuration.as_dict()), encoding="utf-8")
    out, pushed = tmp_path / "run", tmp_path / "pushed"
    code = f"""
import sys
from pathlib import Path
from fedrain.cli import main
from fedrain.flower import internals
internals.RESEND_SECONDS = 0.3
push, number = internals.PromptNetwork.push_messages, []
def count(self, messages):
    number.append(len(messages))
    return push(self, messages)
internals.PromptNetwork.push_messages = count
status = main(["federate", "--engine", "deployment", "--experiment", {str(experiment)!r},
               "--out", {str(out)!r}])
Path({str(pushed)!r}).write_text(str(sum(number)))
sys.exit(status)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert int(pushed.read_text()) > 2 * 2  # two regions, two rounds
    assert "refused" not in done.stderr
    assert_same(load(out), local(configuration, tmp_path))


@pytest.mark.slow
def test_a_rehearsal_that_is_interrupted(tmp_path):
    """Its nodes keep their memory, and it ends as one that was not."""
    configuration = small(tmp_path, env="ebm-v3", episodes=12)
    experiment, out = tmp_path / "experiment.json", tmp_path / "run"
    experiment.write_text(json.dumps(configuration.as_dict()), encoding="utf-8")
    command = ["-m", "fedrain", "federate", "--engine", "deployment", "--out", str(out)]
    command += ["--experiment", str(experiment)]
    first = Machine(tmp_path, "first", command)
    first.wait_for("episode 6/12")
    first.process.send_signal(signal.SIGINT)
    assert first.process.wait(60) == 1
    assert len(list((out / "federation" / "nodes").glob("*/run-*/checkpoint"))) == 2
    again = Machine(tmp_path, "again", [*command, "--resume"])
    again.finish()
    assert "resuming after round" in again.said()
    assert "its memory is empty" not in again.said()
    assert not (out / "federation" / "nodes").exists()
    assert_same(load(out), local(configuration, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("env", ["ebm-v2", "ebm-v3"])
def test_six_nodes(tmp_path, env):
    configuration = small(tmp_path, env=env, agents=6, sync_every=5, episodes=10)
    with Machines(tmp_path, configuration) as machines:
        server = machines.start()
        server.finish()
    assert_same(load(machines.out), local(configuration, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("env", ["ebm-v2", "ebm-v3"])
def test_a_node_that_dies_in_mid_round(tmp_path, env):
    """The others finish the round; it comes back with its memory and takes part in the next."""
    configuration = small(tmp_path, env=env, agents=2, episodes=60)
    with Machines(tmp_path, configuration) as machines:
        if machines.shared:
            machines.climate("--patience", "2")
        server = machines.server()
        machines.node(0)
        dying = machines.faulty_node(1, "slow")
        dying.wait_for("at work")
        dying.kill()
        killed = time.monotonic()
        machines.node(1)
        server.wait_for("region 1 failed")
        assert time.monotonic() - killed < 90
        server.finish()
        kept, _ = read_arrays(next((tmp_path / "node-1").glob("run-*/checkpoint/state-*")))
    run = load(machines.out)
    missed = np.isnan(run.returns.returns.sel(seed=0))
    assert not missed.sel(agent=0).any()
    missed = missed.sel(agent=1).values.reshape(-1, 3)
    assert not missed[0].any()  # what was committed stays
    assert missed[1].any()
    assert not missed[-1].any()  # back in time
    back = int(np.flatnonzero(missed.any(axis=1)).max()) + 1
    assert not missed[back:].any()
    # Its memory and its own history are those of all rounds that it has played.
    played = kept["history/rounds"] // 3
    assert played[0] == 0
    assert set(range(back, 20)) <= set(played.tolist())
    assert len(kept["history/returns"]) == 3 * len(played)


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["server", "superlink"])
def test_a_server_that_dies(tmp_path, victim):
    """It resumes after its last round, and ends as one that did not die."""
    configuration = small(tmp_path, episodes=15)
    with Machines(tmp_path, configuration) as machines:
        server = machines.start()
        server.wait_for("episode 6/15")
        if victim == "server":
            server.kill()
        else:
            os.kill(program_of(machines.out, "superlink"), signal.SIGKILL)
            assert server.process.wait(60) == 1
            assert server.said().splitlines()[-1].startswith("fedrain: the SuperLink is lost")
        server = machines.server("--resume")
        server.finish()
        first = server.said().rindex("waiting for the nodes")
        assert "episode 3/15" not in server.said()[first:]
    assert_same(load(machines.out), local(configuration, tmp_path))


@pytest.mark.slow
def test_a_climate_that_dies(tmp_path):
    """It resumes from its last step, and the agents with it."""
    configuration = small(tmp_path, env="ebm-v3", sync_every=100, episodes=300)
    with Machines(tmp_path, configuration) as machines:
        climate = machines.climate()
        server = machines.server()
        nodes = [machines.node(region) for region in range(2)]
        server.wait_for("episode 100/300")
        time.sleep(3.0)
        climate.kill()
        for node in nodes:
            node.wait_for("cannot be reached")
        machines.climate()
        server.finish()
    assert not (tmp_path / "climate" / "late.csv").exists()
    run = load(machines.out)
    assert np.isfinite(run.returns.returns).all()
    expected = local(configuration, tmp_path)
    np.testing.assert_allclose(run.returns.returns[:100], expected.returns.returns[:100], rtol=0.05)


@pytest.mark.slow
def test_a_node_that_cannot_be_reached_for_a_while(tmp_path):
    """Cut off for 30 s: the others wait, nothing is lost."""
    configuration = small(tmp_path, episodes=15)
    with Machines(tmp_path, configuration) as machines:
        server = machines.start()
        server.wait_for("episode 3/15")
        program = program_of(machines.folder / "node-1", "supernode")
        os.kill(program, signal.SIGSTOP)
        time.sleep(30.0)
        os.kill(program, signal.SIGCONT)
        server.finish()
    assert_same(load(machines.out), local(configuration, tmp_path))


def program_of(folder, name):
    """Flower's program that works in a folder."""
    (found,) = processes("watchdog.py", f" {name} ", str(folder))
    return found
