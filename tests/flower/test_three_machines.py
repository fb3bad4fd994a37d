"""The commands of ``docs/machines.md``, as written, on three machines: network namespaces."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fedrain.experiment import load

ROOT = Path(__file__).parents[2]
MACHINES = {"alpha": "10.0.0.1", "beta": "10.0.0.2", "gamma": "10.0.0.3"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2"
    ),
]


def sh(*command):
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def machines(tmp_path):
    """Three namespaces, each with a folder of its own; beta and gamma have a line to alpha."""
    mark = f"fr{os.getpid() % 10000}"
    server = MACHINES["alpha"]
    for name, address in MACHINES.items():
        sh("ip", "netns", "add", f"{mark}-{name}")
        sh("ip", "-n", f"{mark}-{name}", "link", "set", "lo", "up")
        (tmp_path / name).mkdir()
        if name == "alpha":
            continue
        ends = {
            f"{mark}-alpha": (name, server, address),
            f"{mark}-{name}": ("eth0", address, server),
        }
        pair = ("type", "veth", "peer", "eth0", "netns", f"{mark}-{name}")
        sh("ip", "-n", f"{mark}-alpha", "link", "add", name, *pair)
        for space, (device, own, other) in ends.items():
            sh("ip", "-n", space, "address", "add", own, "peer", other, "dev", device)
            sh("ip", "-n", space, "link", "set", device, "up")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    script = bin_folder / "fedrain"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m fedrain "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    started = []

    def run(name, command):
        log = (tmp_path / f"{name}-{len(started)}.log").open("wb")
        started.append(
            subprocess.Popen(
                ["ip", "netns", "exec", f"{mark}-{name}", "sh", "-c", f"exec {command}"],
                cwd=tmp_path / name,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "PATH": f"{bin_folder}:{os.environ['PATH']}",
                },
            )
        )
        log.close()
        return started[-1], Path(log.name)

    run.mark = mark
    yield run
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    for process in started:
        process.wait(30)
    for name in MACHINES:
        sh("ip", "netns", "del", f"{mark}-{name}")


def commands():
    """Machine, how it goes on, and command, in the order of the page."""
    page = (ROOT / "docs" / "machines.md").read_text(encoding="utf-8")
    found = re.findall(r"<!-- on (\w+)(?:, (\w+))? -->\n```sh\n(.+?)\n```", page, re.DOTALL)
    assert len(found) == 6
    return found


def wait_for(log, text, seconds=400.0):
    end = time.monotonic() + seconds
    while text not in log.read_text(encoding="utf-8"):
        assert time.monotonic() < end, log.read_text(encoding="utf-8")
        time.sleep(0.2)


@pytest.mark.parametrize("cut", [False, True], ids=["calm", "cut"])
def test_the_page_as_written(tmp_path, machines, cut):
    """Also when beta is cut off for 30 s."""
    (_, _, certificates), climate, server, beta, gamma, (_, _, evaluate) = commands()
    process, log = machines("alpha", certificates)
    assert process.wait(120) == 0, log.read_text()
    for region, name in enumerate(("beta", "gamma")):
        folder = tmp_path / "alpha" / "keys" / f"region-{region}"
        shutil.copytree(folder, tmp_path / name / f"region-{region}")
    machines("alpha", climate[2])
    serving, log = machines("alpha", server[2])
    machines("beta", beta[2])
    machines("gamma", gamma[2])
    if cut:
        wait_for(log, "episode 5/15")
        sh("ip", "-n", f"{machines.mark}-beta", "link", "set", "eth0", "down")
        time.sleep(30.0)
        sh("ip", "-n", f"{machines.mark}-beta", "link", "set", "eth0", "up")
    assert serving.wait(600) == 0, log.read_text()
    process, log = machines("alpha", evaluate)
    assert process.wait(120) == 0
    assert '"bands_mean"' in log.read_text()
    run = load(tmp_path / "alpha" / "runs" / "three-machines")
    assert np.isfinite(run.returns.returns).all()
    assert not (tmp_path / "alpha" / "climate" / "late.csv").exists()


def test_only_nodes_are_heard_from_elsewhere(tmp_path, machines):
    """Nobody registers a key, starts a run or takes a task from another machine."""
    (_, _, certificates), _, server, *_ = commands()
    process, log = machines("alpha", certificates)
    assert process.wait(120) == 0
    _, log = machines("alpha", server[2])
    wait_for(log, "waiting for the nodes")
    for path, status in (
        ("/v1/control/register-node", 403),
        ("/v1/control/start-run", 403),
        ("/v1/runtime/acquire-task", 403),
        ("/docs", 403),
        ("/v1/fleet/pull-messages", 415),  # heard, and not understood
    ):
        ask = (
            f"{sys.executable} -c \"import httpx; print(httpx.post('https://10.0.0.1:9000{path}', "
            "verify=False, content=b'', headers={'content-type': 'application/x-protobuf'})"
            '.status_code)"'
        )
        process, log = machines("beta", ask)
        assert process.wait(60) == 0, log.read_text()
        assert log.read_text().strip() == str(status), path
