"""A node of a deployment: the agent of one region, resident behind a SuperNode."""

import os
import shutil
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from flwr.app import Context, Message

from fedrain.errors import InputError
from fedrain.experiment.configuration import Configuration, Named
from fedrain.experiment.folder import Say
from fedrain.flower.client import make_client_app
from fedrain.flower.coupling import RemoteClimate
from fedrain.flower.credentials import Credentials
from fedrain.flower.internals import Runtime, serve_client_app
from fedrain.flower.local import Client
from fedrain.flower.programs import (
    HERE,
    Program,
    free_port,
    make_secret,
    refuse_open_address,
    split_address,
)
from fedrain.flower.region import RegionHome, keep_compiled

RESTART_SECONDS = 3.0
FEDERATIONS_KEPT = 3  # the latest that the node took part in: they may be resumed


class Resident:
    """The agent of a region, kept in memory from message to message, and on disk.

    ``named`` are the model, task and algorithm from outside the package that it may be asked for.
    """

    def __init__(
        self,
        region: int,
        folder: Path,
        climate: str | None,
        credentials: Credentials | None,
        say: Say,
        named: Named | None = None,
    ) -> None:
        self.region, self.folder, self.climate = region, folder, climate
        self.credentials, self.say = credentials, say
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise InputError(f"{folder}: cannot be made ({error.strerror})") from None
        keep_compiled(folder)
        self._held: tuple[str, RegionHome] | None = None
        self._app = make_client_app(self.find, named or Named())

    def answer(self, message: Message, context: Context) -> Message:
        """What the client app makes of a message.

        After an error the agent is read from disk again: the round was half done.
        """
        try:
            return self._app(message, context)
        except Exception:
            self._held = None
            raise

    def find(self, configuration: Configuration, federation_id: str) -> RegionHome:
        """The agent of a federation; it is made, or read from disk, when it is first asked for."""
        name = f"{configuration.identity[:16]}-{federation_id}"
        if self._held is None or self._held[0] != name:
            self._held = None  # free its memory first
            self._held = (name, self._make(name, configuration, federation_id))
        return self._held[1]

    def _make(self, name: str, configuration: Configuration, federation_id: str) -> RegionHome:
        if not name.replace("-", "").isalnum():
            raise InputError(f"{federation_id!r} is not the id of a federation")
        self.say(f"region {self.region} of {configuration.name}")
        climate = None
        if self.climate is not None:
            climate = RemoteClimate(self.climate, self.credentials, self.say)
            climate.check(configuration.make_environment())
        folder = self.folder / f"run-{name}"
        folder.mkdir(exist_ok=True)
        os.utime(folder)
        by_age = sorted(self.folder.glob("run-*"), key=lambda path: path.stat().st_mtime)
        for old in by_age[:-FEDERATIONS_KEPT]:
            shutil.rmtree(old, ignore_errors=True)
        return RegionHome(configuration, self.region, folder, climate, federation_id, self.say)


def run_node(
    resident: Resident,
    server: str,
    wrap: Callable[[Client], Client] | None = None,
) -> None:
    """Take part in the federations of a server, until interrupted.

    A SuperNode that ends, because the server went away or did not let it in, is started again:
    the agent stays in memory. ``wrap`` puts something between the node and the client app.
    """
    credentials, folder, say = resident.credentials, resident.folder, resident.say
    machine, port = split_address(server)
    if credentials is None:
        refuse_open_address(server)
        security = ["--insecure"]
    else:
        security = ["--root-certificates", str(credentials.authority)]
        security += ["--auth-supernode-private-key", str(credentials.node_key)]
    app: Client = resident.answer if wrap is None else wrap(resident.answer)
    secret = make_secret(folder / "supernode.secret")
    said = ""
    while True:
        why = _obstacle(server, credentials)
        if why is None:
            own = free_port()
            more = [
                "--superlink",
                f"{machine}:{port}",
                "--port",
                str(own),
                "--isolation",
                "process",
            ]
            more += ["--node-config", f"region={resident.region}"]
            more += ["--superexec-auth-secret-file", str(folder / "supernode.secret")]
            with Program("supernode", [*more, *security], folder) as program:
                runtime = Runtime(f"{HERE}:{own}", secret, None)
                serve_client_app(runtime, app, lambda: program.runs)
            why = program.last_words()
        if why != said:
            say(f"region {resident.region}: not connected ({why}); trying again")
            said = why
        time.sleep(RESTART_SECONDS)


def _obstacle(server: str, credentials: Credentials | None) -> str | None:
    """Why the server cannot be reached, if so."""
    verify: ssl.SSLContext | bool = True
    if credentials is not None:
        try:
            verify = ssl.create_default_context(cafile=credentials.authority)
        except ssl.SSLError:
            raise InputError(f"{credentials.authority}: is not a certificate") from None
    try:
        httpx.get(f"http{'' if credentials is None else 's'}://{server}/", verify=verify)
    except httpx.TransportError as error:
        reason = str(error) or type(error).__name__
        return f"{server}: {reason.removeprefix('[Errno 111] ')}"
    return None
