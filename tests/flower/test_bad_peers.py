"""Peers that should not be let in, or not be believed, on federations of real processes."""

import asyncio

import httpx
import numpy as np
import pytest

from fedrain.experiment import load
from fedrain.flower.internals import NodesOnly
from tests.flower.faulty_nodes import CHANGES, spoil
from tests.flower.machines import Machines, assert_same, local, small


@pytest.mark.slow
def test_two_nodes_for_one_region(tmp_path):
    """Another key is refused by the federation, the same key by Flower; the first one stays."""
    configuration = small(tmp_path, episodes=12)
    with Machines(tmp_path, configuration, regions=3) as machines:
        server = machines.server()
        machines.node(0)
        dying = machines.faulty_node(1, "slow")
        dying.wait_for("at work")
        pretender = machines.node(1, keys=machines.keys / "region-2", folder="pretender")
        double = machines.node(1, folder="double")
        server.wait_for("has no region of this experiment: refused")
        double.wait_for("not connected")
        server.finish()
        assert "region 1 of" not in pretender.said()
        assert "region 1 of" not in double.said()
    assert_same(load(machines.out), local(configuration, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "reason"),
    [("nan", "not finite"), ("huge", "far outside"), ("shapes", "does not fit")],
)
def test_bad_updates_are_refused(tmp_path, kind, reason):
    """The federation is that of the honest nodes."""
    configuration = small(tmp_path, agents=3)
    with Machines(tmp_path, configuration) as machines:
        server = machines.server()
        machines.node(0)
        machines.faulty_node(1, kind)
        machines.node(2)
        server.finish()
        refused = [s for s in server.said().splitlines() if s.startswith("region 1:")]
        assert len(refused) == 2
        assert all(reason in line for line in refused)
    expected = local(configuration, tmp_path, spoil(1, CHANGES[kind]))
    assert_same(load(machines.out), expected, regions=[0, 2])


@pytest.mark.slow
def test_a_key_speaks_for_its_own_region_only(tmp_path):
    """A node with the key of region 1 that acts as region 0: its replies are refused."""
    configuration = small(tmp_path)
    with Machines(tmp_path, configuration) as machines:
        server = machines.server()
        machines.node(0)
        machines.node(0, keys=machines.keys / "region-1", folder="pretender")
        server.finish()
        refused = [s for s in server.said().splitlines() if s.startswith("region 1:")]
        assert refused == ["region 1: reply refused: it claims another region"] * 3
    returns = load(machines.out).returns.returns
    assert np.isfinite(returns.sel(agent=0)).all()
    assert np.isnan(returns.sel(agent=1)).all()


@pytest.mark.slow
def test_a_reply_sent_twice_counts_once(tmp_path):
    configuration = small(tmp_path)
    with Machines(tmp_path, configuration) as machines:
        server = machines.server()
        machines.node(0)
        faulty = machines.faulty_node(1, "twice")
        server.finish()
        assert faulty.said()
    assert_same(load(machines.out), local(configuration, tmp_path))


@pytest.mark.slow
def test_strangers_are_not_let_in(tmp_path):
    """An unregistered key, a node without TLS; and nobody but nodes from elsewhere."""
    configuration = small(tmp_path, episodes=6)
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    with Machines(stranger, configuration) as other, Machines(tmp_path, configuration) as machines:
        server = machines.server()
        keys = machines.keys / "region-stranger"
        keys.mkdir()
        for name, source in (
            ("authority.pem", machines.keys / "region-1"),
            ("node.key", other.keys / "region-1"),
            ("machine.key", other.keys / "region-1"),
            ("machine.pem", other.keys / "region-1"),
        ):
            (keys / name).write_bytes((source / name).read_bytes())
        unregistered = machines.node(1, keys=keys, folder="unregistered")
        unregistered.wait_for("not connected")
        command = ["-m", "fedrain", "federate", "node", "--insecure", "--region", "1"]
        command += ["--server", machines.server_address, "--folder", str(machines.folder / "plain")]
        plain = machines._start("plain", command)
        plain.wait_for("not connected")
        for region in range(2):
            machines.node(region)
        server.finish()
        assert "region 1 of" not in unregistered.said() + plain.said()
    assert_same(load(machines.out), local(configuration, tmp_path))


def test_the_superlink_hears_others_as_nodes_only():
    """What a peer of another machine asks for is refused, unless it is what nodes ask."""

    async def inner(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask(address, path):
        transport = httpx.ASGITransport(NodesOnly(inner), client=(address, 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return (await client.post(path)).status_code

    for address, path, status in (
        ("192.0.2.7", "/v1/fleet/pull-messages", 200),
        ("192.0.2.7", "/v1/control/start-run", 403),
        ("192.0.2.7", "/v1/control/register-node", 403),
        ("192.0.2.7", "/v1/runtime/acquire-task", 403),
        ("192.0.2.7", "/docs", 403),
        ("127.0.0.1", "/v1/control/start-run", 200),
    ):
        assert asyncio.run(ask(address, path)) == status
