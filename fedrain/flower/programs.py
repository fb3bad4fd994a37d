"""Flower's SuperLink and SuperNode, started on this machine and stopped with us."""

import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fedrain.errors import InputError
from fedrain.flower import SETTINGS, internals, watchdog
from fedrain.io import write_bytes

STOP_SECONDS = 10.0
HERE = "127.0.0.1"


class Program:
    """One of Flower's programs, with its output in a file."""

    def __init__(self, name: str, arguments: Sequence[str], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name, self.log = name, folder / f"{name}.log"
        # -P: the folder of the scripts, where modules have names such as climate, is not searched.
        scripts = watchdog.__file__, internals.__file__
        command = [sys.executable, "-P", *scripts, name, *arguments]
        environment = {**os.environ, **SETTINGS}
        environment["FLWR_HOME"] = str(folder.absolute() / "flower")
        with self.log.open("ab") as log:
            self._begin = log.tell()
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,  # an interrupt at the terminal is for us to pass on
            )

    @property
    def runs(self) -> bool:
        """Whether it is still there."""
        return self.process.poll() is None

    def last_words(self) -> str:
        """Why it ended, as far as its output tells."""
        said = self.log.read_bytes()[self._begin :].decode(errors="replace")
        for error, meaning in internals.ERRORS.items():
            if error in said:
                return meaning
        lines = [re.sub(r"\x1b\[\d+m", "", line).strip() for line in said.splitlines()]
        lines = [line for line in lines if line and not line.startswith("INFO")]
        return lines[-1] if lines else f"see {self.log}"

    def stop(self) -> None:
        """Let go of its input, and wait for it to end."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind((HERE, 0))
        return int(listener.getsockname()[1])


def split_address(address: str) -> tuple[str, int]:
    """Machine and port."""
    machine, _, port = address.rpartition(":")
    if not machine or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(f"{address!r} is not an address: write it as ADDRESS:PORT")
    return machine.strip("[]"), int(port)


def make_secret(path: Path) -> bytes:
    """A secret that this process shares with the program that it starts."""
    secret = secrets.token_bytes(32)
    write_bytes(path, secret, secret=True)
    return secret


def refuse_open_address(address: str) -> None:
    """Without TLS and keys, nobody from elsewhere may connect."""
    machine = address.rpartition(":")[0].strip("[]")
    if machine not in (HERE, "::1", "localhost"):
        raise InputError(f"--insecure listens on {HERE} only, not on {machine}")
