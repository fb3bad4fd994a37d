"""The machines of a federation as processes of this one, to be killed, stopped and started."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import jax
import numpy as np

from fedrain.experiment import configure, load
from fedrain.flower.credentials import make_credentials
from fedrain.flower.local import run_local
from fedrain.flower.programs import free_port
from fedrain.flower.server import Federation
from tests.experiment.small import SMALL, small_preset

ROOT = Path(__file__).parents[2]


def processes(*words):
    """Command lines that have all these words, by process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if all(word in line for word in words):
                found[int(path.parent.name)] = line
    return found


class Machine:
    """One command, with what it says in a file."""

    def __init__(self, folder, name, command):
        self.folder, self.name = folder, name
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    def said(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, text, seconds=300.0, times=1):
        end = time.monotonic() + seconds
        while self.said().count(text) < times:
            assert time.monotonic() < end, f"{self.name} did not say {text!r}:\n{self.said()}"
            time.sleep(0.1)

    def kill(self):
        """As the machine would: no time to say goodbye."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def finish(self, seconds=600.0):
        code = self.process.wait(seconds)
        assert code == 0, self.said()


class Machines:
    """A server, nodes and a climate, each started as a user would start it."""

    def __init__(self, folder, configuration, regions=None):
        self.folder, self.configuration = folder, configuration
        self.keys = folder / "keys"
        make_credentials(self.keys, configuration.agents if regions is None else regions)
        self.experiment = folder / "experiment.json"
        self.experiment.write_text(json.dumps(configuration.as_dict()), encoding="utf-8")
        self.out = folder / "run"
        self.server_address = f"127.0.0.1:{free_port()}"
        self.climate_address = f"127.0.0.1:{free_port()}"
        self.shared = configuration.make_environment().shared_climate
        self.all = []

    def _start(self, name, command):
        machine = Machine(self.folder, name, command)
        self.all.append(machine)
        return machine

    def server(self, *more):
        command = ["-m", "fedrain", "federate", "server", "--experiment", str(self.experiment)]
        command += ["--listen", self.server_address, "--credentials", str(self.keys / "server")]
        return self._start("server", [*command, "--out", str(self.out), *more])

    def climate(self, *more):
        command = ["-m", "fedrain", "federate", "climate", "--experiment", str(self.experiment)]
        command += ["--listen", self.climate_address, "--folder", str(self.folder / "climate")]
        return self._start(
            "climate", [*command, "--credentials", str(self.keys / "climate"), *more]
        )

    def node_arguments(self, region, keys=None, folder=None):
        arguments = ["--region", str(region), "--server", self.server_address]
        arguments += ["--folder", str(self.folder / (folder or f"node-{region}"))]
        arguments += [
            "--credentials",
            str(self.keys / f"region-{region}" if keys is None else keys),
        ]
        return arguments + (["--climate", self.climate_address] if self.shared else [])

    def node(self, region, keys=None, folder=None):
        arguments = self.node_arguments(region, keys, folder)
        command = ["-m", "fedrain", "federate", "node", *arguments]
        return self._start(folder or f"region-{region}", command)

    def faulty_node(self, region, kind, keys=None):
        """A node that does not behave: see ``faulty_nodes.py``."""
        command = ["-m", "tests.flower.faulty_nodes", kind, *self.node_arguments(region, keys)]
        return self._start(f"region-{region}-{kind}", command)

    def start(self):
        """All of it, as it should be; the server."""
        if self.shared:
            self.climate()
        server = self.server()
        for region in range(self.configuration.agents):
            self.node(region)
        return server

    def left(self):
        """Processes that belong to this federation."""
        return [line for pid, line in processes(str(self.folder)).items() if pid != os.getpid()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for machine in self.all:
            if machine.process.poll() is None:
                machine.process.send_signal(signal.SIGINT)
        for machine in self.all:
            try:
                machine.process.wait(20)
            except subprocess.TimeoutExpired:
                machine.kill()
        end = time.monotonic() + 20
        while self.left() and time.monotonic() < end:
            time.sleep(0.2)
        assert self.left() == []


def small(folder, **options):
    chosen = {"env": "ebm-v2", "agents": 2, "episodes": 9, **options}
    if chosen["agents"] > 1:
        chosen.setdefault("sync_every", 3)
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
