"""A federation of separate machines: the server, and a rehearsal on this machine.

The server's side is a SuperLink that knows the nodes, one of Flower's runs on it, and this process
as the server app of that run.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from cryptography.hazmat.primitives.asymmetric import ec

from fedrain import __version__
from fedrain.errors import FailureError, InputError
from fedrain.experiment.configuration import references
from fedrain.flower import watchdog
from fedrain.flower.credentials import Credentials, make_credentials
from fedrain.flower.internals import POLL_SECONDS, Runtime, run_server_app
from fedrain.flower.programs import (
    HERE,
    STOP_SECONDS,
    Program,
    free_port,
    make_secret,
    refuse_open_address,
    split_address,
)
from fedrain.flower.server import Federation, make_server_app

START_SECONDS = 60.0
LISTEN = ("0.0.0.0", HERE, "localhost")
#: Flower wants a bundle that names the apps; they are those of the installed package.
BUNDLE = f"""\
[project]
name = "fedrain"
version = "{__version__}"
description = "Names the apps of an installed package, and brings none along"
license = "MIT"

[tool.flwr.app]
publisher = "fedrain"

[tool.flwr.app.components]
serverapp = "fedrain.flower.server:Federation"
clientapp = "fedrain.flower.client:make_client_app"
"""


def run_server(federation: Federation, address: str, credentials: Credentials | None) -> None:
    """Serve a federation to its end, to nodes on any machine."""
    folder = federation.out / "federation"
    with start_superlink(address, credentials, folder) as link:
        if credentials is not None:
            federation.roster.keys = link.register
            link.register()
        federation.say(f"waiting for the nodes at {address}")
        link.runtime.start_run(BUNDLE)
        try:
            run_server_app(link.runtime, make_server_app(federation), lambda: link.program.runs)
        except httpx.HTTPError as error:
            why = link.program.last_words() if not link.program.runs else str(error)
            raise FailureError(f"the SuperLink is lost ({why}): continue with --resume") from None


def run_whole(federation: Federation) -> None:
    """Run a federation with a process for every node, over TLS on this machine, and end them all.

    It is what separate machines would run, so it is slower than one process. What the nodes keep
    stays in the run folder until the federation has finished; a climate starts again in each round.
    """
    configuration = federation.configuration
    shared = configuration.make_environment().shared_climate
    nodes = federation.out / "federation" / "nodes"
    with temporary_folder() as folder, ExitStack() as stack:
        keys = folder / "keys"
        make_credentials(keys, configuration.agents)
        server = f"{HERE}:{free_port()}"
        own = vars(references(configuration))  # what is not of the package, named to each process
        more = [f"--{kind}={text}" for kind, text in own.items() if text is not None]
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
            stack.enter_context(_command([*arguments, *more]))
            more += ["--climate", climate]
        for region in range(configuration.agents):
            arguments = ["node", "--region", str(region), "--server", server, *more]
            arguments += ["--credentials", str(keys / f"region-{region}")]
            arguments += ["--folder", str(nodes / str(region))]
            stack.enter_context(_command(arguments))
        run_server(federation, server, Credentials(keys / "server"))
    shutil.rmtree(nodes)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for keys, which does not outlive this process, in whatever way that ends."""
    folder = Path(tempfile.mkdtemp(prefix="fedrain-"))
    command = [sys.executable, "-I", watchdog.__file__, "--remove", str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield folder
    finally:
        process.communicate(b"\n")


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


@dataclass
class SuperLink:
    """A SuperLink that runs on this machine."""

    program: Program
    runtime: Runtime
    credentials: Credentials | None
    #: Which region the node with a registered key has.
    regions: dict[int, int] = field(default_factory=dict)
    _known: list[ec.EllipticCurvePublicKey] = field(default_factory=list)

    def register(self) -> dict[int, int]:
        """Let in the nodes whose public keys are there by now; their regions, by node."""
        if self.credentials is not None:
            for region, key in self.credentials.public_keys().items():
                if key not in self._known:
                    self.regions[self.runtime.register_node(key)] = region
                    self._known.append(key)
        return self.regions


def check_listener(address: str, credentials: Credentials | None) -> None:
    """Refuse what a SuperLink cannot be started with.

    We connect to it at 127.0.0.1, so it cannot listen on another address alone.
    """
    machine, _ = split_address(address)
    if credentials is None:
        refuse_open_address(address)
    else:
        _ = credentials.authority, credentials.certificate, credentials.tls_key
        credentials.public_keys()
    if machine not in LISTEN:
        raise InputError(f"the server listens on {', '.join(LISTEN)}, not on {machine}")


@contextmanager
def start_superlink(
    address: str, credentials: Credentials | None, folder: Path
) -> Iterator[SuperLink]:
    """A SuperLink while the context lasts; without credentials, on this machine only."""
    check_listener(address, credentials)
    machine, port = split_address(address)
    secret_file = folder / "superlink.secret"
    arguments = ["--host", machine, "--port", str(port), "--isolation", "process"]
    arguments += ["--superexec-auth-secret-file", str(secret_file)]
    authority = None
    if credentials is None:
        arguments.append("--insecure")
    else:
        authority = credentials.authority.read_bytes()
        arguments += ["--ssl-ca-certfile", str(credentials.authority)]
        arguments += ["--ssl-certfile", str(credentials.certificate)]
        arguments += ["--ssl-keyfile", str(credentials.tls_key), "--enable-supernode-auth"]
    secret = make_secret(secret_file)
    with Program("superlink", arguments, folder) as program:
        runtime = Runtime(f"{HERE}:{port}", secret, authority)
        _wait(program, runtime)
        yield SuperLink(program, runtime, credentials)


def _wait(program: Program, runtime: Runtime) -> None:
    """Wait until it answers."""
    end = time.monotonic() + START_SECONDS
    scheme, verify = ("http", True) if runtime.authority is None else ("https", False)
    while time.monotonic() < end:
        if not program.runs:
            raise InputError(f"the SuperLink did not start: {program.last_words()}")
        try:
            httpx.get(f"{scheme}://{runtime.address}/", verify=verify)
        except httpx.TransportError:
            time.sleep(POLL_SECONDS)
        else:
            return
    raise InputError(f"the SuperLink did not answer within {START_SECONDS:g} s: see {program.log}")
