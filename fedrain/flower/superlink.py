"""The server's side of a deployment: a SuperLink that knows the nodes, and a run on it."""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.cli.build import build_fab_from_files
from flwr.common.serde import fab_to_proto
from flwr.proto.control_pb2 import RegisterNodeRequest, StartRunRequest
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.fab import Fab
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.primitives.asymmetric import public_key_to_bytes

from fedrain import __version__
from fedrain.errors import InputError
from fedrain.flower.credentials import Credentials
from fedrain.flower.executor import POLL_SECONDS, Runtime
from fedrain.flower.programs import (
    HERE,
    Program,
    make_secret,
    refuse_open_address,
    split_address,
)

START_SECONDS = 60.0
LISTEN = ("0.0.0.0", HERE, "localhost")


@dataclass
class SuperLink:
    """A SuperLink that runs on this machine."""

    program: Program
    runtime: Runtime
    credentials: Credentials | None
    #: Which region the node with a registered key has.
    regions: dict[int, int] = field(default_factory=dict)
    _known: set[bytes] = field(default_factory=set)

    def register(self) -> dict[int, int]:
        """Let the nodes in whose public keys are there by now; their regions, by node."""
        if self.credentials is not None:
            for region, key in self.credentials.public_keys().items():
                self._register(region, key)
        return self.regions

    def _register(self, region: int, key: ec.EllipticCurvePublicKey) -> None:
        data = public_key_to_bytes(key)
        if data in self._known:
            return
        with self._control() as control:
            answer = control.RegisterNode(RegisterNodeRequest(public_key=data))
        self._known.add(data)
        self.regions[answer.node_id] = region

    def start_run(self) -> None:
        """A run for this process to take up. Flower wants a bundle with it: ours has no code."""
        content, _ = build_fab_from_files({"pyproject.toml": BUNDLE.encode()})
        fab = Fab(hashlib.sha256(content).hexdigest(), content, {})
        with self._control() as control:
            control.StartRun(StartRunRequest(fab=fab_to_proto(fab)))

    @contextmanager
    def _control(self) -> Iterator[ControlHttpClient]:
        client = ControlHttpClient.from_server_address(
            server_address=self.runtime.address,
            insecure=self.runtime.authority is None,
            root_certificates=self.runtime.authority,
            interceptors=[RuntimeVersionHttpInterceptor(component_name="fedrain")],
        )
        try:
            yield client
        finally:
            client.close()


def check_listener(address: str, credentials: Credentials | None) -> None:
    """Refuse what a SuperLink cannot be started with.

    We speak to it at 127.0.0.1, and as nodes it hears all others.
    """
    host, _ = split_address(address)
    if credentials is None:
        refuse_open_address(address)
    else:
        _ = credentials.authority, credentials.certificate, credentials.tls_key
        credentials.public_keys()
    if host not in LISTEN:
        raise InputError(f"the server listens on {', '.join(LISTEN)}, not on {host}")


@contextmanager
def start_superlink(
    address: str, credentials: Credentials | None, folder: Path
) -> Iterator[SuperLink]:
    """A SuperLink for as long as it is needed; without credentials, on this machine only."""
    check_listener(address, credentials)
    host, port = split_address(address)
    secret_file = folder / "superlink.secret"
    arguments = ["--host", host, "--port", str(port), "--isolation", "process"]
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
    """Until it answers."""
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
