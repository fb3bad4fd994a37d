"""The faults of ``chaos.py`` do what they are called, to a process that tells how it is."""

import os
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest

from tests.flower.chaos import Deployment, built_shim, children, fault
from tests.flower.proxy import Wires

#: Every 20 ms: the wall clock, and whether a file can be written.
CODE = """
import os, sys, time
if os.fork() == 0:
    os.close(1)
    time.sleep(60)
    os._exit(0)
print("begin", flush=True)
while True:
    try:
        with open(sys.argv[1], "w") as file:
            file.write("x" * 9000)
        free = 1
    except OSError:
        free = 0
    os.write(1, f"{time.time()} {free}\\n".encode())
    time.sleep(0.02)
"""


@pytest.fixture
def echo():
    """An echo at an address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer(connection):
            with connection:
                while data := connection.recv(100):
                    connection.sendall(data)

        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield "127.0.0.1:{1}".format(*listener.getsockname())


def connect(address):
    machine, _, port = address.rpartition(":")
    return socket.create_connection((machine, int(port)), timeout=5)


def answered(there, data=b""):
    """What comes back; nothing, where the connection is no more."""
    try:
        there.sendall(data)
        return there.recv(1)
    except ConnectionError:
        return b""


def test_a_wire_is_cut_and_mended(echo):
    wires = Wires()
    address = wires.lay("one", echo)
    with connect(address) as there:
        there.sendall(b"a")
        assert there.recv(1) == b"a"
        wires.cut("one")
        assert answered(there) == b""
    with connect(address) as there:
        assert answered(there, b"a") == b""
    wires.mend("one")
    with connect(address) as there:
        there.sendall(b"b")
        assert there.recv(1) == b"b"
    wires.close()


@pytest.fixture
def machine(tmp_path):
    """A process that tells its clock and its disk, and has a child."""
    clock = tmp_path / "one.clock"
    clock.write_bytes(bytes(8))
    shim = built_shim(tmp_path)
    environment = {"FAKE_CLOCK": str(clock), **({"LD_PRELOAD": str(shim)} if shim else {})}
    command = [sys.executable, "-c", CODE, str(tmp_path / "file")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        lines = []  # a pipe, since no file can be written where the disk is full
        reader = threading.Thread(target=lambda: lines.extend(process.stdout))
        reader.start()
        own = SimpleNamespace(
            running={"one": SimpleNamespace(process=process)},
            latest=lambda: lines[-1].split(),
            clock=lambda _: clock,
        )
        for name in ("of", "set_clock"):
            setattr(own, name, getattr(Deployment, name).__get__(own))
        until(lambda: len(lines) > 1)
        yield own, shim
        for pid in own.of("one")[::-1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        reader.join(5)


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_process_is_killed_with_its_kind(machine):
    own, _ = machine
    pids = own.of("one")
    assert len(pids) == 2
    assert [str(pids[1])] == children(pids[0])
    chance = random.Random(0)
    chance.choice = lambda found: found[0]
    with fault("kill", own, "one", chance):
        assert own.running["one"].process.wait(10) == -9


def test_a_process_stands_still(machine):
    own, _ = machine
    with fault("stop", own, "one", random.Random(0)):
        time.sleep(0.2)
        before = own.latest()
        time.sleep(0.2)
        assert own.latest() == before
    until(lambda: own.latest() != before)


def test_a_disk_is_full_for_a_while(machine):
    own, _ = machine
    pid = own.running["one"].process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    with fault("disk", own, "one", random.Random(0)):
        until(lambda: own.latest()[1] == b"0")
    until(lambda: own.latest()[1] == b"1")
    assert resource.prlimit(pid, resource.RLIMIT_FSIZE) == limits


def test_a_clock_jumps_and_comes_back(machine):
    own, shim = machine
    if shim is None:
        pytest.skip("no C compiler")
    with fault("clock", own, "one", random.Random(0)):
        until(lambda: abs(float(own.latest()[0]) - time.time()) > 5)
    until(lambda: abs(float(own.latest()[0]) - time.time()) < 5)
