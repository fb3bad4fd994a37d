"""A federation over hosts: the server, and a whole one on this machine for trying it out."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from fedrain.errors import FailureError, InputError
from fedrain.flower.credentials import Credentials, make_credentials
from fedrain.flower.executor import run_server_app
from fedrain.flower.leash import wait_for_end_of_input
from fedrain.flower.programs import HERE, STOP_SECONDS, free_port
from fedrain.flower.server import Federation, make_server_app
from fedrain.flower.superlink import start_superlink


def run_server(federation: Federation, address: str, credentials: Credentials | None) -> None:
    """Serve a federation to its end, for nodes that come from anywhere."""
    folder = federation.out / "federation"
    with start_superlink(address, credentials, folder) as link:
        if credentials is not None:
            federation.roster.keys = link.register
            link.register()
        federation.say(f"waiting for the nodes at {address}")
        link.start_run()
        try:
            run_server_app(link.runtime, make_server_app(federation), lambda: link.program.runs)
        except httpx.HTTPError as error:
            why = link.program.last_words() if not link.program.runs else str(error)
            raise FailureError(f"the SuperLink is lost ({why}): --resume goes on") from None


def run_whole(federation: Federation) -> None:
    """Start a federation with a process for every node, over TLS on this machine, and end it all.

    It is what hosts of their own would run, so it is slower than one process. What the nodes keep
    stays with the run until it has finished; a climate begins each round anew.
    """
    configuration = federation.configuration
    shared = configuration.make_environment().shared_climate
    nodes = federation.out / "federation" / "nodes"
    with tempfile.TemporaryDirectory(prefix="fedrain-") as name, ExitStack() as stack:
        folder = Path(name)
        keys = folder / "keys"
        make_credentials(keys, configuration.agents)
        server = f"{HERE}:{free_port()}"
        more: list[str] = []
        if shared:
            climate = f"{HERE}:{free_port()}"
            request = federation.out / "configuration.json"
            arguments = ["climate", "--listen", climate, "--experiment", str(request)]
            arguments += [
                "--credentials",
                str(keys / "climate"),
                "--folder",
                str(folder / "climate"),
            ]
            stack.enter_context(_command(arguments))
            more = ["--climate", climate]
        for region in range(configuration.agents):
            arguments = ["node", "--region", str(region), "--server", server, *more]
            arguments += ["--credentials", str(keys / f"region-{region}")]
            arguments += ["--folder", str(nodes / str(region))]
            stack.enter_context(_command(arguments))
        run_server(federation, server, Credentials(keys / "server"))
    shutil.rmtree(nodes)


@contextmanager
def _command(arguments: list[str]) -> Iterator[None]:
    """Another of our own commands, which ends when we let go of its standard input."""
    command = [sys.executable, "-m", "fedrain", "federate", *arguments, "--until-input-ends"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    try:
        yield
    finally:
        process.stdin.close()
        try:
            process.wait(2 * STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def end_with_input() -> None:
    """End this process when its standard input does: its parent let go of it, or died."""

    def hold() -> None:
        wait_for_end_of_input()
        os._exit(0)  # what is on disk is whole at any time, and Flower's program ends with us

    threading.Thread(target=hold, daemon=True).start()


def read_credentials(folder: str | None, insecure: bool) -> Credentials | None:
    """Those of a host. To go without has to be asked for."""
    if insecure == (folder is not None):
        raise InputError("give --credentials DIR, or ask for --insecure on this machine only")
    return None if folder is None else Credentials(Path(folder))
