"""Federations of real processes, with TLS and keys, on this machine."""

import json
import os
import signal
import subprocess
import sys
import time

import httpx
import jax
import numpy as np
import pytest

from fedrain.cli import main
from fedrain.experiment import configure, load
from fedrain.federation.flower.local import run_local
from fedrain.federation.flower.server import Federation
from tests.experiment.small import SMALL, small_preset
from tests.federation.hosts import ROOT, Hosts
from tests.federation.odd import CHANGES, spoil


def small(folder, **options):
    chosen = {"env": "ebm-v2", "agents": 2, "sync_every": 3, "episodes": 9, **options}
    return configure(preset=small_preset(folder), **chosen, **SMALL)


def local(configuration, folder, wrap=None):
    """What the engine ``local`` makes of it."""
    run_local(Federation(configuration, folder / "local", False, lambda _: None), wrap)
    return load(folder / "local")


def assert_same(found, expected, regions=None):
    """To float32 tolerance: a region alone is not computed in the same order as one of several."""
    regions = list(range(found.configuration.agents)) if regions is None else regions
    a, b = (run.returns.returns.sel(agent=regions) for run in (found, expected))
    np.testing.assert_allclose(a, b, rtol=1e-4)
    for one, other in zip(*(jax.tree.leaves(r.actors()) for r in (found, expected)), strict=True):
        np.testing.assert_allclose(one[:, regions], other[:, regions], rtol=1e-2, atol=2e-4)


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
    assert not [
        line
        for line in subprocess.run(
            ["ps", "-eo", "args"], capture_output=True, text=True
        ).stdout.splitlines()
        if str(tmp_path) in line
    ]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["server"], "--credentials"),
        (["server", "--insecure", "--listen", "0.0.0.0:9000"], "127.0.0.1 only"),
        (["server", "--credentials", "nowhere", "--listen", "127.0.0.1:9000"], "is missing"),
        (["server", "--credentials", "nowhere", "--listen", "here"], "HOST:PORT"),
        (["node", "--region", "0", "--server", "192.0.2.1:9", "--insecure"], "127.0.0.1 only"),
        (["climate", "--insecure"], "127.0.0.1 only"),
        (["climate", "--insecure", "--listen", "127.0.0.1:1", "--late", "never"], "static"),
        (["certificates", "keys", "--regions", "0"], "one region or more"),
    ],
)
def test_bad_input(tmp_path, monkeypatch, capsys, command, reason):
    monkeypatch.chdir(tmp_path)
    assert main(["federate", *command]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert reason in said


@pytest.mark.slow
@pytest.mark.parametrize("env", ["ebm-v2", "ebm-v3"])
def test_six_nodes(tmp_path, env):
    configuration = small(tmp_path, env=env, agents=6, sync_every=5, episodes=10)
    with Hosts(tmp_path, configuration) as hosts:
        if hosts.shared:
            hosts.climate()
        server = hosts.server()
        for region in range(6):
            hosts.node(region)
        server.finish()
    assert_same(load(hosts.out), local(configuration, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("env", ["ebm-v2", "ebm-v3"])
def test_a_node_that_dies_in_mid_round(tmp_path, env):
    """The others finish the round; it comes back with its memory and takes part in the next."""
    configuration = small(tmp_path, env=env, agents=2, episodes=15)
    with Hosts(tmp_path, configuration) as hosts:
        if hosts.shared:
            hosts.climate("--patience", "5")
        server = hosts.server()
        hosts.node(0)
        dying = hosts.odd_node(1, "slow")
        dying.wait_for("at work")
        dying.kill()
        killed = time.monotonic()
        again = hosts.node(1)
        server.wait_for("region 1")
        assert time.monotonic() - killed < 90
        server.finish()
        again.wait_for("region 1 of")
    run = load(hosts.out)
    lost = np.isnan(run.returns.returns.sel(seed=0))
    assert not lost.sel(agent=0).any()
    missed = lost.sel(agent=1).values
    assert not missed[:3].any()  # what was committed stays
    assert missed[3:6].all()
    assert not missed[-3:].any()  # back in time
    # Its memory has all that it saw before and after.
    assert "not there" in server.said() or "failed" in server.said()
    assert np.isfinite(run.results.areawrmse).all()


@pytest.mark.slow
def test_a_server_that_dies(tmp_path):
    """It goes on from its last round, and ends as one that did not die."""
    configuration = small(tmp_path, episodes=15)
    with Hosts(tmp_path, configuration) as hosts:
        server = hosts.server()
        for region in range(2):
            hosts.node(region)
        server.wait_for("episode 6/15")
        server.kill()
        server = hosts.server("--resume")
        server.finish()
        first = server.said().rindex("waiting for the nodes")
        assert "episode 3/15" not in server.said()[first:]
    assert_same(load(hosts.out), local(configuration, tmp_path))


@pytest.mark.slow
def test_a_climate_that_dies(tmp_path):
    """It goes on from its last step, and the agents with it."""
    configuration = small(tmp_path, env="ebm-v3", sync_every=100, episodes=300)
    with Hosts(tmp_path, configuration) as hosts:
        climate = hosts.climate()
        server = hosts.server()
        nodes = [hosts.node(region) for region in range(2)]
        server.wait_for("episode 100/300")
        time.sleep(3.0)
        climate.kill()
        for node in nodes:
            node.wait_for("cannot be reached")
        hosts.climate()
        server.finish()
    assert not (tmp_path / "climate" / "late.csv").exists()
    run = load(hosts.out)
    assert np.isfinite(run.returns.returns).all()
    expected = local(configuration, tmp_path)
    np.testing.assert_allclose(run.returns.returns[:100], expected.returns.returns[:100], rtol=0.05)


@pytest.mark.slow
def test_two_nodes_for_one_region(tmp_path):
    """Another key is refused by the federation, the same key by Flower; the first one stays."""
    configuration = small(tmp_path, episodes=12)
    with Hosts(tmp_path, configuration, regions=3) as hosts:
        server = hosts.server()
        hosts.node(0)
        dying = hosts.odd_node(1, "slow")
        dying.wait_for("at work")
        pretender = hosts.node(1, keys=hosts.keys / "region-2", name="pretender")
        double = hosts.node(1, name="double")
        server.wait_for("claims region 1, which its key is not for: refused")
        double.wait_for("not connected")
        server.finish()
        assert "region 1 of" not in pretender.said()
        assert "region 1 of" not in double.said()
    assert_same(load(hosts.out), local(configuration, tmp_path))


@pytest.mark.slow
def test_a_node_that_cannot_be_reached_for_a_while(tmp_path):
    """Cut off for 30 s: the others wait, nothing is lost."""
    configuration = small(tmp_path, episodes=15)
    with Hosts(tmp_path, configuration) as hosts:
        server = hosts.server()
        for region in range(2):
            hosts.node(region)
        server.wait_for("episode 3/15")
        program = supernode_of(hosts.folder / "node-1")
        os.kill(program, signal.SIGSTOP)
        time.sleep(30.0)
        os.kill(program, signal.SIGCONT)
        server.finish()
    assert_same(load(hosts.out), local(configuration, tmp_path))


def supernode_of(folder):
    lines = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True).stdout
    found = [line.split()[0] for line in lines.splitlines() if f"{folder}/supernode" in line]
    assert len(found) == 1
    return int(found[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "reason"),
    [("nan", "not finite"), ("huge", "far outside"), ("shapes", "does not fit")],
)
def test_bad_updates_are_refused(tmp_path, kind, reason):
    """The federation is that of the honest nodes."""
    configuration = small(tmp_path, agents=3)
    with Hosts(tmp_path, configuration) as hosts:
        server = hosts.server()
        hosts.node(0)
        hosts.odd_node(1, kind)
        hosts.node(2)
        server.finish()
        refused = [s for s in server.said().splitlines() if s.startswith("region 1:")]
        assert len(refused) == 2
        assert all(reason in line for line in refused)
    expected = local(configuration, tmp_path, spoil(1, CHANGES[kind]))
    assert_same(load(hosts.out), expected, regions=[0, 2])


@pytest.mark.slow
def test_a_reply_sent_twice_counts_once(tmp_path):
    configuration = small(tmp_path)
    with Hosts(tmp_path, configuration) as hosts:
        server = hosts.server()
        hosts.node(0)
        odd = hosts.odd_node(1, "twice")
        server.finish()
        assert odd.said()
    assert_same(load(hosts.out), local(configuration, tmp_path))


@pytest.mark.slow
def test_strangers_are_not_let_in(tmp_path):
    """An unregistered key, a node without TLS; and nobody but nodes from elsewhere."""
    configuration = small(tmp_path, episodes=6)
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    with Hosts(stranger, configuration) as other, Hosts(tmp_path, configuration) as hosts:
        server = hosts.server()
        keys = hosts.keys / "region-stranger"
        keys.mkdir()
        for name, source in (
            ("authority.pem", hosts.keys / "region-1"),
            ("node.key", other.keys / "region-1"),
            ("host.key", other.keys / "region-1"),
            ("host.pem", other.keys / "region-1"),
        ):
            (keys / name).write_bytes((source / name).read_bytes())
        unregistered = hosts.node(1, keys=keys, name="unregistered")
        unregistered.wait_for("not connected")
        command = ["-m", "fedrain", "federate", "node", "--insecure", "--region", "1"]
        command += ["--server", hosts.server_address, "--folder", str(hosts.folder / "plain")]
        plain = hosts._start("plain", command)
        plain.wait_for("not connected")
        for region in range(2):
            hosts.node(region)
        server.finish()
        assert "region 1 of" not in unregistered.said() + plain.said()
    assert_same(load(hosts.out), local(configuration, tmp_path))


def test_the_superlink_hears_others_as_nodes_only():
    """What a peer of another machine asks for is refused, unless it is what nodes ask."""
    import asyncio

    from fedrain.federation.flower.leash import NodesOnly

    async def inner(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask(host, path):
        transport = httpx.ASGITransport(NodesOnly(inner), client=(host, 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return (await client.post(path)).status_code

    for host, path, status in (
        ("192.0.2.7", "/v1/fleet/pull-messages", 200),
        ("192.0.2.7", "/v1/control/start-run", 403),
        ("192.0.2.7", "/v1/control/register-node", 403),
        ("192.0.2.7", "/v1/runtime/acquire-task", 403),
        ("192.0.2.7", "/docs", 403),
        ("127.0.0.1", "/v1/control/start-run", 200),
    ):
        assert asyncio.run(ask(host, path)) == status
